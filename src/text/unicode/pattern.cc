#include "unicode/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>

#include "base/error.h"
#include "unicode/pattern_syntax.h"
#include "unicode/utf8.h"

namespace fovea::text {
namespace {

constexpr size_t length_limit = 1 << 14;    // bytes of an expression; the longest known has 600
constexpr uint32_t nesting_limit = 100;     // nesting of parentheses
constexpr uint32_t step_limit = 2'000'000;  // steps of one match; real matches take a few dozen
constexpr uint32_t heap_limit = 16 << 10;   // KiB of memory for backtracking
// Initial and maximum bytes of the stack of compiled expressions.
constexpr size_t stack_start = 32 << 10, stack_limit = 1 << 20;

// PCRE2's step limit applies to one match from one position, and a run of equal characters is one
// step, so the time is limited too. The limit is in CPU time, which does not depend on other
// processes, and is about 50 times what expressions without backtracking take. The thread may use
// the remaining time, at most a second of it, for its next texts.
class TimeLimit {
 public:
  void begin(size_t bytes) {
    left_ = std::min(left_, kAtOnce) + kPerByte * static_cast<double>(bytes);
    begin_ = now();
  }
  // Returns whether the limit is exceeded; if so, resets it for the next text.
  bool exceeded() {
    const double spent = now() - begin_;
    if (spent <= left_) return false;
    left_ = kAtOnce;
    return true;
  }
  void end() { left_ -= now() - begin_; }

 private:
  static constexpr double kAtOnce = 1, kPerByte = 5e-6;  // seconds
  static double now() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }

  double left_ = kAtOnce, begin_ = 0;
};

constexpr size_t kMatchesBetweenReadings = 64;  // matches between two readings of the clock
constexpr size_t kStartsAtOnce = 256;           // positions that one search tries as starts

std::string message_of(int code) {
  std::array<unsigned char, 256> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

}  // namespace

struct Pattern::Expression {
  Expression(const std::string& expression, const std::string& location)
      : where(location), searches_at_once(expression.find("\\G") != expression.npos) {
    std::unique_ptr<pcre2_compile_context, decltype(&pcre2_compile_context_free)> options(
        pcre2_compile_context_create(nullptr), pcre2_compile_context_free);
    pcre2_set_newline(options.get(), PCRE2_NEWLINE_LF);
    pcre2_set_parens_nest_limit(options.get(), nesting_limit);
    int error = 0;
    size_t at = 0;
    code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expression.data()), expression.size(),
                             PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_USE_OFFSET_LIMIT,
                             &error, &at, options.get()));
    if (!code) {
      fail(ErrorKind::Unsupported,
           "{}: the regular expression is not supported: {} (at byte {}); "
           "expected one that PCRE2 also supports",
           where, message_of(error), at);
    }
    // If this fails, the expression is interpreted.
    pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
    context.reset(pcre2_match_context_create(nullptr));
    pcre2_set_match_limit(context.get(), step_limit);
    pcre2_set_heap_limit(context.get(), heap_limit);
  }

  struct Free {
    void operator()(pcre2_code* p) const { pcre2_code_free(p); }
    void operator()(pcre2_match_context* p) const { pcre2_match_context_free(p); }
    void operator()(pcre2_match_data* p) const { pcre2_match_data_free(p); }
    void operator()(pcre2_jit_stack* p) const { pcre2_jit_stack_free(p); }
  };
  // Returns the last position at which the next search may start a match.
  size_t last_start(std::string_view text, size_t from) const {
    size_t last = searches_at_once ? text.size() : std::min(from + kStartsAtOnce, text.size());
    while (last < text.size() && (static_cast<uint8_t>(text[last]) & 0xC0) == 0x80) --last;
    return last;
  }
  [[noreturn]] void give_up(const std::string& why) const {
    fail(ErrorKind::Unsupported,
         "{}: the regular expression fails on a text: {}; expected one that matches without much "
         "backtracking",
         where, why);
  }

  std::string where;
  // \G matches where a search begins, so one search must cover the whole text.
  bool searches_at_once;
  std::unique_ptr<pcre2_code, Free> code;
  std::unique_ptr<pcre2_match_context, Free> context;
};

Pattern Pattern::text(std::string text) {
  Pattern pattern;
  pattern.text_ = std::move(text);
  return pattern;
}

Pattern Pattern::regex(const std::string& expression, const std::string& where) {
  Pattern pattern;
  pattern.scanner_ = find_scanner(expression);
  if (pattern.scanner_) return pattern;
  if (expression.size() > length_limit) {
    fail(ErrorKind::Unsupported, "{}: the regular expression has {} bytes; expected at most {}",
         where, expression.size(), length_limit);
  }
  pattern.expression_ = std::make_shared<Expression>(from_oniguruma(expression, where), where);
  return pattern;
}

namespace {

void push(std::vector<Stretch>& stretches, size_t begin, size_t end, bool matches) {
  stretches.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(end), matches});
}

void find_text(std::string_view wanted, std::string_view text, std::vector<Stretch>& stretches) {
  size_t done = 0;
  while (done < text.size() && !wanted.empty()) {
    // Unlike find() of string_view, memmem() takes linear time for any string.
    const void* match =
        memmem(text.data() + done, text.size() - done, wanted.data(), wanted.size());
    if (match == nullptr) break;
    const auto found = static_cast<size_t>(static_cast<const char*>(match) - text.data());
    if (found > done) push(stretches, done, found, false);
    done = found + wanted.size();
    push(stretches, found, done, true);
  }
  if (done < text.size()) push(stretches, done, text.size(), false);
}

}  // namespace

void Pattern::find(std::string_view text, std::vector<Stretch>& stretches) const {
  if (scanner_) return scanner_->find(text, stretches);
  if (!expression_) return find_text(text_, text, stretches);
  const Expression& expression = *expression_;
  const std::unique_ptr<pcre2_match_data, Expression::Free> match(
      pcre2_match_data_create_from_pattern(expression.code.get(), nullptr));
  thread_local const std::unique_ptr<pcre2_jit_stack, Expression::Free> stack(
      pcre2_jit_stack_create(stack_start, stack_limit, nullptr));
  const std::unique_ptr<pcre2_match_context, Expression::Free> context(
      pcre2_match_context_copy(expression.context.get()));
  pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
  constexpr size_t nowhere = SIZE_MAX;
  thread_local TimeLimit time;
  time.begin(text.size());
  size_t done = 0, from = 0, last_end = nowhere;
  for (size_t matches = 1; from <= text.size(); ++matches) {
    const size_t last_start = expression.last_start(text, from);
    pcre2_set_offset_limit(context.get(), last_start);
    const int result =
        pcre2_match(expression.code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                    from, PCRE2_NO_UTF_CHECK, match.get(), context.get());
    if ((result == PCRE2_ERROR_NOMATCH || matches % kMatchesBetweenReadings == 0) &&
        time.exceeded())
      expression.give_up("it takes too long");
    if (result == PCRE2_ERROR_NOMATCH) {
      if (last_start == text.size()) break;
      from = last_start + utf8::first(text.substr(last_start)).bytes;
      continue;
    }
    if (result < 0) expression.give_up(message_of(result));
    const size_t* bounds = pcre2_get_ovector_pointer(match.get());
    const size_t begin = bounds[0], end = bounds[1];
    if (begin == end && end == last_end) {  // skip an empty match directly after another match
      from = end < text.size() ? end + utf8::first(text.substr(end)).bytes : end + 1;
      continue;
    }
    if (begin > done) push(stretches, done, begin, false);
    push(stretches, begin, end, true);
    done = from = last_end = end;
  }
  time.end();
  if (done < text.size()) push(stretches, done, text.size(), false);
}

}  // namespace fovea::text

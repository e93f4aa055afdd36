#include "jinja/interpreter.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/checked.h"
#include "jinja/text.h"
#include "unicode/utf8.h"

namespace fovea::text::jinja {
namespace {

std::string_view symbol(ExpressionKind operation) {
  constexpr std::string_view kSymbols[] = {"+", "-", "*", "/", "//", "%"};
  return kSymbols[static_cast<size_t>(operation) - static_cast<size_t>(ExpressionKind::add)];
}

Value integers(Runtime& runtime, ExpressionKind operation, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflows = false;
  switch (operation) {
    case ExpressionKind::add: overflows = __builtin_add_overflow(a, b, &result); break;
    case ExpressionKind::subtract: overflows = __builtin_sub_overflow(a, b, &result); break;
    case ExpressionKind::multiply: overflows = __builtin_mul_overflow(a, b, &result); break;
    case ExpressionKind::divide:
      if (b == 0) runtime.fail("division by zero");
      return Value(static_cast<double>(static_cast<long double>(a) / static_cast<long double>(b)));
    default:
      if (b == 0) runtime.fail("integer division or modulo by zero");
      if (b == -1) {  // INT64_MIN % -1 would trap
        if (operation == ExpressionKind::modulo) return Value(0);
        return integers(runtime, ExpressionKind::multiply, a, b);
      }
      const int64_t rest = a % b;
      const bool between = rest != 0 && (rest < 0) != (b < 0);  // Python rounds down
      if (operation == ExpressionKind::modulo) return Value(between ? rest + b : rest);
      return Value(a / b - (between ? 1 : 0));
  }
  if (overflows) runtime.unsupported("the result of {} has more than 64 bits", symbol(operation));
  return Value(result);
}

Value reals(Runtime& runtime, ExpressionKind operation, double a, double b) {
  switch (operation) {
    case ExpressionKind::add: return Value(a + b);
    case ExpressionKind::subtract: return Value(a - b);
    case ExpressionKind::multiply: return Value(a * b);
    default: break;
  }
  if (b == 0) runtime.fail("float division by zero");
  if (operation == ExpressionKind::divide) return Value(a / b);
  double rest = std::fmod(a, b);
  if (rest != 0 && (rest < 0) != (b < 0)) rest += b;
  if (operation == ExpressionKind::modulo) return Value(rest == 0 ? std::copysign(0.0, b) : rest);
  return Value(std::round((a - rest) / b));
}

Value repeated(Runtime& runtime, const Value& value, int64_t times) {
  const size_t count = times < 0 ? 0 : static_cast<size_t>(times);
  const size_t unit = value.is(Kind::string) ? value.bytes().size() : value.items().size();
  size_t total = 0;
  if (__builtin_mul_overflow(count, unit, &total)) total = std::numeric_limits<size_t>::max();
  if (value.is(Kind::string)) {
    runtime.bytes(total);
    std::string text;
    text.reserve(total);
    while (text.size() < total) text += value.bytes();
    return Value(std::move(text), value.text().escaped);
  }
  runtime.step(total);
  runtime.room(total * sizeof(Value));
  Values items;
  items.reserve(total);
  while (items.size() < total) {
    items.insert(items.end(), value.items().begin(), value.items().end());
  }
  return new_sequence(runtime, std::move(items), value.sequence().kind);
}

// Joins two texts like Python's markupsafe: if only one of them is escaped, the other one is first
// escaped.
Value joined_texts(Runtime& runtime, const Text& a, const Text& b) {
  const bool escaped = a.escaped || b.escaped;
  std::string left = escaped && !a.escaped ? escape_html(a.bytes) : a.bytes;
  const std::string right = escaped && !b.escaped ? escape_html(b.bytes) : b.bytes;
  runtime.bytes(left.size() + right.size());
  return Value(std::move(left) + right, escaped);
}

Value joined(Runtime& runtime, const Value& a, const Value& b) {
  runtime.room((a.items().size() + b.items().size()) * sizeof(Value));
  Values items = a.items();
  items.insert(items.end(), b.items().begin(), b.items().end());
  return new_sequence(runtime, std::move(items), a.sequence().kind);
}

bool repeats(const Value& value) {
  return value.is(Kind::string) || is_list(value) || is_tuple(value);
}

}  // namespace

Value apply(Runtime& runtime, ExpressionKind operation, const Value& a, const Value& b) {
  if (operation == ExpressionKind::modulo && a.is(Kind::string)) {
    return formatted(runtime, a, is_tuple(b) ? b.items() : Values{b});
  }
  if (a.is_undefined()) runtime.fail("{}", a.message());
  if (b.is_undefined()) runtime.fail("{}", b.message());
  if (a.is_integral() && b.is_integral()) {
    return integers(runtime, operation, a.integer(), b.integer());
  }
  if (a.is_number() && b.is_number()) return reals(runtime, operation, a.real(), b.real());
  if (operation == ExpressionKind::multiply) {
    if (repeats(a) && b.is_integral()) return repeated(runtime, a, b.integer());
    if (repeats(b) && a.is_integral()) return repeated(runtime, b, a.integer());
  }
  if (operation == ExpressionKind::add) {
    if (a.is(Kind::string) && b.is(Kind::string)) return joined_texts(runtime, a.text(), b.text());
    if ((is_list(a) && is_list(b)) || (is_tuple(a) && is_tuple(b))) return joined(runtime, a, b);
  }
  runtime.fail("unsupported operand type(s) for {}: '{}' and '{}'", symbol(operation), type_name(a),
               type_name(b));
}

Value formatted(Runtime& runtime, const Value& form, const Values& values) {
  std::string_view rest = form.bytes();
  std::string out;
  size_t used = 0;
  for (size_t at; (at = rest.find('%')) != rest.npos; rest.remove_prefix(at + 2)) {
    out += rest.substr(0, at);
    const char kind = at + 1 < rest.size() ? rest[at + 1] : ' ';
    if (kind == '%') {
      out += '%';
    } else if (kind != 's' && kind != 'd') {
      runtime.unsupported("the format %{} is not supported; expected %s or %d", kind);
    } else if (form.text().escaped) {
      runtime.unsupported("%{} in an escaped text is not supported", kind);
    } else if (used == values.size()) {
      runtime.fail("not enough arguments for format string");
    } else {
      const Value& value = values[used++];
      append_text(runtime, out, kind == 's' ? value : Value(integer_of(runtime, value, "%d")));
    }
    runtime.bytes(out.size());
  }
  if (used < values.size()) runtime.fail("not all arguments converted during string formatting");
  return Value(out + std::string(rest));
}

Value negate(Runtime& runtime, const Value& value, bool minus) {
  if (value.is_undefined()) runtime.fail("{}", value.message());
  if (!value.is_number()) {
    runtime.fail("bad operand type for unary {}: '{}'", minus ? '-' : '+', type_name(value));
  }
  if (value.is(Kind::real)) return Value(minus ? -value.real() : value.real());
  return integers(runtime, ExpressionKind::multiply, value.integer(), minus ? -1 : 1);
}

int64_t integer_of(Runtime& runtime, const Value& value, std::string_view what) {
  if (value.is_undefined()) runtime.fail("{}", value.message());
  if (!value.is_integral()) {
    runtime.fail("{} is of type '{}'; expected an integer", what, type_name(value));
  }
  return value.integer();
}

Value element(Runtime& runtime, const Value& value, int64_t index) {
  const bool is_text = value.is(Kind::string);
  if (!is_text && !is_indexable(value)) return Value();
  const size_t count = is_text ? value.text().length : value.items().size();
  if (index < 0) index += static_cast<int64_t>(count);
  if (index < 0 || index >= static_cast<int64_t>(count)) return Value();
  const auto index_ = static_cast<size_t>(index);
  if (!is_text) return value.items()[index_];
  const std::string_view text = value.bytes();
  runtime.bytes(text.size());
  const std::string_view rest = text.substr(byte_of(text, index_));
  return Value(std::string(rest.substr(0, utf8::first(rest).bytes)), value.text().escaped);
}

namespace {

// Returns the indices that a slice selects, like Python's slice.indices().
std::vector<size_t> slice_indices(Runtime& runtime, size_t count, const Value& start,
                                  const Value& stop, const Value& step) {
  const auto length = static_cast<int64_t>(count);
  const auto bound = [&](const Value& value, int64_t otherwise, int64_t low, int64_t high) {
    if (value.is(Kind::none)) return otherwise;
    const int64_t index = integer_of(runtime, value, "the index of a slice");
    return std::clamp(index < 0 ? index + length : index, low, high);
  };
  int64_t stride = step.is(Kind::none) ? 1 : integer_of(runtime, step, "the step of a slice");
  if (stride == 0) runtime.fail("slice step cannot be zero");
  stride = std::clamp(stride, -length - 1, length + 1);
  const bool forward = stride > 0;
  const int64_t low = forward ? 0 : -1, high = forward ? length : length - 1;
  const int64_t from = bound(start, forward ? 0 : length - 1, low, high);
  const int64_t to = bound(stop, forward ? length : -1, low, high);
  const int64_t distance = forward ? to - from : from - to;
  if (distance > 0) {
    const auto selected = static_cast<size_t>(divide_up(distance, forward ? stride : -stride));
    runtime.room(selected * sizeof(size_t));
  }
  std::vector<size_t> indices;
  for (int64_t at = from; forward ? at < to : at > to; at += stride) {
    indices.push_back(static_cast<size_t>(at));
  }
  runtime.step(indices.size() / 4);
  return indices;
}

std::string sliced_text(const std::string& text, const std::vector<size_t>& indices) {
  if (indices.empty()) return "";
  if (indices.back() - indices.front() + 1 == indices.size()) {  // consecutive
    const size_t begin = byte_of(text, indices.front());
    return text.substr(begin, byte_of(std::string_view(text).substr(begin), indices.size()));
  }
  std::vector<size_t> starts;  // byte positions of the characters
  for (size_t i = 0; i < text.size(); i += utf8::first(std::string_view(text).substr(i)).bytes) {
    starts.push_back(i);
  }
  starts.push_back(text.size());
  std::string result;
  for (const size_t index_ : indices) {
    result.append(text, starts[index_], starts[index_ + 1] - starts[index_]);
  }
  return result;
}

}  // namespace

Value sliced(Runtime& runtime, const Value& value, const Value& start, const Value& stop,
             const Value& step) {
  if (value.is_undefined()) runtime.fail("{}", value.message());
  if (value.is(Kind::string)) {
    const Text& text = value.text();
    runtime.bytes(text.bytes.size());
    const auto indices = slice_indices(runtime, text.length, start, stop, step);
    return Value(sliced_text(text.bytes, indices), text.escaped);
  }
  if (!is_indexable(value)) {
    runtime.fail("'{}' object is not subscriptable with a slice", type_name(value));
  }
  const Values& all = value.items();
  const auto indices = slice_indices(runtime, all.size(), start, stop, step);
  runtime.room(indices.size() * sizeof(Value));
  Values items;
  for (const size_t index_ : indices) items.push_back(all[index_]);
  return new_sequence(runtime, std::move(items), value.sequence().kind);
}

std::string replaced(Runtime& runtime, std::string_view text, std::string_view from,
                     std::string_view to, int64_t limit) {
  std::string out;
  size_t at = 0;
  for (int64_t done = 0; limit < 0 || done < limit; ++done) {
    // An empty `from` matches before every character and at the end.
    const size_t found =
        from.empty() && done > 0
            ? (at < text.size() ? at + utf8::first(text.substr(at)).bytes : text.npos)
            : text.find(from, at);
    if (found == text.npos) break;
    out.append(text, at, found - at);
    out += to;
    at = found + from.size();
    if (out.size() > runtime.limits().output_bytes) runtime.bytes(out.size());
  }
  out.append(text, at);
  runtime.bytes(out.size());
  return out;
}

}  // namespace fovea::text::jinja

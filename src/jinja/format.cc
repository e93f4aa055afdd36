#include "jinja/format.h"

#include <algorithm>
#include <cmath>

#include "base/math.h"
#include "jinja/characters.h"
#include "jinja/interpreter.h"
#include "jinja/literal.h"
#include "unicode/utf8.h"

namespace fovea::jinja {
namespace {

// Takes the values of a format one after the other.
class Percent {
 public:
  Percent(Runtime& runtime, const Value& values) : runtime_(runtime), values_(values) {}

  std::string converted(char kind) {
    switch (kind) {
      case '%': return "%";
      case 's': return to_text(runtime_, next());
      case 'r': return repr(runtime_, next());
      case 'd':
      case 'i': return integer(kind, next());
      default: runtime_.unsupported("the format %{} is not supported", kind);
    }
  }

  void expect_all_used() const {
    const bool all = is_tuple(values_) ? used_ == values_.items().size()
                                       : used_ > 0 || values_.is(Kind::dict) || is_list(values_) ||
                                             values_.is_undefined();
    if (!all) runtime_.fail("not all arguments converted during string formatting");
  }

 private:
  const Value& next() {
    const bool several = is_tuple(values_);
    if (used_ >= (several ? values_.items().size() : 1)) {
      runtime_.fail("not enough arguments for format string");
    }
    const size_t place = used_++;
    return several ? values_.items()[place] : values_;
  }

  std::string integer(char kind, const Value& value) const {
    if (value.is_integral()) return std::to_string(value.integer());
    if (!value.is(Kind::real)) {
      runtime_.fail("%{} format: an integer is required, not {}", kind, type_name(value));
    }
    if (!(std::abs(value.real()) < 9e18)) {
      runtime_.unsupported("%{} format: {} has more than 64 bits", kind, real_text(value.real()));
    }
    return std::to_string(static_cast<int64_t>(value.real()));
  }

  Runtime& runtime_;
  const Value& values_;
  size_t used_ = 0;
};

}  // namespace

Value format_percent(Runtime& runtime, const Value& text, const Value& values) {
  if (text.text().escaped) runtime.unsupported("formatting an escaped text");
  Percent percent(runtime, values);
  std::string_view rest = text.bytes();
  std::string out;
  for (size_t at; (at = rest.find('%')) != rest.npos; rest.remove_prefix(at + 2)) {
    if (at + 1 == rest.size()) runtime.fail("incomplete format");
    out += rest.substr(0, at);
    out += percent.converted(rest[at + 1]);
    runtime.bytes(out.size());
  }
  percent.expect_all_used();
  out += rest;
  return Value(std::move(out));
}

std::string blanks(Runtime& runtime, int64_t count) {
  const auto most = static_cast<int64_t>(runtime.limits().output_bytes) + 1;
  const auto bytes = static_cast<size_t>(std::clamp<int64_t>(count, 0, most));
  runtime.bytes(bytes);
  return std::string(bytes, ' ');
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

double rounded(double value, int64_t digits) {
  if (!std::isfinite(value) || digits > 320) return value;  // no double has so many decimals
  if (digits < -308) return std::copysign(0.0, value);
  if (digits < 0) {
    const double unit = math::pow(10.0, static_cast<double>(-digits));
    return std::nearbyint(value / unit) * unit;
  }
  const std::string text = fmt::format("{:.{}f}", value, digits);  // exact, half to even
  return *float_of(text);
}

}  // namespace fovea::jinja

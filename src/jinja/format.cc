#include "jinja/format.h"

#include <cmath>
#include <cstdio>

#include "base/math.h"
#include "jinja/characters.h"
#include "jinja/interpreter.h"
#include "jinja/literal.h"
#include "unicode/utf8.h"

namespace fovea::jinja {
namespace {

constexpr size_t kWidth = 10000;  // of one field: nothing real comes near

// One %-specification.
struct Field {
  bool left = false, zero = false, sign = false, space = false, alternative = false;
  size_t width = 0;
  int precision = -1;
  char kind = 0;
};

class Percent {
 public:
  Percent(Runtime& runtime, const Value& text, const Value& values)
      : runtime_(runtime), text_(text.bytes()), values_(values) {}

  std::string run() {
    std::string out;
    while (at_ < text_.size()) {
      const size_t percent = std::min(text_.find('%', at_), text_.size());
      out += text_.substr(at_, percent - at_);
      at_ = percent;
      if (percent == text_.size()) break;
      ++at_;
      field(out);
      runtime_.bytes(out.size());
    }
    const bool used = !is_tuple(values_) || next_ == values_.items().size();
    const bool ignorable =
        values_.is(Kind::dict) || is_list(values_) || values_.is_undefined() || next_ > 0;
    if (!used || (!is_tuple(values_) && !ignorable)) {
      runtime_.fail("not all arguments converted during string formatting");
    }
    return out;
  }

 private:
  char peek() const {
    if (at_ >= text_.size()) runtime_.fail("incomplete format");
    return text_[at_];
  }

  size_t number() {
    size_t value = 0;
    if (peek() == '*') runtime_.unsupported("the width * in a format");
    while (peek() >= '0' && peek() <= '9' && value <= kWidth) {
      value = value * 10 + static_cast<size_t>(text_[at_++] - '0');
    }
    if (value > kWidth) runtime_.fail("a format's width; expected at most {}", kWidth);
    return value;
  }

  void field(std::string& out) {
    if (peek() == '%') {
      out.push_back('%');
      ++at_;
      return;
    }
    const Value* named = nullptr;
    if (peek() == '(') named = &key();
    Field field;
    for (bool flags = true; flags;) {
      switch (peek()) {
        case '-': field.left = true; break;
        case '0': field.zero = true; break;
        case '+': field.sign = true; break;
        case ' ': field.space = true; break;
        case '#': field.alternative = true; break;
        default: flags = false; continue;
      }
      ++at_;
    }
    field.width = number();
    if (peek() == '.') {
      ++at_;
      field.precision = static_cast<int>(number());
    }
    while (peek() == 'l' || peek() == 'h' || peek() == 'L') ++at_;
    field.kind = text_[at_++];
    pad(out, field, converted(field, named ? *named : argument()));
  }

  const Value& key() {
    const size_t end = text_.find(')', at_);
    if (end == text_.npos) runtime_.fail("incomplete format key");
    const std::string name(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    if (!values_.is(Kind::dict)) runtime_.fail("format requires a mapping");
    const Value* found = values_.dict()->find(name);
    if (!found) runtime_.fail("the format needs the key {}", jinja::quoted(name));
    next_ = 1;
    return *found;
  }

  const Value& argument() {
    const bool several = is_tuple(values_);
    if (next_ >= (several ? values_.items().size() : 1)) {
      runtime_.fail("not enough arguments for format string");
    }
    return several ? values_.items()[next_++] : (++next_, values_);
  }

  std::string converted(const Field& field, const Value& value) {
    switch (field.kind) {
      case 's':
      case 'r': {
        std::string text = field.kind == 's' ? to_text(runtime_, value) : repr(runtime_, value);
        if (field.precision >= 0) text.resize(byte_of(text, static_cast<size_t>(field.precision)));
        return text;
      }
      case 'd':
      case 'i':
      case 'u':
      case 'x':
      case 'X':
      case 'o': return integer(field, value);
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G': return real(field, value);
      default: runtime_.unsupported("the format %{} is not supported", field.kind);
    }
  }

  std::string integer(const Field& field, const Value& value) {
    const bool decimal = field.kind == 'd' || field.kind == 'i' || field.kind == 'u';
    if (!value.is_number() || (value.is(Kind::real) && !decimal)) {
      runtime_.fail("%{} format: an integer is required, not {}", field.kind, type_name(value));
    }
    if (value.is(Kind::real) && !(std::abs(value.real()) < 9e18)) {
      runtime_.unsupported("%{} format: {} has more than 64 bits", field.kind,
                           real_text(value.real()));
    }
    const int64_t number =
        value.is(Kind::real) ? static_cast<int64_t>(value.real()) : value.integer();
    const uint64_t size =
        number < 0 ? 0 - static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
    std::string digits = field.kind == 'x'   ? fmt::format("{:x}", size)
                         : field.kind == 'X' ? fmt::format("{:X}", size)
                         : field.kind == 'o' ? fmt::format("{:o}", size)
                                             : fmt::format("{}", size);
    const auto least = static_cast<size_t>(std::max(field.precision, 0));
    if (digits.size() < least) digits.insert(0, least - digits.size(), '0');
    if (field.alternative && !decimal) digits.insert(0, {'0', field.kind});
    return signed_text(field, number < 0, digits);
  }

  std::string real(const Field& field, const Value& value) {
    if (!value.is_number()) runtime_.fail("must be real number, not {}", type_name(value));
    const std::string form = fmt::format("%{}.{}{}", field.alternative ? "#" : "",
                                         field.precision < 0 ? 6 : field.precision, field.kind);
    const double size = std::abs(value.real());
    std::string text(static_cast<size_t>(std::snprintf(nullptr, 0, form.c_str(), size)) + 1, '\0');
    text.resize(static_cast<size_t>(std::snprintf(text.data(), text.size(), form.c_str(), size)));
    const bool negative = std::signbit(value.real()) && !std::isnan(value.real());
    return signed_text(field, negative, text);
  }

  static std::string signed_text(const Field& field, bool negative, const std::string& digits) {
    return (negative ? "-" : field.sign ? "+" : field.space ? " " : "") + digits;
  }

  static void pad(std::string& out, const Field& field, const std::string& text) {
    const size_t length = characters(text);
    const size_t missing = field.width > length ? field.width - length : 0;
    const bool number = std::string_view("sr").find(field.kind) == std::string_view::npos;
    if (field.left) {
      out += text + std::string(missing, ' ');
    } else if (field.zero && number) {
      const size_t sign = text.find_first_of("+- ") == 0 ? 1 : 0;
      out += text.substr(0, sign) + std::string(missing, '0') + text.substr(sign);
    } else {
      out += std::string(missing, ' ') + text;
    }
  }

  Runtime& runtime_;
  std::string_view text_;
  const Value& values_;
  size_t at_ = 0, next_ = 0;
};

}  // namespace

Value format_percent(Runtime& runtime, const Value& text, const Value& values) {
  if (text.text().escaped) runtime.unsupported("formatting an escaped text");
  return Value(Percent(runtime, text, values).run());
}

namespace {

// One {field} of str.format, without its braces.
class Braces {
 public:
  Braces(Interpreter& interpreter, const Arguments& arguments)
      : interpreter_(interpreter), arguments_(arguments) {}

  std::string value_of(std::string_view field) {
    if (field.find(':') != field.npos && field.back() != ':') {
      interpreter_.unsupported("the format specification {{{}}} is not supported", field);
    }
    field = field.substr(0, field.find(':'));
    const size_t mark = field.find('!');
    const std::string_view conversion = mark == field.npos ? "!s" : field.substr(mark);
    if (conversion != "!s" && conversion != "!r") {
      interpreter_.unsupported("the conversion {} is not supported", conversion);
    }
    const Value value = found(field.substr(0, mark));
    return conversion == "!r" ? repr(interpreter_, value) : to_text(interpreter_, value);
  }

 private:
  Value found(std::string_view path) {
    const size_t end = std::min(path.find_first_of(".["), path.size());
    Value value = argument(path.substr(0, end));
    for (path.remove_prefix(end); !path.empty();) {
      const bool item = path[0] == '[';
      const size_t stop =
          item ? path.find(']') : std::min(path.find_first_of(".[", 1), path.size());
      if (stop == path.npos) interpreter_.fail("expected ']' before end of string");
      const std::string_view name = path.substr(1, stop - 1);
      value = item ? interpreter_.item(value, key(name)) : interpreter_.attribute(value, name);
      path.remove_prefix(item ? stop + 1 : stop);
    }
    return value;
  }

  static bool is_number(std::string_view name) {
    return !name.empty() && name.size() < 10 && name.find_first_not_of("0123456789") == name.npos;
  }

  static Value key(std::string_view name) {
    return is_number(name) ? number_value(name) : Value(name);
  }

  Value argument(std::string_view name) {
    if (name.empty() || is_number(name)) {
      const size_t place =
          name.empty() ? next_++ : static_cast<size_t>(std::stoul(std::string(name)));
      if (place >= arguments_.positional.size()) {
        interpreter_.fail("Replacement index {} out of range for positional args tuple", place);
      }
      return arguments_.positional[place];
    }
    for (const auto& [key, value] : arguments_.named) {
      if (key == name) return value;
    }
    interpreter_.fail("the format needs the argument {}", name);
  }

  Interpreter& interpreter_;
  const Arguments& arguments_;
  size_t next_ = 0;
};

}  // namespace

Value format_braces(Interpreter& interpreter, const Value& text, const Arguments& arguments) {
  Braces braces(interpreter, arguments);
  const std::string_view form = text.bytes();
  std::string out;
  for (size_t at = 0; at < form.size();) {
    const char c = form[at];
    if (c != '{' && c != '}') {
      out.push_back(c);
      ++at;
    } else if (at + 1 < form.size() && form[at + 1] == c) {
      out.push_back(c);
      at += 2;
    } else {
      const size_t end = form.find('}', at);
      if (c == '}') interpreter.fail("Single '}}' encountered in format string");
      if (end == form.npos) interpreter.fail("expected '}}' before end of string");
      out += braces.value_of(form.substr(at + 1, end - at - 1));
      at = end + 1;
    }
    if (out.size() > interpreter.limits().output_bytes) interpreter.bytes(out.size());
  }
  interpreter.bytes(out.size());
  return Value(std::move(out));
}

std::string padded(Runtime& runtime, std::string_view text, int64_t width, Side side,
                   std::string_view fill) {
  const auto length = static_cast<int64_t>(characters(text));
  if (width <= length) return std::string(text);
  const auto missing = static_cast<size_t>(width - length);
  runtime.bytes(text.size() + std::min(missing, runtime.limits().output_bytes + 1) * fill.size());
  // Python puts the odd one on the left where the width is odd too.
  const size_t odd = static_cast<size_t>(width) & missing & 1u;
  const size_t left = side == Side::left ? 0 : side == Side::right ? missing : missing / 2 + odd;
  std::string result;
  for (size_t i = 0; i < left; ++i) result += fill;
  result += text;
  for (size_t i = left; i < missing; ++i) result += fill;
  return result;
}

std::string replaced(Runtime& runtime, std::string_view text, std::string_view from,
                     std::string_view to, int64_t limit) {
  std::string out;
  size_t at = 0;
  for (int64_t done = 0; limit < 0 || done < limit; ++done) {
    // An empty `from` is in front of every character and at the end.
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

// Python's operators. Integers have 64 bits: what does not fit is refused, never wrapped.

#include <cmath>

#include "base/math.h"
#include "jinja/characters.h"
#include "jinja/format.h"
#include "jinja/function.h"

namespace fovea::jinja {
namespace {

std::string_view symbol(ExpressionKind operation) {
  switch (operation) {
    case ExpressionKind::add: return "+";
    case ExpressionKind::subtract: return "-";
    case ExpressionKind::multiply: return "*";
    case ExpressionKind::divide: return "/";
    case ExpressionKind::floor_divide: return "//";
    case ExpressionKind::modulo: return "%";
    default: return "** or pow()";
  }
}

[[noreturn]] void refuse_types(Runtime& runtime, ExpressionKind operation, const Value& a,
                               const Value& b) {
  runtime.fail("unsupported operand type(s) for {}: '{}' and '{}'", symbol(operation), type_name(a),
               type_name(b));
}

[[noreturn]] void refuse_overflow(Runtime& runtime, ExpressionKind operation) {
  runtime.unsupported("the result of {} has more than 64 bits", symbol(operation));
}

int64_t floor_modulo(int64_t a, int64_t b) {
  if (b == -1) return 0;  // where a % b may trap
  const int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

Value integer_power(Runtime& runtime, int64_t base, int64_t exponent) {
  int64_t result = 1;
  for (int64_t left = exponent; left > 0; left >>= 1) {
    if ((left & 1) && __builtin_mul_overflow(result, base, &result)) {
      refuse_overflow(runtime, ExpressionKind::power);
    }
    if (left > 1 && __builtin_mul_overflow(base, base, &base)) {
      refuse_overflow(runtime, ExpressionKind::power);
    }
  }
  return Value(result);
}

Value integers(Runtime& runtime, ExpressionKind operation, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflows = false;
  switch (operation) {
    case ExpressionKind::add: overflows = __builtin_add_overflow(a, b, &result); break;
    case ExpressionKind::subtract: overflows = __builtin_sub_overflow(a, b, &result); break;
    case ExpressionKind::multiply: overflows = __builtin_mul_overflow(a, b, &result); break;
    case ExpressionKind::modulo:
      if (b == 0) runtime.fail("integer modulo by zero");
      result = floor_modulo(a, b);
      break;
    case ExpressionKind::floor_divide:
      if (b == 0) runtime.fail("integer division or modulo by zero");
      overflows = b == -1 && a == std::numeric_limits<int64_t>::min();
      if (!overflows) result = a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
      break;
    case ExpressionKind::divide:
      if (b == 0) runtime.fail("division by zero");
      return Value(static_cast<double>(static_cast<long double>(a) / static_cast<long double>(b)));
    default: return integer_power(runtime, a, b);
  }
  if (overflows) refuse_overflow(runtime, operation);
  return Value(result);
}

// Python's divmod of floats.
Value floor_division(double a, double b, bool modulo) {
  double rest = std::fmod(a, b), quotient = (a - rest) / b;
  if (rest != 0) {
    if ((b < 0) != (rest < 0)) {
      rest += b;
      quotient -= 1;
    }
  } else {
    rest = std::copysign(0.0, b);
  }
  if (modulo) return Value(rest);
  if (quotient == 0) return Value(std::copysign(0.0, a / b));
  double floored = std::floor(quotient);
  if (quotient - floored > 0.5) floored += 1;
  return Value(floored);
}

Value reals(Runtime& runtime, ExpressionKind operation, double a, double b) {
  switch (operation) {
    case ExpressionKind::add: return Value(a + b);
    case ExpressionKind::subtract: return Value(a - b);
    case ExpressionKind::multiply: return Value(a * b);
    case ExpressionKind::divide:
      if (b == 0) runtime.fail("float division by zero");
      return Value(a / b);
    case ExpressionKind::modulo:
    case ExpressionKind::floor_divide:
      if (b == 0) runtime.fail("float modulo by zero");
      return floor_division(a, b, operation == ExpressionKind::modulo);
    default: break;
  }
  if (a == 0 && b < 0) runtime.fail("0.0 cannot be raised to a negative power");
  if (a < 0 && std::isfinite(a) && std::isfinite(b) && b != std::floor(b)) {
    runtime.unsupported("a complex number is not supported");
  }
  const double result = math::pow(a, b);
  if (std::isinf(result) && std::isfinite(a) && std::isfinite(b)) {
    runtime.fail("Numerical result out of range");
  }
  return Value(result);
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
    if (total > 0) text = value.bytes();
    while (text.size() < total) text.append(text, 0, total - text.size());  // twice as long
    return Value(std::move(text), value.text().escaped);
  }
  runtime.step(total);
  Values items;
  items.reserve(total);
  for (size_t i = 0; unit > 0 && i < count; ++i) {
    items.insert(items.end(), value.items().begin(), value.items().end());
  }
  return new_sequence(runtime, std::move(items),
                      is_list(value) ? SequenceKind::list : SequenceKind::tuple);
}

bool repeats(const Value& value) { return value.is(Kind::string) || value.is(Kind::sequence); }

Value joined(Runtime& runtime, const Value& a, const Value& b) {
  if (a.is(Kind::string)) {
    if (a.text().escaped || b.text().escaped) runtime.unsupported("adding to an escaped text");
    runtime.bytes(a.bytes().size() + b.bytes().size());
    return Value(a.bytes() + b.bytes());
  }
  Values items = a.items();
  items.insert(items.end(), b.items().begin(), b.items().end());
  return new_sequence(runtime, std::move(items),
                      is_list(a) ? SequenceKind::list : SequenceKind::tuple);
}

}  // namespace

Value apply(Runtime& runtime, ExpressionKind operation, const Value& a, const Value& b) {
  if (operation == ExpressionKind::modulo && a.is(Kind::string)) {
    return format_percent(runtime, a, b);
  }
  if (a.is_undefined()) runtime.fail("{}", a.message());
  if (b.is_undefined()) runtime.fail("{}", b.message());
  if (a.is_integral() && b.is_integral()) {
    const bool whole = operation != ExpressionKind::power || b.integer() >= 0;
    if (whole) return integers(runtime, operation, a.integer(), b.integer());
  }
  if (a.is_number() && b.is_number()) return reals(runtime, operation, a.real(), b.real());
  if (operation == ExpressionKind::multiply) {
    if (repeats(a) && b.is_integral()) return repeated(runtime, a, b.integer());
    if (repeats(b) && a.is_integral()) return repeated(runtime, b, a.integer());
  }
  const bool alike = a.kind() == b.kind() && repeats(a) && is_list(a) == is_list(b);
  if (operation == ExpressionKind::add && alike) return joined(runtime, a, b);
  refuse_types(runtime, operation, a, b);
}

Value negate(Runtime& runtime, const Value& value, bool minus) {
  if (value.is_undefined()) runtime.fail("{}", value.message());
  if (value.is(Kind::real)) return Value(minus ? -value.real() : value.real());
  if (!value.is_integral()) {
    runtime.fail("bad operand type for unary {}: '{}'", minus ? '-' : '+', type_name(value));
  }
  return minus ? integers(runtime, ExpressionKind::subtract, 0, value.integer())
               : Value(value.integer());
}

int64_t index_of(Runtime& runtime, const Value& value, std::string_view what) {
  if (value.is_undefined()) runtime.fail("{}", value.message());
  if (!value.is_integral()) {
    runtime.fail("{} is of type '{}'; expected an integer", what, type_name(value));
  }
  return value.integer();
}

Value element(Runtime& runtime, const Value& value, int64_t index) {
  size_t count = 0;
  const auto range = value.as<Range>();
  if (value.is(Kind::string)) {
    count = value.text().length;
  } else if (value.is(Kind::sequence)) {
    count = value.items().size();
  } else if (range) {
    count = range->count;
  }
  const auto length = static_cast<int64_t>(count);
  if (index < 0) index += length;
  if (index < 0 || index >= length) return Value();
  const auto place = static_cast<size_t>(index);
  if (range) return Value(range->at(place));
  if (value.is(Kind::sequence)) return value.items()[place];
  const std::string_view text = value.bytes();
  if (text.size() == count) return Value(text.substr(place, 1));
  runtime.bytes(text.size());
  const size_t begin = byte_of(text, place);
  return Value(text.substr(begin, byte_of(text.substr(begin), 1)));
}

namespace {

// Python's slice.indices: where to start, how far to go, how many.
struct Extent {
  int64_t start, step;
  size_t count;
};

Extent extent(Runtime& runtime, int64_t length, const Value& start, const Value& stop,
              const Value& step) {
  const auto bound = [&](const Value& value, int64_t otherwise, int64_t low, int64_t high) {
    if (value.is(Kind::none)) return otherwise;
    int64_t index = index_of(runtime, value, "the index of a slice");
    if (index < 0) index += length;
    return std::clamp(index, low, high);
  };
  const int64_t stride = step.is(Kind::none) ? 1 : index_of(runtime, step, "the step of a slice");
  if (stride == 0) runtime.fail("slice step cannot be zero");
  const bool forward = stride > 0;
  const int64_t low = forward ? 0 : -1, high = forward ? length : length - 1;
  const int64_t from = bound(start, forward ? 0 : length - 1, low, high);
  const int64_t to = bound(stop, forward ? length : -1, low, high);
  return {from, stride, Range(from, to, stride).count};
}

std::string sliced_text(const Text& text, const Extent& extent) {
  if (extent.step == 1) {
    const std::string_view all = text.bytes;
    const size_t begin = text.length == all.size()
                             ? static_cast<size_t>(extent.start)
                             : byte_of(all, static_cast<size_t>(extent.start));
    const std::string_view rest = all.substr(begin);
    return std::string(
        rest.substr(0, text.length == all.size() ? extent.count : byte_of(rest, extent.count)));
  }
  std::vector<size_t> starts;  // of the characters
  for (size_t i = 0; i < text.bytes.size(); ++i) {
    if ((static_cast<uint8_t>(text.bytes[i]) & 0xC0u) != 0x80u) starts.push_back(i);
  }
  starts.push_back(text.bytes.size());
  std::string result;
  int64_t at = extent.start;
  for (size_t i = 0; i < extent.count; ++i) {
    const auto place = static_cast<size_t>(at);
    result.append(text.bytes, starts[place], starts[place + 1] - starts[place]);
    if (i + 1 < extent.count) at += extent.step;
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
    const auto length = static_cast<int64_t>(text.length);
    return Value(sliced_text(text, extent(runtime, length, start, stop, step)), text.escaped);
  }
  if (const auto range = value.as<Range>()) {
    const Extent part = extent(runtime, static_cast<int64_t>(range->count), start, stop, step);
    const int64_t first = range->start + part.start * range->step;
    const int64_t stride = part.step * range->step;
    return make_range(first, first + static_cast<int64_t>(part.count) * stride, stride);
  }
  if (!value.is(Kind::sequence)) {
    runtime.fail("'{}' object is not subscriptable with a slice", type_name(value));
  }
  const Values& all = value.items();
  const Extent part = extent(runtime, static_cast<int64_t>(all.size()), start, stop, step);
  runtime.step(part.count / 4);
  Values items;
  items.reserve(part.count);
  int64_t at = part.start;
  for (size_t i = 0; i < part.count; ++i) {
    items.push_back(all[static_cast<size_t>(at)]);
    if (i + 1 < part.count) at += part.step;
  }
  return new_sequence(runtime, std::move(items),
                      is_list(value) ? SequenceKind::list : SequenceKind::tuple);
}

}  // namespace fovea::jinja

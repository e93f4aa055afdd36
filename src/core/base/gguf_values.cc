// The metadata of a GGUF file as plain values.

#include <algorithm>
#include <array>
#include <cstring>

#include "base/error.h"
#include "base/gguf.h"
#include "fovea/core/excerpt.h"

namespace fovea {
namespace {

constexpr std::array kTypeNames = {"u8",   "i8",   "u16",   "i16", "u32", "i32", "f32",
                                   "bool", "text", "array", "u64", "i64", "f64"};

template <class T>
T element(const GgufValue& value, uint64_t index) {
  T number;
  std::memcpy(&number, value.bytes.data() + index * sizeof number, sizeof number);
  return number;
}

// Returns element `i` as an integer; empty if it is not an integer or exceeds int64.
std::optional<int64_t> integer_at(const GgufValue& value, uint64_t i) {
  switch (value.type) {
    case GgufType::u8: return element<uint8_t>(value, i);
    case GgufType::i8: return element<int8_t>(value, i);
    case GgufType::u16: return element<uint16_t>(value, i);
    case GgufType::i16: return element<int16_t>(value, i);
    case GgufType::u32: return element<uint32_t>(value, i);
    case GgufType::i32: return element<int32_t>(value, i);
    case GgufType::i64: return element<int64_t>(value, i);
    case GgufType::u64: {
      const auto number = element<uint64_t>(value, i);
      if (number > uint64_t{INT64_MAX}) return std::nullopt;
      return static_cast<int64_t>(number);
    }
    default: return std::nullopt;
  }
}

std::optional<double> number_at(const GgufValue& value, uint64_t i) {
  if (value.type == GgufType::f32) return element<float>(value, i);
  if (value.type == GgufType::f64) return element<double>(value, i);
  if (const auto integer = integer_at(value, i)) return static_cast<double>(*integer);
  return std::nullopt;
}

}  // namespace

const GgufValue* Gguf::find(std::string_view key) const {
  const auto found = std::lower_bound(values_.begin(), values_.end(), key,
                                      [](const GgufValue& a, auto b) { return a.key < b; });
  return found != values_.end() && found->key == key ? &*found : nullptr;
}

void Gguf::refuse(const GgufValue& value, const char* expected) const {
  fail(ErrorKind::BadFile, "{}: {} is {}{} (byte {}); expected {}", path(), excerpt(value.key),
       value.is_array ? fmt::format("an array of {} ", value.count) : "",
       kTypeNames[static_cast<size_t>(value.type)], value.bytes.data() - files_[0]->data(),
       expected);
}

std::optional<int64_t> Gguf::integer(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto number = value->is_array ? std::nullopt : integer_at(*value, 0);
  if (!number) refuse(*value, "an integer");
  return number;
}

std::optional<double> Gguf::number(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto number = value->is_array ? std::nullopt : number_at(*value, 0);
  if (!number) refuse(*value, "a number");
  return number;
}

std::optional<bool> Gguf::boolean(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  const bool fits = value->type == GgufType::boolean && !value->is_array &&
                    static_cast<uint8_t>(value->bytes[0]) <= 1;
  if (!fits) refuse(*value, "true or false");
  return value->bytes[0] == 1;
}

std::optional<std::string_view> Gguf::text(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->type != GgufType::text || value->is_array) refuse(*value, "a string");
  return value->bytes.substr(sizeof(uint64_t));
}

std::optional<std::vector<int64_t>> Gguf::integers(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  std::vector<int64_t> numbers;
  for (uint64_t i = 0; value->is_array && i < value->count; ++i) {
    const auto number = integer_at(*value, i);
    if (!number) refuse(*value, "an array of integers");
    numbers.push_back(*number);
  }
  if (!value->is_array) refuse(*value, "an array of integers");
  return numbers;
}

std::optional<std::vector<float>> Gguf::numbers(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_array || value->type != GgufType::f32) refuse(*value, "an array of f32");
  std::vector<float> numbers(value->count);
  if (!numbers.empty()) std::memcpy(numbers.data(), value->bytes.data(), value->bytes.size());
  return numbers;
}

std::optional<std::vector<std::string_view>> Gguf::texts(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_array || value->type != GgufType::text) refuse(*value, "an array of strings");
  std::vector<std::string_view> texts;
  for (std::string_view rest = value->bytes; !rest.empty();) {
    uint64_t bytes;
    std::memcpy(&bytes, rest.data(), sizeof bytes);
    texts.push_back(rest.substr(sizeof bytes, bytes));
    rest.remove_prefix(sizeof bytes + bytes);
  }
  return texts;
}

std::optional<std::string_view> Gguf::raw(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  const bool bytes = value->type == GgufType::u8 || value->type == GgufType::i8;
  if (!value->is_array || !bytes) refuse(*value, "an array of bytes");
  return value->bytes;
}

}  // namespace fovea

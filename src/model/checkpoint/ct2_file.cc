#include "checkpoint/ct2_file.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/checked.h"
#include "base/error.h"
#include "base/file_cursor.h"
#include "fovea/core/excerpt.h"
#include "safetensors/safetensors.h"

namespace fovea::model {
namespace {

constexpr uint32_t kVersion = 6;
// Real files have about a thousand variables of at most three axes.
constexpr uint32_t kMostVariables = 250'000;
constexpr uint8_t kMostAxes = 4;
constexpr const char* kScale = "_scale";

size_t ct2_width(Ct2Type type) {
  switch (type) {
    case Ct2Type::i8: return 1;
    case Ct2Type::i16:
    case Ct2Type::f16:
    case Ct2Type::bf16: return 2;
    case Ct2Type::f32:
    case Ct2Type::i32: return 4;
  }
  return 4;
}

const char* name_of(Ct2Type type) {
  constexpr const char* kNames[] = {"F32", "int8", "int16", "int32", "F16", "BF16"};
  return kNames[static_cast<size_t>(type)];
}

// The dtype in which a variable is read; unset: not as a tensor.
std::optional<DType> dtype_of(Ct2Type type) {
  switch (type) {
    case Ct2Type::f16: return DType::f16;
    case Ct2Type::bf16: return DType::bf16;
    case Ct2Type::i32: return std::nullopt;
    default: return DType::f32;
  }
}

// Names are lengths and bytes, of which the last is 0. They appear in messages.
std::string read_ct2_name(FileCursor& cursor, const char* what) {
  const std::string_view text = cursor.take(cursor.number<uint16_t>(what), what);
  const auto invalid = [](char c) { return c <= ' ' || c > '~'; };
  if (text.size() < 2 || text.back() != 0 || std::any_of(text.begin(), text.end() - 1, invalid))
    cursor.refuse(fmt::format("has {} that is no name", what), "printable ASCII and a zero byte");
  return std::string(text.substr(0, text.size() - 1));
}

Ct2Variable read_ct2_variable(FileCursor& cursor, const std::string& name,
                              const std::string& path) {
  Ct2Variable found;
  const auto axes = cursor.number<uint8_t>("a number of axes");
  if (axes > kMostAxes)
    cursor.refuse(fmt::format("{} has {} axes", excerpt(name), axes), "at most 4");
  uint64_t elements = 1;
  for (uint8_t i = 0; i < axes; ++i) {
    found.shape.push_back(cursor.number<uint32_t>("a shape"));
    elements = checked_multiply(elements, static_cast<uint64_t>(found.shape.back()), path);
  }
  const auto type = cursor.number<uint8_t>("a type");
  if (type > static_cast<uint8_t>(Ct2Type::bf16))
    cursor.refuse(fmt::format("{} has the type {}", excerpt(name), type), "0 to 5");
  found.type = static_cast<Ct2Type>(type);
  const auto bytes = cursor.number<uint32_t>("a size");
  // Sizes of 4 GiB and more are written modulo 2^32, so they are not supported.
  if (checked_multiply(elements, uint64_t{ct2_width(found.type)}, path) != bytes)
    cursor.refuse(fmt::format("{} has {} bytes", excerpt(name), bytes),
                  fmt::format("{} elements of {}", elements, name_of(found.type)));
  found.bytes = cursor.take(bytes, "a variable");
  return found;
}

template <class T>
T ct2_element(std::string_view bytes, int64_t i) {
  T value;
  std::memcpy(&value, bytes.data() + static_cast<size_t>(i) * sizeof value, sizeof value);
  return value;
}

}  // namespace

Ct2File::Ct2File(const std::string& path) : file_(std::make_shared<const MappedFile>(path)) {
  FileCursor cursor(*file_);
  const auto version = cursor.number<uint32_t>("a version");
  if (version != kVersion)
    fail(ErrorKind::Unsupported,
         "{}: has the binary version {}; expected {}, which CTranslate2 3 and later write", path,
         version, kVersion);
  specification_ = read_ct2_name(cursor, "the name of a specification");
  revision_ = cursor.number<uint32_t>("a revision");
  const auto count = cursor.number<uint32_t>("a number of variables");
  if (count > kMostVariables)
    cursor.refuse(fmt::format("has {} variables", count),
                  fmt::format("at most {}", kMostVariables));
  for (uint32_t i = 0; i < count; ++i) {
    const std::string known = read_ct2_name(cursor, "the name of a variable");
    if (!variables_.emplace(known, read_ct2_variable(cursor, known, path)).second)
      cursor.refuse(fmt::format("has {} twice", excerpt(known)), "distinct names");
  }
  const auto aliases = cursor.number<uint32_t>("a number of aliases");
  for (uint32_t i = 0; i < aliases; ++i) {
    const std::string alias = read_ct2_name(cursor, "an alias");
    const std::string known = read_ct2_name(cursor, "the variable of an alias");
    if (!variables_.contains(known))
      cursor.refuse(fmt::format("{} is an alias of {}", excerpt(alias), excerpt(known)),
                    "the name of a variable");
    if (variables_.contains(alias) || !aliases_.emplace(alias, known).second)
      cursor.refuse(fmt::format("has {} twice", excerpt(alias)), "distinct names");
  }
}

std::string Ct2File::resolved(const std::string& name) const {
  const auto alias = aliases_.find(name);
  return alias == aliases_.end() ? name : alias->second;
}

const Ct2Variable* Ct2File::find(std::string_view name) const {
  const auto found = variables_.find(resolved(std::string(name)));
  return found == variables_.end() ? nullptr : &found->second;
}

std::optional<double> Ct2File::number(std::string_view name) const {
  const Ct2Variable* found = find(name);
  if (found == nullptr || !found->shape.empty()) return std::nullopt;
  switch (found->type) {
    case Ct2Type::f32: return double{ct2_element<float>(found->bytes, 0)};
    case Ct2Type::i8: return ct2_element<int8_t>(found->bytes, 0);
    case Ct2Type::i16: return ct2_element<int16_t>(found->bytes, 0);
    case Ct2Type::i32: return ct2_element<int32_t>(found->bytes, 0);
    default: return std::nullopt;
  }
}

Ct2Tensors::Ct2Tensors(std::shared_ptr<const Ct2File> file, const std::vector<std::string>& padded)
    : file_(std::move(file)) {
  const auto add = [&](const std::string& name, const Ct2Variable& variable) {
    if (variable.shape.empty()) return;
    if (name.ends_with(kScale) &&
        file_->find(name.substr(0, name.size() - std::strlen(kScale))) != nullptr)
      return;
    Shape shape = variable.shape;
    if (std::find(padded.begin(), padded.end(), name) != padded.end()) ++shape[0];
    stored_.push_back({name, name_of(variable.type), dtype_of(variable.type), shape,
                       variable.bytes.data(), variable.bytes.size(), 0});
  };
  for (const auto& [name, variable] : file_->variables()) add(name, variable);
  for (const auto& [alias, name] : file_->aliases()) add(alias, *file_->find(name));
  std::sort(stored_.begin(), stored_.end(),
            [](const StoredTensor& a, const StoredTensor& b) { return a.name < b.name; });
}

Tensor Ct2Tensors::tensor(std::string_view name) const {
  const StoredTensor* stored = find(name);
  if (stored == nullptr)
    fail(ErrorKind::BadFile, "{}: {} is missing; expected it among the {} variables", file_->path(),
         name, stored_.size());
  if (!stored->dtype)
    fail(ErrorKind::Unsupported, "{}: {} is {}; expected floats, int8 or int16", file_->path(),
         name, stored->type);
  const Ct2Variable& variable = *file_->find(name);
  const bool whole = variable.shape == stored->shape;
  const bool integers = variable.type == Ct2Type::i8 || variable.type == Ct2Type::i16;
  const bool aligned = reinterpret_cast<uintptr_t>(stored->data) % size_of(*stored->dtype) == 0;
  if (whole && aligned && !integers)
    return borrow(const_cast<char*>(stored->data), stored->shape, *stored->dtype, file_->file());
  const Tensor values = zeros(stored->shape, *stored->dtype);
  if (!integers) {
    std::memcpy(values.data_as<char>(), stored->data, stored->bytes);
    return values;
  }
  const Ct2Variable* scales = file_->find(file_->resolved(std::string(name)) + kScale);
  const int64_t rows = variable.shape[0];
  const bool one = scales != nullptr && scales->bytes.size() == sizeof(float);
  if (scales == nullptr || scales->type != Ct2Type::f32 ||
      (!one && scales->bytes.size() != static_cast<size_t>(rows) * sizeof(float)))
    fail(ErrorKind::BadFile, "{}: {} has no scales of its {} rows; expected F32 under {}{}",
         file_->path(), name, rows, name, kScale);
  const int64_t width = rows == 0 ? 0 : elements(variable.shape) / rows;
  float* to = values.data_as<float>();
  for (int64_t row = 0; row < rows; ++row) {
    const float scale = ct2_element<float>(scales->bytes, one ? 0 : row);
    for (int64_t i = row * width; i < (row + 1) * width; ++i)
      to[i] = static_cast<float>(variable.type == Ct2Type::i8
                                     ? ct2_element<int8_t>(variable.bytes, i)
                                     : ct2_element<int16_t>(variable.bytes, i)) /
              scale;
  }
  return values;
}

namespace {

template <class T>
void append_value(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void append_name(std::string& to, const std::string& text) {
  append_value(to, static_cast<uint16_t>(text.size() + 1));
  to += text;
  to += '\0';
}

void append_header(std::string& to, const std::string& name, const Shape& shape, Ct2Type type,
                   size_t bytes) {
  append_name(to, name);
  append_value(to, static_cast<uint8_t>(shape.size()));
  for (const int64_t extent : shape) append_value(to, static_cast<uint32_t>(extent));
  append_value(to, static_cast<uint8_t>(type));
  check(bytes <= UINT32_MAX, "{}: has {} bytes; expected less than 4 GiB in CTranslate2's format",
        name, bytes);
  append_value(to, static_cast<uint32_t>(bytes));
}

// The elements of a variable in its type. Rows of i8 also get a scale each: 127 / the largest.
std::string ct2_elements(const Ct2Output& output, std::vector<float>& scales) {
  const float* from = output.values.data_as<float>();
  const int64_t count = output.values.size();
  std::string bytes;
  if (output.number) {
    if (output.type == Ct2Type::i8) append_value(bytes, static_cast<int8_t>(*from));
    if (output.type == Ct2Type::i16) append_value(bytes, static_cast<int16_t>(*from));
    if (output.type == Ct2Type::f32) append_value(bytes, *from);
    return bytes;
  }
  if (output.type == Ct2Type::f16 || output.type == Ct2Type::bf16) {
    const Tensor half = output.type == Ct2Type::f16 ? narrow_to_halves(output.values)
                                                    : convert(output.values, DType::bf16);
    return std::string(half.data_as<char>(), half.bytes());
  }
  if (output.type != Ct2Type::i8)
    return std::string(output.values.data_as<char>(), output.values.bytes());
  const int64_t rows = output.values.dim(0), width = rows == 0 ? 0 : count / rows;
  for (int64_t row = 0; row < rows; ++row) {
    float largest = 0;
    for (int64_t i = row * width; i < (row + 1) * width; ++i)
      largest = std::max(largest, std::abs(from[i]));
    scales.push_back(largest > 0 ? 127 / largest : 1);
    for (int64_t i = row * width; i < (row + 1) * width; ++i)
      append_value(bytes, static_cast<int8_t>(std::lrint(from[i] * scales.back())));
  }
  return bytes;
}

}  // namespace

void write_ct2(const std::string& path, const std::string& specification, uint32_t revision,
               std::vector<Ct2Output> variables,
               const std::vector<std::pair<std::string, std::string>>& aliases) {
  std::sort(variables.begin(), variables.end(),
            [](const Ct2Output& a, const Ct2Output& b) { return a.name < b.name; });
  std::string out, body;
  uint32_t count = 0;
  for (const Ct2Output& variable : variables) {
    std::vector<float> scales;
    const std::string bytes = ct2_elements(variable, scales);
    append_header(body, variable.name, variable.number ? Shape() : variable.values.shape(),
                  variable.type, bytes.size());
    body += bytes;
    ++count;
    if (scales.empty()) continue;
    append_header(body, variable.name + kScale, {std::ssize(scales)}, Ct2Type::f32,
                  scales.size() * sizeof(float));
    body.append(reinterpret_cast<const char*>(scales.data()), scales.size() * sizeof(float));
    ++count;
  }
  append_value(out, kVersion);
  append_name(out, specification);
  append_value(out, revision);
  append_value(out, count);
  std::string end;
  append_value(end, static_cast<uint32_t>(aliases.size()));
  for (const auto& [alias, name] : aliases) {
    append_name(end, alias);
    append_name(end, name);
  }
  write_file_atomically(path, Pieces{out, body, end});
}

}  // namespace fovea::model

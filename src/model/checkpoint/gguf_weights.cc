#include "checkpoint/gguf_weights.h"

#include "checkpoint/gguf_blocks.h"
#include "checkpoint/mxfp4_tensors.h"
#include "checkpoint/weight_rows.h"

namespace fovea::model {
namespace {

constexpr int64_t kMostRows = int64_t{1} << 24;  // row numbers are floats in rows_of_parts()

// Returns, for each row of each part, the number of its row in the file: the values that the parts
// of a tensor would have if each row of the file consisted of its own number.
std::vector<std::vector<int64_t>> rows_of_parts(const FileTensor& tensor,
                                                std::vector<Shape> shapes) {
  for (Shape& shape : shapes) shape.back() = 1;
  const Tensor numbers = empty(shape_in_file(tensor, shapes), DType::f32);
  for (int64_t i = 0; i < numbers.size(); ++i) numbers.data_as<float>()[i] = static_cast<float>(i);
  std::vector<std::vector<int64_t>> rows;
  for (const Tensor& part : from_file(tensor, numbers, shapes)) {
    const float* row = part.data_as<float>();
    rows.emplace_back(row, row + part.size());
  }
  return rows;
}

}  // namespace

std::optional<WeightFormat> format_as_stored(const FileTensor& tensor, const StoredTensor& stored,
                                             const std::vector<Shape>& shapes) {
  const GgufFormat* type = find_gguf_format(stored.type);
  if (stored.exponents != nullptr) return WeightFormat::mxfp4;
  const bool in_rows = tensor.stored == Stored::plain || tensor.stored == Stored::rotary_pairs ||
                       tensor.stored == Stored::rotary_last || tensor.stored == Stored::by_head ||
                       tensor.stored == Stored::stacked;
  if (type == nullptr || !in_rows) return std::nullopt;
  int64_t rows = 0;
  for (const Shape& shape : shapes) {
    if (shape.size() != 2 || shape[1] != shapes[0][1]) return std::nullopt;
    rows += shape[0];
  }
  if (rows > kMostRows || shapes[0][1] % block_format(type->format).block != 0) return std::nullopt;
  return type->format;
}

std::vector<PackedWeight> blocks_from_file(const FileTensor& tensor, const StoredTensor& stored,
                                           const std::vector<Shape>& shapes,
                                           const TensorSource& file) {
  if (stored.exponents != nullptr) return mxfp4_from_file(tensor, stored, shapes, file);
  const GgufFormat& type = *find_gguf_format(stored.type);
  const int64_t width = shapes[0][1];
  const int64_t row_bytes = width / block_format(type.format).block * type.reader.bytes;
  const auto* data = reinterpret_cast<const uint8_t*>(stored.data);
  std::vector<PackedWeight> weights;
  for (const std::vector<int64_t>& rows : rows_of_parts(tensor, shapes)) {
    std::vector<const uint8_t*> begins;
    begins.reserve(rows.size());
    for (const int64_t row : rows) begins.push_back(data + row * row_bytes);
    weights.emplace_back(
        type.format, std::ssize(rows), width, 32,
        std::make_unique<FileBlocks>(std::move(begins), std::vector<const uint8_t*>(), type.reader,
                                     row_bytes, file.file_of(stored)));
  }
  return weights;
}

}  // namespace fovea::model

#include "checkpoint/mxfp4_tensors.h"

#include <algorithm>

#include "base/error.h"
#include "base/threads.h"
#include "checkpoint/weight_rows.h"
#include "kernels/layout/blocks.h"

namespace fovea::model {
namespace {

constexpr int64_t kBlock = 32, kBytes = kBlock / 2;
constexpr std::string_view kBlocks = "_blocks", kScales = "_scales";

// A block without its exponent.
void read_pairs(const uint8_t* from, WeightBlock& to) {
  for (int64_t i = 0; i < kBytes; ++i) {
    to.numbers[2 * i] = from[i] & 15;
    to.numbers[2 * i + 1] = from[i] >> 4;
  }
}

// Returns the pair as one tensor.
StoredTensor joined(const SafeTensors& file, const StoredTensor& blocks, const std::string& path) {
  const std::string name = blocks.name.substr(0, blocks.name.size() - kBlocks.size());
  const StoredTensor* const scales = file.find(name + std::string(kScales));
  const Shape& shape = blocks.shape;
  const bool fits = shape.size() == 4 && shape[3] == kBytes && scales != nullptr &&
                    scales->shape == Shape(shape.begin(), shape.end() - 1) &&
                    blocks.dtype == DType::u8 && scales->dtype == DType::u8;
  if (!fits)
    fail(ErrorKind::BadFile,
         "{}: {} is {} {}, and {}{} {}; expected u8 [E, M, K / 32, 16] and [E, M, K / 32]", path,
         blocks.name, blocks.type, describe(shape), name, kScales,
         scales == nullptr ? "is missing"
                           : fmt::format("{} {}", scales->type, describe(scales->shape)));
  StoredTensor both = blocks;
  both.name = name;
  both.type = "MXFP4";
  both.dtype = DType::bf16;
  both.shape = {shape[0], shape[2] * kBlock, shape[1]};
  both.exponents = scales->data;
  return both;
}

}  // namespace

Mxfp4Tensors::Mxfp4Tensors(SafeTensors file, const std::string& path) : file_(std::move(file)) {
  for (const StoredTensor& each : file_.stored()) {
    const std::string_view name = each.name;
    const auto has = [&](std::string_view ending) {
      return name.ends_with(ending) &&
             file_.find(std::string(name.substr(0, name.size() - ending.size())) +
                        std::string(kBlocks)) != nullptr;
    };
    if (has(kScales)) continue;
    stored_.push_back(has(kBlocks) ? joined(file_, each, path) : each);
  }
  std::ranges::sort(stored_, {}, &StoredTensor::name);
}

Tensor Mxfp4Tensors::tensor(std::string_view name) const {
  const StoredTensor* const stored = find(name);
  if (stored == nullptr || stored->exponents == nullptr) return file_.tensor(name);
  const int64_t K = stored->shape[1], M = stored->shape[2], blocks = K / kBlock;
  const Tensor values = empty(stored->shape, DType::bf16);
  const auto* const data = reinterpret_cast<const uint8_t*>(stored->data);
  const auto* const exponents = reinterpret_cast<const uint8_t*>(stored->exponents);
  parallel_for(stored->shape[0] * M, 16, [&](int64_t begin, int64_t end) {
    WeightBlock block;
    float decoded[kBlock];
    for (int64_t row = begin; row < end; ++row) {
      bf16* const to = values.data_as<bf16>() + row / M * K * M + row % M;
      for (int64_t b = 0; b < blocks; ++b) {
        read_pairs(data + (row * blocks + b) * kBytes, block);
        block.scale = mxfp4_scale(exponents[row * blocks + b]);
        decode_block(block_format(WeightFormat::mxfp4), block, decoded);
        for (int64_t i = 0; i < kBlock; ++i) to[(b * kBlock + i) * M] = narrow(decoded[i]);
      }
    }
  });
  return values;
}

std::vector<PackedWeight> mxfp4_from_file(const FileTensor& tensor, const StoredTensor& stored,
                                          const std::vector<Shape>& shapes,
                                          const TensorSource& file) {
  const int64_t parts = std::ssize(shapes) / tensor.group, N = shapes[0][0], K = shapes[0][1];
  const int64_t blocks = K / kBlock;
  const auto* const data = reinterpret_cast<const uint8_t*>(stored.data);
  const auto* const exponents = reinterpret_cast<const uint8_t*>(stored.exponents);
  std::vector<PackedWeight> weights;
  for (int64_t i = 0; i < std::ssize(shapes); ++i) {
    std::vector<const uint8_t*> begins, scales;
    for (int64_t n = 0; n < N; ++n) {
      const int64_t row = (i / parts * N + n) * parts + i % parts;
      begins.push_back(data + row * blocks * kBytes);
      scales.push_back(exponents + row * blocks);
    }
    weights.emplace_back(WeightFormat::mxfp4, N, K, kBlock,
                         std::make_unique<FileBlocks>(std::move(begins), std::move(scales),
                                                      BlockReader{kBytes, read_pairs},
                                                      blocks * kBytes, file.file_of(stored)));
  }
  return weights;
}

}  // namespace fovea::model

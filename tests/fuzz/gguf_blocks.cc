// The first byte selects a block type. The rest is read as blocks, and as numbers to be quantised.

#include "checkpoint/gguf_blocks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "fuzz.h"
#include "kernels/layout/quantize_block.h"

namespace fovea {
namespace {

constexpr std::array kTypes = {"Q4_0", "Q4_1", "Q5_0", "Q5_1",   "Q8_0",   "Q2_K", "Q3_K",
                               "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS", "MXFP4"};

// Blocks are written as they were read, and counting finds the numbers that are not finite.
void use_blocks(const model::GgufFormat& type, const uint8_t* data, size_t size) {
  const BlockFormat& format = block_format(type.format);
  const auto bytes = static_cast<size_t>(type.reader.bytes);
  std::vector<uint8_t> written(bytes);
  std::vector<float> values(static_cast<size_t>(format.block));
  for (; size >= bytes; data += bytes, size -= bytes) {
    WeightBlock block;
    type.reader.read(data, block);
    model::write_gguf_block(type.format, block, written.data());
    require(std::equal(written.begin(), written.end(), data), "writing is the inverse of reading");
    decode_block(format, block, values.data());
    const auto bad =
        std::count_if(values.begin(), values.end(), [](float x) { return !std::isfinite(x); });
    require(count_nonfinite(format, {{&data, 1}, type.reader}, format.block) == bad,
            "counting finds the numbers that are not finite");
  }
}

// Every block of numbers in the range has finite values, near the numbers.
void quantise(const model::GgufFormat& type, const uint8_t* data, size_t size) {
  const BlockFormat& format = block_format(type.format);
  const auto count = static_cast<size_t>(format.block);
  if (format.offset == 128) return;  // Q8_0 is rounded without a search
  std::vector<float> x(count), y(count);
  for (; size >= 4 * count; data += 4 * count, size -= 4 * count) {
    std::memcpy(x.data(), data, 4 * count);
    float most = 0;
    for (float& value : x) {
      if (!(std::fabs(value) <= kMostInBlock)) value = 1;
      most = std::max(most, std::fabs(value));
    }
    WeightBlock block;
    quantize_block(format, x.data(), nullptr, block);
    decode_block(format, block, y.data());
    for (const float value : y)
      require(std::fabs(value) <= 3 * most + 1e-5f, "quantised numbers stay in the range");
  }
}

}  // namespace
}  // namespace fovea

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fovea;
  if (size == 0) return 0;
  const model::GgufFormat& type = *model::find_gguf_format(kTypes[data[0] % kTypes.size()]);
  use_blocks(type, data + 1, size - 1);
  quantise(type, data + 1, size - 1);
  return 0;
}

// Checks that blocks are decoded and rounded to the same bits as with the gguf package, and that
// encoding is the inverse of decoding.

#include "checkpoint/gguf_blocks.h"

#include <cmath>
#include <cstring>

#include "base/threads.h"
#include "checkpoint/gguf_tensors.h"
#include "fovea/core/random.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea::model {
namespace {

std::shared_ptr<const Gguf> golden() {
  return std::make_shared<const Gguf>("tests/goldens/gguf/every_type.gguf");
}

class GgufBlocks : public testing::TestWithParam<const char*> {};

TEST_P(GgufBlocks, DecodeLikeTheReference) {
  const GgufTensors tensors(golden());
  const Tensor decoded = tensors.tensor(fmt::format("{}.blocks", GetParam()));
  const Tensor expected = tensors.tensor(fmt::format("{}.values", GetParam()));
  ASSERT_EQ(decoded.shape(), expected.shape());
  EXPECT_EQ(decoded.dtype(), DType::f32);
  EXPECT_EQ(std::memcmp(decoded.data(), expected.data(), expected.bytes()), 0);
}
INSTANTIATE_TEST_SUITE_P(Kinds, GgufBlocks,
                         testing::Values("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K",
                                         "Q6_K", "Q2_K", "Q3_K", "IQ4_NL", "IQ4_XS", "MXFP4"));

class GgufEncoding : public testing::TestWithParam<const char*> {};

TEST_P(GgufEncoding, MatchesTheReference) {
  const auto file = golden();
  const Tensor values = GgufTensors(file).tensor("encode.F32");
  const GgufTensor* expected = file->find_tensor(fmt::format("encode.{}", GetParam()));
  const std::string encoded = encode_gguf(GetParam(), values);
  ASSERT_EQ(encoded.size(), expected->bytes);
  for (size_t i = 0; i < encoded.size(); ++i) ASSERT_EQ(encoded[i], expected->data[i]) << i;
}
INSTANTIATE_TEST_SUITE_P(Kinds, GgufEncoding, testing::Values("F16", "BF16", "Q8_0"));

// Blocks of random bits, which are written as they were read.
class GgufWriting : public testing::TestWithParam<const char*> {};

TEST_P(GgufWriting, IsTheInverseOfReading) {
  const auto file = golden();
  const GgufTensor& blocks = *file->find_tensor(fmt::format("{}.blocks", GetParam()));
  const GgufFormat& format = *find_gguf_format(GetParam());
  ASSERT_GT(blocks.bytes, 0u);
  for (size_t at = 0; at < blocks.bytes; at += static_cast<size_t>(format.reader.bytes)) {
    WeightBlock block;
    format.reader.read(reinterpret_cast<const uint8_t*>(blocks.data + at), block);
    std::vector<uint8_t> written(static_cast<size_t>(format.reader.bytes));
    write_gguf_block(format.format, block, written.data());
    EXPECT_EQ(std::memcmp(written.data(), blocks.data + at, written.size()), 0) << at;
  }
}

// Encoded bytes do not depend on threads, and each column has its own weight.
TEST_P(GgufWriting, EncodesRowsInParallel) {
  const int64_t width = 512, rows = 64;
  const Tensor values = empty({2, rows / 2, width});
  std::vector<float> weights(2 * width);
  Random random(1, Stream::init, 0);
  for (int64_t i = 0; i < values.size(); ++i) values.data_as<float>()[i] = random.uniform() - 0.4f;
  for (float& weight : weights) weight = 0.01f + random.uniform();
  const int before = thread_count();
  set_threads(1);
  const std::string one = encode_gguf(GetParam(), values, weights);
  set_threads(2);
  EXPECT_EQ(encode_gguf(GetParam(), values, weights), one);
  set_threads(before);
  for (const int64_t matrix : {0, 1}) {
    const Tensor half = values.view({rows, width}).rows(matrix * rows / 2, (matrix + 1) * rows / 2);
    const size_t size = one.size() / 2;
    EXPECT_EQ(encode_gguf(GetParam(), half, std::span(weights).subspan(matrix * width, width)),
              one.substr(matrix * size, size));
  }
  if (GetParam() != std::string("MXFP4")) {  // its scale follows from the largest value alone
    EXPECT_NE(encode_gguf(GetParam(), values), one);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, GgufWriting,
                         testing::Values("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K",
                                         "Q2_K", "Q3_K", "IQ4_NL", "IQ4_XS", "MXFP4"));

TEST(GgufWriting, Q4IsMoreExactThanTheReference) {
  const auto file = golden();
  const Tensor values = GgufTensors(file).tensor("encode.F32");
  const Tensor reference = GgufTensors(file).tensor("encode.Q4_0"), ours = empty(values.shape());
  decode_gguf("Q4_0", encode_gguf("Q4_0", values).data(), values.size(), ours.data_as<float>());
  const auto error = [&](const Tensor& found, int64_t row) {
    double sum = 0;
    for (int64_t i = 32 * row; i < 32 * row + 32; ++i)
      sum += std::pow(found.data_as<float>()[i] - values.data_as<float>()[i], 2);
    return sum;
  };
  for (const int64_t row : {0, 3, 5}) EXPECT_LT(error(ours, row), error(reference, row)) << row;
}

TEST(GgufWriting, RefusesTypesThatItCannotWrite) {
  const Tensor values = zeros({32});
  expect_error(ErrorKind::InvalidArgument, {"IQ2_XXS: cannot be written"},
               [&] { encode_gguf("IQ2_XXS", values); });
}

TEST(GgufTensors, RefusesUnsupportedBlocks) {
  const TemporaryFolder folder;
  const std::string path = folder / "model.gguf", elements(66, '\0');
  write_file_atomically(
      path,
      GgufImage(GgufMetadata(), {{"w", find_gguf_block(16), {256}, elements.data(), 66}}).pieces());
  const GgufTensors tensors(std::make_shared<const Gguf>(path));
  EXPECT_EQ(tensors.find("w")->type, "IQ2_XXS");
  expect_error(ErrorKind::Unsupported, {"model.gguf: w is stored as IQ2_XXS; expected F32, F16"},
               [&] { tensors.tensor("w"); });
  expect_error(ErrorKind::BadFile, {"tensor v is missing"}, [&] { tensors.tensor("v"); });
}

}  // namespace
}  // namespace fovea::model

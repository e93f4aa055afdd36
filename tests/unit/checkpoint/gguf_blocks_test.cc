// Checks that blocks are decoded and encoded to the same bits as with the gguf package.

#include "checkpoint/gguf_blocks.h"

#include <cstring>

#include "checkpoint/gguf_tensors.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea {
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
INSTANTIATE_TEST_SUITE_P(Kinds, GgufEncoding, testing::Values("F16", "BF16", "Q8_0", "Q4_0"));

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
}  // namespace fovea

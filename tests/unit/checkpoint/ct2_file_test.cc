#include "checkpoint/ct2_file.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "checkpoint/names.h"
#include "safetensors/safetensors.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea::model {
namespace {

std::vector<float> values(const Tensor& x) {
  return to_floats(x.dtype() == DType::f16 ? widen_halves(x) : x);
}

class Ct2Files : public testing::Test {
 protected:
  std::shared_ptr<const Ct2File> written(const std::vector<Ct2Output>& variables) const {
    write_ct2(folder_ / "model.bin", "SomeSpec", 4, variables, {{"alias/weight", "b/weight"}});
    return std::make_shared<const Ct2File>(folder_ / "model.bin");
  }
  const TemporaryFolder folder_;
  const Tensor matrix_ = tensor_of({1, -2, 0.5f, 127, 0, 0}, {3, 2});
};

TEST_F(Ct2Files, KeepVariablesOfAllTypes) {
  const auto file = written({{"b/weight", matrix_, Ct2Type::f16},
                             {"c/weight", matrix_, Ct2Type::bf16},
                             {"a/weight", matrix_, Ct2Type::f32},
                             {"count", tensor_of({-3}, {1}), Ct2Type::i16, true}});
  EXPECT_EQ(file->specification(), "SomeSpec");
  EXPECT_EQ(file->revision(), 4u);
  EXPECT_EQ(file->number("count"), -3);
  const Ct2Tensors tensors(file, {});
  EXPECT_EQ(tensors.stored().size(), 4u);  // with the alias, without the number
  for (const char* name : {"a/weight", "b/weight", "c/weight", "alias/weight"})
    EXPECT_EQ(values(tensors.tensor(name)), to_floats(matrix_)) << name;
}

TEST_F(Ct2Files, IntegersAreDividedByTheScaleOfTheirRow) {
  const auto file = written({{"b/weight", matrix_, Ct2Type::i8}});
  EXPECT_EQ(file->variables().at("b/weight_scale").shape, Shape{3});
  const Ct2Tensors tensors(file, {"b/weight"});
  ASSERT_EQ(tensors.stored().size(), 2u);
  const std::vector<float> found = to_floats(tensors.tensor("b/weight"));
  ASSERT_EQ(found.size(), 8u);                 // with a row of zeros at the end
  EXPECT_FLOAT_EQ(found[0], 64 * 2 / 127.0f);  // round(1 * 127 / 2)
  EXPECT_FLOAT_EQ(found[1], -2);
  EXPECT_FLOAT_EQ(found[3], 127);
  EXPECT_EQ(std::vector<float>(found.begin() + 4, found.end()), std::vector<float>(4));
  EXPECT_EQ(to_floats(tensors.tensor("alias/weight")).size(), 6u);
}

TEST_F(Ct2Files, DamageIsNamed) {
  written({{"b/weight", matrix_, Ct2Type::f32}});
  const std::string path = folder_ / "model.bin";
  const std::string content = read_file(path);
  const auto refused = [&](const std::string& bytes, ErrorKind kind, const std::string& text) {
    write_file_atomically(path, bytes);
    expect_error(kind, {text}, [&] { Ct2File file(path); });
  };
  refused("\5" + content.substr(1), ErrorKind::Unsupported, "has the binary version 5; expected 6");
  refused(content.substr(0, content.size() / 2), ErrorKind::BadFile, "ends within");
  std::string other = content;
  other.replace(other.find("alias/weight") + 15, 1, "x");
  refused(other, ErrorKind::BadFile, "is an alias of x/weight");
}

// The biases of queries and values of a layer whose keys have none, as one with zeros for them.
TEST(Names, KeylessBiasesHaveZerosBeforeTheLastPart) {
  const FileTensor tensor{"qkv", Stored::keyless, {"query", "value"}};
  const std::vector<Tensor> parts = {tensor_of({1, 2}, {2}), tensor_of({3, 4}, {2})};
  const Tensor whole = to_file(tensor, parts);
  EXPECT_EQ(to_floats(whole), (std::vector<float>{1, 2, 0, 0, 3, 4}));
  EXPECT_EQ(shape_in_file(tensor, {{2}, {2}}), Shape{6});
  const auto back = from_file(tensor, whole, {{2}, {2}});
  EXPECT_EQ(to_floats(back[0]), to_floats(parts[0]));
  EXPECT_EQ(to_floats(back[1]), to_floats(parts[1]));
  const FileTensor one{"kv", Stored::keyless, {"value"}};
  EXPECT_EQ(to_floats(to_file(one, {parts[1]})), (std::vector<float>{0, 0, 3, 4}));
  EXPECT_EQ(to_floats(from_file(one, tensor_of({9, 9, 3, 4}, {4}), {{2}})[0]), to_floats(parts[1]));
}

}  // namespace
}  // namespace fovea::model

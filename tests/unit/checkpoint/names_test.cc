#include "checkpoint/names.h"

#include <tuple>

#include "support/expect_error.h"
#include "support/small_spec.h"

namespace fovea::model {
namespace {

Transformer small() {
  // The number of layers has two digits.
  return Transformer(
      validated(test::small_decoder({.vocabulary = 5, .context = 4, .width = 4, .layers = 12})));
}

// Returns `rules`, followed by rules for all parameters of small().
Names with_the_rest(Names rules) {
  for (const NameRule& rule :
       Names{{"embedding.{token,position}.weight", "{embedding.token,decoder.position}"},
             {"ln.{i}.{a,f}.{w,b}", "decoder.{i}.norm.{attention,ffn}.input.{weight,bias}"},
             {"qkv.{i}.{w,b}", "decoder.{i}.attention.{query+key+value}.{weight,bias}",
              Stored::transposed},
             {"o.{i}.{w,b}", "decoder.{i}.attention.output.{weight,bias}"},
             {"mlp.{i}.{u,d}.{w,b}", "decoder.{i}.ffn.{up,down}.{weight,bias}"},
             {"ln_f.{w,b}", "decoder.norm.final.{weight,bias}"}}) {
    rules.push_back(rule);
  }
  return rules;
}

const FileTensor* find(const std::vector<FileTensor>& tensors, const std::string& name) {
  for (const FileTensor& tensor : tensors)
    if (tensor.name == name) return &tensor;
  return nullptr;
}

TEST(Names, MatchGroupsItemByItem) {
  Transformer model = small();
  const auto tensors = file_tensors(with_the_rest({}), model);
  for (const auto& [theirs, ours] : std::vector<std::pair<std::string, std::string>>{
           {"ln.0.a.w", "decoder.0.norm.attention.input.weight"},
           {"ln.11.f.b", "decoder.11.norm.ffn.input.bias"},
           {"mlp.3.u.b", "decoder.3.ffn.up.bias"},
           {"mlp.3.d.w", "decoder.3.ffn.down.weight"},
           {"embedding.position.weight", "decoder.position"}}) {
    const FileTensor* tensor = find(tensors, theirs);
    ASSERT_NE(tensor, nullptr) << theirs;
    EXPECT_EQ(tensor->parts, std::vector<std::string>{ours});
  }
}

TEST(Names, ListFusedPartsOnceInOrder) {
  Transformer model = small();
  const auto tensors = file_tensors(with_the_rest({}), model);
  const FileTensor* fused = find(tensors, "qkv.10.b");
  ASSERT_NE(fused, nullptr);
  EXPECT_EQ(fused->parts, (std::vector<std::string>{"decoder.10.attention.query.bias",
                                                    "decoder.10.attention.key.bias",
                                                    "decoder.10.attention.value.bias"}));
  // 2 embeddings, 12 layers of 4 norm, 2 fused, 2 output and 4 FFN tensors, 2 of the final norm.
  EXPECT_EQ(tensors.size(), 2u + 12 * 12 + 2);
}

TEST(Names, AreFoveasOwnWithoutRules) {
  Transformer model = small();
  const auto tensors = file_tensors({}, model);
  ASSERT_NE(find(tensors, "decoder.11.attention.key.weight"), nullptr);
  EXPECT_EQ(tensors[0].name, "embedding.token");
}

TEST(Names, RequireARuleForEachParameter) {
  Transformer model = small();
  expect_error(ErrorKind::Internal, {"decoder.position: no rule"},
               [&] { file_tensors({{"wte", "embedding.token"}}, model); });
}

TEST(Names, RoundTripFusedAndTransposedTensors) {
  const FileTensor rule = {"qk", Stored::transposed, {"q", "k"}};
  const std::vector<Tensor> parts = {tensor_of({1, 2, 3, 4}, {2, 2}), tensor_of({5, 6}, {1, 2})};
  EXPECT_EQ(shape_in_file(rule, {{2, 2}, {1, 2}}), (Shape{2, 3}));
  const Tensor file = to_file(rule, parts);
  ASSERT_EQ(file.shape(), (Shape{2, 3}));
  const float* x = file.data_as<float>();
  EXPECT_EQ(std::vector<float>(x, x + 6), (std::vector<float>{1, 3, 5, 2, 4, 6}));
  const auto back = from_file(rule, file, {{2, 2}, {1, 2}});
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(back[0].data_as<float>()[2], 3);
  EXPECT_EQ(back[1].data_as<float>()[1], 6);
}

// Two queries, a key and a value for each of two key-value heads.
TEST(Names, RoundTripPartsThatAlternateByKeyValueHeads) {
  FileTensor rule = {"qkv", Stored::by_head, {"q", "k", "v"}, 2};
  const std::vector<Tensor> parts = {tensor_of({1, 2, 3, 4}, {4, 1}), tensor_of({5, 6}, {2, 1}),
                                     tensor_of({7, 8}, {2, 1})};
  const std::vector<Shape> shapes = {{4, 1}, {2, 1}, {2, 1}};
  const Tensor file = to_file(rule, parts);
  EXPECT_EQ(to_floats(file), (std::vector<float>{1, 2, 5, 7, 3, 4, 6, 8}));
  const auto back = from_file(rule, file, shapes);
  for (size_t i = 0; i < parts.size(); ++i) EXPECT_EQ(to_floats(back[i]), to_floats(parts[i]));
}

TEST(Names, RoundTripHeadsWithSwappedHalves) {
  const FileTensor rule = {"q", Stored::swapped_halves, {"q"}, 4};
  const Tensor values = tensor_of({1, 2, 3, 4, 5, 6, 7, 8}, {8});
  const Tensor file = to_file(rule, {values});
  EXPECT_EQ(to_floats(file), (std::vector<float>{3, 4, 1, 2, 7, 8, 5, 6}));
  EXPECT_EQ(to_floats(from_file(rule, file, {{8}})[0]), to_floats(values));
}

// Two heads, of which latent attention rotates the first row.
TEST(Names, RoundTripHeadsWithTheirRotatedRowsLast) {
  const FileTensor rule = {"q", Stored::rotary_last, {"q"}, 3, 1};
  const Tensor values = tensor_of({1, 2, 3, 4, 5, 6}, {6, 1});
  const Tensor file = to_file(rule, {values});
  EXPECT_EQ(to_floats(file), (std::vector<float>{2, 3, 1, 5, 6, 4}));
  EXPECT_EQ(to_floats(from_file(rule, file, {{6, 1}})[0]), to_floats(values));
}

// Two heads of two rows and three columns.
TEST(Names, RoundTripTheMatricesOfHeads) {
  const Tensor values = tensor_of({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {4, 3});
  for (const auto& [stored, shape, elements] :
       {std::tuple(Stored::heads, Shape{2, 2, 3}, to_floats(values)),
        {Stored::heads_transposed, Shape{2, 3, 2}, {1, 4, 2, 5, 3, 6, 7, 10, 8, 11, 9, 12}}}) {
    const FileTensor rule = {"k", stored, {"k"}, 2};
    EXPECT_EQ(shape_in_file(rule, {values.shape()}), shape);
    const Tensor file = to_file(rule, {values});
    EXPECT_EQ(file.shape(), shape);
    EXPECT_EQ(to_floats(file), elements);
    EXPECT_EQ(to_floats(from_file(rule, file, {values.shape()})[0]), to_floats(values));
  }
}

TEST(Names, DoNotTransposeABias) {
  const FileTensor rule = {"b", Stored::transposed, {"a", "b"}};
  EXPECT_EQ(to_file(rule, {tensor_of({1, 2}, {2}), tensor_of({3}, {1})}).shape(), Shape{3});
}

}  // namespace
}  // namespace fovea::model

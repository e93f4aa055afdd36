// What families of text encoders read from config.json where several spellings mean the same model.

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "families/registry.h"
#include "nn/positions.h"
#include "support/expect_error.h"
#include "transformer/transformer.h"

namespace fovea::model {
namespace {

using Json = nlohmann::json;

Spec read(const Json& config) {
  Config reader(config, "config.json");
  Spec spec;
  describe(reader, family_named(config.at("model_type"), "config.json"), spec);
  return spec;
}

Json changed(Json config, const char* key, const Json& value) {
  config[key] = value;
  return config;
}

void expect_refused(const Json& config, std::initializer_list<std::string> texts) {
  expect_error(ErrorKind::Unsupported, texts, [&] { read(config); });
}

const Json kBert = {{"vocab_size", 50},        {"hidden_size", 48},        {"num_hidden_layers", 4},
                    {"intermediate_size", 64}, {"num_attention_heads", 6}, {"pad_token_id", 1}};

Json with(const Json& more) {
  Json config = kBert;
  config.update(more);
  return config;
}

// The keys of the model's own code in nomic-embed-text-v1.5, which has some of transformers too.
const Json kNomic = {{"model_type", "nomic_bert"},
                     {"architectures", {"NomicBertModel"}},
                     {"vocab_size", 50},
                     {"n_embd", 48},
                     {"n_layer", 4},
                     {"n_head", 6},
                     {"n_inner", 64},
                     {"n_positions", 8192},
                     {"max_position_embeddings", 2048},
                     {"hidden_size", 48},
                     {"type_vocab_size", 2},
                     {"layer_norm_epsilon", 1e-12},
                     {"activation_function", "swiglu"},
                     {"qkv_proj_bias", false},
                     {"mlp_fc1_bias", false},
                     {"mlp_fc2_bias", false},
                     {"rotary_emb_base", 1000},
                     {"rotary_emb_fraction", 1.0},
                     {"rotary_emb_interleaved", false},
                     {"rotary_emb_scale_base", nullptr},
                     {"rotary_scaling_factor", nullptr},
                     {"prenorm", false},
                     {"parallel_block", false},
                     {"causal", false},
                     {"resid_pdrop", 0.0},
                     {"embd_pdrop", 0.0},
                     {"attn_pdrop", 0.0},
                     {"fused_bias_fc", true},
                     {"use_xentropy", true}};

TEST(NomicBertConfig, ReadsTheKeysOfItsOwnCode) {
  const Spec found = read(kNomic);
  const Spec expected = read(with({{"model_type", "nomic_bert"},
                                   {"architectures", {"NomicBertModel"}},
                                   {"pad_token_id", 0},
                                   {"max_position_embeddings", 8192},
                                   {"rope_theta", 1000}}));
  EXPECT_EQ(write_spec(found), write_spec(expected));
  EXPECT_TRUE(can_express(nomic_bert, found));
}

TEST(NomicBertConfig, RefusesWhatItDoesNotCompute) {
  expect_refused(changed(kNomic, "prenorm", true), {"prenorm is true", "expected false"});
  expect_refused(changed(kNomic, "rotary_scaling_factor", 2), {"rotary_scaling_factor is 2"});
  expect_refused(changed(kNomic, "hidden_size", 24), {"hidden_size is 24", "expected 48"});
  expect_refused(changed(kNomic, "mlp_fc1_bias", true), {"mlp_fc1_bias is true"});
}

// nomic-embed-text-v2-moe: layers 1, 3, ... have experts.
TEST(NomicBertConfig, ReadsExperts) {
  Json config = kNomic;
  config.update({{"activation_function", "gelu"},
                 {"qkv_proj_bias", true},
                 {"mlp_fc1_bias", true},
                 {"mlp_fc2_bias", true},
                 {"moe_every_n_layers", 2},
                 {"num_experts", 3},
                 {"moe_top_k", 2},
                 {"moe_normalize_expert_weights", false},
                 {"num_shared_experts", 0},
                 {"expert_choice_router", false},
                 {"ffn_div", 1.0}});
  const Spec spec = read(config);
  const FeedForwardSpec& f = spec.encoder->ffn;
  EXPECT_EQ(f.experts.dense_layers, (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(f.experts.count, 3);
  EXPECT_TRUE(f.experts.sum_bias);
  EXPECT_FALSE(f.experts.normalise);
  EXPECT_FALSE(f.gated);
  EXPECT_STREQ(family_for(spec).model_type, "nomic_bert");

  Transformer model(spec);
  std::map<std::string, Shape> shapes, parameters;
  model.each([&](const std::string& name, Parameter& p) { parameters[name] = p.shape; });
  for (const FileTensor& tensor : file_tensors(nomic_bert, model)) {
    std::vector<Shape> parts;
    for (const std::string& part : tensor.parts) parts.push_back(parameters.at(part));
    shapes[tensor.name] = shape_in_file(tensor, parts);
  }
  EXPECT_EQ(shapes.at("encoder.layers.1.mlp.experts.mlp.w1"), (Shape{3 * 64, 48}));
  EXPECT_EQ(shapes.at("encoder.layers.1.mlp.experts.mlp.w2"), (Shape{3 * 64, 48}));
  EXPECT_EQ(shapes.at("encoder.layers.1.mlp.experts.bias"), (Shape{48}));
  EXPECT_EQ(shapes.at("encoder.layers.2.mlp.fc1.weight"), (Shape{64, 48}));
}

const Json kNew = with({{"model_type", "new"},
                        {"architectures", {"NewModel"}},
                        {"position_embedding_type", "rope"},
                        {"rope_theta", 20000},
                        {"rope_scaling", {{"type", "ntk"}, {"factor", 8.0}}},
                        {"type_vocab_size", 0},
                        {"max_position_embeddings", 512},
                        {"layer_norm_type", "layer_norm"},
                        {"pack_qkv", true},
                        {"logn_attention_scale", false},
                        {"logn_attention_clip1", false}});

// Frequency i is theta^(-2i/D) / factor^((2i + 2) / D).
TEST(GteConfig, ScalesFrequenciesAsItsOwnCode) {
  const Spec spec = read(kNew);
  EXPECT_EQ(spec.token_types, 0);
  const std::vector<float> found = rotary_frequencies(spec.encoder->position.rotary, 8, 100);
  for (int i = 0; i < 4; ++i) {
    const double expected = std::pow(20000, -2.0 * i / 8) * std::pow(8, -(2.0 * i + 2) / 8);
    EXPECT_NEAR(found[static_cast<size_t>(i)] / expected, 1, 1e-6) << i;
  }
  EXPECT_STREQ(family_for(spec).model_type, "gte");
}

TEST(GteConfig, RefusesWhatItDoesNotCompute) {
  expect_refused(changed(kNew, "logn_attention_scale", true), {"logn_attention_scale is true"});
  expect_refused(changed(kNew, "pack_qkv", false), {"pack_qkv is false"});
  expect_refused(changed(kNew, "layer_norm_type", "rms_norm"), {"layer_norm_type", "rms_norm"});
  expect_refused(changed(kNew, "rope_scaling", {{"type", "ntk"}, {"factor", 8}, {"mixed_b", 0.6}}),
                 {"rope_scaling.mixed_b", "ntk"});
  expect_error(ErrorKind::BadFile, {"rope_scaling.factor is 0", "1 to 1024"},
               [] { read(changed(kNew, "rope_scaling", {{"type", "ntk"}, {"factor", 0}})); });
}

TEST(AlbertConfig, ReadsGroupsOfLayers) {
  const Json config =
      with({{"model_type", "albert"}, {"embedding_size", 16}, {"max_position_embeddings", 64}});
  EXPECT_EQ(read(config).encoder->layer_groups, 1);
  EXPECT_EQ(read(changed(config, "num_hidden_groups", 2)).encoder->layer_groups, 2);
  EXPECT_EQ(read(changed(config, "num_hidden_groups", 4)).encoder->layer_groups, 0);
  expect_refused(changed(config, "inner_group_num", 2), {"inner_group_num is 2", "expected 1"});
  expect_refused(changed(config, "embedding_size", 48), {"embedding_size is 48", "another width"});
  expect_error(ErrorKind::BadFile, {"layer_groups is 3", "divisor"},
               [&] { read(changed(config, "num_hidden_groups", 3)); });
}

TEST(RoFormerConfig, RefusesRotatedValues) {
  const Json config = with({{"model_type", "roformer"}, {"rotary_value", true}});
  expect_refused(config, {"rotary_value is true", "expected false"});
}

TEST(EuroBertConfig, ReadsThePoolingOfClassifiers) {
  const Json config =
      with({{"model_type", "eurobert"}, {"architectures", {"EuroBertForSequenceClassification"}}});
  EXPECT_TRUE(read(config).head.pool_transformed);
  EXPECT_TRUE(read(changed(config, "clf_pooling", "late")).head.pool_transformed);
  const HeadSpec mean = read(changed(config, "clf_pooling", "mean")).head;
  EXPECT_EQ(mean.pooling, Pooling::mean);
  EXPECT_FALSE(mean.pool_transformed);
  EXPECT_EQ(read(changed(config, "classifier_pooling", "bos")).head.pooling, Pooling::first);
  expect_refused(changed(config, "classifier_pooling", "last"), {"classifier_pooling is \"last\""});
}

}  // namespace
}  // namespace fovea::model

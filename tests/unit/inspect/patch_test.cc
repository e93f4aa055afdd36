// Values of a trace, selected by name, and runs in which values are replaced.

#include <gtest/gtest.h>

#include "inspect/trace.h"
#include "loading/loading.h"
#include "support/expect_error.h"
#include "support/mixtures.h"
#include "support/small_spec.h"
#include "unit/inspect/ids.h"

namespace fovea::study {
namespace {

std::vector<std::pair<std::string, model::Spec>> patched_kinds() {
  std::vector<std::pair<std::string, model::Spec>> all = test::mixtures(test::small_decoder());
  const model::Spec post = model::validated(test::small_encoder());
  all.emplace_back("encoder", post);
  model::Spec both = test::small_encoder_decoder();
  both.decoder->attention.windows = {3, 0};
  all.emplace_back("encoder and decoder", model::validated(both));
  model::Spec experts = test::small_decoder();
  experts.decoder->ffn.experts.count = 4;
  all.emplace_back("experts", model::validated(experts));
  model::Spec biased = test::small_decoder();
  biased.decoder->position = {.kind = model::PositionKind::none,
                              .bias = model::DistanceBias::relative};
  biased.decoder->attention.softcap = 2;
  biased.decoder->embedding_norm = true;
  all.emplace_back("relative positions", model::validated(biased));
  return all;
}

TraceInput trace_of(const std::vector<int32_t>& ids, const model::Spec& spec) {
  TraceInput input;
  input.ids = row(ids);
  if (spec.encoder && spec.decoder) input.labels = row({3, 7, 1, 4});
  return input;
}

TraceTensors traced(model::Transformer& model, const TraceInput& input) {
  return trace_model(model, model::fovea_format, input);
}

std::vector<float> logits_with(model::Transformer& model, TraceInput input, const std::string& name,
                               const Tensor& value) {
  input.patches = {{name, value}};
  input.what = {"logits"};
  return to_floats(traced(model, input).at("logits"));
}

class Patching : public testing::TestWithParam<size_t> {
 protected:
  Patching() : model_(test::made(patched_kinds()[GetParam()].second)) {}
  model::Transformer model_;
};

// Every value that a trace contains is one that the rest of the run reads.
TEST_P(Patching, ReplacesWhatTheModelReads) {
  TraceInput input = trace_of({1, 5, 2, 9, 5}, model_.spec);
  input.what = {"*"};
  if (!model_.spec.encoder || !model_.spec.decoder) input.what.push_back("*hook*");
  const TraceTensors all = traced(model_, input);
  const std::vector<float> expected = to_floats(all.at("logits"));
  for (const auto& [name, value] : all) {
    if (value.dtype() != DType::f32 || name == "loss") continue;
    SCOPED_TRACE(name);
    const std::vector<float> same = logits_with(model_, input, name, value);
    const bool weights = name.find("scores") != name.npos || name.find("attention.") != name.npos ||
                         name.find("pattern") != name.npos;
    for (size_t i = 0; i < same.size(); ++i) ASSERT_NEAR(same[i], expected[i], weights ? 1e-4 : 0);
    const Tensor other = copy(value);
    for (int64_t i = 0; i < other.size(); ++i)
      other.data_as<float>()[i] += 8.0f * static_cast<float>(i % 7 - 3);
    EXPECT_NE(logits_with(model_, input, name, other), expected);
  }
}

TEST_P(Patching, TheStateBeforeALayerDecidesTheRest) {
  const bool both = model_.spec.encoder && model_.spec.decoder;
  if (both) GTEST_SKIP() << "the decoder also reads the encoder's output";
  const model::StackSpec& stack = model_.spec.decoder ? *model_.spec.decoder : *model_.spec.encoder;
  if (stack.layers < 2) GTEST_SKIP() << "there is no layer 1";
  if (stack.attention.value_residual != 0) GTEST_SKIP() << "layers also read the values of layer 0";
  TraceInput clean = trace_of({1, 5, 2, 9, 5}, model_.spec);
  const TraceTensors other = traced(model_, clean);
  const TraceInput corrupted = trace_of({4, 4, 2, 0, 7}, model_.spec);
  EXPECT_NE(to_floats(traced(model_, corrupted).at("logits")), to_floats(other.at("logits")));
  EXPECT_EQ(logits_with(model_, corrupted, "hidden.1", other.at("hidden.1")),
            to_floats(other.at("logits")));
}

INSTANTIATE_TEST_SUITE_P(Kinds, Patching, testing::Range(size_t{0}, patched_kinds().size()));

class Names : public testing::Test {
 protected:
  Names() : model_(test::made(model::validated(test::small_decoder({.layers = 11})))) {
    input_ = trace_of({1, 5, 2}, model_.spec);
  }
  std::vector<std::string> names(const std::vector<std::string>& what,
                                 const std::string& layers = "",
                                 const model::Family& family = model::gpt2) {
    input_.what = what;
    input_.layers = layers;
    std::vector<std::string> names;
    for (const auto& [name, value] : trace_model(model_, family, input_)) names.push_back(name);
    return names;
  }
  void refused(ErrorKind kind, const std::string& text) {
    expect_error(kind, {text}, [&] { traced(model_, input_); });
  }

  model::Transformer model_;
  TraceInput input_;
};

using List = std::vector<std::string>;

TEST_F(Names, AreSelectedByPatternsAndLayers) {
  EXPECT_EQ(names({"*query*"}, "9-10"), (List{"input_ids", "query.9", "query.10"}));
  EXPECT_EQ(names({"mlp_*,final_norm", "logits"}, "2"),
            (List{"final_norm", "input_ids", "logits", "mlp_hidden.2", "mlp_input.2",
                  "mlp_output.2", "mlp_pre.2"}));
  EXPECT_EQ(names({"hidden.*"}, "9-11"),
            (List{"hidden.9", "hidden.10", "hidden.11", "hidden.unnormed", "input_ids"}));
  EXPECT_EQ(names({}, "1"), (List{"attention.1", "hidden.1", "input_ids", "logits"}));
  EXPECT_EQ(names({"blocks.1.*"}).size(), 16u);  // and input_ids
}

TEST_F(Names, OfTransformerLensAreAliases) {
  input_.what = {"*", "*hook*"};
  const TraceTensors found = traced(model_, input_);
  for (const auto& [hook, name] : std::vector<std::pair<std::string, std::string>>{
           {"hook_embed", "embedding"},
           {"blocks.3.hook_resid_pre", "hidden.3"},
           {"blocks.3.ln1.hook_normalized", "mixer_input.3"},
           {"blocks.3.attn.hook_q", "query.3"},
           {"blocks.3.attn.hook_k", "key.3"},
           {"blocks.3.attn.hook_v", "value.3"},
           {"blocks.3.attn.hook_attn_scores", "scores.3"},
           {"blocks.3.attn.hook_pattern", "attention.3"},
           {"blocks.3.attn.hook_z", "heads.3"},
           {"blocks.3.hook_attn_out", "mixer_output.3"},
           {"blocks.3.hook_resid_mid", "hidden_mid.3"},
           {"blocks.3.ln2.hook_normalized", "mlp_input.3"},
           {"blocks.3.mlp.hook_pre", "mlp_pre.3"},
           {"blocks.3.mlp.hook_post", "mlp_hidden.3"},
           {"blocks.3.hook_mlp_out", "mlp_output.3"},
           {"blocks.3.hook_resid_post", "hidden.4"},
           {"blocks.10.hook_resid_post", "hidden.unnormed"},
           {"ln_final.hook_normalized", "final_norm"},
           {"ln_final.hook_normalized", "hidden.11"}})
    EXPECT_EQ(to_floats(found.at(hook)), to_floats(found.at(name))) << hook;
  EXPECT_FALSE(found.contains("blocks.11.hook_resid_pre"));
}

// Regression: hook_q and hook_k named the rotated queries and keys, which TransformerLens names
// hook_rot_q and hook_rot_k; its hook_q is the product with the matrix, before norm and rotation.
// Its hook_normalized of an RMSNorm lacks the gain. A value has a name only where it is the same.
TEST_F(Names, OfTransformerLensDependOnTheModel) {
  input_.what = {"*", "*hook*"};
  EXPECT_FALSE(traced(model_, input_).contains("blocks.3.attn.hook_rot_q"));
  model::Spec spec = test::small_decoder();
  spec.decoder->position = {.kind = model::PositionKind::rotary};
  spec.decoder->norm.kind = model::NormKind::rms;
  model::Transformer rotary = test::made(model::validated(spec));
  const TraceTensors found = traced(rotary, input_);
  EXPECT_EQ(to_floats(found.at("blocks.1.attn.hook_rot_q")), to_floats(found.at("query.1")));
  EXPECT_EQ(to_floats(found.at("blocks.1.attn.hook_rot_k")), to_floats(found.at("key.1")));
  for (const char* name : {"blocks.1.attn.hook_q", "blocks.1.attn.hook_k",
                           "blocks.1.ln1.hook_normalized", "ln_final.hook_normalized"})
    EXPECT_FALSE(found.contains(name)) << name;
}

// hidden.<layers> is the state that transformers reports.
TEST_F(Names, OfTheLastStateDependOnTheFamily) {
  model::Family unnormed = model::gpt2;
  unnormed.reports_unnormed = true;
  input_.what = {"hidden.11,final_norm,hidden.unnormed"};
  const TraceTensors after = trace_model(model_, model::gpt2, input_);
  const TraceTensors before = trace_model(model_, unnormed, input_);
  EXPECT_EQ(to_floats(after.at("hidden.11")), to_floats(after.at("final_norm")));
  EXPECT_EQ(to_floats(before.at("hidden.11")), to_floats(before.at("hidden.unnormed")));
  EXPECT_EQ(to_floats(before.at("final_norm")), to_floats(after.at("final_norm")));
}

TEST_F(Names, ThatDoNotExistAreRefused) {
  input_.what = {"hidden.*,querry.*"};
  refused(ErrorKind::InvalidArgument, "what: \"querry.*\" matches no name of this model");
  input_.what = {"hidden.*,"};
  refused(ErrorKind::InvalidArgument, "what: an empty name in \"hidden.*,\"");
  input_.what = {};
  for (const char* layers : {"x", "3-", "-1", "2-1", "1-2-3", "99999999999999999999"}) {
    input_.layers = layers;
    refused(ErrorKind::InvalidArgument, "expected a layer or a range, such as 3 or 0-5");
  }
  input_.layers = "3-12";
  refused(ErrorKind::InvalidArgument, "layers: \"3-12\"; expected at most 11");
}

TEST_F(Names, AndShapesOfPatchesAreChecked) {
  input_.patch_file = "clean.safetensors";
  input_.patches = {{"hidden.1", zeros({1, 4, 12})}};
  refused(ErrorKind::BadFile, "clean.safetensors: hidden.1 is [1, 4, 12]; expected [1, 3, 12]");
  input_.patches = {{"hiden.1", zeros({1, 3, 12})}};
  refused(ErrorKind::BadFile, "clean.safetensors: hiden.1 names no value of this model; expected");
  const Tensor x = zeros({1, 3, 12});
  input_.patches = {{"hidden.1", x}, {"blocks.0.hook_resid_post", x}};
  refused(ErrorKind::BadFile, "name the same value; expected one of them");
}

// Gradients reach the values through replaced weights, and stop at a replaced state.
TEST_F(Names, OfPatchesMayBeCombinedWithGradients) {
  input_.labels = input_.ids;
  input_.gradients = true;
  TraceInput patched = input_;
  const TraceTensors expected = traced(model_, input_);
  patched.patches = {{"attention.10", expected.at("attention.10")}};
  const TraceTensors found = traced(model_, patched);
  const auto gradient = [](const TraceTensors& all, const std::string& name) {
    return to_floats(all.at("grad.decoder." + name + ".weight"));
  };
  const auto a = gradient(found, "10.attention.value"),
             b = gradient(expected, "10.attention.value");
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-4);
  for (const float g : gradient(found, "10.attention.query")) EXPECT_EQ(g, 0.0f);
  patched.patches = {{"hidden.10", expected.at("hidden.10")}};
  for (const float g : gradient(traced(model_, patched), "9.attention.value")) EXPECT_EQ(g, 0.0f);
}

}  // namespace
}  // namespace fovea::study

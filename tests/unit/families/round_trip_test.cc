// Changes fields of a Spec and checks which family can express the result, and that saving and
// opening preserve the Spec.

#include "base/json.h"
#include "open/directory.h"
#include "safetensors/safetensors.h"
#include "support/expect_error.h"
#include "support/golden_folder.h"
#include "support/small_spec.h"
#include "support/temporary_folder.h"

namespace fovea::model {
namespace {

struct Variant {
  const char* name;
  const char* family;
  void (*change)(Spec&);
};

// The plain stack of recurrent layers that PyTorch has.
void recurrent(Spec& s, MixerKind cell) {
  StackSpec& d = *s.decoder;
  d.layers = 2;
  d.mixers = {cell};
  d.position.kind = PositionKind::none;
  d.placement = {false, false, false};
  d.final_norm = d.residual = d.ffn.present = false;
  s.head = {.tied = false, .bias = true};
}

class RoundTrip : public testing::TestWithParam<Variant> {
 protected:
  static Spec spec() {
    Spec s = test::small_decoder({.context = 6, .width = 8});
    GetParam().change(s);
    return validated(s);
  }
};

TEST_P(RoundTrip, PreservesSpecAndWeights) {
  const TemporaryFolder folder;
  const Spec before = spec();
  Transformer model(before);
  initialise(model, 1);
  EXPECT_STREQ(family_for(before).model_type, GetParam().family);
  save_model_files(folder.path(), model, 3);

  ModelFiles files = open_model_files(folder.path(), Weights::owned);
  EXPECT_STREQ(files.origin.family->model_type, GetParam().family);
  EXPECT_EQ(write_spec(files.model.spec), write_spec(before));
  EXPECT_EQ(files.end_ids, std::vector<int32_t>{3});
  EXPECT_TRUE(files.warnings.empty());

  const std::string weights = read_file(folder / "model.safetensors"),
                    config = read_file(folder / "config.json");
  save_model_files(folder.path(), files.model, 3, files.origin);
  EXPECT_EQ(read_file(folder / "model.safetensors"), weights);
  EXPECT_EQ(read_file(folder / "config.json"), config);
}

INSTANTIATE_TEST_SUITE_P(
    Spec, RoundTrip,
    ::testing::ValuesIn(std::vector<Variant>{
        {"plain", "gpt2", [](Spec&) {}},
        {"untied", "gpt2", [](Spec& s) { s.head.tied = false; }},
        {"ffn_width", "gpt2", [](Spec& s) { s.decoder->ffn.width = 5; }},
        {"relu", "gpt2", [](Spec& s) { s.decoder->ffn.activation = Activation::relu; }},
        {"gelu", "gpt2", [](Spec& s) { s.decoder->ffn.activation = Activation::gelu; }},
        {"silu", "gpt2", [](Spec& s) { s.decoder->ffn.activation = Activation::silu; }},
        {"epsilon", "gpt2", [](Spec& s) { s.decoder->norm.epsilon = 1e-3f; }},
        {"epsilon_0", "gpt2", [](Spec& s) { s.decoder->norm.epsilon = 0; }},
        {"dropout", "gpt2", [](Spec& s) { s.dropout = {0.1f, 0.2f, 0.3f}; }},
        {"deviation", "gpt2", [](Spec& s) { s.init_deviation = 0.07f; }},
        {"one_kv_head", "gpt_bigcode", [](Spec& s) { s.decoder->attention.kv_heads = 1; }},
        {"llama_with_biases", "llama",
         [](Spec& s) {
           StackSpec& d = *s.decoder;
           d.position.kind = PositionKind::rotary;
           d.norm.kind = NormKind::rms;
           d.norm.epsilon = 1e-6f;
           d.ffn.gated = true;
         }},
        {"lstm", "lstm", [](Spec& s) { recurrent(s, MixerKind::lstm); }},
        {"gru_without_biases", "gru",
         [](Spec& s) {
           recurrent(s, MixerKind::gru);
           s.decoder->recurrence.bias = false;
           s.head.tied = true;
         }},
        {"rnn", "rnn", [](Spec& s) { recurrent(s, MixerKind::rnn); }},
        {"recurrent_of_another_width", "fovea",
         [](Spec& s) {
           recurrent(s, MixerKind::lstm);
           s.decoder->recurrence.width = 6;
         }},
        {"recurrent_mixed", "fovea",
         [](Spec& s) {
           recurrent(s, MixerKind::lstm);
           s.decoder->mixers = {MixerKind::lstm, MixerKind::gru};
         }},
        // The config.json of GPT-2 cannot express these fields.
        {"large_deviation", "fovea", [](Spec& s) { s.init_deviation = 2; }},
        {"no_position", "fovea", [](Spec& s) { s.decoder->position.kind = PositionKind::none; }},
        {"rms", "fovea", [](Spec& s) { s.decoder->norm.kind = NormKind::rms; }},
        {"norm_bias", "fovea", [](Spec& s) { s.decoder->norm.bias = false; }},
        {"post_norm", "fovea", [](Spec& s) { s.decoder->placement = {false, false, true}; }},
        {"output_norm", "fovea", [](Spec& s) { s.decoder->placement.output = true; }},
        {"parallel", "fovea", [](Spec& s) { s.decoder->parallel = true; }},
        {"final_norm", "fovea", [](Spec& s) { s.decoder->final_norm = false; }},
        {"head_width", "fovea", [](Spec& s) { s.decoder->attention.head_width = 2; }},
        {"window", "fovea", [](Spec& s) { s.decoder->attention.windows = {3}; }},
        {"attention_bias", "fovea", [](Spec& s) { s.decoder->attention.bias = false; }},
        {"output_bias", "fovea", [](Spec& s) { s.decoder->attention.output_bias = false; }},
        {"gated", "fovea", [](Spec& s) { s.decoder->ffn.gated = true; }},
        {"ffn_bias", "fovea", [](Spec& s) { s.decoder->ffn.bias = false; }}}),
    [](const auto& chosen) { return chosen.param.name; });

// BertModel and ViTModel may be saved without their pooler; converting them ended with "no family
// can express the Spec".
TEST(ModelsWithoutTheirPooler, AreOfTheirFamily) {
  ModelFiles files = open_model_files("tests/goldens/peft/labels", Weights::mapped);
  Spec spec = files.model.spec;
  spec.head = head_of(bert, spec, HeadKind::pooled, 0);
  spec = validated(spec);
  EXPECT_TRUE(can_express(bert, spec));
  spec.head.transform = false;
  spec = validated(spec);
  EXPECT_TRUE(can_express(bert, spec));
  Transformer model(spec);
  initialise(model, 1);
  const TemporaryFolder folder;
  Origin origin;
  origin.family = &bert;
  save_model_files(folder.path(), model, std::nullopt, origin);
  EXPECT_EQ(read_json(folder / "config.json")["architectures"], nlohmann::json({"BertModel"}));
  files = open_model_files(folder.path(), Weights::mapped);
  EXPECT_FALSE(files.model.spec.head.transform);
  EXPECT_TRUE(can_express(bert, files.model.spec));
}

// The authors' files have other names of the head, and the head of the pre-training.
TEST(RoundTrips, ReadTheNamesOfTheAuthorsOfDeberta) {
  const GoldenFolder folder("deberta_v2");
  folder.set("config.json", "architectures", absent);
  folder.set("config.json", "legacy", absent);
  const std::string weights = folder / "model.safetensors";
  std::map<std::string, Tensor> tensors = {
      {"mask_predictions.dense.bias", zeros({3})},
      {"deberta.embeddings.position_embeddings.weight", zeros({36, 24})}};
  {
    const SafeTensors file(weights);
    for (const StoredTensor& each : file.stored()) {
      const std::string old = "cls.predictions.", fresh = "lm_predictions.lm_head.";
      std::string name = each.name;
      if (name.starts_with(old)) name = fresh + name.substr(old.size());
      if (const size_t at = name.find("transform."); at != name.npos) name.erase(at, 10);
      tensors[name] = copy(file.tensor(each.name));
    }
  }
  write_safetensors(weights, tensors);
  ModelFiles files = open_model_files(folder.path(), Weights::owned);
  ModelFiles expected = open_model_files("tests/goldens/deberta_v2", Weights::owned);
  const auto found = parameters_of(files.model), all = parameters_of(expected.model);
  ASSERT_EQ(found.size(), all.size());
  for (size_t i = 0; i < all.size(); ++i)
    EXPECT_EQ(to_floats(found[i].parameter->value), to_floats(all[i].parameter->value))
        << all[i].name;
}

}  // namespace
}  // namespace fovea::model

// Models with the gated delta rule, convolutions, state spaces, sinks, latent attention or groups
// of experts in GGUF files have the same logits, although the order of heads may change.

#include <algorithm>

#include "families/registry.h"
#include "families/shared.h"
#include "formats/gguf/architectures.h"
#include "formats/gguf/model.h"
#include "support/expect_error.h"
#include "support/gguf_contents.h"
#include "support/temporary_folder.h"
#include "tensor/tape.h"

namespace fovea::model {
namespace {

Spec base_spec() {
  Spec spec;
  spec.vocabulary = 23;
  spec.context = 100;
  spec.width = 32;
  spec.head.tied = true;
  StackSpec& d = *spec.decoder;
  d.layers = 4;
  d.attention.heads = 2;
  d.attention.head_width = 16;
  d.attention.bias = d.attention.output_bias = false;
  d.attention.norm = QueryKeyNorm::head;
  d.position.kind = PositionKind::rotary;
  d.norm.kind = NormKind::rms;
  d.ffn.gated = true;
  d.ffn.activation = Activation::silu;
  d.ffn.bias = false;
  return spec;
}

Transformer made(const Spec& spec) {
  Transformer model(validated(spec));
  initialise(model, 1);
  return model;
}

Transformer delta_model(int64_t heads, int64_t key_heads, bool experts) {
  Spec spec = base_spec();
  StackSpec& d = *spec.decoder;
  d.mixers = {MixerKind::gated_delta, MixerKind::gated_delta, MixerKind::attention};
  d.mixers.push_back(MixerKind::gated_delta);
  d.delta = {.heads = heads, .key_heads = key_heads, .key_width = 8};
  d.attention.gated = true;
  d.norm.unit_offset = true;
  if (experts)
    d.ffn.experts = {.count = 3, .chosen = 2, .width = 8, .shared = 1, .shared_gate = true};
  return made(spec);
}

Transformer convolution_model(bool experts) {
  Spec spec = base_spec();
  StackSpec& d = *spec.decoder;
  d.attention.head_width = 0;  // width / heads, which the file does not have
  d.attention.kv_heads = 1;
  d.mixers = {MixerKind::convolution, MixerKind::attention};
  d.mixers.push_back(MixerKind::convolution);
  d.mixers.push_back(MixerKind::attention);
  d.convolution.tokens = 4;
  if (experts)
    d.ffn.experts = {.count = 3,
                     .chosen = 2,
                     .width = 8,
                     .dense_layers = {0},
                     .score = ExpertScore::sigmoid,
                     .selection_bias = true};
  return made(spec);
}

Transformer mamba_model() {
  Spec spec = base_spec();
  spec.head.tied = false;
  StackSpec& d = *spec.decoder;
  d.mixers = {MixerKind::state_space};
  d.state_space = {.heads = 6, .head_width = 4, .groups = 2, .state_width = 5, .norm_groups = 2};
  d.position.kind = PositionKind::none;
  d.ffn.present = false;
  return made(spec);
}

// `share`: of a head that has rotary positions.
Transformer hybrid_model(float share, int64_t experts) {
  Spec spec = base_spec();
  StackSpec& d = *spec.decoder;
  d.attention = {.heads = 4, .kv_heads = 2, .bias = false, .output_bias = false};
  d.mixers = {MixerKind::state_space, MixerKind::attention, MixerKind::state_space};
  d.mixers.push_back(MixerKind::state_space);
  d.state_space = {.heads = 8, .head_width = 8, .groups = 2, .state_width = 5, .norm_groups = 2};
  d.position.rotary.share = share;
  if (share == 0) d.position = {.kind = PositionKind::none};
  d.ffn.width = 12;
  if (experts > 0) d.ffn.experts = {.count = experts, .chosen = 2, .shared = 1, .shared_width = 10};
  d.sublayer_scale = 0.5f;
  spec.embedding_scale = 3;
  return made(spec);
}

Transformer model_with_sinks() {
  Spec spec = base_spec();
  spec.head.tied = false;
  StackSpec& d = *spec.decoder;
  d.attention.norm = QueryKeyNorm::none;
  d.attention.kv_heads = 1;
  d.attention.bias = d.attention.output_bias = d.attention.sinks = true;
  d.attention.windows = {5, 0, 5, 0};
  d.position.rotary = {
      .scaling = RotaryScaling::yarn, .factor = 4, .original_context = 25, .whole_pairs = false};
  d.ffn.bias = true;
  d.ffn.activation = Activation::quick_gelu;
  d.ffn.gate_limit = 7;
  d.ffn.up_offset = 1;
  d.ffn.width = 24;
  d.ffn.experts = {.count = 3, .chosen = 2, .router_bias = true};
  return made(spec);
}

// The router of DeepSeek-V3, or with `plain` that of DeepSeek-V2-Lite, whose queries have no
// latent.
Spec latent_spec(bool plain) {
  Spec spec = base_spec();
  spec.head.tied = false;
  StackSpec& d = *spec.decoder;
  d.mixers = {MixerKind::latent};
  d.attention.norm = QueryKeyNorm::none;
  d.attention.head_width = 6;
  d.attention.value_width = 5;
  d.latent = {.width = 12, .query_width = plain ? 0 : 10, .rotary = 4, .epsilon = 1e-6f};
  d.position.rotary.neighbours = true;
  d.ffn.experts = {.count = 6,
                   .chosen = 2,
                   .width = 8,
                   .normalise = !plain,
                   .dense_layers = {0},
                   .score = plain ? ExpertScore::softmax : ExpertScore::sigmoid,
                   .selection_bias = !plain,
                   .scale = 2.5f,
                   .groups = 3,
                   .groups_chosen = 2,
                   .shared = plain ? 2 : 1};
  return spec;
}

// YaRN with mscale = mscale_all_dim = multiple.
void scale_positions(StackSpec& d, float multiple) {
  d.position.rotary.scaling = RotaryScaling::yarn;
  d.position.rotary.factor = 4;
  d.position.rotary.original_context = 25;
  d.position.rotary.attention_factor = 1;
  d.attention.scale = latent_scale(d, multiple);
}

std::vector<float> logits_of(const Transformer& model) {
  const NoGradient none;
  const Tensor ids = empty({1, 70}, DType::i32);
  for (int32_t t = 0; t < 70; ++t) ids.data_as<int32_t>()[t] = t * 7 % 23;
  Pass pass;
  pass.mask.causal = true;
  return to_floats(model.logits(model.hidden(ids, pass)));
}

// Writes a model in this architecture. Returns the model of the file, whose logits are the same.
Transformer written(Transformer& model, const Family& family, const char* architecture) {
  SCOPED_TRACE(architecture);
  const TemporaryFolder folder;
  GgufModel file(model, &family, FileDType::fp32);
  const std::string path = folder / "model.gguf";
  write_gguf_file(path, file, std::nullopt, 23, values_of(model));
  EXPECT_EQ(Gguf(path).text("general.architecture"), architecture);
  ModelFiles read = open_gguf_files(path, {.weights = Weights::owned});
  const std::vector<float> found = logits_of(read.model), expected = logits_of(model);
  EXPECT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < std::min(found.size(), expected.size()); ++i)
    EXPECT_NEAR(found[i], expected[i], 1e-5f) << i;
  return std::move(read.model);
}

struct Written {
  int64_t heads, key_heads;
  bool experts;
  const Family& family;
  const char* architecture;
};

TEST(GgufDelta, PreservesTheLogits) {
  for (const auto& [heads, key_heads, experts, family, architecture] :
       {Written{4, 2, true, qwen3_next, "qwen3next"}, Written{4, 4, false, qwen3_5_text, "qwen35"},
        Written{6, 2, false, qwen3_5_text, "qwen35"},
        Written{4, 2, true, qwen3_5_moe_text, "qwen35moe"}}) {
    Transformer model = delta_model(heads, key_heads, experts);
    const Transformer read = written(model, family, architecture);
    EXPECT_EQ(read.spec.decoder->delta.tiled, heads != key_heads && &family != &qwen3_next);
  }
}

TEST(GgufSinks, PreserveTheLogits) {
  Transformer model = model_with_sinks();
  written(model, gpt_oss, "gpt-oss");
}

TEST(GgufStateSpace, PreservesTheLogits) {
  Transformer alone = mamba_model(), dense = hybrid_model(0, 0), experts = hybrid_model(0, 3),
              rotary = hybrid_model(0.5f, 0);
  written(alone, mamba2, "mamba2");
  written(dense, granitemoehybrid, "granitehybrid");
  written(experts, granitemoehybrid, "granitehybrid");
  written(rotary, bamba, "granitehybrid");
}

TEST(GgufStateSpace, IsRefusedIfLlamaCppComputesSomethingElse) {
  const auto refused = [](void (*change)(StackSpec&)) {
    Spec spec = hybrid_model(0, 0).spec;
    change(*spec.decoder);
    expect_error(ErrorKind::Unsupported, {"no supported GGUF architecture can express its Spec"},
                 [&] { gguf_architecture_for(validated(spec), &granitemoehybrid); });
  };
  refused([](StackSpec& d) { d.state_space.convolution_bias = false; });
  refused([](StackSpec& d) { d.state_space.most_step = 1; });
  refused([](StackSpec& d) { d.state_space.norm_groups = 1; });
  refused([](StackSpec& d) { d.state_space.heads = 4; });
}

TEST(GgufConvolution, PreservesTheLogits) {
  Transformer dense = convolution_model(false), experts = convolution_model(true);
  written(dense, lfm2, "lfm2");
  written(experts, lfm2_moe, "lfm2moe");
}

TEST(GgufLatentAttention, PreservesTheLogits) {
  for (const bool plain : {false, true})
    for (const float multiple : {0.0f, 0.707f, 1.0f}) {
      Spec spec = latent_spec(plain);
      if (multiple > 0) scale_positions(*spec.decoder, multiple);
      Transformer model = made(spec);
      const Transformer read = written(model, plain ? deepseek_v2 : deepseek_v3, "deepseek2");
      EXPECT_EQ(write_spec(read.spec), write_spec(model.spec));
    }
}

// Older files have one matrix for the keys and the values of all heads.
TEST(GgufLatentAttention, IsReadFromOlderFiles) {
  Transformer model = made(latent_spec(false));
  const StackSpec& d = *model.spec.decoder;
  const int64_t H = d.attention.heads, D = d.attention.head_width, V = d.attention.value_width;
  const int64_t W = d.latent.width;
  test::GgufContents contents = test::gguf_contents(model, nullptr);
  std::map<std::string, const Parameter*> parameters;
  model.each([&](const std::string& name, const Parameter& p) { parameters[name] = &p; });
  const auto joint = [&](const std::string& layer) {  // [H (D + V), W]
    const auto part = [&](const char* name) {
      return to_floats(parameters.at("decoder." + layer + ".latent." + name)->value);
    };
    const std::vector<float> keys = part("key_up.weight"), values = part("value_up.weight");
    std::string bytes;
    for (int64_t h = 0; h < H; ++h) {
      bytes.append(reinterpret_cast<const char*>(&keys[static_cast<size_t>(h * D * W)]),
                   static_cast<size_t>(D * W) * sizeof(float));
      bytes.append(reinterpret_cast<const char*>(&values[static_cast<size_t>(h * V * W)]),
                   static_cast<size_t>(V * W) * sizeof(float));
    }
    return bytes;
  };
  for (size_t i = 0; i < contents.tensors.size(); ++i) {
    GgufTensor& tensor = contents.tensors[i];
    const size_t at = tensor.name.find("attn_k_b");
    if (at == std::string::npos) continue;
    const std::string layer = tensor.name.substr(4, at - 5);
    contents.elements[i] = std::make_shared<const std::string>(joint(layer));
    tensor.name.replace(at, 8, "attn_kv_b");
    tensor.shape = {H * (D + V), W};
    tensor.bytes = contents.elements[i]->size();
    tensor.data = contents.elements[i]->data();
  }
  std::erase_if(contents.tensors, [](const GgufTensor& tensor) {
    return tensor.name.find("attn_v_b") != std::string::npos;
  });
  const TemporaryFolder folder;
  const std::string path = folder / "model.gguf";
  contents.write(path);
  const ModelFiles read = open_gguf_files(path, {.weights = Weights::owned});
  EXPECT_EQ(logits_of(read.model), logits_of(model));
}

// llama.cpp chooses other groups than a model without biases for the choice.
TEST(GgufLatentAttention, WarnsOfGroupsThatAreChosenOtherwise) {
  for (const bool plain : {false, true}) {
    Transformer model = made(latent_spec(plain));
    const GgufModel file(model, nullptr, FileDType::fp32);
    EXPECT_EQ(file.warnings(values_of(model)).size(), plain ? 1u : 0u);
  }
}

TEST(GgufGroupsOfExperts, PreserveTheLogits) {
  for (const bool normed : {false, true}) {
    Spec spec = latent_spec(false);
    StackSpec& d = *spec.decoder;
    d.mixers = {};
    d.attention.head_width = 16;
    d.attention.value_width = 0;
    d.attention.kv_heads = 1;
    d.attention.bias = true;
    d.attention.norm = normed ? QueryKeyNorm::head : QueryKeyNorm::none;
    d.position.rotary.neighbours = false;
    d.position.rotary.share = 0.5f;
    Transformer model = made(spec);
    const Transformer read = written(model, glm4_moe, "glm4moe");
    EXPECT_EQ(write_spec(read.spec), write_spec(model.spec));
    if (!normed) continue;
    d.attention.bias = false;
    d.attention.kv_heads = 2;
    d.position.rotary.share = 1;
    Transformer whole = made(spec);
    written(whole, dots1, "dots1");
    d.attention.kv_heads = 1;
    Transformer fewer = made(spec);
    written(fewer, dots1, "glm4moe");  // llama.cpp needs as many keys as queries in dots1
  }
}

TEST(GgufLatentAttention, IsRefusedWhereLlamaCppComputesSomethingElse) {
  const std::vector<void (*)(StackSpec& d)> changes = {
      [](StackSpec& d) { d.position.rotary.neighbours = false; },
      [](StackSpec& d) { d.ffn.experts.shared = 0; },
      [](StackSpec& d) { d.ffn.experts.dense_layers = {1}; },
      [](StackSpec& d) { d.latent.epsilon = 1e-5f; },
      [](StackSpec& d) { d.layers = 27; },
      [](StackSpec& d) {  // without a larger scale of the scores
        scale_positions(d, 1);
        d.attention.scale = 0;
      },
      [](StackSpec& d) {
        d.position.rotary.scaling = RotaryScaling::linear;
        d.position.rotary.factor = 2;
      }};
  for (const auto& change : changes) {
    Spec spec = latent_spec(false);
    change(*spec.decoder);
    Transformer model(validated(spec));
    expect_error(ErrorKind::Unsupported, {"no supported GGUF architecture"},
                 [&] { GgufModel(model, nullptr, FileDType::fp32); });
  }
}

// Files may have layers that predict further tokens.
TEST(GgufMixers, AreReadWithoutFurtherLayers) {
  Transformer latent = made(latent_spec(false)), delta = delta_model(4, 4, false);
  const TemporaryFolder folder;
  const auto layers_read = [&](Transformer& model, const char* architecture, uint32_t further) {
    const std::string path = folder / "model.gguf";
    GgufModel file(model, nullptr, FileDType::fp32);
    file.metadata.integer(std::string(architecture) + ".nextn_predict_layers", further);
    write_gguf_file(path, file, std::nullopt, 23, values_of(model));
    return open_gguf_files(path, {.weights = Weights::owned}).model.spec.decoder->layers;
  };
  EXPECT_EQ(layers_read(latent, "deepseek2", 1), 3);
  EXPECT_EQ(layers_read(delta, "qwen35", 2), 2);
  expect_error(ErrorKind::BadFile, {"nextn_predict_layers is 4", "less than block_count, 4"},
               [&] { layers_read(latent, "deepseek2", 4); });
}

}  // namespace
}  // namespace fovea::model

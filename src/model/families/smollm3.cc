#include <algorithm>

#include "base/error.h"
#include "families/registry.h"
#include "families/shared.h"

namespace fovea::model {
namespace {

// no_rope_layers has a 0 for each layer without positions.
void unrotated_layers(Config& io, StackSpec& d) {
  std::vector<int64_t> rotated(static_cast<size_t>(std::max<int64_t>(d.layers, 0)), 1);
  auto& unrotated = d.position.rotary.unrotated;
  for (const int64_t layer : unrotated) rotated[static_cast<size_t>(layer)] = 0;
  if (!io.reading()) return io("no_rope_layers", rotated);
  int64_t interval = 4;
  io("no_rope_layer_interval", interval, 4);
  const bool listed = !io.value("no_rope_layers").is_null();
  for (int64_t i = 0; i < d.layers; ++i) rotated[static_cast<size_t>(i)] = (i + 1) % interval != 0;
  if (listed) io("no_rope_layers", rotated);
  if (std::ssize(rotated) != d.layers)
    fail(ErrorKind::BadFile, "{}: no_rope_layers has {} numbers; expected {}, one per layer",
         io.name(), rotated.size(), d.layers);
  for (int64_t i = 0; i < d.layers; ++i)
    if (rotated[static_cast<size_t>(i)] == 0) unrotated.push_back(i);
}

// SmolLM 3 (Hugging Face 2025): LLaMA, of which every fourth layer has no positions.
void smollm3_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  llama_sizes(io, s, {.theta = 2e6f, .tied = true, .kv_heads = 4});
  io("attention_bias", d.attention.bias, false);
  d.attention.output_bias = d.attention.bias;
  io("mlp_bias", d.ffn.bias, false);
  unrotated_layers(io, d);
  io.only("use_sliding_window", false);
  io.layer_types(d, 0, {});
  if (io.reading()) io.refuse_unknown({"sliding_window"});
}

}  // namespace

const Family smollm3 = {"smollm3", decoder_architectures("SmolLM3", "SmolLM3ForCausalLM"),
                        smollm3_config, with_own_prefix_of_answers(llama_names()), "model."};

}  // namespace fovea::model

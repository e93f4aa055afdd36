#include "families/registry.h"
#include "families/shared.h"

namespace fovea::model {
namespace {

// EXAONE 4 (LG AI Research 2025): OLMo 2 with norms of each head. The larger model has local
// layers, which alone have positions.
void exaone4_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  d.placement = {false, true, false};
  d.attention.norm = QueryKeyNorm::head;
  llama_sizes(io, s, {.epsilon = 1e-5f, .kv_heads = 32});
  const bool no_window = io.reading()
                             ? io.says("sliding_window") && io.value("sliding_window").is_null()
                             : d.position.rotary.unrotated.empty();
  if (no_window) {
    io.write("sliding_window", nullptr);
    io.layer_types(d, 0, {});
  } else {
    windows_of_pattern(io, d, 4);
    if (io.reading()) rotate_only_local(d);
  }
  if (io.reading()) io.refuse_unknown({"sliding_window_pattern"});
}

}  // namespace

const Family exaone4 = {"exaone4", decoder_architectures("Exaone4", "Exaone4ForCausalLM"),
                        exaone4_config, with_own_prefix_of_answers(olmo2_names()), "model."};

}  // namespace fovea::model

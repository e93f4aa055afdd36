#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace fovea::model {

// Returns the generation_config.json of a speech model in the format of another program, from the
// names of its tokens by id. `suppressed` and `suppressed_first`: tokens that are never generated,
// and not at the beginning of a text; unset: those of the reference implementation, which are
// special or stand for no speech. Errors name `path`.
struct SpeechGeneration {
  bool multilingual = true;
  std::optional<std::vector<int32_t>> suppressed = {}, suppressed_first = {};
};
nlohmann::ordered_json speech_generation(const std::vector<std::string>& names,
                                         const SpeechGeneration& given, const std::string& path);

// The sizes of such a model, as config.json of its family.
struct SpeechSizes {
  int64_t vocabulary = 0, bins = 0, frames = 0, context = 0, width = 0;
  int64_t encoder_layers = 0, encoder_heads = 0, encoder_ffn = 0;
  int64_t decoder_layers = 0, decoder_heads = 0, decoder_ffn = 0;
  bool tied = true;
};
nlohmann::json speech_config(const SpeechSizes& sizes, const nlohmann::ordered_json& generation);

}  // namespace fovea::model

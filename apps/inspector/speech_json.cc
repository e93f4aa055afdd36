#include "inspector/speech_json.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/ordered_json.h"
#include "fovea/infer/transcribe.h"

namespace fovea::inspector {
namespace {

using Json = nlohmann::ordered_json;

// Numbers from `least` to `most` as 0 to 255.
Json in_steps(const std::vector<float>& values, float least, float most) {
  Json steps = Json::array();
  const float scale = most > least ? 255 / (most - least) : 0;
  for (const float value : values)
    steps.push_back(static_cast<int>(std::clamp((value - least) * scale, 0.0f, 255.0f)));
  return steps;
}

}  // namespace

std::string speech_json(const model::Model& model, std::string sound) {
  const auto bytes = std::make_shared<const std::string>(std::move(sound));
  const infer::WordsInSound found = infer::words_in_sound(model, media::open_sound(bytes, "sound"));
  Json words = Json::array();
  for (const infer::TranscribedWord& word : found.words)
    words.push_back({{"word", word.word},
                     {"start", word.start},
                     {"end", word.end},
                     {"probability", word.probability}});
  const auto largest = std::max_element(found.similarity.begin(), found.similarity.end());
  const float most = largest == found.similarity.end() ? 1 : std::max(*largest, 1e-6f);
  return json_line({{"text", found.text},
                    {"language", found.language},
                    {"seconds", found.seconds},
                    {"bins", found.bins},
                    {"frames", found.frames},
                    {"spectrogram", in_steps(found.spectrogram, -1, 1)},
                    {"words", words},
                    {"places", found.places},
                    {"similarity", in_steps(found.similarity, 0, most)}});
}

}  // namespace fovea::inspector

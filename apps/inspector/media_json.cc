#include "inspector/media_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/ordered_json.h"
#include "fovea/infer/transcribe.h"
#include "inspector/explanation_json.h"
#include "inspector/page.h"

namespace fovea::inspector {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kShownLabels = 5;

// Numbers from `least` to `most` as 0 to 255.
Json in_steps(const std::vector<float>& values, float least, float most) {
  Json steps = Json::array();
  const float scale = most > least ? 255 / (most - least) : 0;
  for (const float value : values)
    steps.push_back(static_cast<int>(std::clamp((value - least) * scale, 0.0f, 255.0f)));
  return steps;
}

}  // namespace

infer::Classifications labels_of_image(const infer::ImageModel& model, const media::Image& image) {
  if (!model.has_labels()) return {};
  return model.classify(1, [&](size_t) { return image; });
}

std::string image_json(const std::string& run, const study::ImageInspection& found,
                       const infer::Classifications& labels) {
  Json grids = Json::array(), best = Json::array();
  for (const study::PatchGrid& grid : found.grids)
    grids.push_back({{"rows", grid.rows}, {"columns", grid.columns}, {"tokens", grid.tokens}});
  if (labels.count > 0)
    for (const size_t label : labels.order(0)) {
      if (best.size() == kShownLabels) break;
      best.push_back({{"label", labels.labels[label]}, {"score", labels.row(0)[label]}});
    }
  const auto* pixels = reinterpret_cast<const char*>(found.image.pixels.data());
  return json_line({{"run", run},
                    {"tokens", tokens_json(found.inspection.tokens())},
                    {"answer", found.answer},
                    {"answer_begin", found.answer_begin},
                    {"side", found.image.width},
                    {"pixels", base64({pixels, found.image.pixels.size()})},
                    {"ratio", found.ratio},
                    {"grids", grids},
                    {"labels", best}});
}

std::string speech_json(const model::Model& model, std::string audio) {
  const auto bytes = std::make_shared<const std::string>(std::move(audio));
  const infer::WordsInAudio found = infer::words_in_audio(model, media::open_audio(bytes, "audio"));
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
                    {"positions", found.positions},
                    {"similarity", in_steps(found.similarity, 0, most)}});
}

}  // namespace fovea::inspector

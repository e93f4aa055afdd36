#include "inspector/picture_json.h"

#include <nlohmann/json.hpp>

#include "base/ordered_json.h"
#include "inspector/explanation_json.h"
#include "inspector/page.h"

namespace fovea::inspector {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kShownLabels = 5;

}  // namespace

infer::Classifications labels_of_picture(const infer::ImageModel& model,
                                         const media::Image& image) {
  if (!model.has_labels()) return {};
  return model.classify(1, [&](size_t) { return image; });
}

std::string picture_json(const std::string& run, const study::PictureInspection& found,
                         const infer::Classifications& labels) {
  Json grids = Json::array(), best = Json::array();
  for (const study::PatchGrid& grid : found.grids)
    grids.push_back({{"rows", grid.rows}, {"columns", grid.columns}, {"tokens", grid.tokens}});
  if (labels.count > 0)
    for (const size_t label : labels.order(0)) {
      if (best.size() == kShownLabels) break;
      best.push_back({{"label", labels.labels[label]}, {"score", labels.row(0)[label]}});
    }
  const auto* pixels = reinterpret_cast<const char*>(found.picture.pixels.data());
  return json_line({{"run", run},
                    {"tokens", tokens_json(found.inspection.tokens())},
                    {"answer", found.answer},
                    {"answer_begin", found.answer_begin},
                    {"side", found.picture.width},
                    {"pixels", base64({pixels, found.picture.pixels.size()})},
                    {"ratio", found.ratio},
                    {"grids", grids},
                    {"labels", best}});
}

}  // namespace fovea::inspector

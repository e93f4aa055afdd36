#include "families/open_adapters.h"

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "families/adapters.h"

namespace fovea {
namespace {

// base_model_name_or_path is relative to the adapter's folder or to the current one.
std::string base_of(const std::string& folder) {
  const PeftConfig config(folder);
  for (const std::string& path : {folder + "/" + config.base(), config.base()}) {
    const bool exists = !config.base().empty() && (is_folder(path) || is_file(path));
    if (exists && !holds_adapter(path)) return path;
  }
  fail(ErrorKind::BadFile,
       "{}: base_model_name_or_path is {}, which is not a model's directory; expected the base "
       "model, or "
       "open the base model with this adapter",
       config.path(), brief(nlohmann::json(config.base())));
}

// An adapter of a model with labels has the config.json of that model.
void take_head(const std::string& folder, AdaptedModel& adapted) {
  const std::string path = folder + "/config.json";
  if (!is_file(path)) return;
  const nlohmann::json json = read_json(path);
  Spec spec;
  Config config(json, path);
  describe(config, family_named(get_string(json, "model_type", path), path), spec);
  if (spec.head.labels == 0) return;
  adapted.head = spec.head;
  adapted.labels = labels_of(json);
}

void check_nothing_missing(const ModelFiles& files,
                           const std::vector<std::pair<Adapter, double>>& adapters) {
  for (const std::string& name : files.missing) {
    const bool given = std::any_of(adapters.begin(), adapters.end(), [&](const auto& adapter) {
      return adapter.first.replaced.contains(name);
    });
    if (!given)
      fail(ErrorKind::BadFile,
           "{}: its config.json has a head whose {} is missing; expected it in modules_to_save",
           adapters.front().first.folder, name);
  }
}

}  // namespace

AdaptedModel adapted_model(const std::string& path, const std::vector<AdapterUse>& adapters) {
  AdaptedModel adapted{.base = path, .adapters = adapters, .head = {}, .labels = {}};
  if (holds_adapter(path)) {
    adapted.base = base_of(path);
    adapted.adapters.insert(adapted.adapters.begin(), AdapterUse{path, 1});
  }
  for (const AdapterUse& use : adapted.adapters) {
    if (!is_file(use.folder + "/" + kAdapterConfig))
      fail(ErrorKind::BadFile, "{}: is not an adapter; expected a directory with {} in it",
           use.folder, kAdapterConfig);
    if (!adapted.head) take_head(use.folder, adapted);
  }
  return adapted;
}

void add_adapters(ModelFiles& files, const AdaptedModel& adapted, Weights weights) {
  if (adapted.adapters.empty()) return;
  if (weights == Weights::owned)
    fail(
        ErrorKind::Unsupported,
        "{}: is an adapter, which cannot be trained as a model; expected a model, such as one that "
        "the adapter is merged into",
        adapted.adapters.front().folder);
  std::vector<std::pair<Adapter, double>> adapters;
  for (const AdapterUse& use : adapted.adapters)
    adapters.emplace_back(read_adapter(use.folder, *files.origin.family, files.model), use.weight);
  check_nothing_missing(files, adapters);
  files.missing.clear();
  if (adapted.head) files.origin.labels = adapted.labels;
  if (weights == Weights::mapped && adapters.size() == 1 && adapters[0].second == 1)
    add_stored_adapter(files.model, adapters[0].first);
  else
    add_adapter_sum(files.model, adapters);
}

}  // namespace fovea

#include "open/open_adapters.h"

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "base/gguf.h"
#include "base/json.h"
#include "formats/gguf/adapter.h"
#include "formats/peft/adapters.h"
#include "fovea/model/hub.h"
#include "loading/model_path.h"
#include "transformer/adapters.h"

namespace fovea::model {
namespace {

// base_model_name_or_path is relative to the adapter's folder or to the current one, or the name of
// a model in the cache of the Hugging Face Hub.
std::string base_of(const std::string& folder) {
  const PeftConfig config(folder);
  for (const std::string& path : {folder + "/" + config.base(), find_model(config.base())}) {
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
  adapted.problem = problem_type_of(json, path);
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

void check_folders(AdaptedModel& adapted) {
  for (const AdapterUse& use : adapted.adapters) {
    if (is_gguf(use.folder)) continue;
    if (!is_file(use.folder + "/" + kAdapterConfig))
      fail(ErrorKind::BadFile,
           "{}: is not an adapter; expected a directory with {} in it, or a .gguf file", use.folder,
           kAdapterConfig);
    if (!adapted.head) take_head(use.folder, adapted);
  }
}

std::string what_changes(const Adapter& adapter) {
  if (!adapter.replaced.empty())
    return "replaces " + adapter.replaced.begin()->first + " (modules_to_save)";
  if (!adapter.changes.empty()) return "changes " + adapter.changes.begin()->first;
  return "has a head of its own";
}

using WeightedAdapters = std::vector<std::pair<Adapter, double>>;

WeightedAdapters read_all(const std::vector<AdapterUse>& uses, ModelFiles& files) {
  WeightedAdapters adapters;
  for (const AdapterUse& use : uses)
    adapters.emplace_back(read_adapter(use.folder, *files.origin.family, files.model), use.weight);
  return adapters;
}

// An adapter of chats ends answers by itself.
void take_generation(const std::vector<AdapterUse>& adapters, ModelFiles& files) {
  for (const AdapterUse& use : adapters) {
    const std::string generation = use.folder + "/generation_config.json";
    if (!is_file(generation)) continue;
    files.origin.generation = read_json(generation);
    if (auto ids = ids_under(files.origin.generation, "eos_token_id"); !ids.empty())
      files.end_ids = std::move(ids);
    return;
  }
}

}  // namespace

AdaptedModel adapted_model(const std::string& path, const std::vector<AdapterUse>& adapters) {
  AdaptedModel adapted{.base = path, .adapters = adapters, .head = {}, .labels = {}};
  if (holds_adapter(path)) {
    adapted.base = base_of(path);
    adapted.adapters.insert(adapted.adapters.begin(), AdapterUse{path, 1});
  }
  check_folders(adapted);
  return adapted;
}

Adapter read_adapter(const std::string& path, const Family& family, Transformer& model) {
  return is_gguf(path) ? read_gguf_adapter(path, family, model)
                       : read_peft_adapter(path, family, model);
}

void add_adapters(ModelFiles& files, const AdaptedModel& adapted, Weights weights) {
  if (adapted.adapters.empty()) return;
  if (weights == Weights::owned)
    fail(
        ErrorKind::Unsupported,
        "{}: is an adapter, which cannot be trained as a model; expected a model, such as one that "
        "the adapter is merged into",
        adapted.adapters.front().folder);
  const WeightedAdapters adapters = read_all(adapted.adapters, files);
  check_nothing_missing(files, adapters);
  files.missing.clear();
  if (adapted.head) {
    files.origin.labels = adapted.labels;
    files.origin.problem = adapted.problem;
  }
  if (weights == Weights::mapped && adapters.size() == 1 && adapters[0].second == 1)
    add_stored_adapter(files.model, adapters[0].first);
  else
    add_adapter_sum(files.model, adapters);
  take_generation(adapted.adapters, files);
}

void add_adapters_to_shared(ModelFiles& files, const std::vector<AdapterUse>& uses) {
  check(!has_adapters(files.model),
        "adapters: the model has adapters already; expected its base model");
  AdaptedModel adapted{.base = {}, .adapters = uses, .head = {}, .labels = {}};
  check_folders(adapted);
  const WeightedAdapters adapters = read_all(uses, files);
  for (const auto& [adapter, weight] : adapters)
    if (adapted.head || adapter.changes_weights())
      fail(ErrorKind::Unsupported,
           "{}: {}, but the weights are shared with other models; expected an adapter of linear "
           "layers of the stacks only, or a model of its own: the base with this adapter",
           adapter.folder, what_changes(adapter));
  add_adapter_sum(files.model, adapters);
  take_generation(uses, files);
}

}  // namespace fovea::model

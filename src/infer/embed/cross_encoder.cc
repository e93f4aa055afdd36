#include "embed/cross_encoder.h"

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "checkpoint/module_files.h"
#include "embed/head_states.h"
#include "open/directory.h"

namespace fovea::infer {
namespace {

// Returns the activation that sentence-transformers applies to the score. Releases of
// sentence-transformers store its name in three different places; the default is a sigmoid.
std::optional<Activation> activation_of(const std::string& folder, const std::string& inner) {
  const auto named = [](const nlohmann::json& json, const char* key, const std::string& file) {
    return json.is_object() ? find_string(json, key, file) : std::nullopt;
  };
  std::optional<std::string> name;
  std::string file = folder + "/config_sentence_transformers.json";
  if (is_file(file)) name = named(read_json(file), "activation_fn", file);
  if (name) return activation_named(*name, file);
  file = inner + "/config.json";
  const nlohmann::json config = read_json(file);
  if (const auto nested = config.find("sentence_transformers"); nested != config.end())
    name = named(*nested, "activation_fn", file);
  if (!name) name = named(config, "sbert_ce_default_activation_function", file);
  return name ? activation_named(*name, file) : Activation::sigmoid;
}

}  // namespace

CrossEncoder CrossEncoder::open(const std::string& folder, model::Weights weights,
                                const model::Packing& packing,
                                const std::vector<model::AdapterUse>& adapters) {
  const std::string inner = model::transformer_folder(folder);
  model::ModelFiles files = model::open_model_files(inner, weights, packing, adapters);
  const model::Spec& spec = files.model.spec;
  if (spec.head.kind != model::HeadKind::sequence || spec.head.labels != 1)
    fail(ErrorKind::Unsupported,
         "{}: the model is not a sequence classifier with one label; expected "
         "a cross-encoder",
         folder);
  move_to(default_device(), files.model);
  const auto activation = activation_of(folder, inner);
  TextFormat format = TextFormat::open(inner, spec);
  const auto start = decoder_start_of(spec, files.origin, inner);
  return {std::move(files.model),
          std::move(format),
          activation,
          std::move(files.warnings),
          start,
          std::move(files.origin),
          folder};
}

Tensor CrossEncoder::logits(const TokenBatch& batch, DType compute) const {
  return head_logits(transformer, batch, head_states(transformer, batch, start, compute));
}

}  // namespace fovea::infer

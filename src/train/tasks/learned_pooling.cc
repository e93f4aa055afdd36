#include "tasks/learned_pooling.h"

#include <algorithm>

#include "base/fields.h"
#include "base/files.h"
#include "base/json.h"
#include "base/math.h"
#include "checkpoint/module_files.h"
#include "safetensors/safetensors.h"
#include "tensor/tape.h"

namespace fovea::train {
namespace {

using Json = nlohmann::json;

// A step of AdamW changes a parameter by about the learning rate, which is small in fine-tuning
// (2e-5). The scores of a softmax have to change by about 1, so they are multiples of parameters.
constexpr float kScale = 100;

constexpr const char* kAttentionCode = R"(import torch
from safetensors.torch import save_file
from sentence_transformers.models import Module


class AttentionPooling(Module):
    """The sum of the tokens' vectors with weights softmax(vector . token)."""

    config_keys = ["embedding_dimension", "include_prompt"]

    def __init__(self, embedding_dimension, include_prompt=True):
        super().__init__()
        self.embedding_dimension = embedding_dimension
        self.include_prompt = include_prompt
        self.vector = torch.nn.Parameter(torch.zeros(embedding_dimension))

    def forward(self, features, **kwargs):
        tokens, mask = features["token_embeddings"], features["attention_mask"].clone()
        if not self.include_prompt and "prompt_length" in features:
            mask[:, : features["prompt_length"]] = 0
        scores = (tokens @ self.vector).masked_fill(mask == 0, float("-inf"))
        features["sentence_embedding"] = (scores.softmax(dim=1).unsqueeze(-1) * tokens).sum(dim=1)
        return features

    def get_sentence_embedding_dimension(self):
        return self.embedding_dimension

    get_embedding_dimension = get_sentence_embedding_dimension

    def save(self, output_path, *args, **kwargs):
        self.save_config(output_path)
        save_file(self.state_dict(), f"{output_path}/model.safetensors")

    @classmethod
    def load(cls, model_name_or_path, **kwargs):
        names = ("subfolder", "token", "cache_folder", "revision", "local_files_only")
        files = {name: kwargs[name] for name in names if name in kwargs}
        model = cls(**cls.load_config(model_name_or_path, **files))
        return cls.load_torch_weights(model_name_or_path, model=model, **files)
)";

// Returns the scores whose softmax is the weights; equal scores if a weight is not positive.
std::vector<float> scores_of(const std::vector<float>& weights) {
  std::vector<float> scores;
  for (const float weight : weights) {
    if (!(weight > 0)) return std::vector<float>(weights.size(), 0.0f);
    scores.push_back(math::log(weight) / kScale);
  }
  return scores;
}

// Rewrites modules.json: `change` receives the list and the index of the pooling.
template <class Change>
void change_modules(const std::string& folder, const Change& change) {
  const std::string file = folder + "/modules.json";
  Json modules = read_json(file);
  const std::vector<model::ListedModule> listed = model::list_modules(folder);
  const auto pooling =
      std::find_if(listed.begin(), listed.end(), [](const model::ListedModule& module) {
        return module.kind == "Pooling" || module.kind == "AttentionPooling";
      });
  change(modules, pooling - listed.begin());
  for (size_t i = 0; i < modules.size(); ++i) {
    modules[i]["idx"] = i;
    modules[i]["name"] = fmt::format("{}", i);
  }
  write_file_atomically(file, pretty(modules));
}

}  // namespace

TrainedPooling::TrainedPooling(LearnedPooling kind, const infer::SentenceModules& modules,
                               const model::Spec& spec)
    : kind_(kind), width_(spec.width), modules_(modules), weights_{{}, model::Role::bias, {}} {
  check_field(!modules.static_vectors, "learn_pooling",
              "given for a model of embeddings only; expected a Transformer");
  std::vector<float> initial(static_cast<size_t>(spec.width), 0.0f);
  if (kind == LearnedPooling::layers) {
    const int64_t layers = (spec.encoder ? *spec.encoder : *spec.decoder).layers;
    if (!modules_.layers)
      modules_.layers =
          infer::LayerMean{0, std::vector<float>(static_cast<size_t>(layers + 1), 1.0f)};
    initial = scores_of(modules_.layers->weights);
  } else {
    check_field(modules.pooling.modes.size() == 1, "learn_pooling",
                "tokens, but the model concatenates {} poolings; expected one",
                modules.pooling.modes.size());
    if (modules.pooling.attention) initial = to_floats(modules.pooling.attention);
    for (float& each : initial) each /= kScale;
    modules_.pooling.modes = {infer::TokenPooling::attention};
  }
  weights_.shape = {std::ssize(initial)};
  weights_.value = tensor_of(initial, weights_.shape, DType::f32);
}

std::vector<model::NamedParameter> TrainedPooling::parameters() {
  return {{kind_ == LearnedPooling::layers ? "pooling.layers" : "pooling.tokens", &weights_}};
}

infer::SentenceModules TrainedPooling::modules() const {
  infer::SentenceModules modules = modules_;
  const Tensor scores = scale(weights_.value, kScale);
  (kind_ == LearnedPooling::layers ? modules.layers->scores : modules.pooling.attention) = scores;
  return modules;
}

void TrainedPooling::write(const std::string& folder) const {
  const NoGradient no_gradient;
  kind_ == LearnedPooling::layers ? write_layers(folder) : write_attention(folder);
}

void TrainedPooling::write_layers(const std::string& folder) const {
  std::string name = "1_WeightedLayerPooling";
  change_modules(folder, [&](Json& modules, std::ptrdiff_t pooling) {
    for (const Json& module : modules)
      if (module["type"].get<std::string>().ends_with(".WeightedLayerPooling"))
        return void(name = module["path"].get<std::string>());
    const Json module = {{"path", name},
                         {"type", "sentence_transformers.models.WeightedLayerPooling"}};
    modules.insert(modules.begin() + pooling, module);
  });
  const std::string target = folder + "/" + name;
  make_directories(target);
  const int64_t first = modules_.layers->first;
  write_file_atomically(target + "/config.json",
                        pretty(Json{{"embedding_dimension", width_},
                                    {"layer_start", first},
                                    {"num_hidden_layers", first + weights_.shape[0] - 1}}));
  write_safetensors(target + "/model.safetensors",
                    {{"layer_weights", softmax(scale(weights_.value.detach(), kScale))}});
  // sentence-transformers reads the states of all layers only if the model returns them.
  const std::string config = model::transformer_folder(folder) + "/config.json";
  if (!is_file(config)) return;  // an adapter
  Json keys = read_json(config);
  keys["output_hidden_states"] = true;
  write_file_atomically(config, pretty(keys));
}

void TrainedPooling::write_attention(const std::string& folder) const {
  const std::string name = "1_AttentionPooling";
  change_modules(folder, [&](Json& modules, std::ptrdiff_t pooling) {
    modules[static_cast<size_t>(pooling)] = {{"path", name},
                                             {"type", "attention_pooling.AttentionPooling"}};
  });
  const std::string target = folder + "/" + name;
  make_directories(target);
  write_file_atomically(target + "/config.json",
                        pretty(Json{{"embedding_dimension", width_},
                                    {"include_prompt", modules_.pooling.include_prompt}}));
  write_safetensors(target + "/model.safetensors",
                    {{"vector", scale(weights_.value.detach(), kScale)}});
  write_file_atomically(folder + "/attention_pooling.py", kAttentionCode);
}

}  // namespace fovea::train

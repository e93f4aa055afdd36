#include "families/towers.h"

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "checkpoint/safetensors.h"
#include "families/model_path.h"

namespace fovea {
namespace {

using Json = nlohmann::json;

// A kind of folder with two models, by its model_type.
struct Kind {
  const char* name;
  const Family *text, *image;
  bool has_bias;
};
const Kind kKinds[] = {{"clip", &clip_text_model, &clip_vision_model, false},
                       {"siglip", &siglip_text_model, &siglip_vision_model, true}};

// The tensors of one of the two models.
class PartOfSource : public TensorSource {
 public:
  PartOfSource(std::shared_ptr<const TensorSource> whole, const char* prefix,
               const char* projection)
      : whole_(std::move(whole)) {
    for (const StoredTensor& tensor : whole_->stored())
      if (tensor.name.starts_with(prefix) || tensor.name.starts_with(projection))
        stored_.push_back(tensor);
  }
  const std::vector<StoredTensor>& stored() const override { return stored_; }
  Tensor tensor(std::string_view name) const override { return whole_->tensor(name); }
  std::shared_ptr<const MappedFile> file_of(const StoredTensor& stored) const override {
    return whole_->file_of(stored);
  }

 private:
  std::shared_ptr<const TensorSource> whole_;
  std::vector<StoredTensor> stored_;
};

// Settings of generation and of other classes, which transformers 4 wrote into nested configs.
constexpr const char* kOfOtherClasses[] = {"add_cross_attention",
                                           "cross_attention_hidden_size",
                                           "diversity_penalty",
                                           "do_sample",
                                           "encoder_no_repeat_ngram_size",
                                           "exponential_decay_length_penalty",
                                           "is_decoder",
                                           "num_beam_groups",
                                           "num_return_sequences",
                                           "output_scores",
                                           "prefix",
                                           "pruned_heads",
                                           "remove_invalid_values",
                                           "repetition_penalty",
                                           "return_dict_in_generate",
                                           "temperature",
                                           "tf_legacy_loss",
                                           "tie_encoder_decoder",
                                           "tie_word_embeddings",
                                           "top_k",
                                           "top_p",
                                           "torchscript",
                                           "typical_p",
                                           "use_bfloat16"};

// Returns the config of one of the two models as that of a model of its own.
Json config_of(const Json& whole, const char* key, const Family& family, const std::string& file) {
  const auto found = whole.find(key);
  if (found == whole.end() || !found->is_object())
    fail(ErrorKind::BadFile, "{}: {} is not an object; expected the config of a model", file, key);
  Json config = *found;
  for (const char* name : kOfOtherClasses) config.erase(name);
  config["model_type"] = family.model_type;
  config["architectures"] = Json::array({family.architectures[0].name});
  if (const auto width = whole.find("projection_dim"); width != whole.end())
    config["projection_dim"] = *width;
  return config;
}

float number_in(const TensorSource& file, const char* name, const std::string& folder) {
  if (file.find(name) == nullptr)
    fail(ErrorKind::BadFile, "{}: the tensor {} is missing; expected a number", folder, name);
  const Tensor value = convert(file.tensor(name), DType::f32);
  if (value.size() != 1)
    fail(ErrorKind::BadFile, "{}: the tensor {} has {} elements; expected 1", folder, name,
         value.size());
  return value.data_as<float>()[0];
}

const Kind* kind_of(const Json& config) {
  if (!config.is_object() || !config.contains("vision_config")) return nullptr;
  for (const Kind& kind : kKinds)
    if (config.value("model_type", Json()) == kind.name) return &kind;
  return nullptr;
}

}  // namespace

bool has_towers(const std::string& folder) {
  const std::string file = folder + "/config.json";
  return is_file(file) && kind_of(read_json(file)) != nullptr;
}

Towers open_towers(const std::string& folder, Weights weights, const Packing& packing) {
  const std::string file = folder + "/config.json";
  const Json config = read_json(file);
  const Kind* kind = kind_of(config);
  if (kind == nullptr) refuse_path(folder);
  const auto source = std::make_shared<SafeTensors>(SafeTensors::open_model(folder));
  const Loading loading{.weights = weights, .packing = packing};
  const auto part = [&](const Family& family, const char* key, const char* prefix,
                        const char* projection) {
    return load_model(family, config_of(config, key, family, file), file,
                      std::make_shared<PartOfSource>(source, prefix, projection), loading, folder);
  };
  Towers towers;
  towers.text = part(*kind->text, "text_config", "text_model.", "text_projection.");
  towers.image = part(*kind->image, "vision_config", "vision_model.", "visual_projection.");
  towers.scale = number_in(*source, "logit_scale", folder);
  if (kind->has_bias) towers.bias = number_in(*source, "logit_bias", folder);
  towers.sigmoid = towers.reads_padding = kind->has_bias;
  return towers;
}

}  // namespace fovea

#include "families/towers.h"

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "checkpoint/safetensors.h"
#include "families/model_path.h"
#include "families/nested.h"

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

// Returns the config of one of the two models.
Json config_of(const Json& whole, const char* key, const Family& family, const std::string& file) {
  Json config = nested_config(whole, key, family, file);
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
                      part_of(source, {{prefix, prefix}, {projection, projection}}), loading,
                      folder);
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

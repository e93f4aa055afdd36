#include "open/towers.h"

#include "base/error.h"
#include "base/files.h"
#include "base/folder_links.h"
#include "base/json.h"
#include "base/math.h"
#include "loading/model_path.h"
#include "loading/nested.h"
#include "safetensors/safetensors.h"

namespace fovea::model {
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

// Returns the config of one of the two models, as a part of config.json.
nlohmann::ordered_json part_of_config(const ModelFiles& part) {
  nlohmann::ordered_json config =
      nlohmann::ordered_json::parse(config_json(part.model, part.origin, std::nullopt));
  for (const char* key : {"architectures", "dtype"}) config.erase(key);
  return config;
}

// The stack and the norms of CLIP (Radford et al. 2021, 2.4).
void make_clip(Spec& image, Spec& text) {
  image.input.bias = false;
  image.encoder->embedding_norm = true;
  image.encoder->ffn.activation = text.decoder->ffn.activation = Activation::quick_gelu;
  image.encoder->norm.epsilon = text.decoder->norm.epsilon = 1e-5f;
}

// Those of SigLIP (Zhai et al. 2023, 4), whose texts are read in both directions.
void make_siglip(Spec& image, Spec& text) {
  image.head.pooling = Pooling::attention;
  image.head.projection = 0;
  text.encoder = std::move(text.decoder);
  text.decoder.reset();
  text.head.projection = text.width;
  text.head.bias = true;
  image.encoder->ffn.activation = text.encoder->ffn.activation = Activation::gelu_tanh;
  image.encoder->norm.epsilon = text.encoder->norm.epsilon = 1e-6f;
}

ModelFiles new_model(const Spec& spec, const Family& family, uint64_t seed) {
  ModelFiles files;
  files.model = Transformer(validated(spec));
  initialise(files.model, seed);
  files.origin.family = &family;
  return files;
}

}  // namespace

bool has_towers(const std::string& folder) {
  const std::string file = folder + "/config.json";
  return is_file(file) && kind_of(read_json(file)) != nullptr;
}

Towers open_towers(const std::string& folder, Weights weights, const Packing& packing) {
  const std::string file = folder + "/config.json";
  refuse_links_out(folder);
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

bool describes_towers(const Spec& spec) {
  return spec.input.kind == InputKind::image && spec.encoder && spec.decoder &&
         spec.head.kind == HeadKind::pooled;
}

std::pair<Spec, Spec> tower_specs(const Spec& spec) {
  Spec image = spec, text = spec;
  image.decoder.reset();
  image.vocabulary = 0;
  const int64_t side = spec.input.size / spec.input.patch;
  image.context = side * side + spec.input.class_tokens;
  text.encoder.reset();
  text.input = {};
  text.head.pooling = Pooling::last;
  spec.input.class_tokens == 0 ? make_siglip(image, text) : make_clip(image, text);
  return {image, text};
}

Towers new_towers(const Spec& spec, uint64_t seed) {
  const auto [image, text] = tower_specs(spec);
  const bool sigmoid = spec.input.class_tokens == 0;
  Towers towers;
  towers.image = new_model(image, sigmoid ? siglip_vision_model : clip_vision_model, seed);
  towers.text = new_model(text, sigmoid ? siglip_text_model : clip_text_model, seed + 1);
  towers.sigmoid = towers.reads_padding = sigmoid;
  // Radford et al. 2021, 2.5: a temperature of 0.07; Zhai et al. 2023, algorithm 1: 1/10, and -10.
  towers.scale = math::log(sigmoid ? 10.0f : 1 / 0.07f);
  towers.bias = sigmoid ? -10 : 0;
  return towers;
}

void save_towers(const std::string& folder, Towers& towers, const TowerTokens& tokens) {
  std::map<std::string, Tensor> tensors;
  for (ModelFiles* part : {&towers.text, &towers.image}) {
    const Family& family = family_to_save(part->model.spec, part->origin);
    const std::string prefix = family.prefix;  // which a model of its own would omit
    for (const auto& [name, value] : checkpoint_tensors(part->model, family))
      tensors[prefix + name] = value;
  }
  const Shape number = towers.sigmoid ? Shape{1} : Shape{};
  tensors["logit_scale"] = full(number, towers.scale);
  if (towers.sigmoid) tensors["logit_bias"] = full(number, towers.bias);
  nlohmann::ordered_json config;
  config["architectures"] = {towers.sigmoid ? "SiglipModel" : "CLIPModel"};
  config["model_type"] = towers.sigmoid ? "siglip" : "clip";
  config["dtype"] = "float32";
  config["initializer_factor"] = 1.0;
  if (!towers.sigmoid) {
    config["logit_scale_init_value"] = towers.scale;
    config["projection_dim"] = towers.image.model.spec.head.projection;
  }
  config["text_config"] = part_of_config(towers.text);
  config["vision_config"] = part_of_config(towers.image);
  const auto set = [&](const char* key, std::optional<int32_t> id) {
    if (id) config["text_config"][key] = *id;
  };
  set("bos_token_id", tokens.first);
  set("eos_token_id", tokens.end);
  set("pad_token_id", tokens.padding);
  write_safetensors(folder + "/model.safetensors", tensors);
  write_file_atomically(folder + "/config.json", pretty(config));
}

}  // namespace fovea::model

#include "open/image_text.h"

#include <span>

#include "base/error.h"
#include "base/files.h"
#include "base/folder_links.h"
#include "base/json.h"
#include "base/ordered_json.h"
#include "fovea/model/model_path.h"
#include "loading/nested.h"
#include "safetensors/safetensors.h"

namespace fovea::model {
namespace {

using Json = nlohmann::json;

// A kind of folder, by its model_type, and the names of its tensors.
struct ImageTextKind {
  const char* name;
  bool makes_tiles;  // Idefics3: tiles, and a connector that joins patches
  std::vector<Renaming> text, image, connector;
  const char* text_type = "llama";  // the model_type of a text_config that names none
  bool tied = false;                // whether the head is tied if the file does not say
};

const std::string kVisionModel = "vision_model.";

// transformers 4 and 5 use different names.
const ImageTextKind kLlava = {
    "llava",
    false,
    {{"language_model.lm_head.", "lm_head."},
     {"language_model.model.", "model."},
     {"model.language_model.", "model."},
     {"lm_head.", "lm_head."}},
    {{"vision_tower." + kVisionModel, kVisionModel},
     {"model.vision_tower." + kVisionModel, kVisionModel},
     {"vision_tower.", kVisionModel},
     {"model.vision_tower.", kVisionModel}},
    {{"multi_modal_projector.", ""}, {"model.multi_modal_projector.", ""}}};

ImageTextKind idefics3(const char* name) {
  return {name,
          true,
          {{"model.text_model.", "model."}, {"lm_head.", "lm_head."}},
          {{"model." + kVisionModel, kVisionModel}},
          {{"model.connector.modality_projection.", ""}}};
}

const ImageTextKind kImageTextKinds[] = {kLlava, idefics3("idefics3"), idefics3("smolvlm")};

// Kinds whose encoder of images fovea does not have; their decoder is opened alone.
const std::vector<Renaming> kLanguageModel = {{"model.language_model.", "model."},
                                              {"lm_head.", "lm_head."}};
const ImageTextKind kTextParts[] = {
    {"mistral3", false, kLlava.text, {}, {}, "mistral", true},
    {"qwen3_5", false, kLanguageModel, {}, {}, "qwen3_5_text"},
    {"qwen3_5_moe", false, kLanguageModel, {}, {}, "qwen3_5_moe_text"}};

const ImageTextKind* kind_among(std::span<const ImageTextKind> kinds, const Json& config) {
  if (!config.is_object() || !config.contains("vision_config")) return nullptr;
  for (const ImageTextKind& kind : kinds)
    if (config.value("model_type", Json()) == kind.name) return &kind;
  return nullptr;
}

const ImageTextKind* image_text_kind(const Json& config) {
  return kind_among(kImageTextKinds, config);
}

const ImageTextKind& kind_with_text(const Json& config) {
  const ImageTextKind* const kind = image_text_kind(config);
  return kind != nullptr ? *kind : *kind_among(kTextParts, config);
}

void set_defaults(Json& config, const Json& defaults) {
  for (const auto& [key, value] : defaults.items())
    if (!config.contains(key)) config[key] = value;
}

// The defaults of transformers, which files leave out.
Json defaults_of(const Family& family) {
  Json shared = {{"vocab_size", 32000},
                 {"hidden_size", 4096},
                 {"num_hidden_layers", 32},
                 {"num_attention_heads", 32}};
  if (&family == &llama) {
    shared["intermediate_size"] = 11008;
    shared["max_position_embeddings"] = 2048;
  } else if (&family == &mistral) {
    shared["intermediate_size"] = 14336;
    shared["num_key_value_heads"] = 8;
    shared["max_position_embeddings"] = 131072;
  } else {
    shared.clear();
  }
  return shared;
}
const Json kTileDefaults = {{"hidden_size", 1152},     {"intermediate_size", 3072},
                            {"num_hidden_layers", 12}, {"num_attention_heads", 16},
                            {"image_size", 224},       {"patch_size", 32}};

// Keys of SmolVLM's files that have no effect, and those that have none if they are false.
constexpr const char* kIgnored[] = {"_attn_implementation_autoset",
                                    "_flash_attn_2_enabled",
                                    "is_llama_config",
                                    "neftune_noise_alpha",
                                    "perceiver_config",
                                    "pixel_shuffle_factor",
                                    "resampler_config",
                                    "transformers.js_config"};
constexpr const char* kFalse[] = {"qk_layer_norms", "rope_interleaved", "use_resampler"};
constexpr const char* kIgnoredOfImages[] = {"max_image_size", "size", "use_base_siglip",
                                            "vocab_size", "vision_use_head"};

// The rest of config.json. Reading it refuses keys that are not known.
struct Root {
  int64_t layer = -2, square = 1, token = -1;
  bool drops_class = true, bias = true;
  Activation activation = Activation::gelu;
};

Root root_of(const Json& config, const std::string& file, const ImageTextKind& kind) {
  Root root;
  Config io(config, file);
  if (kind.makes_tiles) {
    io("scale_factor", root.square, 2);
    io("image_token_id", root.token, 128257);
    io.refuse_unknown({"text_config", "vision_config", "tie_word_embeddings", "_pad_token_id",
                       "vocab_size", "transformers.js_config", "use_reentrant_checkpoints"});
    return root;
  }
  const Json layer = io.value("vision_feature_layer"),
             strategy = io.value("vision_feature_select_strategy");
  if (!layer.is_null() && !layer.is_number_integer())
    fail(ErrorKind::Unsupported, "{}: vision_feature_layer is {}; expected one layer", file,
         brief(layer));
  if (layer.is_number_integer())
    root.layer = get_int(config, "vision_feature_layer", file, -1000, 1000);
  if (!strategy.is_null() && strategy != "default" && strategy != "full")
    fail(ErrorKind::Unsupported,
         "{}: vision_feature_select_strategy is {}; expected default or full", file,
         brief(strategy));
  root.drops_class = strategy != "full";
  io("multimodal_projector_bias", root.bias, true);
  io("projector_hidden_act", root.activation, "gelu");
  io(config.contains("image_token_index") ? "image_token_index" : "image_token_id", root.token,
     32000);
  io.refuse_unknown({"text_config", "vision_config", "tie_word_embeddings", "image_seq_length",
                     "ignore_index", "vocab_size", "image_token_id"});
  return root;
}

// Returns the config of the encoder with the layers that are needed.
Json image_config(const Json& config, const std::string& file, const Family& family,
                  const ImageTextKind& kind, const Root& root) {
  Json image = nested_config(config, "vision_config", family, file);
  for (const char* name : kIgnoredOfImages) image.erase(name);
  if (&family == &siglip_vision_model) image.erase("projection_dim");
  if (kind.makes_tiles) {
    set_defaults(image, kTileDefaults);
    return image;
  }
  const int64_t all = find_int(image, "num_hidden_layers", file, 0, 1000).value_or(12);
  const int64_t layers = root.layer < 0 ? all + 1 + root.layer : root.layer;
  if (layers < 0 || layers > all)
    fail(ErrorKind::BadFile, "{}: vision_feature_layer is {}; expected one of {} layers", file,
         root.layer, all);
  image["num_hidden_layers"] = layers;
  return image;
}

const Family& image_family(const Json& config, const std::string& file, const ImageTextKind& kind) {
  if (kind.makes_tiles) return siglip_vision_model;
  const Json& image = config["vision_config"];
  const Json type = image.is_object() ? image.value("model_type", Json()) : Json();
  if (type.is_null() || type == "clip_vision_model") return clip_vision_model;
  if (type == "siglip_vision_model") return siglip_vision_model;
  fail(ErrorKind::Unsupported,
       "{}: model_type of vision_config is {}; expected clip_vision_model or siglip_vision_model",
       file, brief(type));
}

}  // namespace

bool is_image_text_config(const Json& config) { return image_text_kind(config) != nullptr; }
bool is_text_part_config(const Json& config) { return kind_among(kTextParts, config) != nullptr; }
bool reads_images(const std::string& folder) {
  const std::string file = folder + "/config.json";
  return is_file(file) && is_image_text_config(read_json(file));
}

TextConfig text_config(const Json& config, const std::string& folder) {
  const std::string file = folder + "/config.json";
  const ImageTextKind& kind = kind_with_text(config);
  const Json own = config.value("text_config", Json());
  const std::string type = own.is_object()
                               ? find_string(own, "model_type", file).value_or(kind.text_type)
                               : kind.text_type;
  const Family& family = family_named(type, file);
  Json text = nested_config(config, "text_config", family, file);
  set_defaults(text, defaults_of(family));
  for (const char* name : kIgnored) text.erase(name);
  for (const char* name : kFalse) {
    if (find_bool(text, name, file).value_or(false))
      fail(ErrorKind::Unsupported, "{}: {} of text_config is true; expected false", file, name);
    text.erase(name);
  }
  // The key of the nested config counts in LLaVA only.
  bool tied = find_bool(config, "tie_word_embeddings", file).value_or(kind.tied);
  if (!kind.makes_tiles) tied |= find_bool(own, "tie_word_embeddings", file).value_or(false);
  text["tie_word_embeddings"] = tied;
  return {&family, std::move(text)};
}

std::shared_ptr<const TensorSource> text_tensors(const Json& config, const std::string& folder) {
  return part_of(std::make_shared<SafeTensors>(SafeTensors::open_model(folder)),
                 kind_with_text(config).text);
}

std::shared_ptr<ImageEncoder> open_image_encoder(const std::string& folder, const Spec& text,
                                                 Weights weights, const Packing& packing) {
  const std::string file = folder + "/config.json";
  refuse_links_out(folder);
  const Json config = read_json(file);
  const ImageTextKind& kind = *image_text_kind(config);
  const Root root = root_of(config, file, kind);
  const Family& family = image_family(config, file, kind);
  const auto tensors = std::make_shared<SafeTensors>(SafeTensors::open_model(folder));
  const HeadSpec no_head = {.kind = HeadKind::pooled};
  const bool llava = !kind.makes_tiles;
  const Loading loading{
      .weights = weights, .packing = packing, .new_head = &no_head, .final_norm = kind.makes_tiles};
  auto encoder = std::make_shared<ImageEncoder>();
  encoder->model = load_model(family, image_config(config, file, family, kind, root), file,
                              part_of(tensors, kind.image), loading, folder)
                       .model;
  encoder->names_tiles = kind.makes_tiles;
  encoder->token = static_cast<int32_t>(root.token);
  Connector& connector = encoder->connector;
  connector.skipped = llava && root.drops_class ? 1 : 0;
  connector.square = root.square;
  connector.activation = root.activation;
  const auto layers = part_of(tensors, kind.connector);
  const int64_t joined = encoder->model.spec.width * root.square * root.square;
  connector.first = read_linear(*layers, llava ? "linear_1" : "proj", text.width, joined,
                                llava && root.bias, folder);
  if (llava)
    connector.second = read_linear(*layers, "linear_2", text.width, text.width, root.bias, folder);
  encoder->processor = media::ImageProcessor::open(folder);
  check_fit(*encoder, folder);
  return encoder;
}

namespace {

std::map<std::string, Tensor> connector_tensors(const Connector& connector, bool llava) {
  std::map<std::string, Tensor> tensors;
  const auto add = [&](const std::string& name, const Linear& layer) {
    if (!layer.weight.value) return;
    tensors[name + ".weight"] = layer.weight.value.detach().to(cpu_device());
    if (layer.bias.present()) tensors[name + ".bias"] = layer.bias.value.detach().to(cpu_device());
  };
  add(llava ? "linear_1" : "proj", connector.first);
  add("linear_2", connector.second);
  return tensors;
}

// Returns the name of a tensor of a part; empty if it is of another part.
std::string name_in_part(const std::string& name, const std::vector<Renaming>& renamings) {
  for (const Renaming& renaming : renamings)
    if (name.starts_with(renaming.theirs))
      return renaming.ours + name.substr(renaming.theirs.size());
  return "";
}

void set_precision(nlohmann::ordered_json& config) {
  config["dtype"] = "float32";
  config.erase("torch_dtype");
  for (const char* part : {"text_config", "vision_config"})
    for (const char* key : {"dtype", "torch_dtype"})
      if (config.contains(part) && config[part].is_object() && config[part].contains(key))
        config[part][key] = "float32";
}

// The files of the processor of images.
constexpr const char* kProcessorFiles[] = {"preprocessor_config.json", "processor_config.json"};

}  // namespace

void save_image_text(const std::string& folder, const std::string& from, Transformer& text,
                     const Connector& connector, const Origin& origin, std::optional<int32_t> end) {
  const std::string file = from + "/config.json";
  nlohmann::ordered_json config = parse_ordered_json(read_file(file), file);
  const ImageTextKind& kind = *image_text_kind(Json(config));
  const SafeTensors whole = SafeTensors::open_model(from);
  std::map<std::string, Tensor> decoder = checkpoint_tensors(text, *origin.family, false),
                                layers = connector_tensors(connector, !kind.makes_tiles);
  std::map<std::string, Tensor> tensors;
  // Takes a tensor of a part. One that the part lacks is a copy of a tied weight.
  const auto take = [&](std::map<std::string, Tensor>& part, const std::string& ours,
                        const std::string& theirs) {
    if (const auto at = part.find(ours); at != part.end()) {
      tensors[theirs] = at->second;
      part.erase(at);
    }
  };
  for (const StoredTensor& stored : whole.stored()) {
    const std::string in_text = name_in_part(stored.name, kind.text),
                      in_connector = name_in_part(stored.name, kind.connector);
    if (!in_text.empty())
      take(decoder, in_text, stored.name);
    else if (!in_connector.empty())
      take(layers, in_connector, stored.name);
    else
      tensors[stored.name] = whole.tensor(stored.name);
  }
  for (const auto* part : {&decoder, &layers})
    if (!part->empty())
      fail(ErrorKind::Unsupported, "{}: has no tensor {}; expected one for each weight", from,
           part->begin()->first);
  set_precision(config);
  write_safetensors(folder + "/model.safetensors", tensors);
  write_file_atomically(folder + "/config.json", pretty(config));
  write_file_atomically(folder + "/generation_config.json",
                        generation_config_json(text.spec, origin, end));
  for (const char* name : kProcessorFiles)
    if (const std::string path = from + "/" + name; is_file(path))
      write_file_atomically(folder + "/" + name, read_file(path));
}

std::string decoder_module(const std::string& folder) {
  const Json config = read_json(folder + "/config.json");
  return image_text_kind(config)->makes_tiles ? "model.text_model" : "model.language_model";
}

}  // namespace fovea::model

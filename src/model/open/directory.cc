#include "open/directory.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/files.h"
#include "base/float_mode.h"
#include "base/folder_links.h"
#include "base/ggml_file.h"
#include "base/json.h"
#include "base/settings.h"
#include "checkpoint/mxfp4_tensors.h"
#include "formats/ct2/ct2.h"
#include "formats/ggml/speech_ggml.h"
#include "formats/gguf/model.h"
#include "formats/marian/marian.h"
#include "formats/peft/config.h"
#include "formats/timm/timm.h"
#include "fovea/model/model_path.h"
#include "fovea/model/spec.h"
#include "loading/loader.h"
#include "loading/model_path.h"
#include "open/image_text.h"
#include "open/open_adapters.h"
#include "safetensors/safetensors.h"
#include "transformer/adapters.h"

namespace fovea::model {
namespace {

std::vector<int32_t> end_ids(const std::string& folder, const nlohmann::json& config) {
  const std::string path = folder + "/generation_config.json";
  if (is_file(path)) {
    if (auto ids = ids_under(read_json(path), "eos_token_id"); !ids.empty()) return ids;
  }
  return ids_under(config, "eos_token_id");
}

// Older versions of transformers write Infinity, which is not JSON. Returns the text with the
// object that newer ones write instead.
std::string with_written_infinities(std::string_view text) {
  constexpr std::string_view kInfinity = "Infinity", kObject = R"({"__float__": "Infinity"})";
  std::string result;
  bool quoted = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    const bool bare = !quoted && text.substr(at).starts_with(kInfinity);
    if (bare)
      result += kObject;
    else
      result += c;
    if (bare) at += kInfinity.size() - 1;
    if (c == '"') quoted = !quoted;
    if (quoted && c == '\\' && at + 1 < text.size()) result += text[++at];
  }
  return result;
}

nlohmann::json config_in(const std::string& config_path) {
  nlohmann::json config =
      parse_json(with_written_infinities(read_file(config_path, kJsonLimit)), config_path);
  if (!config.is_object())
    fail(ErrorKind::BadFile, "{}: not an object; expected keys and values in braces", config_path);
  return config;
}

std::shared_ptr<const TensorSource> plain_tensors(const nlohmann::json& config,
                                                  const std::string& path) {
  SafeTensors file = SafeTensors::open_model(path);
  const auto quantized = config.find("quantization_config");
  if (quantized != config.end() && quantized->is_object() &&
      quantized->value("quant_method", nlohmann::json()) == "mxfp4")
    return std::make_shared<Mxfp4Tensors>(std::move(file), path);
  return std::make_shared<SafeTensors>(std::move(file));
}

// Opens a directory of config.json and safetensors files. `trains_decoder`: that of a model that
// reads images may be trained.
ModelFiles open_directory(const std::string& path, const Loading& given, bool trains_decoder) {
  Loading loading = given;
  refuse_links_out(path);
  const std::string config_path = path + "/config.json";
  nlohmann::json config = config_in(config_path);
  loading.quantization = take_quantization(config, config_path);
  if (loading.quantization && loading.weights == Weights::owned) {
    fail(ErrorKind::Unsupported,
         "{}: the weights are quantised (quantization_config); expected full weights to train",
         config_path);
  }
  const Family *family = nullptr, *save_as = nullptr;
  std::shared_ptr<const TensorSource> tensors;
  const bool text_part = is_text_part_config(config);
  if (text_part || is_image_text_config(config)) {
    if (!text_part && loading.weights == Weights::owned && !trains_decoder)
      fail(ErrorKind::Unsupported,
           "{}: a model of texts with images is trained on chats only; expected a model of texts",
           path);
    TextConfig text = text_config(config, path);
    tensors = text_tensors(config, path);
    family = text.family;
    config = std::move(text.json);
  } else if (is_timm_config(config)) {
    tensors = std::make_shared<SafeTensors>(SafeTensors::open_model(path));
    TimmModel timm = timm_model(config, *tensors, config_path);
    family = timm.family, save_as = timm.save_as;
    config = std::move(timm.config);
  } else {
    family = &family_named(get_string(config, "model_type", config_path), config_path);
    tensors = plain_tensors(config, path);
  }
  ModelFiles files = load_model(*family, config, config_path, tensors, loading, path);
  if (save_as != nullptr) files.origin.family = save_as;
  if (text_part)
    files.warnings.push_back(path +
                             ": its encoder of images is not supported; only the model of "
                             "texts is opened");
  if (const std::string generation = path + "/generation_config.json"; is_file(generation)) {
    files.origin.generation = read_json(generation);
    refuse_unknown_settings(files.origin.generation, generation, "generation_config.json", {});
  }
  if (const std::string audio = path + "/preprocessor_config.json";
      files.model.spec.input.kind == InputKind::audio && is_file(audio))
    refuse_unknown_settings(read_json(audio), audio, "preprocessor_config.json of speech", {});
  files.end_ids = end_ids(path, config);
  return files;
}

Spec spec_in_directory(const std::string& path) {
  const std::string config_path = path + "/config.json";
  nlohmann::json config = config_in(config_path);
  static_cast<void>(take_quantization(config, config_path));  // it does not affect the Spec
  const TextConfig text =
      is_image_text_config(config) || is_text_part_config(config)
          ? text_config(config, path)
          : TextConfig{&family_named(get_string(config, "model_type", config_path), config_path),
                       std::move(config)};
  Spec spec;
  Config reader(text.json, config_path);
  describe(reader, *text.family, spec);
  return spec;
}

Spec spec_in_weights(const std::string& path);

// The formats of models, in the order in which they are tried.
struct ModelFormat {
  bool (*is)(const std::string& path);
  ModelFiles (*open)(const std::string& path, const Loading& loading);
  Spec (*spec)(const std::string& path);
};
constexpr ModelFormat kFormats[] = {
    {is_gguf, open_gguf_files, read_gguf_spec},
    {is_ggml, open_ggml_files, spec_in_weights},
    {is_ct2_folder,
     [](const std::string& path, const Loading& loading) {
       refuse_links_out(path);
       return open_ct2_files(path, loading);
     },
     spec_in_weights},
    {is_marian_folder,
     [](const std::string& path, const Loading& loading) {
       refuse_links_out(path);
       return open_marian_files(path, loading);
     },
     spec_in_weights},
    {[](const std::string& path) { return is_file(path + "/config.json"); },
     [](const std::string& path, const Loading& loading) {
       return open_directory(path, loading, false);
     },
     spec_in_directory}};

const ModelFormat& format_of(const std::string& path) {
  require_model(path);
  for (const ModelFormat& format : kFormats)
    if (format.is(path)) return format;
  refuse_path(path);
}

ModelFiles open_files(const std::string& path, const Loading& loading) {
  return format_of(path).open(path, loading);
}

Spec spec_in_weights(const std::string& path) {
  return open_files(path, {.weights = Weights::packed, .only_sizes = true}).model.spec;
}

}  // namespace

ModelFiles open_model_files(const std::string& path, Weights weights, const Packing& packing,
                            const std::vector<AdapterUse>& adapters) {
  const AdaptedModel adapted = adapted_model(path, adapters);
  Loading loading{.weights = weights, .packing = packing};
  if (adapted.head) loading.new_head = &*adapted.head;
  ModelFiles files = open_files(adapted.base, loading);
  files.base = adapted.base;
  add_adapters(files, adapted, weights);
  return files;
}

ModelFiles open_decoder_to_train(const std::string& path) {
  if (!reads_images(path)) return open_model_files(path, Weights::owned);
  ModelFiles files = open_directory(path, {.weights = Weights::owned}, true);
  files.base = path;
  return files;
}

ModelFiles open_with_head(const std::string& path, Weights weights, const Packing& packing,
                          const HeadSpec& head) {
  ModelFiles files = open_files(path, {.weights = weights, .packing = packing, .new_head = &head});
  files.base = path;
  return files;
}

Spec read_model_spec(const std::string& folder) {
  const FloatMode mode;
  if (holds_adapter(folder)) {
    const AdaptedModel adapted = adapted_model(folder, {});
    Spec spec = read_model_spec(adapted.base);
    if (adapted.head) spec.head = *adapted.head;
    return spec;
  }
  return format_of(folder).spec(folder);
}

WeightSizes weight_sizes(const std::string& path, const Packing& packing) {
  return open_files(path, {.weights = Weights::packed, .packing = packing, .only_sizes = true})
      .sizes;
}

}  // namespace fovea::model

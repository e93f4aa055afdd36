#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "checkpoint/ct2_file.h"
#include "families/registry.h"
#include "families/shared.h"
#include "families/speech_config.h"
#include "formats/ct2/ct2.h"
#include "formats/ct2/names.h"
#include "tokenizer/formats/ranked_tokens.h"

namespace fovea::model {
namespace {

constexpr const char *kSpeech = "WhisperSpec", *kTranslation = "TransformerSpec";

bool has_key_bias(const Spec& spec) { return spec.decoder->attention.key_bias; }
bool has_no_key_bias(const Spec& spec) { return !has_key_bias(spec); }

// The linear layers of queries, keys and values are one, as are those of keys and values of
// cross-attention.
Names stack_names(const std::string& stack) {
  const std::string layer = stack + "/layer_{i}/", ours = stack + ".{i}.";
  Names names = {
      {layer + "self_attention/linear_0/weight", ours + "attention.{query+key+value}.weight"},
      {layer + "self_attention/linear_0/bias", ours + "attention.{query+key+value}.bias",
       Stored::plain, has_key_bias},
      {layer + "self_attention/linear_0/bias", ours + "attention.{query+value}.bias",
       Stored::keyless, has_no_key_bias},
      {layer + "self_attention/linear_1/{weight,bias}", ours + "attention.output.{weight,bias}"},
      {layer + "attention/linear_0/{weight,bias}", ours + "cross.query.{weight,bias}"},
      {layer + "attention/linear_1/weight", ours + "cross.{key+value}.weight"},
      {layer + "attention/linear_1/bias", ours + "cross.{key+value}.bias", Stored::plain,
       has_key_bias},
      {layer + "attention/linear_1/bias", ours + "cross.value.bias", Stored::keyless,
       has_no_key_bias},
      {layer + "attention/linear_2/{weight,bias}", ours + "cross.output.{weight,bias}"},
      {layer + "ffn/linear_{0,1}/{weight,bias}", ours + "ffn.{up,down}.{weight,bias}"},
      {stack + "/position_encodings/encodings", stack + ".position"},
      {stack + "/layer_norm/{gamma,beta}", stack + ".norm.final.{weight,bias}"}};
  for (const char* placement : {"sum", "input"})
    names.push_back({layer + "{self_attention,attention,ffn}/layer_norm/{gamma,beta}",
                     ours + "norm.{attention,cross,ffn}." + placement + ".{weight,bias}"});
  return names;
}

const Names ct2_names = stack_names("encoder") + stack_names("decoder") +
                        Names{{"encoder/conv{1,2}/{weight,bias}",
                               "input.convolution.{0,1}.{weight,bias}", Stored::convolution},
                              {kCt2Table, "embedding.token"},
                              {kCt2Sources, "embedding.source"},
                              {"decoder/projection/{weight,bias}", "head.output.{weight,bias}"}};

}  // namespace

const Family ct2_speech = {
    kSpeech, {{"WhisperForConditionalGeneration", {}}}, whisper_config, ct2_names};
const Family ct2_translation = {
    kTranslation, {{"MarianMTModel", {.bias = true}}},           marian_config, ct2_names,
    "",           {"/position_encodings/encodings", kCt2Sources}};

namespace {

// Reads the sizes of the model from the shapes and numbers of a file.
class Ct2Sizes {
 public:
  explicit Ct2Sizes(const Ct2File& file) : file_(file) {}

  int64_t extent(const std::string& name, size_t axis) const {
    const Ct2Variable* found = file_.find(name);
    if (found == nullptr || found->shape.size() <= axis)
      fail(ErrorKind::BadFile, "{}: {} is missing or has too few axes; expected a tensor of {}",
           file_.path(), name, file_.specification());
    return found->shape[axis];
  }

  int64_t number(const std::string& name) const {
    const auto found = file_.number(name);
    if (!found)
      fail(ErrorKind::BadFile, "{}: {} is missing; expected a number", file_.path(), name);
    return static_cast<int64_t>(*found);
  }

  int64_t layers(const std::string& stack) const {
    int64_t count = 0;
    while (file_.find(fmt::format("{}/layer_{}/ffn/linear_0/weight", stack, count)) != nullptr)
      ++count;
    return count;
  }

  // Throws Unsupported if a number has another value than all models of this kind.
  void only(const std::string& name, double value) const {
    const auto found = file_.number(name);
    if (found && *found != value)
      fail(ErrorKind::Unsupported, "{}: {} is {}; expected {}", file_.path(), name, *found, value);
  }

  bool has_own_head() const { return file_.resolved(kCt2Head) != file_.resolved(kCt2Table); }

 private:
  const Ct2File& file_;
};

std::optional<std::vector<int32_t>> ids_of(const nlohmann::json& config, const char* key) {
  if (!config.contains(key) || !config.at(key).is_array()) return std::nullopt;
  return ids_under(config, key);
}

ModelFiles open_speech(const std::string& path, const std::shared_ptr<const Ct2File>& file,
                       const nlohmann::json& config, const Loading& loading) {
  const Ct2Sizes sizes(*file);
  const std::string list = text::token_list_path(path);
  const std::vector<std::string> names = text::token_list(list);
  const auto languages = ids_of(config, "lang_ids");
  const SpeechGeneration given{
      .multilingual = std::ssize(names) != 51864 && languages && !languages->empty(),
      .suppressed = ids_of(config, "suppress_ids"),
      .suppressed_first = ids_of(config, "suppress_ids_begin")};
  nlohmann::ordered_json generation = speech_generation(names, given, list);
  if (config.contains("alignment_heads") && !config.at("alignment_heads").is_null())
    generation["alignment_heads"] = config.at("alignment_heads");
  const SpeechSizes found{.vocabulary = sizes.extent(kCt2Table, 0),
                          .bins = sizes.extent("encoder/conv1/weight", 1),
                          .frames = sizes.extent("encoder/position_encodings/encodings", 0),
                          .context = sizes.extent("decoder/position_encodings/encodings", 0),
                          .width = sizes.extent(kCt2Table, 1),
                          .encoder_layers = sizes.layers("encoder"),
                          .encoder_heads = sizes.number("encoder/num_heads"),
                          .encoder_ffn = sizes.extent("encoder/layer_0/ffn/linear_0/weight", 0),
                          .decoder_layers = sizes.layers("decoder"),
                          .decoder_heads = sizes.number("decoder/num_heads"),
                          .decoder_ffn = sizes.extent("decoder/layer_0/ffn/linear_0/weight", 0),
                          .tied = !sizes.has_own_head()};
  ModelFiles files =
      load_model(ct2_speech, speech_config(found, generation), file->path(),
                 std::make_shared<Ct2Tensors>(file, std::vector<std::string>{}), loading, path);
  files.origin.family = &whisper;
  files.origin.generation = generation;
  files.end_ids = ids_under(generation, "eos_token_id");
  return files;
}

const char* activation_name(int64_t number, const std::string& path) {
  constexpr const char* kNames[] = {"relu", "gelu_new", "swish", "gelu", "quick_gelu", "tanh"};
  if (number < 0 || number >= std::ssize(kNames))
    fail(ErrorKind::Unsupported, "{}: decoder/activation is {}; expected 0 to {}", path, number,
         std::ssize(kNames) - 1);
  return kNames[number];
}

// CTranslate2 leaves out the token of padding, whose vector of zeros is the decoder's first input.
ModelFiles open_translation(const std::string& path, const std::shared_ptr<const Ct2File>& file,
                            const nlohmann::json& config, const Loading& loading) {
  const Ct2Sizes sizes(*file);
  sizes.only("decoder/pre_norm", 0);
  sizes.only("encoder/pre_norm", 0);
  sizes.only("decoder/start_from_zero_embedding", 1);
  if (sizes.has_own_head() || file->resolved(kCt2Sources) != file->resolved(kCt2Table))
    fail(ErrorKind::Unsupported,
         "{}: the two vocabularies or the head have their own vectors; expected shared ones",
         file->path());
  const std::string list = text::token_list_path(path, "shared_");
  const auto names = text::token_list(list);
  const auto end = std::find(names.begin(), names.end(), config.value("eos_token", "</s>"));
  if (end == names.end())
    fail(ErrorKind::BadFile, "{}: has no token {}; expected eos_token of config.json", list,
         config.value("eos_token", "</s>"));
  const int64_t padding = sizes.extent(kCt2Table, 0), end_id = end - names.begin();
  const double scale = file->number("decoder/scale_embeddings").value_or(1);
  const nlohmann::json made = {
      {"model_type", "marian"},
      {"architectures", {"MarianMTModel"}},
      {"vocab_size", padding + 1},
      {"d_model", sizes.extent(kCt2Table, 1)},
      {"encoder_layers", sizes.layers("encoder")},
      {"encoder_attention_heads", sizes.number("encoder/num_heads")},
      {"encoder_ffn_dim", sizes.extent("encoder/layer_0/ffn/linear_0/weight", 0)},
      {"decoder_layers", sizes.layers("decoder")},
      {"decoder_attention_heads", sizes.number("decoder/num_heads")},
      {"decoder_ffn_dim", sizes.extent("decoder/layer_0/ffn/linear_0/weight", 0)},
      {"activation_function", activation_name(sizes.number("decoder/activation"), file->path())},
      {"max_position_embeddings", sizes.extent("decoder/position_encodings/encodings", 0)},
      {"scale_embedding", scale > 1},
      {"dropout", 0.0},
      {"is_encoder_decoder", true},
      {"static_position_embeddings", true},
      {"pad_token_id", padding},
      {"decoder_start_token_id", padding},
      {"eos_token_id", end_id},
      {"tie_word_embeddings", true}};
  const std::vector<std::string> padded = {kCt2Table, kCt2Head, kCt2HeadBias};
  ModelFiles files = load_model(ct2_translation, made, file->path(),
                                std::make_shared<Ct2Tensors>(file, padded), loading, path);
  files.origin.family = &marian;
  files.origin.generation = {
      {"pad_token_id", padding},
      {"decoder_start_token_id", padding},
      {"eos_token_id", end_id},
      {"bad_words_ids", nlohmann::ordered_json::array({nlohmann::ordered_json::array({padding})})},
      {"max_length", made.at("max_position_embeddings")}};
  files.end_ids = {static_cast<int32_t>(end_id)};
  return files;
}

}  // namespace

bool is_ct2_folder(const std::string& path) {
  if (!is_file(path + "/model.bin")) return false;
  const std::string config = path + "/config.json";
  if (!is_file(config)) return true;
  const nlohmann::json json = read_json(config);
  return json.is_object() && !json.contains("model_type");
}

ModelFiles open_ct2_files(const std::string& path, const Loading& given) {
  const auto file = std::make_shared<const Ct2File>(path + "/model.bin");
  const std::string config_path = path + "/config.json";
  const nlohmann::json config =
      is_file(config_path) ? read_json(config_path) : nlohmann::json::object();
  if (!config.is_object())
    fail(ErrorKind::BadFile, "{}: not an object; expected keys and values in braces", config_path);
  // Integers with a scale for each row are packed in the same way.
  Loading loading = given;
  const Ct2Variable* matrix = file->find("decoder/layer_0/ffn/linear_0/weight");
  if (matrix != nullptr && matrix->type == Ct2Type::i8 && !given.packing.format &&
      given.weights == Weights::packed)
    loading.packing = {WeightFormat::int8, 0};
  if (file->specification() == kSpeech) return open_speech(path, file, config, loading);
  if (file->specification() == kTranslation) return open_translation(path, file, config, loading);
  fail(ErrorKind::Unsupported, "{}: has a {}; expected {} or {} (of Marian)", file->path(),
       file->specification(), kSpeech, kTranslation);
}

}  // namespace fovea::model

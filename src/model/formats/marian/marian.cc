#include "formats/marian/marian.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "checkpoint/npz_file.h"
#include "families/registry.h"
#include "fovea/core/excerpt.h"

namespace fovea::model {
namespace {

constexpr const char* kOptions = "special:model.yml";

// Options by their names: "key: value", or "key:" and the items of a list, which are joined by
// spaces.
std::map<std::string, std::string> options_in(std::string_view yaml) {
  std::map<std::string, std::string> options;
  std::string key;
  while (!yaml.empty()) {
    std::string_view line = yaml.substr(0, yaml.find_first_of(std::string_view("\n\0", 2)));
    yaml.remove_prefix(std::min(yaml.size(), line.size() + 1));
    const size_t dash = line.find("- ");
    const bool item = dash != line.npos && line.find_first_not_of(' ') == dash;
    const size_t colon = item ? line.npos : line.find(':');
    if (!item && colon == line.npos) continue;
    if (!item) key = line.substr(0, colon);
    std::string_view value = line.substr(item ? dash + 2 : colon + 1);
    while (value.starts_with(' ')) value.remove_prefix(1);
    if (value.size() > 1 && (value[0] == '"' || value[0] == '\''))
      value = value.substr(1, value.size() - 2);
    if (value == "[]" || value == "~") value = "";
    std::string& known = options[key];
    if (item && !known.empty()) known += ' ';
    known += value;
  }
  return options;
}

// The options of a model, with their defaults in Marian.
class Options {
 public:
  explicit Options(const NpzFile& file) : path_(file.path()) {
    const NpzArray* yaml = file.find(kOptions);
    if (yaml == nullptr)
      fail(ErrorKind::BadFile, "{}: lacks {}; expected a checkpoint of Marian", path_, kOptions);
    options_ = options_in(yaml->bytes);
  }

  std::string text(const std::string& key, const std::string& otherwise = "") const {
    const auto found = options_.find(key);
    return found == options_.end() ? otherwise : found->second;
  }

  int64_t number(const std::string& key, int64_t otherwise) const {
    const std::string value = text(key, std::to_string(otherwise));
    int64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size() || number < 0)
      fail(ErrorKind::BadFile, "{}: {} is {} ({}); expected a number", path_, key, excerpt(value),
           kOptions);
    return number;
  }

  // Throws Unsupported if the option is not one of `values`; the first is the default.
  std::string among(const std::string& key, const std::vector<std::string>& values) const {
    const std::string value = text(key, values[0]);
    if (std::find(values.begin(), values.end(), value) == values.end())
      fail(ErrorKind::Unsupported, "{}: {} is \"{}\" ({}); expected {}", path_, key, excerpt(value),
           kOptions, fmt::format("\"{}\"", fmt::join(values, "\" or \"")));
    return value;
  }

 private:
  const std::string& path_;
  std::map<std::string, std::string> options_;
};

// Throws Unsupported if the model is not a plain transformer. Returns whether its norms are on the
// inputs of sublayers ("n" before, "da" after) and at the end, not on their sums ("dan").
bool norms_first(const Options& o) {
  o.among("type", {"transformer"});
  o.among("transformer-decoder-autoreg", {"self-attention"});
  o.among("tied-embeddings-all", {"false", "true"});
  if (o.text("tied-embeddings-all") != "true") {
    o.among("tied-embeddings-src", {"true"});
    o.among("tied-embeddings", {"true"});
  }
  for (const char* key :
       {"transformer-train-position-embeddings", "transformer-train-positions",
        "transformer-no-projection", "transformer-no-bias", "transformer-no-affine",
        "output-omit-bias", "ulr", "transformer-pool", "no-embed-scale"})
    o.among(key, {"false"});
  for (const char* key : {"transformer-tied-layers", "input-types"}) o.among(key, {""});
  for (const char* key : {"lemma-dim-emb", "transformer-decoder-dim-ffn"}) o.among(key, {"0"});
  o.among("transformer-ffn-depth", {"2"});
  o.among("transformer-decoder-ffn-depth", {"0", "2"});
  o.among("transformer-postprocess-emb", {"d", ""});
  const bool first = o.among("transformer-preprocess", {"", "n"}) == "n";
  if (first) {
    o.among("transformer-postprocess", {"da", "a"});
    o.among("transformer-postprocess-top", {"n"});
  } else {
    o.among("transformer-postprocess", {"dan", "an"});
    o.among("transformer-postprocess-top", {""});
  }
  return first;
}

// The tensors of Marian under the names of transformers. Matrices are transposed; the table and the
// bias of the head have one row more, of zeros, for the token of padding, which begins the
// translation.
class MarianTensors : public TensorSource {
 public:
  enum class Form { matrix, vector, table, head };

  MarianTensors(std::shared_ptr<const NpzFile> file, int64_t encoder, int64_t decoder, bool first)
      : file_(std::move(file)) {
    add("Wemb", "model.shared.weight", Form::table);
    add("decoder_ff_logit_out_b", "final_logits_bias", Form::head);
    for (const auto& [stack, layers] :
         {std::pair("encoder", encoder), std::pair("decoder", decoder)}) {
      for (int64_t i = 0; i < layers; ++i)
        add_layer(fmt::format("{}_l{}_", stack, i + 1),
                  fmt::format("model.{}.layers.{}.", stack, i),
                  stack == std::string_view("decoder"), first ? "_pre" : "");
      if (first)
        add_norm(fmt::format("{}_top_ln", stack), fmt::format("model.{}.layer_norm", stack), "");
    }
    for (const auto& [name, array] : file_->arrays())
      if (name != kOptions && !read_.contains(name))
        fail(ErrorKind::Unsupported, "{}: {} is no tensor of a plain transformer; expected none",
             file_->path(), excerpt(name));
    std::sort(stored_.begin(), stored_.end(),
              [](const StoredTensor& a, const StoredTensor& b) { return a.name < b.name; });
  }

  const std::vector<StoredTensor>& stored() const override { return stored_; }
  std::shared_ptr<const MappedFile> file_of(const StoredTensor&) const override {
    return file_->file();
  }

  Tensor tensor(std::string_view name) const override {
    const auto found = sources_.find(std::string(name));
    if (found == sources_.end())
      fail(ErrorKind::BadFile, "{}: {} is missing; expected it", file_->path(), name);
    const auto& [array, form] = found->second;
    const Tensor values = zeros(find(name)->shape, DType::f32);
    auto* to = values.data_as<char>();
    if (form != Form::matrix) {
      std::memcpy(to, array->bytes.data(), array->bytes.size());
      return values;
    }
    const auto rows = static_cast<size_t>(array->shape[0]),
               columns = static_cast<size_t>(array->shape[1]);
    for (size_t row = 0; row < rows; ++row)
      for (size_t column = 0; column < columns; ++column)
        std::memcpy(to + (column * rows + row) * sizeof(float),
                    array->bytes.data() + (row * columns + column) * sizeof(float), sizeof(float));
    return values;
  }

 private:
  void add(const std::string& theirs, const std::string& ours, Form form) {
    const NpzArray* array = file_->find(theirs);
    if (array == nullptr || array->shape.size() != 2)
      fail(ErrorKind::BadFile, "{}: {} is missing or has not two axes; expected a tensor of Marian",
           file_->path(), theirs);
    if (array->type != "f4")
      fail(ErrorKind::Unsupported, "{}: {} is {}; expected f4", file_->path(), theirs, array->type);
    Shape shape = array->shape;
    if (form == Form::matrix) std::swap(shape[0], shape[1]);
    if (form == Form::vector) shape = {elements(shape)};
    if (form == Form::table) ++shape[0];
    if (form == Form::head) shape = {1, elements(shape) + 1};
    read_.insert(theirs);
    sources_[ours] = {array, form};
    stored_.push_back(
        {ours, "F32", DType::f32, shape, array->bytes.data(), array->bytes.size(), 0});
  }

  void add_norm(const std::string& theirs, const std::string& ours, const std::string& when) {
    add(theirs + "_scale" + when, ours + ".weight", Form::vector);
    add(theirs + "_bias" + when, ours + ".bias", Form::vector);
  }

  void add_layer(const std::string& theirs, const std::string& ours, bool decoder,
                 const std::string& when) {
    for (const auto& [block, name] :
         {std::pair("self", "self_attn"), std::pair("context", "encoder_attn")}) {
      if (block == std::string_view("context") && !decoder) continue;
      for (const auto& [letter, projection] :
           {std::pair('q', "q"), std::pair('k', "k"), std::pair('v', "v"), std::pair('o', "out")}) {
        const std::string to = fmt::format("{}{}.{}_proj.", ours, name, projection);
        add(fmt::format("{}{}_W{}", theirs, block, letter), to + "weight", Form::matrix);
        add(fmt::format("{}{}_b{}", theirs, block, letter), to + "bias", Form::vector);
      }
      add_norm(fmt::format("{}{}_Wo_ln", theirs, block), fmt::format("{}{}_layer_norm", ours, name),
               when);
    }
    for (const char* number : {"1", "2"}) {
      add(theirs + "ffn_W" + number, ours + "fc" + number + ".weight", Form::matrix);
      add(theirs + "ffn_b" + number, ours + "fc" + number + ".bias", Form::vector);
    }
    add_norm(theirs + "ffn_ffn_ln", ours + "final_layer_norm", when);
  }

  std::shared_ptr<const NpzFile> file_;
  std::vector<StoredTensor> stored_;
  std::map<std::string, std::pair<const NpzArray*, Form>> sources_;  // by the names of stored_
  std::set<std::string> read_;                                       // names of Marian
};

std::vector<std::string> npz_files(const std::string& path) {
  std::vector<std::string> found;
  if (!is_folder(path)) return found;
  for (const std::string& name : list_files(path))
    if (name.ends_with(".npz")) found.push_back(name);
  return found;
}

// Returns the .npz file of a directory.
std::string weights_in(const std::string& path) {
  const std::vector<std::string> all = npz_files(path);
  if (all.size() == 1) return path + "/" + all[0];
  const std::string decoder = path + "/decoder.yml";
  std::string named;
  if (is_file(decoder)) {
    constexpr size_t kMost = size_t{1} << 20;
    named = options_in(read_file(decoder, kMost))["models"];
    named = named.substr(named.rfind('/') + 1);
  }
  if (std::find(all.begin(), all.end(), named) == all.end())
    fail(ErrorKind::BadFile, "{}: has {} .npz files; expected one, or a decoder.yml that names one",
         path, all.size());
  return path + "/" + named;
}

}  // namespace

bool is_marian_folder(const std::string& path) {
  return !is_file(path + "/config.json") && !npz_files(path).empty();
}

ModelFiles open_marian_files(const std::string& path, const Loading& loading) {
  const auto file = std::make_shared<const NpzFile>(weights_in(path));
  const Options options(*file);
  const bool first = norms_first(options);
  const int64_t encoder = options.number("enc-depth", 1), decoder = options.number("dec-depth", 1);
  const auto tensors = std::make_shared<const MarianTensors>(file, encoder, decoder, first);
  const StoredTensor& table = *tensors->find("model.shared.weight");
  const std::string activation =
      options.among("transformer-ffn-activation", {"swish", "relu", "gelu"});
  const int64_t heads = options.number("transformer-heads", 8),
                width = options.number("transformer-dim-ffn", 2048), padding = table.shape[0] - 1;
  constexpr int64_t kContext = 512, kEnd = 0;  // Marian's vocabularies begin with </s>
  const Family& family = first ? pegasus : marian;
  const nlohmann::json config = {
      {"model_type", family.model_type},
      {"architectures", {family.architectures[0].name}},
      {"vocab_size", padding + 1},
      {"d_model", table.shape[1]},
      {"encoder_layers", encoder},
      {"encoder_attention_heads", heads},
      {"encoder_ffn_dim", width},
      {"decoder_layers", decoder},
      {"decoder_attention_heads", heads},
      {"decoder_ffn_dim", width},
      // Marian's gelu is x sigmoid(1.702 x).
      {"activation_function", activation == "gelu" ? "quick_gelu" : activation},
      {"max_position_embeddings", kContext},
      {"scale_embedding", true},
      {"dropout", 0.0},
      {"is_encoder_decoder", true},
      {"static_position_embeddings", true},
      {"pad_token_id", padding},
      {"decoder_start_token_id", padding},
      {"eos_token_id", kEnd},
      {"tie_word_embeddings", true}};
  ModelFiles files = load_model(family, config, file->path(), tensors, loading, path);
  files.origin.generation = {
      {"pad_token_id", padding},
      {"decoder_start_token_id", padding},
      {"eos_token_id", kEnd},
      {"bad_words_ids", nlohmann::ordered_json::array({nlohmann::ordered_json::array({padding})})}};
  files.end_ids = {static_cast<int32_t>(kEnd)};
  return files;
}

}  // namespace fovea::model

#include <algorithm>
#include <map>

#include "base/base64.h"
#include "base/error.h"
#include "base/json.h"
#include "tokenizer/formats/gguf_splits.h"
#include "tokenizer/formats/gguf_tokenizer.h"
#include "tokenizer/formats/sentencepiece.h"
#include "tokenizer/state/config.h"

namespace fovea::text {
namespace {

using Json = nlohmann::json;
using PieceType = SentencePieceFile::Type;

constexpr const char* kName = "tokenizer.json";
constexpr std::string_view kSpace = "▁";  // represents a space in SentencePiece's tokens

std::string type_of(const Json& part) {
  return part.is_object() ? find_string(part, "type", kName).value_or("") : "";
}

// Returns the parts of a sequence, or the part itself.
std::vector<Json> parts_of(const Json& part) {
  std::vector<Json> parts;
  for (const char* list : {"normalizers", "pretokenizers", "processors", "decoders"})
    if (part.is_object() && part.contains(list))
      for (const Json& each : part[list]) parts.push_back(each);
  if (parts.empty() && part.is_object()) parts.push_back(part);
  return parts;
}

const Json* find_part(const std::vector<Json>& parts, std::string_view type) {
  const auto found =
      std::find_if(parts.begin(), parts.end(), [&](auto& part) { return type_of(part) == type; });
  return found == parts.end() ? nullptr : &*found;
}

bool is_byte(const std::string& text) {
  return text.size() == 6 && text.starts_with("<0x") && text.ends_with(">");
}

class Writer {
 public:
  Writer(GgufMetadata& metadata, const TokenizerFiles& files, int64_t vocabulary)
      : metadata_(metadata), files_(files), vocabulary_(vocabulary) {
    tokenizer_ = parse_json(files.tokenizer, kName);
    model_ = tokenizer_.value("model", Json::object());
    normalizers_ = parts_of(tokenizer_.value("normalizer", Json()));
  }

  void write() {
    read_tokens();
    const std::string type = type_of(model_);
    const bool byte_fallback = model_.value("byte_fallback", false);
    const Json pre = tokenizer_.value("pre_tokenizer", Json());
    const bool whole_words = model_.value("ignore_merges", false);
    const GgufSplit* split = type == "BPE" ? gguf_split_of(pre, whole_words) : nullptr;
    if (split != nullptr) {
      kind("gpt2");
      metadata_.text("tokenizer.ggml.pre", split->names[0]);
      metadata_.texts("tokenizer.ggml.merges", merges());
    } else if (type == "BPE" && byte_fallback) {
      kind("llama");
      metadata_.text("tokenizer.ggml.pre", "default");
      metadata_.numbers("tokenizer.ggml.scores", scores_of_merges());
      metadata_.boolean("tokenizer.ggml.add_space_prefix", begins_with_space(pre));
    } else if (type == "Unigram") {
      kind("t5");
      metadata_.text("tokenizer.ggml.pre", "default");
      unigram(pre);
    } else if (type == "WordPiece") {
      kind("bert");
      metadata_.text("tokenizer.ggml.pre", "default");
      begin_words();
    } else {
      kind("no_vocab");
    }
    metadata_.texts("tokenizer.ggml.tokens", texts_);
    metadata_.integers("tokenizer.ggml.token_type", types_);
    special_tokens();
  }

 private:
  void kind(const char* name) { metadata_.text("tokenizer.ggml.model", name); }

  void put(const std::string& text, int64_t id, PieceType type) {
    if (id < 0 || id >= vocabulary_) {
      fail(ErrorKind::Unsupported,
           "tokenizer: {} has id {}; expected ids below {}, the number of the model's embeddings",
           brief(Json(text)), id, vocabulary_);
    }
    texts_[static_cast<size_t>(id)] = text;
    types_[static_cast<size_t>(id)] = static_cast<int32_t>(type);
    ids_[text] = id;
  }

  void read_tokens() {
    for (int64_t id = 0; id < vocabulary_; ++id) texts_.push_back(fmt::format("[PAD{}]", id));
    types_.assign(texts_.size(), static_cast<int32_t>(PieceType::unused));
    const Json vocabulary = model_.value("vocab", Json::object());
    const auto type = [](const std::string& text) {
      return is_byte(text) ? PieceType::byte : PieceType::normal;
    };
    if (vocabulary.is_array()) {
      for (size_t id = 0; id < vocabulary.size(); ++id) {
        const Json& piece = vocabulary[id];
        const auto text = (piece.is_array() ? piece.at(0) : piece).get<std::string>();
        put(text, static_cast<int64_t>(id), type(text));
      }
    } else {
      for (const auto& [text, id] : vocabulary.items()) put(text, id, type(text));
    }
    for (const Json& added : tokenizer_.value("added_tokens", Json::array())) {
      const std::string text = get_string(added, "content", kName);
      const bool special = find_bool(added, "special", kName).value_or(false);
      put(text, get_int(added, "id", kName),
          special ? PieceType::control : PieceType::user_defined);
    }
    if (const auto unknown = model_.find("unk_token");
        unknown != model_.end() && unknown->is_string() && ids_.contains(*unknown))
      types_[static_cast<size_t>(ids_[*unknown])] = static_cast<int32_t>(PieceType::unknown);
    if (const auto unknown = model_.find("unk_id");
        unknown != model_.end() && unknown->is_number_integer() && *unknown < texts_.size())
      types_[unknown->get<size_t>()] = static_cast<int32_t>(PieceType::unknown);
  }

  std::vector<std::string> merges() const {
    std::vector<std::string> merges;
    for (const Json& merge : model_.value("merges", Json::array())) {
      merges.push_back(merge.is_string()
                           ? merge.get<std::string>()
                           : merge.at(0).get<std::string>() + " " + merge.at(1).get<std::string>());
    }
    return merges;
  }

  // Returns a score per token. SentencePiece merges the pair whose token has the highest score, so
  // the token of an earlier merge gets a higher score; tokens that no merge produces get 0.
  std::vector<float> scores_of_merges() const {
    std::vector<float> scores(texts_.size(), 0);
    float rank = 0;
    for (const std::string& merge : merges()) {
      std::string text = merge;
      text.erase(text.find(' ', 1), 1);
      --rank;
      const auto found = ids_.find(text);
      if (found == ids_.end()) continue;
      float& score = scores[static_cast<size_t>(found->second)];
      if (score == 0) score = rank;
    }
    return scores;
  }

  bool begins_with_space(const Json& pre) const {
    if (find_part(normalizers_, "Prepend") != nullptr) return true;
    const std::vector<Json> parts = parts_of(pre);
    const Json* metaspace = find_part(parts, "Metaspace");
    return metaspace != nullptr && metaspace->value("prepend_scheme", "always") != "never";
  }

  void unigram(const Json& pre) {
    std::vector<float> scores(texts_.size(), 0);
    const Json& pieces = model_["vocab"];
    for (size_t id = 0; id < pieces.size(); ++id) scores[id] = pieces[id].at(1).get<float>();
    metadata_.numbers("tokenizer.ggml.scores", scores);
    metadata_.boolean("tokenizer.ggml.add_space_prefix", begins_with_space(pre));
    metadata_.boolean("tokenizer.ggml.remove_extra_whitespaces", true);
    if (const Json* charsmap = find_part(normalizers_, "Precompiled")) {
      const auto bytes = from_base64(charsmap->value("precompiled_charsmap", ""));
      if (bytes) metadata_.raw("tokenizer.ggml.precompiled_charsmap", *bytes);
    }
  }

  // WordPiece marks tokens that continue a word; llama.cpp marks tokens that begin one.
  void begin_words() {
    const std::string continues = model_.value("continuing_subword_prefix", "##");
    for (size_t id = 0; id < texts_.size(); ++id) {
      if (types_[id] != static_cast<int32_t>(PieceType::normal)) continue;
      std::string& text = texts_[id];
      text =
          text.starts_with(continues) ? text.substr(continues.size()) : std::string(kSpace) + text;
    }
    const Json* normalizer = find_part(normalizers_, "BertNormalizer");
    if (normalizer == nullptr) return;
    const bool lowercase = normalizer->value("lowercase", true);
    metadata_.boolean("tokenizer.ggml.normalizer.lowercase", lowercase);
    const bool strips = find_bool(*normalizer, "strip_accents", kName).value_or(lowercase);
    if (strips != lowercase) metadata_.boolean("tokenizer.ggml.normalizer.strip_accents", strips);
  }

  // Returns the tokens before and after a text; "" if there are none.
  std::pair<std::string, std::string> around() const {
    const std::vector<Json> parts = parts_of(tokenizer_.value("post_processor", Json()));
    for (const char* type : {"BertProcessing", "RobertaProcessing"})
      if (const Json* marks = find_part(parts, type))
        return {marks->at("cls").at(0).get<std::string>(),
                marks->at("sep").at(0).get<std::string>()};
    const Json* marks = find_part(parts, "TemplateProcessing");
    const Json single = marks == nullptr ? Json() : marks->value("single", Json());
    if (single.empty()) return {};
    const auto text = [](const Json& part) {
      return part.contains("SpecialToken") ? part["SpecialToken"].value("id", "") : std::string();
    };
    return {text(single.front()), text(single.back())};
  }

  // Returns whether a pair has one more token after the end of its first text, as RoBERTa's have.
  bool separates() const {
    const std::vector<Json> parts = parts_of(tokenizer_.value("post_processor", Json()));
    if (find_part(parts, "RobertaProcessing") != nullptr) return true;
    const Json* marks = find_part(parts, "TemplateProcessing");
    if (marks == nullptr) return false;
    int between = 0;
    bool first = false;  // whether the first text is complete and the second has not begun
    for (const Json& part : marks->value("pair", Json::array())) {
      if (part.contains("Sequence"))
        first = !first;
      else if (first)
        ++between;
    }
    return between == 2;
  }

  void special_tokens() {
    const TokenizerConfig config(files_.config, "tokenizer_config.json");
    const auto [start, end] = around();
    const auto write = [&](const char* ours, const char* theirs, const std::string& otherwise) {
      const auto found = ids_.find(config.token(ours, otherwise));
      if (found != ids_.end())
        metadata_.integer(fmt::format("tokenizer.ggml.{}_token_id", theirs),
                          static_cast<uint32_t>(found->second));
    };
    write("bos_token", "bos", start);
    write("eos_token", "eos", end);
    write("unk_token", "unknown", "");
    write("pad_token", "padding", "");
    write("sep_token", "seperator", separates() || type_of(model_) == "WordPiece" ? end : "");
    write("mask_token", "mask", "");
    write("cls_token", "cls", "");
    metadata_.boolean("tokenizer.ggml.add_bos_token", !start.empty());
    metadata_.boolean("tokenizer.ggml.add_eos_token", !end.empty());
    if (separates() || type_of(model_) == "WordPiece")  // llama.cpp's default for WordPiece is true
      metadata_.boolean("tokenizer.ggml.add_sep_token", separates());
    if (files_.config.empty()) return;
    const Json given = parse_json(files_.config, "tokenizer_config.json");
    chat_templates(given.value("chat_template", Json()));
  }

  // One template, or several as gguf-py writes them: the default one, and others by their names.
  void chat_templates(const Json& given) {
    if (given.is_string()) return metadata_.text(kChatTemplate, given.get<std::string>());
    std::vector<std::string> names;
    for (const Json& each : given.is_array() ? given : Json::array()) {
      std::string name = get_string(each, "name", "tokenizer_config.json");
      const std::string text = get_string(each, "template", "tokenizer_config.json");
      if (name == "default") {
        metadata_.text(kChatTemplate, text);
        continue;
      }
      const auto is_plain = [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
      };
      std::replace_if(name.begin(), name.end(), [&](char c) { return !is_plain(c); }, '_');
      metadata_.text(std::string(kChatTemplate) + "." + name, text);
      names.push_back(std::move(name));
    }
    if (!names.empty()) metadata_.texts(kChatTemplates, names);
  }

  GgufMetadata& metadata_;
  const TokenizerFiles& files_;
  int64_t vocabulary_;
  Json tokenizer_, model_;
  std::vector<Json> normalizers_;
  std::vector<std::string> texts_;  // by id
  std::vector<int32_t> types_;
  std::map<std::string, int64_t> ids_;
};

}  // namespace

void write_tokenizer(GgufMetadata& metadata, const TokenizerFiles& files, int64_t vocabulary) {
  Writer(metadata, files, vocabulary).write();
}

}  // namespace fovea::text

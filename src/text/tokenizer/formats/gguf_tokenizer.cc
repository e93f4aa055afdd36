#include "tokenizer/formats/gguf_tokenizer.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/json.h"
#include "tokenizer/formats/gguf_splits.h"
#include "tokenizer/formats/sentencepiece.h"
#include "tokenizer/formats/vocab_files.h"
#include "tokenizer/state/file.h"
#include "unicode/utf8.h"

namespace fovea::text {
namespace {

using nlohmann::ordered_json;
using PieceType = SentencePieceFile::Type;

constexpr const char* kModel = "tokenizer.ggml.model";
constexpr const char* kTokens = "tokenizer.ggml.tokens";

std::string checked_text(std::string_view text, const std::string& path,
                         const std::string& location) {
  const size_t valid = utf8::valid_prefix(text), end = std::min(valid, text.find('\0'));
  if (end < text.size()) {
    fail(ErrorKind::BadFile, "{}: {} {} (byte {}); expected text", path, location,
         end < valid ? "contains NUL" : "is not UTF-8", end);
  }
  return std::string(text);
}

class GgufReader {
 public:
  explicit GgufReader(const Gguf& file) : file_(file) {}

  TokenizerFiles files() {
    TokenizerFiles files;
    if (const auto whole = file_.text(kWholeTokenizer)) {
      files.tokenizer = checked_text(*whole, file_.path(), kWholeTokenizer);
      read_tokens();
    } else {
      const std::string model = checked_text(*file_.text(kModel), file_.path(), kModel);
      read_tokens();
      if (model == "llama" || model == "t5") {
        files.tokenizer = pieces(model == "t5");
      } else if (model == "gpt2") {
        files.tokenizer = bytes();
      } else if (model == "bert") {
        files.tokenizer = words();
      } else {
        fail(ErrorKind::Unsupported, "{}: {} is {}; expected llama, gpt2, t5 or bert", file_.path(),
             kModel, brief(nlohmann::json(model)));
      }
    }
    files.config = config_.dump(2) + "\n";
    return files;
  }

 private:
  void read_tokens() {
    const auto tokens = file_.texts(kTokens);
    if (!tokens)
      fail(ErrorKind::BadFile, "{}: {} is missing; expected strings", file_.path(), kTokens);
    for (size_t id = 0; id < tokens->size(); ++id)
      texts_.push_back(
          checked_text((*tokens)[id], file_.path(), fmt::format("{}[{}]", kTokens, id)));
    types_.assign(texts_.size(), PieceType::normal);
    constexpr const char* kTypes = "tokenizer.ggml.token_type";
    if (const auto types = file_.integers(kTypes)) {
      check_length(kTypes, types->size());
      for (size_t id = 0; id < texts_.size(); ++id)
        if ((*types)[id] >= 1 && (*types)[id] <= 6)
          types_[id] = static_cast<PieceType>((*types)[id]);
    }
    for (const char* name : {"bos", "eos", "unknown", "padding", "seperator", "mask", "cls"}) {
      const auto id = file_.integer(fmt::format("tokenizer.ggml.{}_token_id", name));
      if (!id) continue;
      // llama.cpp ignores invalid ids.
      if (*id >= 0 && *id < std::ssize(texts_)) ids_[name] = static_cast<size_t>(*id);
    }
    for (const auto& [ours, theirs] : kConfigNames)
      if (ids_.contains(theirs)) config_[ours] = texts_[ids_[theirs]];
    read_chat_templates();
    config_["clean_up_tokenization_spaces"] = false;
    config_["tokenizer_class"] = "PreTrainedTokenizerFast";
    // This class gives the tokens of a pair no types unless the config names them.
    if (file_.text(kModel).value_or("") == "bert")
      config_["model_input_names"] = {"input_ids", "token_type_ids", "attention_mask"};
  }

  // The default template is a text of its own; others are listed by their names.
  void read_chat_templates() {
    auto named = ordered_json::array();
    const auto add = [&](const std::string& name, const std::string& key) {
      if (const auto text = file_.text(key))
        named.push_back({{"name", name}, {"template", checked_text(*text, file_.path(), key)}});
    };
    add("default", kChatTemplate);
    const auto names = file_.texts(kChatTemplates);
    for (const std::string_view each : names ? *names : std::vector<std::string_view>()) {
      const std::string name = checked_text(each, file_.path(), kChatTemplates);
      if (name != "default") add(name, std::string(kChatTemplate) + "." + name);
    }
    if (named.size() == 1 && named[0]["name"] == "default")
      config_["chat_template"] = named[0]["template"];
    else if (!named.empty())
      config_["chat_template"] = named;
  }

  void check_length(const char* key, size_t size) const {
    if (size == texts_.size()) return;
    fail(ErrorKind::BadFile, "{}: {} has {} elements; expected {}, the number of {}", file_.path(),
         key, size, texts_.size(), kTokens);
  }

  bool flag(const char* key, bool otherwise) const {
    return file_.boolean(fmt::format("tokenizer.ggml.{}", key)).value_or(otherwise);
  }

  // Sets whether texts begin with the start token and whether they end with the end token. `start`
  // and `end` are the defaults if the file has no such keys.
  void around(bool start, bool end) {
    start_ = flag("add_bos_token", start) && ids_.contains("bos");
    end_ = flag("add_eos_token", end) && ids_.contains("eos");
    config_["add_bos_token"] = start_;
    config_["add_eos_token"] = end_;
  }

  // Converts a BPE or unigram vocabulary of SentencePiece.
  std::string pieces(bool unigram) {
    constexpr const char* kScores = "tokenizer.ggml.scores";
    SentencePieceFile source;
    source.of_gguf = true;
    source.kind = unigram ? SentencePieceFile::Kind::unigram : SentencePieceFile::Kind::bpe;
    const auto scores = file_.numbers(kScores);
    if (!scores)
      fail(ErrorKind::BadFile, "{}: {} is missing; expected f32 numbers", file_.path(), kScores);
    check_length(kScores, scores->size());
    for (size_t id = 0; id < texts_.size(); ++id) {
      source.pieces.push_back({texts_[id], (*scores)[id], types_[id]});
      source.byte_fallback |= types_[id] == PieceType::byte;
    }
    const size_t unknown = ids_.contains("unknown") ? ids_["unknown"] : unigram ? 2 : 0;
    if (unknown >= texts_.size())
      fail(ErrorKind::BadFile, "{}: {} is empty; expected strings", file_.path(), kTokens);
    source.unk_id = static_cast<int32_t>(unknown);
    source.unk_piece = texts_[unknown];
    source.charsmap = file_.raw("tokenizer.ggml.precompiled_charsmap").value_or("");
    source.add_dummy_prefix = flag("add_space_prefix", true);
    source.remove_extra_whitespaces = flag("remove_extra_whitespaces", unigram);
    around(!unigram, unigram);
    if (of_encoder()) source.separator = separates() ? texts_[ids_["seperator"]] : "";
    ordered_json config = config_;
    config["tokenizer_class"] = "";  // a class could imply other pieces
    config.erase("chat_template");
    return tokenizer_json_from_sentencepiece(source, file_.path(), config.dump(), file_.path());
  }

  std::string bytes() {
    constexpr const char* kPre = "tokenizer.ggml.pre";
    const std::string pre = checked_text(file_.text(kPre).value_or(""), file_.path(), kPre);
    const GgufSplit* split = find_gguf_split(pre);
    if (split == nullptr) {
      std::vector<std::string> names;
      for (const GgufSplit& known : gguf_splits()) names.emplace_back(known.names[0]);
      fail(ErrorKind::Unsupported, "{}: {} is {}; expected {} or an alias of one", file_.path(),
           kPre, brief(nlohmann::json(pre)), fmt::join(names, ", "));
    }
    TokenizerFile file;
    for (size_t id = 0; id < texts_.size(); ++id) {
      const bool user = types_[id] == PieceType::user_defined;
      if (user || types_[id] == PieceType::control || types_[id] == PieceType::unknown)
        file.added_tokens.push_back(added_token(texts_[id], id, !user));
    }
    if (split->composed) file.normalizer = {{"type", "NFC"}};
    file.pre_tokenizer = split->pre_tokenizer;
    file.decoder = byte_level(true, true, true);
    around(split->start, false);
    file.post_processor = byte_level(true, false, true);
    if (start_ || end_)
      file.post_processor = sequence("processors", {file.post_processor, marks()});
    file.model = bpe_model({.vocabulary = vocabulary(), .merges = merges()});
    file.model["ignore_merges"] = split->whole_words;
    return std::move(file).text();
  }

  ordered_json vocabulary() const {
    std::map<std::string_view, size_t> seen;
    for (size_t id = 0; id < texts_.size(); ++id) {
      const auto [duplicate, fresh] = seen.emplace(texts_[id], id);
      if (!fresh && !texts_[id].empty()) {
        fail(ErrorKind::BadFile, "{}: {} contains {} twice ({} and {}); expected distinct tokens",
             file_.path(), kTokens, brief(nlohmann::json(texts_[id])), duplicate->second, id);
      }
    }
    return vocabulary_object(texts_);
  }

  ordered_json merges() const {
    constexpr const char* kMerges = "tokenizer.ggml.merges";
    const auto pairs = file_.texts(kMerges);
    if (!pairs)
      fail(ErrorKind::BadFile, "{}: {} is missing; expected strings", file_.path(), kMerges);
    ordered_json list = ordered_json::array();
    for (size_t i = 0; i < pairs->size(); ++i) {
      const std::string location = fmt::format("{}[{}]", kMerges, i);
      const std::string pair = checked_text((*pairs)[i], file_.path(), location);
      const size_t space = pair.find(' ', 1);
      if (space == pair.npos) {
        fail(ErrorKind::BadFile, "{}: {} is {}; expected two tokens separated by a space",
             file_.path(), location, brief(nlohmann::json(pair)));
      }
      list.push_back(ordered_json::array({pair.substr(0, space), pair.substr(space + 1)}));
    }
    return list;
  }

  // Returns whether the model is an encoder, which reads the second text of a pair after the end of
  // the first one.
  bool of_encoder() const {
    const std::string name(file_.text("general.architecture").value_or(""));
    return !file_.boolean(name + ".attention.causal").value_or(true);
  }

  // Returns whether a separator follows the end of the first text of a pair.
  bool separates() const {
    return ids_.contains("seperator") &&
           flag("add_sep_token", file_.text("tokenizer.ggml.pre") == "roberta-bpe");
  }

  ordered_json marks() const {
    Template single, pair;
    std::vector<std::pair<std::string, size_t>> tokens;
    const auto add = [&](Template& to, const char* name, int type) {
      const size_t id = ids_.at(name);
      to.emplace_back(texts_[id], type);
      const auto known = [&](const auto& token) { return token.second == id; };
      if (std::none_of(tokens.begin(), tokens.end(), known)) tokens.emplace_back(texts_[id], id);
    };
    const bool separated = of_encoder() && separates();
    for (const auto& [text, type] : Template{{"$A", 0}, {"$B", 1}}) {
      Template one;
      if (start_ && (type == 0 || !of_encoder())) add(one, "bos", type);
      if (separated && type == 1) add(one, "seperator", 0);
      one.emplace_back(text, type);
      if (end_) add(one, "eos", type);
      if (type == 0) single = one;
      pair.insert(pair.end(), one.begin(), one.end());
    }
    return template_processing(single, pair, tokens);
  }

  // Converts a WordPiece vocabulary. WordPiece marks tokens that continue a word; GGUF marks tokens
  // that begin one.
  std::string words() {
    std::string lines;
    for (size_t id = 0; id < texts_.size(); ++id) {
      constexpr std::string_view kBegins = "▁";
      const std::string& text = texts_[id];
      const bool mark = text.size() > 2 && text.front() == '[' && text.back() == ']';
      const bool plain = types_[id] == PieceType::normal && !mark;
      if (text.starts_with(kBegins)) {
        lines += text.substr(kBegins.size());
      } else {
        lines += plain ? "##" + text : text;
      }
      lines += '\n';
    }
    config_["do_lower_case"] = flag("normalizer.lowercase", true);
    if (const auto strips = file_.boolean("tokenizer.ggml.normalizer.strip_accents"))
      config_["strip_accents"] = *strips;
    ordered_json config = config_;
    config.erase("tokenizer_class");
    config.erase("chat_template");
    return tokenizer_json_from_vocab_txt(lines, file_.path(), config.dump(), file_.path());
  }

  static constexpr std::pair<const char*, const char*> kConfigNames[] = {
      {"bos_token", "bos"},     {"eos_token", "eos"},       {"unk_token", "unknown"},
      {"pad_token", "padding"}, {"sep_token", "seperator"}, {"mask_token", "mask"},
      {"cls_token", "cls"}};

  const Gguf& file_;
  std::vector<std::string> texts_;
  std::vector<PieceType> types_;
  std::map<std::string, size_t> ids_;  // ids of special tokens, by their role
  // Whether texts begin with the bos token, and whether they end with the eos token.
  bool start_ = false, end_ = false;
  ordered_json config_;
};

}  // namespace

bool has_tokenizer(const Gguf& file) {
  const auto model = file.text(kModel);
  return file.text(kWholeTokenizer).has_value() ||
         (model && *model != "no_vocab" && *model != "none");
}

TokenizerFiles tokenizer_files(const Gguf& file) {
  if (!has_tokenizer(file))
    fail(ErrorKind::BadFile, "{}: it has no vocabulary ({}); expected one", file.path(), kModel);
  return GgufReader(file).files();
}

}  // namespace fovea::text

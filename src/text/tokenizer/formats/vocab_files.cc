#include "tokenizer/formats/vocab_files.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "tokenizer/models/piece_table.h"
#include "tokenizer/state/config.h"
#include "tokenizer/state/file.h"
#include "unicode/utf8.h"

namespace fovea::text {
namespace {

using Json = nlohmann::json;
using nlohmann::ordered_json;

void require_utf8(std::string_view text, const std::string& path) {
  const size_t valid = utf8::valid_prefix(text);
  if (valid < text.size())
    fail(ErrorKind::BadFile, "{}: is not UTF-8 (byte {}); expected a text file", path, valid);
}

// Calls on_line(line, number) for each line, without its line end; numbers start at 1.
template <class OnLine>
void for_each_line(std::string_view text, OnLine&& on_line) {
  for (size_t begin = 0, number = 1; begin < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    on_line(line, number);
    begin = end + 1;
  }
}

size_t id_of(const std::vector<std::string>& texts, const std::string& text,
             const std::string& path) {
  const auto found = std::find(texts.begin(), texts.end(), text);
  if (found == texts.end())
    fail(ErrorKind::BadFile, "{}: lacks the token {}; expected a vocabulary with it", path,
         brief(text));
  return static_cast<size_t>(found - texts.begin());
}

std::vector<std::string> read_lines(std::string_view vocab_txt, const std::string& path) {
  require_utf8(vocab_txt, path);
  std::vector<std::string> texts;
  for_each_line(vocab_txt, [&](std::string_view line, size_t number) {
    const size_t end = line.find_last_not_of(" \t\f\v");
    if (end == std::string_view::npos)
      fail(ErrorKind::BadFile, "{}: line {} is empty; expected a token", path, number);
    texts.emplace_back(line.substr(0, end + 1));
  });
  if (texts.empty()) fail(ErrorKind::BadFile, "{}: is empty; expected one token per line", path);
  const PieceTable table(texts);
  for (size_t id = 0; id < texts.size(); ++id) {
    if (const auto last = static_cast<size_t>(table.find(texts[id])); last != id) {
      fail(ErrorKind::BadFile, "{}: contains {} twice (lines {} and {}); expected distinct tokens",
           path, brief(texts[id]), id + 1, last + 1);
    }
  }
  return texts;
}

// Reads {"token": id, ...} as a stream, since a JSON tree would take more time and memory.
class VocabularyReader : public JsonReader {
 public:
  std::vector<std::string> texts(std::string_view text, const std::string& path) {
    read(text, path);
    if (entries_.empty()) refuse("contains no tokens", "an object that maps tokens to ids");
    std::vector<std::string> by_id(entries_.size());
    std::vector<bool> seen(entries_.size());
    for (auto& [token, id] : entries_) {
      if (id < 0 || id >= static_cast<int64_t>(by_id.size()) || seen[static_cast<size_t>(id)])
        refuse(fmt::format("{} has id {}", brief(token), id),
               fmt::format("each id below {} once", by_id.size()));
      by_id[static_cast<size_t>(id)] = std::move(token);
      seen[static_cast<size_t>(id)] = true;
    }
    return by_id;
  }

 private:
  void scalar(Json&& value) override {
    if (!open_ || !value.is_number_integer())
      refuse(fmt::format("{} is {}", brief(key_), brief(value)),
             "an object that maps tokens to ids");
    entries_.emplace_back(std::move(key_), value.get<int64_t>());
  }
  void begin_object() override {
    if (open_) refuse("contains a nested object", "an object that maps tokens to ids");
    open_ = true;
  }
  void key(std::string&& key) override { key_ = std::move(key); }
  void end_object() override {}
  void begin_array() override { refuse("contains a list", "an object that maps tokens to ids"); }
  void end_array() override {}

  bool open_ = false;
  std::string key_;
  std::vector<std::pair<std::string, int64_t>> entries_;
};

ordered_json read_merges(std::string_view merges_txt, const std::string& path) {
  require_utf8(merges_txt, path);
  ordered_json merges = ordered_json::array();
  for_each_line(merges_txt, [&](std::string_view line, size_t number) {
    if (line.starts_with("#version") || line.empty()) return;
    const size_t space = line.find(' ');
    if (space == std::string_view::npos || space == 0 || space + 1 == line.size() ||
        line.find(' ', space + 1) != std::string_view::npos) {
      fail(ErrorKind::BadFile, "{}: is {} (line {}); expected two tokens separated by a space",
           path, brief(std::string(line)), number);
    }
    merges.push_back(ordered_json::array({line.substr(0, space), line.substr(space + 1)}));
  });
  return merges;
}

ordered_json split_pattern(const char* regex, const char* behavior, bool invert) {
  return {{"type", "Split"},
          {"pattern", {{"Regex", regex}}},
          {"behavior", behavior},
          {"invert", invert}};
}

using Specials = std::vector<std::pair<const char*, std::string>>;

// Sets the parts around a byte-level BPE, which depend on the tokenizer's class.
struct MergesFile {
  const TokenizerConfig& config;
  const std::string& path;
  std::vector<std::string>& texts;
  TokenizerFile& file;
  BpeParts& model;

  ordered_json around(const char* end_key, const std::string& end, const char* start_key,
                      const std::string& start, bool trim_offsets, bool add_prefix_space) const {
    const auto entry = [&](const char* key, const std::string& otherwise) {
      const std::string text = config.token(key, otherwise);
      return ordered_json::array({text, id_of(texts, text, path)});
    };
    return {{"type", "RobertaProcessing"},
            {"sep", entry(end_key, end)},
            {"cls", entry(start_key, start)},
            {"trim_offsets", trim_offsets},
            {"add_prefix_space", add_prefix_space}};
  }

  void plain() const {
    const std::string end = "<|endoftext|>";
    file.added_tokens = config.added_tokens(
        texts, {{"bos_token", end}, {"eos_token", end}, {"unk_token", end}, {"pad_token", ""}});
    file.pre_tokenizer = byte_level(config.flag("add_prefix_space", false), true, true);
    file.post_processor = byte_level(true, false, true);
    if (!config.flag("add_bos_token", false)) return;
    const std::string bos = config.token("bos_token", end);
    file.post_processor = template_processing(
        {{bos, 0}, {"$A", 0}}, {{bos, 0}, {"$A", 0}, {"$B", 1}}, {{bos, id_of(texts, bos, path)}});
  }

  void with_sentence_marks() const {
    file.added_tokens = config.added_tokens(texts, {{"bos_token", "<s>"},
                                                    {"eos_token", "</s>"},
                                                    {"unk_token", "<unk>"},
                                                    {"pad_token", "<pad>"},
                                                    {"mask_token", "<mask>"}});
    for (ordered_json& token : file.added_tokens) {
      // The mask absorbs the space before it.
      if (token["content"] == "<mask>") token["lstrip"] = true;
    }
    const bool prefix = config.flag("add_prefix_space", false);
    file.pre_tokenizer = byte_level(prefix, true, true);
    file.post_processor = around("sep_token", "</s>", "cls_token", "<s>", true, prefix);
  }

  void with_word_ends() const {
    const std::string end = "<|endoftext|>";
    file.added_tokens = config.added_tokens(texts, {{"bos_token", "<|startoftext|>"},
                                                    {"eos_token", end},
                                                    {"unk_token", end},
                                                    {"pad_token", end}});
    model.end_of_word_suffix = "</w>";
    model.unk_token = config.token("unk_token", end);
    file.normalizer =
        sequence("normalizers",
                 {{{"type", "NFC"}}, replace({{"Regex", "\\s+"}}, " "), {{"type", "Lowercase"}}});
    file.pre_tokenizer =
        sequence("pretokenizers",
                 {split_pattern("'s|'t|'re|'ve|'m|'ll|'d|[\\p{L}]+|[\\p{N}]|[^\\s\\p{L}\\p{N}]+",
                                "Removed", true),
                  byte_level(false, true, true)});
    file.post_processor = around("eos_token", end, "bos_token", "<|startoftext|>", false, false);
  }

  void with_single_digits() const {
    const std::string end = "<|endoftext|>";
    file.added_tokens =
        config.added_tokens(texts, {{"eos_token", end}, {"unk_token", end}, {"pad_token", end}});
    file.normalizer = {{"type", "NFC"}};
    file.pre_tokenizer = sequence(
        "pretokenizers",
        {split_pattern("(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| "
                       "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
                       "Isolated", false),
         byte_level(config.flag("add_prefix_space", false), false, false)});
    file.post_processor = byte_level(false, false, false);
  }
};

}  // namespace

std::vector<std::string> texts_of_vocabulary(std::string_view vocab_json, const std::string& path) {
  return VocabularyReader().texts(vocab_json, path);
}

std::string tokenizer_json_from_vocab_txt(std::string_view vocab_txt, const std::string& path,
                                          std::string_view config_text,
                                          const std::string& config_path) {
  const TokenizerConfig config(config_text, config_path);
  std::vector<std::string> texts = read_lines(vocab_txt, path);
  TokenizerFile file;
  // This class has <s>, </s>, <pad> and <mask> instead of [CLS], [SEP], [PAD] and [MASK].
  const bool marks = config.tokenizer_class() == "MPNetTokenizer";
  const std::string unk = config.token("unk_token", "[UNK]");
  const std::string start = config.token("cls_token", marks ? "<s>" : "[CLS]");
  const std::string end = config.token("sep_token", marks ? "</s>" : "[SEP]");
  file.added_tokens = config.added_tokens(texts, {{"pad_token", marks ? "<pad>" : "[PAD]"},
                                                  {"unk_token", unk},
                                                  {"cls_token", start},
                                                  {"sep_token", end},
                                                  {"mask_token", marks ? "<mask>" : "[MASK]"}});
  const std::optional<bool> strip_accents = config.find_flag("strip_accents");
  file.normalizer = {
      {"type", "BertNormalizer"},
      {"clean_text", true},
      {"handle_chinese_chars", config.flag("tokenize_chinese_chars", true)},
      {"strip_accents", strip_accents ? ordered_json(*strip_accents) : ordered_json()},
      {"lowercase", config.flag("do_lower_case", true)}};
  file.pre_tokenizer = {{"type", "BertPreTokenizer"}};
  Template pair = {{start, 0}, {"$A", 0}, {end, 0}};
  if (marks) pair.emplace_back(end, 0);
  pair.insert(pair.end(), {{"$B", marks ? 0 : 1}, {end, marks ? 0 : 1}});
  file.post_processor =
      template_processing({{start, 0}, {"$A", 0}, {end, 0}}, pair,
                          {{start, id_of(texts, start, path)}, {end, id_of(texts, end, path)}});
  file.decoder = {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}};
  file.model = wordpiece_model(vocabulary_object(texts), unk);
  return std::move(file).text();
}

std::string tokenizer_json_from_merges(std::string_view vocab_json, const std::string& vocab_path,
                                       std::string_view merges_txt, const std::string& merges_path,
                                       std::string_view config_text,
                                       const std::string& config_path) {
  const TokenizerConfig config(config_text, config_path);
  std::vector<std::string> texts = texts_of_vocabulary(vocab_json, vocab_path);
  const std::optional<size_t> empty = index_of_empty(texts);
  TokenizerFile file;
  BpeParts model;
  model.merges = read_merges(merges_txt, merges_path);
  file.decoder = byte_level(true, true, true);

  static const std::set<std::string> plain = {"",
                                              "PreTrainedTokenizer",
                                              "TokenizersBackend",
                                              "GPT2Tokenizer",
                                              "CodeGenTokenizer",
                                              "GPTNeoXTokenizer",
                                              "WhisperTokenizer"};
  static const std::set<std::string> marks = {"RobertaTokenizer", "BartTokenizer", "LEDTokenizer",
                                              "LongformerTokenizer"};
  const MergesFile merges{config, vocab_path, texts, file, model};
  if (plain.contains(config.tokenizer_class())) {
    merges.plain();
  } else if (marks.contains(config.tokenizer_class())) {
    merges.with_sentence_marks();
  } else if (config.tokenizer_class() == "CLIPTokenizer") {
    merges.with_word_ends();
  } else if (config.tokenizer_class() == "Qwen2Tokenizer") {
    merges.with_single_digits();
  } else {
    config.refuse_class(vocab_path,
                        "a GPT2Tokenizer, RobertaTokenizer, CLIPTokenizer or "
                        "Qwen2Tokenizer");
  }
  model.vocabulary = vocabulary_object(texts, empty);
  file.model = bpe_model(std::move(model));
  return std::move(file).text();
}

}  // namespace fovea::text

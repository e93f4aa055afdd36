#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "tokenizer/formats/language_codes.h"
#include "tokenizer/formats/sentencepiece_parts.h"
#include "tokenizer/formats/vocab_files.h"
#include "tokenizer/models/piece_table.h"
#include "tokenizer/state/config.h"
#include "tokenizer/state/file.h"
#include "unicode/utf8.h"

namespace fovea::text {
namespace {

using nlohmann::ordered_json;

std::string base64(std::string_view bytes) {
  constexpr const char* digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k)
      group = group << 8 | (k < count ? static_cast<uint8_t>(bytes[i + k]) : 0u);
    for (size_t k = 0; k < 4; ++k) text += k <= count ? digits[group >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

void refuse_duplicates(const SentencePieceFile& source, const std::string& path) {
  std::vector<std::string> texts;
  for (const auto& piece : source.pieces) texts.push_back(piece.text);
  const PieceTable table(texts);
  for (size_t id = 0; id < texts.size(); ++id) {
    if (table.find(texts[id]) != static_cast<int32_t>(id)) {
      fail(ErrorKind::BadFile, "{}: contains {} twice (pieces {} and {}); expected distinct pieces",
           path, brief(texts[id]), id, table.find(texts[id]));
    }
  }
}

// Returns an expression that matches any of the texts, the longest of those that fit; empty if
// there are none.
std::string any_of(std::vector<std::string> texts) {
  std::stable_sort(texts.begin(), texts.end(),
                   [](const auto& a, const auto& b) { return a.size() > b.size(); });
  std::string expression;
  for (const std::string& text : texts) {
    if (!expression.empty()) expression += '|';
    for (const char c : text) {
      if (std::string_view("\\^$.|?*+()[]{}-#&").find(c) != std::string_view::npos)
        expression += '\\';
      expression += c;
    }
  }
  return expression;
}

class Converter {
 public:
  Converter(SentencePieceFile source, const TokenizerConfig& config, const std::string& path)
      : source_(std::move(source)), config_(config), path_(path) {
    prefix_ = config.flag("add_prefix_space", source_.add_dummy_prefix);
    static const std::set<std::string> plain = {"", "PreTrainedTokenizer", "TokenizersBackend"};
    plain_ = plain.contains(config.tokenizer_class());
    exact_ = plain_ && !source_.of_gguf && !config.find_flag("legacy");
    if (source_.space_is_suffix && !exact_)
      fail(ErrorKind::Unsupported,
           "{}: trainer_spec.treat_whitespace_as_suffix is true; expected false for a {}", path,
           config.tokenizer_class());
  }

  std::string convert() {
    refuse_duplicates(source_, path_);
    if (source_.kind == SentencePieceFile::Kind::bpe) {
      bpe();
    } else if (source_.kind == SentencePieceFile::Kind::unigram) {
      unigram();
    } else {
      fail(ErrorKind::Unsupported,
           "{}: its model is of kind {} (trainer_spec.model_type); expected unigram or bpe", path_,
           source_.kind == SentencePieceFile::Kind::word ? "word" : "char");
    }
    return std::move(file_).text();
  }

 private:
  void add_marks() {
    for (size_t id = 0; id < source_.pieces.size(); ++id) {
      const auto& [text, score, type] = source_.pieces[id];
      const bool user = type == SentencePieceFile::Type::user_defined;
      if (user && exact_) continue;  // read_exactly() finds it
      if (user || type == SentencePieceFile::Type::control ||
          type == SentencePieceFile::Type::unknown) {
        file_.added_tokens.push_back(added_token(text, id, !user));
      }
    }
  }

  size_t id_of(const std::string& text) const {
    for (size_t id = 0; id < source_.pieces.size(); ++id) {
      if (source_.pieces[id].text == text) return id;
    }
    fail(ErrorKind::BadFile, "{}: lacks the piece {}; expected a vocabulary with it", path_,
         brief(text));
  }

  void bpe() {
    ordered_json merges = merges_of(source_.pieces, exact_);
    const bool languages = config_.tokenizer_class() == "NllbTokenizer";
    if (languages) {
      with_sentence_marks(language_codes(LanguageCodes::nllb));
    } else {
      add_marks();
    }
    std::vector<std::string> texts;
    for (const auto& piece : source_.pieces) texts.push_back(piece.text);
    file_.model = bpe_model({.vocabulary = vocabulary_object(texts),
                             .merges = std::move(merges),
                             .unk_token = source_.unk_piece,
                             .fuse_unk = true,
                             .byte_fallback = source_.byte_fallback});
    if (languages) return add_spaces(source_, prefix_, file_);
    const bool start =
        source_.bos_id >= 0 && has_piece(config_.token("bos_token", source_.bos_piece));
    file_.post_processor = start_and_end(config_.flag("add_bos_token", start));
    if (exact_) return read_exactly();
    const ordered_json spaces = replace({{"String", " "}}, "▁");
    ordered_json normalizers = ordered_json::array();
    if (!source_.charsmap.empty()) normalizers.push_back(precompiled(source_));
    if (config_.flag("legacy", true)) {
      if (prefix_) normalizers.push_back({{"type", "Prepend"}, {"prepend", "▁"}});
      normalizers.push_back(spaces);
    } else {
      file_.pre_tokenizer = metaspace(prefix_ ? "first" : "never", false);
    }
    if (!normalizers.empty()) file_.normalizer = sequence("normalizers", std::move(normalizers));
    add_decoder();
  }

  void add_decoder() {
    const bool suffix = source_.space_is_suffix;
    ordered_json decoders = {
        replace({{"String", "▁"}}, " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}};
    if (prefix_)
      decoders.push_back({{"type", "Strip"},
                          {"content", " "},
                          {"start", suffix ? 0 : 1},
                          {"stop", suffix ? 1 : 0}});
    file_.decoder = sequence("decoders", std::move(decoders));
  }

  // Sets the parts around the model as SentencePiece defines them: the spaces at both ends of a
  // text and all but one between words are removed, and one is added, once for the text; a
  // user-defined symbol is one token wherever it occurs.
  void read_exactly() {
    using Type = SentencePieceFile::Type;
    const bool trims = source_.remove_extra_whitespaces, suffix = source_.space_is_suffix;
    ordered_json normalizers = ordered_json::array();
    if (!source_.charsmap.empty()) normalizers.push_back(precompiled(source_));
    if (trims) {
      normalizers.push_back(replace({{"Regex", "\\A +"}}, ""));
      normalizers.push_back(replace({{"Regex", " {2,}"}}, " "));
    }
    if (prefix_ && !suffix) normalizers.push_back({{"type", "Prepend"}, {"prepend", "▁"}});
    normalizers.push_back(replace({{"String", " "}}, "▁"));
    // The lookbehind keeps the time linear: a run is tried at its start only.
    if (trims) normalizers.push_back(replace({{"Regex", "(?<!▁)▁+\\z"}}, ""));
    // Unlike Append, this leaves an empty text as it is.
    if (prefix_ && suffix) normalizers.push_back(replace({{"Regex", "(?!\\A)\\z"}}, "▁"));
    file_.normalizer = sequence("normalizers", std::move(normalizers));
    std::vector<std::string> symbols;
    bool within_word = true;  // whether no piece continues after a space
    for (const auto& [text, score, type] : source_.pieces) {
      if (type == Type::user_defined) symbols.push_back(text);
      if (type == Type::unused && source_.kind == SentencePieceFile::Kind::bpe)
        fail(ErrorKind::Unsupported, "{}: {} is an unused piece; expected none in a BPE model",
             path_, brief(text));
      within_word = within_word && text.find("▁", 1) == text.npos;
    }
    ordered_json parts = ordered_json::array();
    if (!symbols.empty() && source_.kind == SentencePieceFile::Kind::bpe)
      file_.model["ignore_merges"] = true;  // no merges lead to a symbol
    if (!symbols.empty())
      parts.push_back({{"type", "Split"},
                       {"pattern", {{"Regex", any_of(std::move(symbols))}}},
                       {"behavior", "Isolated"},
                       {"invert", false}});
    if (within_word && source_.kind == SentencePieceFile::Kind::unigram)
      parts.push_back(metaspace("never", true));
    if (!parts.empty()) file_.pre_tokenizer = sequence("pretokenizers", std::move(parts));
    add_decoder();
  }

  bool has_piece(const std::string& text) const {
    return std::any_of(source_.pieces.begin(), source_.pieces.end(),
                       [&](const auto& piece) { return piece.text == text; });
  }

  // Returns the post-processor that adds the start token if `start` is set, and the end token if
  // the config requires it; null if it would add none.
  ordered_json start_and_end(bool start) const {
    const std::string bos = config_.token("bos_token", source_.bos_piece),
                      eos = config_.token("eos_token", source_.eos_piece);
    const bool end = config_.flag("add_eos_token", false);
    if (!start && !end) return nullptr;
    const std::string separator = source_.separator.value_or("");
    const auto around = [&](const char* text, int type) {
      Template parts;
      if (type == 1 && !separator.empty()) parts.emplace_back(separator, 0);
      if (start && (type == 0 || !source_.separator)) parts.emplace_back(bos, type);
      parts.emplace_back(text, type);
      if (end) parts.emplace_back(eos, type);
      return parts;
    };
    const Template single = around("$A", 0), second = around("$B", 1);
    Template pair = single;
    pair.insert(pair.end(), second.begin(), second.end());
    std::vector<std::pair<std::string, size_t>> tokens;
    if (start) tokens.emplace_back(bos, id_of(bos));
    if (end) tokens.emplace_back(eos, id_of(eos));
    const bool own = !separator.empty() && separator != eos && separator != bos;
    if (own) tokens.emplace_back(separator, id_of(separator));
    return template_processing(single, pair, tokens);
  }

  void unigram() {
    const std::string& name = config_.tokenizer_class();
    const bool sentinels = name == "T5Tokenizer" || name == "MT5Tokenizer";
    const bool many = name == "MBart50Tokenizer", few = name == "MBartTokenizer";
    if (name == "XLMRobertaTokenizer") {
      with_sentence_marks({});
      add_sentence_template();
    } else if (many || few) {
      with_sentence_marks(language_codes(many ? LanguageCodes::mbart50 : LanguageCodes::mbart));
    } else if (name == "PegasusTokenizer") {
      with_masks();
    } else if (sentinels) {
      with_sentinels();
    } else if (plain_) {
      add_marks();
      file_.post_processor = start_and_end(config_.flag("add_bos_token", false));
    } else {
      config_.refuse_class(path_,
                           "a T5Tokenizer, XLMRobertaTokenizer, MBartTokenizer, MBart50Tokenizer "
                           "or PegasusTokenizer");
    }
    std::vector<std::pair<std::string, double>> pieces;
    for (const auto& piece : source_.pieces)
      pieces.emplace_back(piece.text, static_cast<double>(piece.score));
    file_.model = unigram_model(pieces, static_cast<size_t>(source_.unk_id), source_.byte_fallback);
    if (exact_) {
      leave_uncut();
      return read_exactly();
    }
    add_spaces(source_, prefix_, file_);
    if (!sentinels) return;
    file_.normalizer = source_.charsmap.empty() ? ordered_json() : precompiled(source_);
    file_.pre_tokenizer =
        sequence("pretokenizers", {{{"type", "WhitespaceSplit"}}, std::move(file_.pre_tokenizer)});
  }

  // No text is split into the pieces of bytes and into unused pieces.
  void leave_uncut() {
    using Type = SentencePieceFile::Type;
    ordered_json uncut = ordered_json::array();
    for (size_t id = 0; id < source_.pieces.size(); ++id)
      if (const Type type = source_.pieces[id].type; type == Type::byte || type == Type::unused)
        uncut.push_back(id);
    if (!uncut.empty()) file_.model["uncut"] = std::move(uncut);
  }

  // Adds the sentinel tokens of masked spans after the pieces, the last sentinel first.
  void with_sentinels() {
    constexpr int64_t kMost = 10000;  // models have 100
    add_marks();
    for (int64_t i = config_.integer("extra_ids", 100, kMost) - 1; i >= 0; --i) {
      const std::string text = fmt::format("<extra_id_{}>", i);
      file_.added_tokens.push_back(added_token(text, source_.pieces.size()));
      source_.pieces.push_back({text, 0, SentencePieceFile::Type::user_defined});
    }
    const std::string end = config_.token("eos_token", source_.eos_piece);
    file_.post_processor = template_processing(
        {{"$A", 0}, {end, 0}}, {{"$A", 0}, {end, 0}, {"$B", 0}, {end, 0}}, {{end, id_of(end)}});
  }

  // Uses the ids of the original library (fairseq): four special tokens, the pieces without the
  // first three, the codes of languages, and the mask.
  void with_sentence_marks(const std::vector<std::string>& languages) {
    using Type = SentencePieceFile::Type;
    if (source_.pieces.size() < 3)
      fail(ErrorKind::BadFile, "{}: contains {} pieces; expected at least its three special tokens",
           path_, source_.pieces.size());
    auto& pieces = source_.pieces;
    const std::vector<SentencePieceFile::Entry> marks = {{"<s>", 0, Type::control},
                                                         {"<pad>", 0, Type::control},
                                                         {"</s>", 0, Type::control},
                                                         {"<unk>", 0, Type::unknown}};
    pieces.erase(pieces.begin(), pieces.begin() + 3);
    pieces.insert(pieces.begin(), marks.begin(), marks.end());
    for (const std::string& code : languages) pieces.push_back({code, 0, Type::control});
    pieces.push_back({"<mask>", 0, Type::control});
    source_.unk_id = 3;
    add_marks();
    file_.added_tokens.back()["lstrip"] = true;  // the mask absorbs the space before it
  }

  void add_sentence_template() {
    file_.post_processor = template_processing(
        {{"<s>", 0}, {"$A", 0}, {"</s>", 0}},
        {{"<s>", 0}, {"$A", 0}, {"</s>", 0}, {"</s>", 0}, {"$B", 0}, {"</s>", 0}},
        {{"<s>", 0}, {"</s>", 2}});
  }

  // Inserts the tokens of the pre-training before the unknown token: two masks, and "<unk_2>" to
  // "<unk_102>", of which no text has one. With an offset of 0 the pieces have their own ids.
  void with_masks() {
    using Type = SentencePieceFile::Type;
    constexpr int64_t kOffset = 103, kMost = 10000;
    const int64_t offset = config_.integer("offset", kOffset, kMost);
    if (source_.pieces.size() < 3 || source_.unk_id != 2)
      fail(ErrorKind::BadFile,
           "{}: the unknown token has id {} of {} pieces (trainer_spec.unk_id); expected 2, after "
           "those of padding and of the end",
           path_, source_.unk_id, source_.pieces.size());
    std::vector<SentencePieceFile::Entry> marks;
    if (offset > 0) {
      marks = {{config_.token("mask_token_sent", "<mask_1>"), 0, Type::control},
               {config_.token("mask_token", "<mask_2>"), 0, Type::control}};
      for (int64_t i = 2; i < offset; ++i)
        marks.push_back({fmt::format("<unk_{}>", i), 0, Type::control});
    }
    source_.pieces.insert(source_.pieces.begin() + 2, marks.begin(), marks.end());
    source_.unk_id += static_cast<int32_t>(marks.size());
    add_marks();
    const std::string end = config_.token("eos_token", source_.eos_piece);
    file_.post_processor = template_processing(
        {{"$A", 0}, {end, 0}}, {{"$A", 0}, {"$B", 0}, {end, 0}}, {{end, id_of(end)}});
  }

  SentencePieceFile source_;
  const TokenizerConfig& config_;
  const std::string& path_;
  bool prefix_;  // whether to insert a space before the text
  bool plain_;   // whether the config names no class of transformers with pieces of its own
  bool exact_;   // whether to follow SentencePiece itself
  TokenizerFile file_;
};

}  // namespace

ordered_json merges_of(const std::vector<SentencePieceFile::Entry>& pieces, bool only_normal) {
  std::vector<std::string> texts;
  for (const auto& piece : pieces) texts.push_back(piece.text);
  const PieceTable table(texts);
  std::vector<size_t> order;
  for (size_t id = 0; id < pieces.size(); ++id)
    if (!only_normal || pieces[id].type == SentencePieceFile::Type::normal) order.push_back(id);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return pieces[a].score > pieces[b].score; });
  ordered_json merges = ordered_json::array();
  for (const size_t id : order) {
    const std::string_view text = texts[id];
    for (size_t cut = utf8::first(text).bytes; cut < text.size();
         cut += utf8::first(text.substr(cut)).bytes) {
      const std::string_view left = text.substr(0, cut), right = text.substr(cut);
      if (table.find(left) == PieceTable::absent || table.find(right) == PieceTable::absent)
        continue;
      merges.push_back(ordered_json::array({left, right}));
    }
  }
  return merges;
}

ordered_json precompiled(const SentencePieceFile& source) {
  return {{"type", "Precompiled"}, {"precompiled_charsmap", base64(source.charsmap)}};
}

void add_spaces(const SentencePieceFile& source, bool prefix, TokenizerFile& file) {
  ordered_json normalizers = ordered_json::array();
  if (!source.charsmap.empty()) normalizers.push_back(precompiled(source));
  if (source.remove_extra_whitespaces) {
    normalizers.push_back({{"type", "Strip"}, {"strip_left", false}, {"strip_right", true}});
    normalizers.push_back(replace({{"Regex", " {2,}"}}, "▁"));
  }
  if (!normalizers.empty()) file.normalizer = sequence("normalizers", std::move(normalizers));
  file.pre_tokenizer = file.decoder = metaspace(prefix ? "always" : "never", true);
}

std::string tokenizer_json_from_sentencepiece(SentencePieceFile model, const std::string& path,
                                              std::string_view config_text,
                                              const std::string& config_path) {
  const TokenizerConfig config(config_text, config_path);
  return Converter(std::move(model), config, path).convert();
}

std::string tokenizer_json_from_sentencepiece(std::string_view model, const std::string& path,
                                              std::string_view config_text,
                                              const std::string& config_path) {
  return tokenizer_json_from_sentencepiece(parse_sentencepiece(model, path), path, config_text,
                                           config_path);
}

}  // namespace fovea::text

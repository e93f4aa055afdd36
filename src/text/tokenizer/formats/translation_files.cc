// The tokenizers of a translation model: source.spm and target.spm split the texts, and vocab.json
// has the ids of the pieces of both, unless target_vocab.json has those of the target. M2M-100 has
// one sentencepiece.bpe.model, and the tokens of languages follow its vocab.json.

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "tokenizer/formats/language_codes.h"
#include "tokenizer/formats/sentencepiece_parts.h"
#include "tokenizer/formats/vocab_files.h"
#include "tokenizer/state/config.h"
#include "tokenizer/state/file.h"

namespace fovea::text {
namespace {

using nlohmann::ordered_json;
using Type = SentencePieceFile::Type;

// Returns the scores of the pieces that a text may be split into, without the special tokens.
std::map<std::string, double> scores_of(const SentencePieceFile& source) {
  std::map<std::string, double> scores;
  for (const auto& [text, score, type] : source.pieces) {
    if (type == Type::normal || type == Type::user_defined) scores[text] = score;
  }
  return scores;
}

ordered_json model_of(const SentencePieceFile& source, const std::vector<std::string>& texts,
                      size_t unk_id) {
  std::map<std::string, double> scores = scores_of(source);
  std::vector<std::pair<std::string, double>> pieces;
  ordered_json uncut = ordered_json::array(), unlisted = ordered_json::array();
  for (size_t id = 0; id < texts.size(); ++id) {
    const auto found = scores.find(texts[id]);
    pieces.emplace_back(texts[id], found == scores.end() ? 0.0 : found->second);
    if (found == scores.end()) {
      uncut.push_back(id);
    } else {
      scores.erase(found);
    }
  }
  for (const auto& [text, score] : scores) unlisted.push_back(ordered_json::array({text, score}));
  ordered_json model = unigram_model(pieces, unk_id, false);
  model["uncut"] = std::move(uncut);
  model["unlisted"] = std::move(unlisted);
  return model;
}

// Returns the ids of the special tokens by their keys in the config.
std::map<std::string, size_t> marks_of(const TokenizerConfig& config,
                                       const std::vector<std::string>& texts,
                                       const std::string& vocab_path) {
  std::map<std::string, size_t> marks;
  for (const char* key : {"eos_token", "unk_token", "pad_token"}) {
    const char* otherwise = key[0] == 'e' ? "</s>" : key[0] == 'u' ? "<unk>" : "<pad>";
    const std::string text = config.token(key, otherwise);
    const auto found = std::find(texts.begin(), texts.end(), text);
    if (found == texts.end())
      fail(ErrorKind::BadFile, "{}: lacks {} ({}); expected a vocabulary with it", vocab_path,
           brief(text), key);
    marks[key] = static_cast<size_t>(found - texts.begin());
  }
  return marks;
}

// Returns the model of a SentencePiece model of kind BPE whose pieces have the ids of `texts`.
ordered_json bpe_of(const SentencePieceFile& source, const std::string& path,
                    const std::vector<std::string>& texts, const std::string& vocab_path,
                    const std::string& unknown) {
  const std::set<std::string> listed(texts.begin(), texts.end());
  std::vector<SentencePieceFile::Entry> pieces;
  for (const auto& piece : source.pieces) {
    if (piece.type != Type::normal && piece.type != Type::user_defined) continue;
    if (!listed.contains(piece.text))
      fail(ErrorKind::BadFile, "{}: lacks the piece {} of {}; expected all pieces of the BPE model",
           vocab_path, brief(piece.text), path);
    pieces.push_back(piece);
  }
  return bpe_model({.vocabulary = vocabulary_object(texts),
                    .merges = merges_of(pieces, true),
                    .unk_token = unknown,
                    .fuse_unk = true});
}

// Removes spaces from both ends of the decoded text, even if special tokens were skipped there.
void strip_decoded(TokenizerFile& file) {
  constexpr int spaces = 1000;
  file.decoder = sequence(
      "decoders", {std::move(file.decoder),
                   {{"type", "Fuse"}},
                   {{"type", "Strip"}, {"content", " "}, {"start", spaces}, {"stop", spaces}}});
}

}  // namespace

std::string tokenizer_json_of_languages(std::string_view model, const std::string& path,
                                        std::string_view vocab_json, const std::string& vocab_path,
                                        std::string_view config_text,
                                        const std::string& config_path) {
  const TokenizerConfig config(config_text, config_path);
  const std::string& name = config.tokenizer_class();
  if (!name.empty() && name != "M2M100Tokenizer") config.refuse_class(path, "an M2M100Tokenizer");
  const SentencePieceFile source = parse_sentencepiece(model, path);
  using Kind = SentencePieceFile::Kind;
  if (source.kind != Kind::unigram && source.kind != Kind::bpe)
    fail(ErrorKind::Unsupported,
         "{}: its model is of kind word or char (trainer_spec.model_type); expected unigram or bpe",
         path);
  std::vector<std::string> texts = texts_of_vocabulary(vocab_json, vocab_path);
  const std::map<std::string, size_t> marks = marks_of(config, texts, vocab_path);
  TokenizerFile file;
  for (size_t id = 0; id < texts.size(); ++id) {
    const bool mark = texts[id] == config.token("bos_token", "<s>") ||
                      std::any_of(marks.begin(), marks.end(),
                                  [&](const auto& each) { return each.second == id; });
    if (mark) file.added_tokens.push_back(added_token(texts[id], id));
  }
  const std::string& unknown = texts[marks.at("unk_token")];
  file.model = source.kind == Kind::bpe ? bpe_of(source, path, texts, vocab_path, unknown)
                                        : model_of(source, texts, marks.at("unk_token"));
  const bool fewer = config.token("language_codes", "m2m100") == "wmt21";
  size_t id = texts.size();
  for (const std::string& code :
       language_codes(fewer ? LanguageCodes::wmt21 : LanguageCodes::m2m100))
    file.added_tokens.push_back(added_token("__" + code + "__", id++));
  add_spaces(source, source.add_dummy_prefix, file);
  strip_decoded(file);
  return std::move(file).text();
}

std::string tokenizer_json_from_translation(std::string_view model, const std::string& path,
                                            std::string_view vocab_json,
                                            const std::string& vocab_path,
                                            std::string_view config_text,
                                            const std::string& config_path) {
  const TokenizerConfig config(config_text, config_path);
  const SentencePieceFile source = parse_sentencepiece(model, path);
  if (source.kind != SentencePieceFile::Kind::unigram) {
    fail(ErrorKind::Unsupported,
         "{}: its model is not of kind unigram (trainer_spec.model_type); "
         "expected a unigram model next to a {}",
         path, vocab_path);
  }
  const std::vector<std::string> texts = texts_of_vocabulary(vocab_json, vocab_path);
  std::map<std::string, size_t> marks = marks_of(config, texts, vocab_path);
  TokenizerFile file;
  for (size_t id = 0; id < texts.size(); ++id) {
    const bool mark = std::any_of(marks.begin(), marks.end(),
                                  [&](const auto& each) { return each.second == id; });
    // A language code before a text selects the target language; within a text it is text.
    const bool language = texts[id].starts_with(">>") && texts[id].ends_with("<<");
    if (!mark && !language) continue;
    file.added_tokens.push_back(added_token(texts[id], id, mark));
    if (language) file.added_tokens.back()["leading"] = true;
  }
  file.model = model_of(source, texts, marks["unk_token"]);
  add_spaces(source, source.add_dummy_prefix, file);
  strip_decoded(file);
  const std::string& end = texts[marks["eos_token"]];
  file.post_processor = template_processing({{"$A", 0}, {end, 0}}, {{"$A", 0}, {"$B", 0}, {end, 0}},
                                            {{end, marks["eos_token"]}});
  return std::move(file).text();
}

}  // namespace fovea::text

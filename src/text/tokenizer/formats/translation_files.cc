// The tokenizers of a translation model: source.spm and target.spm split the texts, and vocab.json
// has the ids of the pieces of both, unless target_vocab.json has those of the target.

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/json.h"
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

}  // namespace

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
  // Removes spaces from both ends of the decoded text, even if special tokens were skipped there.
  constexpr int spaces = 1000;
  file.decoder = sequence(
      "decoders", {std::move(file.decoder),
                   {{"type", "Fuse"}},
                   {{"type", "Strip"}, {"content", " "}, {"start", spaces}, {"stop", spaces}}});
  const std::string& end = texts[marks["eos_token"]];
  file.post_processor = template_processing({{"$A", 0}, {end, 0}}, {{"$A", 0}, {"$B", 0}, {end, 0}},
                                            {{end, marks["eos_token"]}});
  return std::move(file).text();
}

}  // namespace fovea::text

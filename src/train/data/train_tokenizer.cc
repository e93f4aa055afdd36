#include "data/train_tokenizer.h"

#include <algorithm>
#include <charconv>

#include "base/fields.h"
#include "base/float_mode.h"
#include "data/special_names.h"
#include "tokenizer/training/character_trainer.h"
#include "tokenizer/training/tokenizer_trainer.h"

namespace fovea {
namespace {

constexpr int64_t kMostTokens = int64_t{1} << 24;  // so that ids and their texts fit into memory

using Progress = TokenizerTrainingProgress;
using OnProgress = std::function<bool(const Progress&)>;

struct Read {
  int64_t bytes = 0;
  SpecialNames names;
};

// Calls use(piece) for each piece of the corpus, and `progress` while it is read.
template <class Use>
Read read_all(Corpus& corpus, const OnProgress& progress, Use&& use) {
  if (progress) {
    corpus.watch([&](double fraction) { return progress({Progress::Stage::reading, fraction}); });
  }
  Read read;
  corpus.read([&](const Corpus::Piece& piece) {
    use(piece);
    read.bytes += static_cast<int64_t>(piece.text.size());
    read.names.add(piece.text, piece.starts_document);
  });
  return read;
}

TrainedTokenizer train_characters(Corpus& corpus, const TokenizerTraining& options,
                                  const OnProgress& progress) {
  CharacterTrainer trainer;
  const Read read =
      read_all(corpus, progress, [&](const Corpus::Piece& piece) { trainer.add(piece.text); });
  return {trainer.train({.vocabulary = options.vocabulary,
                         .separate_documents = options.end_of_text,
                         .context = options.context}),
          read.bytes, 0, 0, read.names.found()};
}

}  // namespace

void visit(TokenizerTraining& t, OptionVisitor& v) {
  v.choice({"kind", "train a tokenizer of this kind on the files"}, t.kind,
           {"char", "bpe", "wordpiece", "unigram"});
  v.integer(
      {"vocabulary", "maximum vocabulary size, special tokens included; char: 0 = all characters"},
      t.vocabulary, 0, kMostTokens);
  v.boolean({"bytes", "bpe: start from the 256 bytes; false = from the characters of the text"},
            t.bytes);
  v.boolean({"lowercase", "wordpiece: ignore case and accents"}, t.lowercase);
  v.integer({"min_frequency", "bpe, wordpiece: minimum frequency of a merged pair"},
            t.min_frequency, 0, INT64_MAX);
  v.integer({"alphabet", "bpe, wordpiece: keep the N most frequent characters; 0 = all"},
            t.alphabet, 0, kMostTokens);
  v.boolean({"end_of_text", "add an end-of-sequence token"}, t.end_of_text);
  v.texts({"special_tokens", "additional special token"}, t.special_tokens);
  v.integer({"context", "maximum tokens per text, written to the files; 0 = no limit"}, t.context,
            0, INT64_MAX);
  v.bytes({"memory", "memory for the distinct words of the text"}, t.memory);
}

std::optional<TrainedTokenizer> train_tokenizer(Corpus& corpus, const TokenizerTraining& options,
                                                const OnProgress& progress) {
  check_fields(options);
  try {
    if (options.kind == TokenizerKind::character)
      return train_characters(corpus, options, progress);
    TokenizerTrainer trainer(options);
    const Read read = read_all(corpus, progress, [&](const Corpus::Piece& piece) {
      if (piece.starts_document) trainer.end_document();
      trainer.add(piece.text);
    });
    const std::optional<Tokenizer> tokenizer = trainer.train([&](double fraction) {
      return !progress || progress({Progress::Stage::training, fraction});
    });
    if (!tokenizer) return {};
    return TrainedTokenizer{*tokenizer, read.bytes, trainer.words(), trainer.forgotten(),
                            read.names.found()};
  } catch (const ReadingStopped&) {
    if (!progress) throw;  // stopped by the callback of the corpus
    return {};
  }
}

std::optional<TrainedTokenizer> train_tokenizer(const std::vector<std::filesystem::path>& data,
                                                const TokenizerTraining& options,
                                                const OnProgress& progress) {
  const FloatMode mode;
  Corpus corpus(data);
  return train_tokenizer(corpus, options, progress);
}

bool is_trained_choice(const std::string& choice) {
  const std::string kind = choice.substr(0, choice.find(':'));
  return choice == "char" || kind == "bpe" || kind == "wordpiece" || kind == "unigram";
}

int64_t vocabulary_in(const std::string& choice) {
  const size_t begin = choice.find(':') + 1;
  const char *const first = choice.data() + begin, *const last = choice.data() + choice.size();
  int64_t size = 0;
  const auto [end, error] = std::from_chars(first, last, size);
  check_field(error == std::errc() && end == last && size > 0 && size <= kMostTokens, "tokenizer",
              "is {}; expected a size from 1 to {} after the colon", choice, kMostTokens);
  return size;
}

Tokenizer make_tokenizer(Corpus& corpus, const std::string& choice, int64_t max_characters,
                         int64_t context) {
  if (!is_trained_choice(choice)) return Tokenizer::open(choice);
  if (choice == "char") return train_character_tokenizer(corpus, max_characters, context);
  const std::string kind = choice.substr(0, choice.find(':'));
  TokenizerTraining options{.end_of_text = corpus.separates_documents(), .context = context};
  options.kind = kind == "bpe"         ? TokenizerKind::bpe
                 : kind == "wordpiece" ? TokenizerKind::wordpiece
                                       : TokenizerKind::unigram;
  if (choice.size() > kind.size()) options.vocabulary = vocabulary_in(choice);
  return train_tokenizer(corpus, options)->tokenizer;
}

Tokenizer train_character_tokenizer(Corpus& corpus, int64_t vocabulary, int64_t context) {
  return train_tokenizer(corpus, {.kind = TokenizerKind::character,
                                  .vocabulary = vocabulary,
                                  .end_of_text = corpus.separates_documents(),
                                  .context = context})
      ->tokenizer;
}

}  // namespace fovea

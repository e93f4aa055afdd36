#include "data/train_tokenizer.h"

#include <algorithm>
#include <charconv>

#include "base/fields.h"
#include "base/float_mode.h"
#include "data/special_names.h"
#include "tokenizer/training/character_trainer.h"
#include "tokenizer/training/tokenizer_trainer.h"

namespace fovea::train {
namespace {

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

TrainedTokenizer train_characters(Corpus& corpus, const text::TokenizerTraining& options,
                                  const OnProgress& progress) {
  text::CharacterTrainer trainer;
  const Read read =
      read_all(corpus, progress, [&](const Corpus::Piece& piece) { trainer.add(piece.text); });
  return {trainer.train({.vocabulary = options.vocabulary,
                         .separate_documents = options.end_of_text,
                         .context = options.context}),
          read.bytes, 0, 0, read.names.found()};
}

}  // namespace

std::optional<TrainedTokenizer> train_tokenizer(Corpus& corpus,
                                                const text::TokenizerTraining& options,
                                                const OnProgress& progress) {
  check_fields(options);
  try {
    if (options.kind == text::TokenizerKind::character)
      return train_characters(corpus, options, progress);
    text::TokenizerTrainer trainer(options);
    const Read read = read_all(corpus, progress, [&](const Corpus::Piece& piece) {
      if (piece.starts_document) trainer.end_document();
      trainer.add(piece.text);
    });
    const std::optional<text::Tokenizer> tokenizer = trainer.train([&](double fraction) {
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
                                                const text::TokenizerTraining& options,
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
  check_field(error == std::errc() && end == last && size > 0 && size <= text::kMostTokens,
              "tokenizer", "is {}; expected a size from 1 to {} after the colon", choice,
              text::kMostTokens);
  return size;
}

text::Tokenizer make_tokenizer(Corpus& corpus, const std::string& choice, int64_t max_characters,
                               int64_t context) {
  if (!is_trained_choice(choice)) return text::Tokenizer::open(choice);
  if (choice == "char") return train_character_tokenizer(corpus, max_characters, context);
  const std::string kind = choice.substr(0, choice.find(':'));
  text::TokenizerTraining options{.end_of_text = corpus.separates_documents(), .context = context};
  options.kind = kind == "bpe"         ? text::TokenizerKind::bpe
                 : kind == "wordpiece" ? text::TokenizerKind::wordpiece
                                       : text::TokenizerKind::unigram;
  if (choice.size() > kind.size()) options.vocabulary = vocabulary_in(choice);
  return train_tokenizer(corpus, options)->tokenizer;
}

text::Tokenizer train_character_tokenizer(Corpus& corpus, int64_t vocabulary, int64_t context) {
  return train_tokenizer(corpus, {.kind = text::TokenizerKind::character,
                                  .vocabulary = vocabulary,
                                  .end_of_text = corpus.separates_documents(),
                                  .context = context})
      ->tokenizer;
}

}  // namespace fovea::train

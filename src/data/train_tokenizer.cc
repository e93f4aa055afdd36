#include "data/train_tokenizer.h"

#include "text/character_trainer.h"

namespace fovea {

Tokenizer train_character_tokenizer(Corpus& corpus, int64_t vocabulary, int64_t context) {
  CharacterTrainer trainer;
  corpus.read([&](const Corpus::Piece& piece) { trainer.add(piece.text); });
  return trainer.train({.vocabulary = vocabulary,
                        .separate_documents = corpus.separates_documents(),
                        .context = context});
}

}  // namespace fovea

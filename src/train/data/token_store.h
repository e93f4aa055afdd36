#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "base/files.h"
#include "data/corpus.h"
#include "data/special_names.h"
#include "fovea/text/tokenizer.h"

namespace fovea::train {

struct TokenCounts;

// A sequence of tokens, stored as uint16 if every id fits, else as int32. Valid during the lifetime
// of its TokenStore.
struct TokenSpan {
  const void* ids = nullptr;
  int width = 2;      // bytes of one id
  int64_t count = 0;  // tokens
  int64_t bytes = 0;  // bytes of the UTF-8 text of the tokens; a document separator has none
  const MappedFile* file = nullptr;  // that has the ids; copy() releases the memory of its pages

  void copy(int64_t first, int64_t length, int32_t* out) const;  // ids [first, first + length)
};

struct TokenStoreOptions {
  double validation = 0.1;           // the fraction held out at the end, in [0, 1)
  std::filesystem::path cache = {};  // folder for the cache file; empty = a temporary file
  bool writes = true;  // whether the cache file is written, not only read; else a temporary file is
  int64_t in_memory_bytes = int64_t{32} << 20;  // the ids of a larger corpus are in a file
  SpecialNames* names = nullptr;  // counts names in the text, unless it is cached; null = no count
};

// The token ids of a corpus, in memory or in a memory-mapped file, each part of the corpus divided
// into a training and a validation part: of n tokens the first n * (1 - validation), rounded down,
// are for training. A cache file that is damaged or belongs to a different corpus, tokenizer or
// split is built again. Of a corpus of any size, the memory is bounded.
class TokenStore {
 public:
  // Throws InvalidArgument if `validation` is outside [0, 1), Failed if a file cannot be written,
  // and the errors of Corpus::read().
  TokenStore(Corpus& corpus, const text::Tokenizer& tokenizer, const TokenStoreOptions& options);

  struct Part {
    TokenSpan training, validation;
  };
  const std::vector<Part>& parts() const { return parts_; }
  // Of a corpus of one part.
  const TokenSpan& training() const { return parts_.front().training; }
  const TokenSpan& validation() const { return parts_.front().validation; }
  uint64_t corpus_hash() const { return corpus_hash_; }
  bool reused() const { return reused_; }  // an existing cache file was used

 private:
  void use(std::shared_ptr<const std::vector<char>> ids, const TokenCounts& counts);
  void use(std::shared_ptr<const MappedFile> file, const TokenCounts& counts);
  void divide(const char* ids, const MappedFile* file, const TokenCounts& counts);

  std::shared_ptr<const void> storage_;
  std::vector<Part> parts_;
  uint64_t corpus_hash_ = 0;
  bool reused_ = false;
};

}  // namespace fovea::train

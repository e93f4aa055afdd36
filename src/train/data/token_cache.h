#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/hash.h"

namespace fovea::train {

// The ids of a corpus, and the corpus and the tokenizer of these ids.
struct TokenCounts {
  struct Part {  // of a mixture; else there is one
    int64_t tokens = 0, training_tokens = 0;
    int64_t bytes = 0, training_bytes = 0;  // bytes of UTF-8 text

    bool operator==(const Part&) const = default;
  };
  uint64_t corpus = 0, tokenizer = 0;  // hashes
  uint64_t width = 2;                  // bytes of one id: 2 or 4
  std::vector<Part> parts;

  bool operator==(const TokenCounts&) const = default;
};

// Writes a cache file in one pass: the ids, the counts of each part, then a footer with the other
// counts, the XXH3 hash of the ids, the version, the magic bytes and the XXH3 hash of the counts
// and these fields. All integers are little-endian.
class TokenCacheWriter {
 public:
  explicit TokenCacheWriter(const std::string& path);
  ~TokenCacheWriter();  // removes the temporary file unless it was committed
  TokenCacheWriter(const TokenCacheWriter&) = delete;
  TokenCacheWriter& operator=(const TokenCacheWriter&) = delete;

  void append(std::string_view ids);
  void commit(const TokenCounts& counts);  // replaces an older file

 private:
  std::string path_, temporary_;
  int file_;
  Hasher hasher_;
};

struct TokenCache {
  std::shared_ptr<const MappedFile> file;  // its first bytes are the ids
  TokenCounts counts;
};

// Token ids in a temporary file without a name (unnamed_file()).
class TemporaryTokens {
 public:
  TemporaryTokens();
  ~TemporaryTokens();
  TemporaryTokens(const TemporaryTokens&) = delete;
  TemporaryTokens& operator=(const TemporaryTokens&) = delete;

  void append(std::string_view ids);
  std::shared_ptr<const MappedFile> mapped() const;

 private:
  int file_;
};

// Opens a cache file. Returns nothing if the file is missing, is damaged or has a different
// version; it must then be built again.
std::optional<TokenCache> open_token_cache(const std::string& path);

}  // namespace fovea::train

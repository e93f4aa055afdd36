#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/files.h"
#include "base/hash.h"

namespace fovea::train {

// The contents of a cache file of token ids, and the corpus and the tokenizer of these ids.
struct TokenCacheContents {
  uint64_t corpus = 0, tokenizer = 0;  // hashes
  uint64_t width = 2;                  // bytes of one id: 2 or 4
  int64_t tokens = 0, training_tokens = 0;
  int64_t bytes = 0, training_bytes = 0;  // bytes of UTF-8 text

  bool operator==(const TokenCacheContents&) const = default;
};

// Writes a cache file in one pass: the ids, then a footer with the counts, the XXH3 hash of the
// ids, the version, the magic bytes and the XXH3 hash of these fields. All integers are
// little-endian.
class TokenCacheWriter {
 public:
  explicit TokenCacheWriter(const std::string& path);
  ~TokenCacheWriter();  // removes the temporary file unless it was committed
  TokenCacheWriter(const TokenCacheWriter&) = delete;
  TokenCacheWriter& operator=(const TokenCacheWriter&) = delete;

  void append(std::string_view ids);
  void commit(const TokenCacheContents& counts);  // replaces an older file

 private:
  void write(std::string_view bytes);
  // Throws Failed, with the reason, unless `fine`.
  void require(bool fine, const char* call) const;

  std::string path_, temporary_;
  int file_;
  Hasher hasher_;
};

struct TokenCache {
  std::shared_ptr<const MappedFile> file;  // its first bytes are the ids
  TokenCacheContents counts;
};

// Opens a cache file. Returns nothing if the file is missing, is damaged or has a different
// version; it must then be built again.
std::optional<TokenCache> open_token_cache(const std::string& path);

}  // namespace fovea::train

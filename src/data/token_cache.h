#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/files.h"
#include "base/hash.h"

namespace fovea {

// The contents of a cache file of token ids, and what they belong to.
struct TokenCacheContents {
  uint64_t corpus = 0, tokenizer = 0;  // hashes
  uint64_t width = 2;                  // bytes of one id: 2 or 4
  int64_t tokens = 0, training_tokens = 0;
  int64_t bytes = 0, training_bytes = 0;  // bytes of UTF-8 text

  bool operator==(const TokenCacheContents&) const = default;
};

// The file: the ids, then a footer (so that it is written in one pass): magic, version, the counts,
// XXH3 of the ids and of the footer itself. All integers are little-endian.
class TokenCacheWriter {
 public:
  explicit TokenCacheWriter(const std::string& path);
  ~TokenCacheWriter();  // removes the file unless it was committed
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

// Empty if the file is missing, damaged or of another version, so that it must be built again.
std::optional<TokenCache> open_token_cache(const std::string& path);

}  // namespace fovea

#pragma once

// Limits the growth of texts: a tokenizer.json defines how a text is rewritten, and a few dozen
// steps that each double its length would exhaust memory. Everything that lengthens a text, or
// splits it into more tokens, is charged to a limit proportional to its length. The normalizers of
// real tokenizers make a text at most 13 times as long (U+FDFA under NFKC, with metaspaces); the
// mapping of bytes to printable characters doubles that.

#include <cstddef>

namespace fovea::text {

class GrowthLimit {
 public:
  // The limit is `times` the number of bytes passed to give(), plus `constant` bytes. `part` is the
  // part of tokenizer.json that lengthens the text, for errors.
  GrowthLimit(const char* part, size_t times, size_t constant)
      : part_(part), times_(times), constant_(constant), left_(constant) {}

  // Limits what normalizers and pre-tokenizers may add to a text of `bytes` bytes.
  static GrowthLimit of_text(size_t bytes) {
    GrowthLimit limit("normalizer", 32, size_t{64} << 10);
    limit.give(bytes);
    return limit;
  }
  // Limits the memory of the tokens of `texts` texts, including the tokens' own strings; the
  // constant allows for padding.
  static GrowthLimit of_tokens(size_t texts = 1) {
    return {"model", 256, texts * (size_t{4} << 20)};
  }
  // Limits how much decoders may lengthen the texts of tokens; the limit grows with each token that
  // is decoded.
  static GrowthLimit of_decoding() { return {"decoder", 32, size_t{64} << 10}; }

  void enter(const char* part) { part_ = part; }
  void give(size_t bytes) {
    given_ += bytes;
    left_ += times_ * bytes;
  }
  size_t left() const { return left_; }
  // Throws BadFile if `bytes` exceeds the remaining limit.
  void spend(size_t bytes) {
    if (bytes > left_) refuse();
    left_ -= bytes;
  }
  [[noreturn]] void refuse() const;

 private:
  const char* part_;
  size_t times_, constant_, given_ = 0, left_;
};

}  // namespace fovea::text

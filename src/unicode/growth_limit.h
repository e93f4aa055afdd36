#pragma once

// Limits the growth of texts: a tokenizer.json defines how a text is rewritten, and a few steps
// that each double it would exhaust memory. Everything that lengthens a text, or makes more tokens
// of it, is charged to a limit proportional to the text. Normalisation of real tokenizers lengthens
// a text at most 13 times (U+FDFA under NFKC, with metaspaces), and printable bytes double that.

#include <cstddef>

namespace fovea {

class GrowthLimit {
 public:
  // `times` the number of added bytes, plus `constant` bytes. `part` is the part of tokenizer.json
  // that makes the text grow, for errors.
  GrowthLimit(const char* part, size_t times, size_t constant)
      : part_(part), times_(times), constant_(constant), left_(constant) {}

  // For what a normalizer and a pre-tokenizer may add to a text.
  static GrowthLimit of_text(size_t bytes) {
    GrowthLimit limit("normalizer", 32, size_t{64} << 10);
    limit.give(bytes);
    return limit;
  }
  // For the memory of the tokens of texts, including their own texts; the constant is for padding.
  static GrowthLimit of_tokens(size_t texts = 1) {
    return {"model", 256, texts * (size_t{4} << 20)};
  }
  // For what decoders may add to the texts of tokens, which arrive one by one.
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

}  // namespace fovea

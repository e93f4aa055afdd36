#pragma once

// A tokenizer.json says what becomes of a text, and a few steps that each double it fill any
// memory. So everything that makes a text longer, or more tokens of one, spends from a limit in
// proportion to the text. Normalisation of real tokenizers makes a text at most 13 times as long
// (U+FDFA under NFKC, with metaspaces), and printed bytes twice that.

#include <cstddef>

namespace fovea {

class GrowthLimit {
 public:
  // `times` the bytes that are given, and `constant` bytes. `part` is that of tokenizer.json which
  // makes the text grow.
  GrowthLimit(const char* part, size_t times, size_t constant)
      : part_(part), times_(times), constant_(constant), left_(constant) {}

  // What a normalizer and a pre-tokenizer may add to a text.
  static GrowthLimit of_text(size_t bytes) {
    GrowthLimit limit("normalizer", 32, size_t{64} << 10);
    limit.give(bytes);
    return limit;
  }
  // What the tokens of texts may take, their own texts included; the constant is for padding.
  static GrowthLimit of_tokens(size_t texts = 1) {
    return {"model", 256, texts * (size_t{4} << 20)};
  }
  // What decoders may add to the texts of tokens, which are given one by one.
  static GrowthLimit of_decoding() { return {"decoder", 32, size_t{64} << 10}; }

  void enter(const char* part) { part_ = part; }
  void give(size_t bytes) {
    given_ += bytes;
    left_ += times_ * bytes;
  }
  size_t left() const { return left_; }
  // BadFile where it is more than what is left.
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

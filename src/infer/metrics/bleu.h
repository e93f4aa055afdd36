#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/infer/translation_scores.h"

namespace fovea::infer {

// Returns the words of a text, split as by sacrebleu and joined with single spaces. The tokenizer
// `none` returns the text.
std::string tokenized(std::string_view text, BleuTokenizer tokenizer);

// Corpus BLEU (Papineni et al. 2002) with one reference, cased, n-grams of up to 4 words,
// exponential smoothing of precisions without a match (Chen and Cherry 2014): the default of
// sacrebleu.
class Bleu {
 public:
  explicit Bleu(BleuTokenizer tokenizer = BleuTokenizer::mteval_13a) : tokenizer_(tokenizer) {}
  void add(std::string_view hypothesis, std::string_view reference);
  double score() const;  // 0 to 100
  static std::string signature(BleuTokenizer tokenizer);

 private:
  static constexpr int kOrder = 4;
  BleuTokenizer tokenizer_;
  int64_t matches_[kOrder] = {}, totals_[kOrder] = {};
  int64_t length_ = 0, reference_length_ = 0;  // in words
};

// chrF2 (Popovic 2015): F-score of n-grams of up to 6 characters, without white space, with beta =
// 2 (twice as much weight on recall as on precision): the default of sacrebleu. With a word order
// of 2 it is chrF2++ (Popovic 2017), which also counts words and pairs of words.
class Chrf {
 public:
  explicit Chrf(int word_order = 0) : orders_(kCharacters + word_order) {}
  void add(std::string_view hypothesis, std::string_view reference);
  double score() const;  // 0 to 100
  static const char* signature() { return "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no"; }

 private:
  template <class Ngrams>
  void count(int order, const Ngrams& ours, const Ngrams& theirs);

  // First the counts of n-grams of characters, then those of words.
  static constexpr int kCharacters = 6, kWords = 2, kOrders = kCharacters + kWords;
  int orders_;
  int64_t matches_[kOrders] = {}, hypothesis_[kOrders] = {}, reference_[kOrders] = {};
};

struct ChrfOfWords : Chrf {
  ChrfOfWords() : Chrf(2) {}
  static const char* signature() { return "nrefs:1|case:mixed|eff:yes|nc:6|nw:2|space:no"; }
};

}  // namespace fovea::infer

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::infer {

// Returns the words of a text, split with sacrebleu's tokenizer 13a (mteval-v13a) and joined with
// single spaces.
std::string tokenized_13a(std::string_view text);

// Corpus BLEU (Papineni et al. 2002) with one reference, cased, tokenizer 13a, n-grams of up to 4
// words, exponential smoothing of precisions without a match (Chen and Cherry 2014): the default of
// sacrebleu.
class Bleu {
 public:
  void add(std::string_view hypothesis, std::string_view reference);
  double score() const;  // 0 to 100
  static const char* signature() { return "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp"; }

 private:
  static constexpr int kOrder = 4;
  int64_t matches_[kOrder] = {}, totals_[kOrder] = {};
  int64_t length_ = 0, reference_length_ = 0;  // in words
};

// chrF2 (Popovic 2015): F-score of n-grams of up to 6 characters, without white space, with beta =
// 2 (twice as much weight on recall as on precision): the default of sacrebleu.
class Chrf {
 public:
  void add(std::string_view hypothesis, std::string_view reference);
  double score() const;  // 0 to 100
  static const char* signature() { return "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no"; }

 private:
  static constexpr int kOrder = 6;
  int64_t matches_[kOrder] = {}, hypothesis_[kOrder] = {}, reference_[kOrder] = {};
};

}  // namespace fovea::infer

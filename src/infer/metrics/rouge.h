#pragma once

#include <cstdint>
#include <string_view>

namespace fovea::infer {

// The F-measures of ROUGE (Lin 2004) for a summary and its reference, from 0 to 1: of common words,
// of common pairs of words, of the longest common subsequence, and of the union of those of all
// lines (lsum), where each line is a sentence. As in Google's rouge-score without stemming, words
// are runs of a-z and 0-9 in the lower-case text: a text in another alphabet has no words.
struct Rouge {
  double one = 0, two = 0, l = 0, lsum = 0;
};
Rouge rouge(std::string_view summary, std::string_view reference);

// One of these measures, averaged over the lines of a corpus with one reference.
template <double Rouge::* measure>
class MeanRouge {
 public:
  void add(std::string_view hypothesis, std::string_view reference) {
    sum_ += rouge(hypothesis, reference).*measure;
    ++lines_;
  }
  double score() const {  // 0 to 100
    return lines_ == 0 ? 0 : 100 * sum_ / static_cast<double>(lines_);
  }
  static const char* signature() { return "nrefs:1|case:lc|tok:a-z0-9|stem:no|avg:lines"; }

 private:
  double sum_ = 0;
  int64_t lines_ = 0;
};

}  // namespace fovea::infer

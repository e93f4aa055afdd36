#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fovea::infer {

// Returns a transcript in the form in which error rates compare it, that of the basic normalizer of
// the reference implementation (Radford et al. 2022, appendix C): in lower case, without the text
// in brackets and parentheses, in NFKC, with spaces in place of marks, punctuation and symbols.
std::string normalised_transcript(std::string_view text);

// The errors of transcripts: the least number of substituted, deleted and inserted words (or
// characters), divided by the number of those of the references. The texts are normalised first.
class ErrorRates {
 public:
  void add(std::string_view transcript, std::string_view reference);
  double words() const { return rate(word_errors_, words_); }
  double characters() const { return rate(character_errors_, characters_); }

 private:
  static double rate(int64_t errors, int64_t all) {
    return all == 0 ? (errors == 0 ? 0.0 : 1.0)
                    : static_cast<double>(errors) / static_cast<double>(all);
  }

  int64_t word_errors_ = 0, words_ = 0, character_errors_ = 0, characters_ = 0;
};

}  // namespace fovea::infer

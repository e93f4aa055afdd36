#pragma once

#include <cstdint>
#include <vector>

namespace fovea {

// Hides tokens of a text that a model must predict. Both methods are pure functions of the seed and
// the sample's number.

// Masked language modelling (Devlin et al. 2019, 3.1): each token is selected with probability
// `share`; of the selected ones 80% become the mask, 10% a random token, and 10% are unchanged.
struct Masking {
  double share = 0.15;
  int32_t mask = 0;               // the token that replaces a hidden one
  std::vector<int32_t> ordinary;  // candidates for random tokens: all but the special ones
};
// Changes ids [count] in place; labels [count] become the hidden token, or -1 where none is hidden.
void mask_tokens(const Masking& masking, uint64_t seed, int64_t sample, int64_t count, int32_t* ids,
                 int32_t* labels);

// Span corruption (Raffel et al. 2020, 3.1.4): removes `share` of the tokens, in spans of average
// length `mean_span`. The source has a gap token in place of each span; the target has each gap
// token followed by its span. Both end with `end`. All windows of one length have sources of one
// length and targets of one length.
struct SpanCutting {
  double share = 0.15, mean_span = 3;
  std::vector<int32_t> gaps;  // in the order of use
  int32_t end = 1;

  int64_t noise(int64_t window) const;  // the number of removed tokens
  int64_t spans(int64_t window) const;
  int64_t source_length(int64_t window) const { return window - noise(window) + spans(window) + 1; }
  int64_t target_length(int64_t window) const { return noise(window) + spans(window) + 1; }
  // The longest window whose source and target both fit into a context; at least 2 tokens.
  int64_t longest_window(int64_t context) const;
};
void cut_spans(const SpanCutting& cutting, uint64_t seed, int64_t sample, const int32_t* window,
               int64_t count, int32_t* source, int32_t* target);

}  // namespace fovea

#pragma once

#include <cstdint>
#include <vector>

namespace fovea::train {

// Masks or cuts out tokens of a text; a model must predict these tokens. The choice of tokens is a
// pure function of the seed and the sample's number.

// Masked language modelling (Devlin et al. 2019, section 3.1): each token is selected with
// probability `share`; of the selected tokens, 80% become the mask token, 10% a random token, and
// 10% are unchanged.
struct Masking {
  double share = 0.15;
  int32_t mask = 0;               // the mask token
  std::vector<int32_t> ordinary;  // candidates for random tokens: all but special tokens
};
// Changes ids [count] in place. Each element of labels [count] becomes the original token if it was
// selected, else -1.
void mask_tokens(const Masking& masking, uint64_t seed, int64_t sample, int64_t count, int32_t* ids,
                 int32_t* labels);

// Span corruption (Raffel et al. 2020, section 3.3.4): removes `share` of the tokens, in spans of
// average length `mean_span`. The source has a sentinel token in place of each span; the target has
// each sentinel token followed by its span. Source and target end with `end`. Their lengths depend
// only on the length of the window.
struct SpanCutting {
  double share = 0.15, mean_span = 3;
  std::vector<int32_t> gaps;  // sentinel tokens in order of use
  int32_t end = 1;

  // `window`: length of a window, in tokens.
  int64_t noise(int64_t window) const;  // number of removed tokens
  int64_t spans(int64_t window) const;  // number of spans
  int64_t source_length(int64_t window) const { return window - noise(window) + spans(window) + 1; }
  int64_t target_length(int64_t window) const { return noise(window) + spans(window) + 1; }
  // Returns the length of the longest window whose source and target fit into a context; at least 2
  // tokens.
  int64_t longest_window(int64_t context) const;
};
// Cuts spans out of window [count]. Writes source [source_length(count)] and target
// [target_length(count)]. Throws InvalidArgument if there are fewer sentinel tokens than spans.
void cut_spans(const SpanCutting& cutting, uint64_t seed, int64_t sample, const int32_t* window,
               int64_t count, int32_t* source, int32_t* target);

}  // namespace fovea::train

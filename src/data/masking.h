#pragma once

#include <cstdint>
#include <vector>

namespace fovea {

// What a text's tokens become for a model that must say what was hidden of them. Both are pure
// functions of the seed and the sample's number.

// Masked language modelling (Devlin et al. 2019, 3.1): a token is asked for with probability
// `share`; of those asked for 80% become the mask, 10% a random token, and 10% stay.
struct Masking {
  double share = 0.15;
  int32_t mask = 0;               // the token that hides another
  std::vector<int32_t> ordinary;  // tokens that may stand for another: all but the special ones
};
// Writes over ids [count]; labels [count] become the hidden token, or -1 where nothing is asked.
void mask_tokens(const Masking& masking, uint64_t seed, int64_t sample, int64_t count, int32_t* ids,
                 int32_t* labels);

// Span corruption (Raffel et al. 2020, 3.1.4): `share` of the tokens, in spans of `mean_span` on
// the average, are cut out. Where a span was, the source has a gap token; the target has each gap
// token followed by the span. Both end with `end`. All windows of one length give sources and
// targets of one length.
struct SpanCutting {
  double share = 0.15, mean_span = 3;
  std::vector<int32_t> gaps;  // in the order of use
  int32_t end = 1;

  int64_t noise(int64_t window) const;  // tokens that are cut out
  int64_t spans(int64_t window) const;
  int64_t source_length(int64_t window) const { return window - noise(window) + spans(window) + 1; }
  int64_t target_length(int64_t window) const { return noise(window) + spans(window) + 1; }
  // The longest window whose source and target both fit into a context; at least 2 tokens.
  int64_t longest_window(int64_t context) const;
};
void cut_spans(const SpanCutting& cutting, uint64_t seed, int64_t sample, const int32_t* window,
               int64_t count, int32_t* source, int32_t* target);

}  // namespace fovea

#pragma once

#include <map>
#include <vector>

#include "fovea/infer/engine.h"
#include "nn/pass.h"

namespace fovea::infer {

// Records the intermediate results that requests select, in one pass over a ragged batch: attention
// weights and hidden states of the rows from which tokens are drawn.
class AttentionTracer {
 public:
  // Requests a trace of the last `rows` rows of text `member`, which are rows [first, first + rows)
  // of the pass.
  void want(const AttentionTraceOptions& trace, size_t member, int64_t first, int64_t rows);
  // Returns the probe for the pass; null if nothing is requested.
  const model::Probe* probe() const { return members_.empty() ? nullptr : &probe_; }
  // Returns one entry per requested row; none if the member requested nothing.
  std::vector<AttentionTrace> take(size_t member);

 private:
  struct Member {
    AttentionTraceOptions trace;
    int64_t first = 0;
    std::vector<AttentionTrace> rows;
  };
  void see(const model::ProbePoint& point, const Tensor& value);
  void attend(int64_t layer, const Tensor& q, const std::vector<PagedText>& texts,
              const PagedOptions& options);

  std::map<size_t, Member> members_;
  const model::Probe probe_{
      .see = [this](const model::ProbePoint& point, const Tensor& x) { see(point, x); },
      .attend_paged = [this](int64_t layer, const Tensor& q, const std::vector<PagedText>& texts,
                             const PagedOptions& options) { attend(layer, q, texts, options); }};
};

// Throws InvalidArgument if the decoder has no such layer or head, if the layer of `attention` is
// recurrent, or if top_k is below 1.
void check_attention_trace(const AttentionTraceOptions& trace, const model::StackSpec& decoder);

}  // namespace fovea::infer

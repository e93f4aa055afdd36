#pragma once

#include <map>
#include <vector>

#include "fovea/engine.h"
#include "nn/pass.h"

namespace fovea {

// What requests want to see of one pass over a ragged batch: attention weights and hidden states of
// the rows behind which tokens are drawn, and of no others.
class Watching {
 public:
  // The last `rows` rows of the pass's text number `member`, which are rows [first, first + rows)
  // of the pass.
  void want(const Watch& watch, size_t member, int64_t first, int64_t rows);
  // For the pass; null where nothing is wanted.
  const Probe* probe() const { return members_.empty() ? nullptr : &probe_; }
  // Of each of the rows; none where the member wants nothing.
  std::vector<Watched> take(size_t member);

 private:
  struct Member {
    Watch watch;
    int64_t first = 0;
    std::vector<Watched> rows;
  };
  void see(const std::string& name, const Tensor& value);
  void attend(int64_t layer, const Tensor& q, const std::vector<PagedText>& texts,
              const PagedOptions& options);

  std::map<size_t, Member> members_;
  const Probe probe_{
      .see = [this](const std::string& name, const Tensor& x) { see(name, x); },
      .attend_paged = [this](int64_t layer, const Tensor& q, const std::vector<PagedText>& texts,
                             const PagedOptions& options) { attend(layer, q, texts, options); }};
};

// InvalidArgument where the decoder has no such layer or head.
void check_watch(const Watch& watch, const StackSpec& decoder);

}  // namespace fovea

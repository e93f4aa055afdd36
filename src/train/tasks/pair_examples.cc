#include "tasks/pair_examples.h"

#include <algorithm>

namespace fovea::train {
namespace {

LengthBatches batches_of(const TokenPairs& pairs, int64_t budget, uint64_t seed) {
  std::vector<LengthBatches::Lengths> lengths;
  for (int64_t i = 0; i < pairs.sources.count(); ++i) {
    lengths.push_back({static_cast<int32_t>(pairs.sources.length(i)),
                       static_cast<int32_t>(pairs.targets.length(i))});
  }
  return LengthBatches(lengths, budget, 0, seed);
}

Examples::Part part_of(const TokenPairs& pairs) {
  return {pairs.sources.count(), pairs.sources.total() + pairs.targets.total(),
          pairs.targets.total(), pairs.bytes};
}

}  // namespace

PairExamples::PairExamples(TokenPairs training, TokenPairs validation, int64_t batch_tokens,
                           PairTokens tokens, uint64_t seed)
    : LengthExamples(
          std::move(training), std::move(validation),
          [=](const TokenPairs& pairs) { return batches_of(pairs, batch_tokens, seed); }, part_of),
      tokens_(tokens) {}

// Each row begins with its tokens; padding follows them. No query sees the padding of a source; the
// padding of a target has no labels.
Batch PairExamples::of(const TokenPairs& pairs, const std::vector<int64_t>& samples) const {
  const int64_t T = pairs.targets.longest(samples);
  Batch batch;
  batch.source.ids = pairs.sources.rows(samples, pairs.sources.longest(samples), tokens_.padding);
  batch.labels = pairs.targets.rows(samples, T, -1);
  batch.target.ids = pairs.targets.rows(samples, T, tokens_.padding);
  int32_t* target = batch.target.ids.data_as<int32_t>();
  for (const int64_t i : samples) {  // the target is shifted by one, after the start token
    const int64_t read = pairs.sources.length(i), said = pairs.targets.length(i);
    std::copy_backward(target, target + said - 1, target + said);
    *target = tokens_.start;
    target += T;
    batch.source_valid.push_back({0, read});
    batch.asked += said;
    batch.tokens += read + said;
  }
  return batch;
}

}  // namespace fovea::train

#include "train/pair_examples.h"

#include <algorithm>

namespace fovea {
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
  return {pairs.sources.count(), pairs.sources.tokens() + pairs.targets.tokens(),
          pairs.targets.tokens(), pairs.bytes};
}

int64_t longest(const Sequences& sequences, const std::vector<int64_t>& samples) {
  int64_t most = 0;
  for (const int64_t i : samples) most = std::max(most, sequences.length(i));
  return most;
}

Tensor filled(int64_t rows, int64_t length, int32_t value) {
  const Tensor ids = empty({rows, length}, DType::i32);
  std::fill_n(ids.data_as<int32_t>(), ids.size(), value);
  return ids;
}

}  // namespace

PairExamples::PairExamples(TokenPairs training, TokenPairs validation, int64_t batch_tokens,
                           PairTokens tokens, uint64_t seed)
    : training_(std::move(training)),
      validation_(std::move(validation)),
      tokens_(tokens),
      batches_(batches_of(training_, batch_tokens, seed)) {
  learnt = part_of(training_);
  held_out = part_of(validation_);
  if (held_out.sequences > 0) validation_batches_ = batches_of(validation_, batch_tokens, seed);
}

// Rows are filled from the left, and what is left over is padding: of the source no query sees it,
// of the target nothing is asked.
Batch PairExamples::of(const TokenPairs& pairs, const std::vector<int64_t>& samples) const {
  const auto B = std::ssize(samples);
  const int64_t S = longest(pairs.sources, samples), T = longest(pairs.targets, samples);
  Batch batch;
  batch.source.ids = filled(B, S, tokens_.padding);
  batch.target.ids = filled(B, T, tokens_.padding);
  batch.labels = filled(B, T, -1);
  for (int64_t b = 0; b < B; ++b) {
    const int64_t i = samples[static_cast<size_t>(b)];
    const int64_t read = pairs.sources.length(i), said = pairs.targets.length(i);
    std::copy_n(pairs.sources[i], read, batch.source.ids.data_as<int32_t>() + b * S);
    std::copy_n(pairs.targets[i], said, batch.labels.data_as<int32_t>() + b * T);
    int32_t* target = batch.target.ids.data_as<int32_t>() + b * T;
    target[0] = tokens_.start;
    std::copy_n(pairs.targets[i], said - 1, target + 1);
    batch.source_valid.push_back({0, read});
    batch.asked += said;
    batch.tokens += read + said;
  }
  return batch;
}

Batch PairExamples::training(int64_t pass) const { return of(training_, batches_(pass)); }

double PairExamples::passes_per_epoch() const { return static_cast<double>(batches_.batches()); }

int64_t PairExamples::validation_batches() const {
  return validation_batches_ ? validation_batches_->batches() : 0;
}

Batch PairExamples::validation(int64_t n) const {
  return of(validation_, validation_batches_->in_order(n));
}

}  // namespace fovea

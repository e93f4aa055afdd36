// A sequence gives the same bits when it is read at once, in chunks, token by token, alone or in a
// batch.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/threads.h"
#include "kernels/isa.h"
#include "support/mixtures.h"
#include "support/small_spec.h"
#include "tensor/tape.h"

namespace fovea::model {
namespace {

using test::causal_pass;
using test::made;
using test::some_ids;

constexpr int64_t kTokens = 75;  // more than a tile of keys

Spec small() {
  return test::small_decoder({.vocabulary = 37, .context = 80, .width = 36, .heads = 3});
}

std::vector<float> row(const Tensor& x, int64_t i) {  // of [R, V]
  return to_floats(x.rows(i, i + 1));
}

Tensor piece(const Tensor& ids, int64_t begin, int64_t end) {  // of [B, T]
  Tensor y = empty({ids.dim(0), end - begin}, DType::i32);
  for (int64_t b = 0; b < ids.dim(0); ++b)
    for (int64_t t = begin; t < end; ++t)
      y.data_as<int32_t>()[b * (end - begin) + t - begin] =
          ids.data_as<int32_t>()[b * ids.dim(1) + t];
  return y;
}

KvCache cache_for(const Spec& spec, int64_t batch, DType compute) {
  return KvCache(page_layout(*spec.decoder, compute), batch, spec.context);
}

// Returns the logits of all tokens of `ids`, computed in one pass: [B * T, V].
Tensor read_whole(const Transformer& model, const Tensor& ids, const Pass& pass,
                  const Tensor& positions = {}) {
  const Tensor logits = model.logits(model.hidden(ids, pass, positions));
  return logits.view({ids.size(), model.spec.vocabulary});
}

class ReadingTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    use_isa(GetParam());
    set_threads(1);
  }
  void TearDown() override {
    use_isa("auto");
    set_threads(threads_);
  }

  // Runs the model in chunks with a cache and expects, at every position, the same bits as in a
  // single pass: without a cache, or in bf16, where attention to cached keys rounds queries and
  // weights, with one.
  static void expect_same(const Transformer& model, const Tensor& ids, Pass pass,
                          const std::vector<int64_t>& ends, const Tensor& positions = {}) {
    KvCache one_piece = cache_for(model.spec, ids.dim(0), pass.compute);
    if (pass.compute == DType::bf16) pass.cache = &one_piece;
    const Tensor whole = read_whole(model, ids, pass, positions);
    KvCache cache = cache_for(model.spec, ids.dim(0), pass.compute);
    pass.cache = &cache;
    int64_t begin = 0;
    for (const int64_t end : ends) {
      const Tensor places = positions ? piece(positions, begin, end) : Tensor();
      const Tensor part = read_whole(model, piece(ids, begin, end), pass, places);
      for (int64_t b = 0; b < ids.dim(0); ++b) {
        for (int64_t t = begin; t < end; ++t) {
          ASSERT_EQ(row(part, b * (end - begin) + t - begin), row(whole, b * ids.dim(1) + t))
              << "row " << b << ", token " << t << " of the piece " << begin << " to " << end;
        }
      }
      begin = end;
    }
  }

 private:
  NoGradient off_;
  int threads_ = thread_count();
};

INSTANTIATE_TEST_SUITE_P(EveryIsa, ReadingTest, testing::ValuesIn(testable_isas()),
                         [](const auto& isa) {
                           std::string name = isa.param;
                           std::erase(name, '-');
                           return name;
                         });

std::vector<int64_t> one_by_one() {
  std::vector<int64_t> ends;
  for (int64_t t = 1; t <= kTokens; ++t) ends.push_back(t);
  return ends;
}

const std::vector<std::vector<int64_t>> kPieces = {
    one_by_one(), {kTokens - 1, kTokens}, {64, kTokens}, {7, 8, 40, 73, kTokens}, {33, kTokens}};

TEST_P(ReadingTest, GivesTheSameBitsFromTheCache) {
  const Tensor ids = some_ids({1, kTokens}, small().vocabulary);
  for (const auto& [name, spec] : test::mixtures(small())) {
    const Transformer model = made(spec);
    for (const DType compute : {DType::f32, DType::bf16}) {
      for (size_t n = 0; n < kPieces.size(); ++n) {
        SCOPED_TRACE(fmt::format("{} {} pieces {}", name, name_of(compute), n));
        expect_same(model, ids, causal_pass(compute), kPieces[n]);
      }
    }
  }
}

// The text is much longer than the windows, so that the cache releases pages.
TEST_P(ReadingTest, GivesTheSameBitsAfterPagesWereReleased) {
  constexpr int64_t kLong = 330;
  Spec base = small();
  base.context = kLong;
  base.decoder->layers = 3;
  std::vector<Spec> specs(7, base);
  specs[0].decoder->attention.windows = {20};
  specs[1].decoder->attention.windows = {70, 0, 3};
  specs[2].decoder->attention.windows = {0, 20, 66};
  specs[2].decoder->attention.global = 5;
  specs[3].decoder->mixers = {MixerKind::latent, MixerKind::attention, MixerKind::lstm};
  specs[3].decoder->latent.width = 8;
  specs[3].decoder->attention.windows = {30};
  specs[4].decoder->mixers = {MixerKind::gru, MixerKind::rnn, MixerKind::lstm};
  specs[5].decoder->mixers = {MixerKind::gated_delta, MixerKind::attention};
  specs[5].decoder->delta.key_width = 20;
  specs[6].decoder->mixers = {MixerKind::convolution, MixerKind::attention};
  specs[6].decoder->convolution.tokens = 5;
  const Tensor ids = some_ids({2, kLong}, base.vocabulary);
  std::vector<int64_t> by_seven;
  for (int64_t t = 7; t < kLong; t += 7) by_seven.push_back(t);
  by_seven.push_back(kLong);
  for (size_t n = 0; n < specs.size(); ++n) {
    const Transformer model = made(validated(specs[n]));
    for (const DType compute : {DType::f32, DType::bf16}) {
      SCOPED_TRACE(fmt::format("Spec {} {}", n, name_of(compute)));
      expect_same(model, ids, causal_pass(compute), by_seven);
      expect_same(model, ids, causal_pass(compute), {200, 201, 202, 264, 320, kLong});
    }
  }
}

// With a cache of lower precision than the products, the bits do not depend on the chunks, and the
// results are close to those of an unrounded cache.
TEST_P(ReadingTest, GivesTheSameBitsFromARoundedCacheInAnyChunks) {
  const Tensor ids = some_ids({2, kTokens}, small().vocabulary);
  for (const auto& [name, spec] : test::mixtures(small())) {
    const Transformer model = made(spec);
    const auto full = to_floats(read_whole(model, ids, causal_pass()));
    for (const DType dtype : {DType::bf16, DType::i8}) {
      SCOPED_TRACE(fmt::format("{} {}", name, name_of(dtype)));
      std::vector<float> expected;
      for (const std::vector<int64_t>& ends :
           {{kTokens}, one_by_one(), {64, kTokens}, {7, 73, 75}}) {
        KvCache cache = cache_for(spec, 2, dtype);
        Pass pass = causal_pass();
        pass.cache = &cache;
        std::vector<float> actual(full.size());
        int64_t begin = 0;
        for (const int64_t end : ends) {
          const Tensor part = read_whole(model, piece(ids, begin, end), pass);
          const int64_t count = (end - begin) * spec.vocabulary;
          for (const int64_t b : {0, 1})
            std::copy_n(part.data_as<float>() + b * count, count,
                        actual.begin() + (b * kTokens + begin) * spec.vocabulary);
          begin = end;
        }
        if (expected.empty()) expected = actual;
        ASSERT_EQ(actual, expected) << ends.size() << " pieces";
      }
      double difference = 0, size = 0;
      for (size_t i = 0; i < full.size(); ++i) {
        difference += std::pow(full[i] - expected[i], 2);
        size += std::pow(full[i], 2);
      }
      const bool attends = spec.decoder->layers > 0 &&
                           (spec.decoder->mixers.empty() ||
                            std::ranges::count(spec.decoder->mixers, MixerKind::attention) > 0 ||
                            std::ranges::count(spec.decoder->mixers, MixerKind::latent) > 0);
      EXPECT_EQ(difference > 0, attends);  // recurrent states are not rounded
      // A sparse mixer may choose another expert for rounded values.
      const bool jumps = spec.decoder->ffn.experts.score == ExpertScore::sparse_mixer;
      EXPECT_LT(std::sqrt(difference / size), jumps ? 0.1 : 0.02);
    }
  }
}

TEST_P(ReadingTest, GivesTheSameBitsWithLeftPadding) {
  Spec spec = small();
  spec.decoder->attention.windows = {40};
  const Transformer model = made(validated(spec));
  const Tensor ids = some_ids({3, kTokens}, spec.vocabulary);
  const Tensor positions = empty({3, kTokens}, DType::i32);
  const std::vector<Interval> valid{{0, 80}, {10, 80}, {66, 80}};
  for (int64_t i = 0; i < ids.size(); ++i) {
    const int64_t begin = valid[static_cast<size_t>(i / kTokens)].begin;
    positions.data_as<int32_t>()[i] =
        static_cast<int32_t>(std::max<int64_t>(0, i % kTokens - begin));
  }
  for (const DType compute : {DType::f32, DType::bf16}) {
    Pass pass = causal_pass(compute);
    pass.mask.valid = valid;
    expect_same(model, ids, pass, {70, 71, 72, 73, kTokens}, positions);

    // The contents of padding have no effect. Without padding, the results differ only by rounding,
    // since the keys have different positions in the tiles.
    const Tensor logits = read_whole(model, ids, pass, positions);
    const Tensor other = copy(ids);
    for (int64_t t = 0; t < 66; ++t) other.data_as<int32_t>()[2 * kTokens + t] = 1;
    EXPECT_EQ(row(read_whole(model, other, pass, positions), 3 * kTokens - 1),
              row(logits, 3 * kTokens - 1));
    const Tensor alone = piece(ids.rows(2, 3), 66, kTokens);
    const auto expected = row(read_whole(model, alone, causal_pass(compute)), kTokens - 66 - 1);
    const auto actual = row(logits, 3 * kTokens - 1);
    for (size_t i = 0; i < actual.size(); ++i)
      EXPECT_NEAR(actual[i], expected[i], compute == DType::f32 ? 1e-3 : 0.3) << i;
  }
}

TEST_P(ReadingTest, GivesTheSameBitsInABatch) {
  const Tensor ids = some_ids({5, kTokens}, small().vocabulary);
  for (const auto& [name, spec] : test::mixtures(small())) {
    const Transformer model = made(spec);
    for (const DType compute : {DType::f32, DType::bf16}) {
      const Tensor together = read_whole(model, ids, causal_pass(compute));
      for (const int64_t b : {0, 3, 4}) {
        const Tensor alone = read_whole(model, ids.rows(b, b + 1), causal_pass(compute));
        EXPECT_EQ(to_floats(alone), to_floats(together.rows(b * kTokens, (b + 1) * kTokens)))
            << name << ' ' << name_of(compute) << ", row " << b;
      }
    }
  }
}

TEST_P(ReadingTest, GivesTheSameBitsWithAnyNumberOfThreads) {
  const Transformer model = made(validated(small()));
  const Tensor ids = some_ids({3, kTokens}, small().vocabulary);
  for (const DType compute : {DType::f32, DType::bf16}) {
    set_threads(1);
    const auto expected = to_floats(read_whole(model, ids, causal_pass(compute)));
    for (const int count : {2, 3}) {
      set_threads(count);
      EXPECT_EQ(to_floats(read_whole(model, ids, causal_pass(compute))), expected) << count;
    }
  }
}

TEST_P(ReadingTest, SeesNothingBeforeTheWindowOrAfterItself) {
  Spec spec = small();
  spec.decoder->layers = 1;  // the windows of several layers add up
  spec.decoder->attention.windows = {10};
  const Transformer model = made(validated(spec));
  const Tensor ids = some_ids({1, kTokens}, spec.vocabulary);
  const Tensor before = read_whole(model, ids, causal_pass());
  constexpr int64_t kChanged = 20;
  int32_t& changed = ids.data_as<int32_t>()[kChanged];
  changed = (changed + 1) % 37;
  const Tensor after = read_whole(model, ids, causal_pass());
  for (int64_t t = 0; t < kTokens; ++t)
    EXPECT_EQ(row(after, t) != row(before, t), t >= kChanged && t < kChanged + 10) << t;
}

}  // namespace
}  // namespace fovea::model

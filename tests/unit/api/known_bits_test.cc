// Checks the bits of a short training run and of a text generated afterwards. The constants hold
// for every CPU of a class (numeric_class), any number of threads, every compiler and C library.
//
// A change that intentionally changes bits must update kKnown: the failing test prints the new
// values. Run it on one machine, paste the values, and check them on others.

#include <gtest/gtest.h>

#include <map>

#include "base/hash.h"
#include "base/threads.h"
#include "fovea/generate.h"
#include "kernels/isa.h"
#include "support/runs.h"

namespace fovea {
namespace {

struct Bits {
  std::string weights;  // XXH3 of state.safetensors: weights and moments after 24 steps
  std::string text;     // XXH3 of generated text, with weights in fp32, int8 and int4
  bool operator==(const Bits&) const = default;
};

void PrintTo(const Bits& bits, std::ostream* out) {
  *out << "{\"" << bits.weights << "\", \"" << bits.text << "\"}";
}

// The expected hashes by position encoding, precision of the products and class of the CPU.
const std::map<std::string, Bits> kKnown = {
    {"rotary fp32 common", {"1b0efec223ac7e37", "119d1eb77694d890"}},
    {"rotary bf16 common", {"948966b2718698a4", "119d1eb77694d890"}},
    {"rotary bf16 amx", {"d22a62fd2a0bbbe2", "119d1eb77694d890"}},
    {"sinusoidal fp32 common", {"2b181008e2868d59", "3ee33499e16f167b"}},
    {"sinusoidal bf16 common", {"a4daf84643cc76be", "3ee33499e16f167b"}},
    {"sinusoidal bf16 amx", {"c359c8e7fe140601", "3ee33499e16f167b"}},
};

Spec spec_with(PositionKind positions) {
  Spec spec = small_spec(0.1f);
  spec.width = 32;
  spec.context = 32;
  spec.decoder->position.kind = positions;
  spec.decoder->norm.kind = positions == PositionKind::rotary ? NormKind::rms : NormKind::layer;
  spec.decoder->ffn.gated = positions == PositionKind::rotary;
  return spec;
}

// Returns the hashes of a run with a cosine schedule, dropout, clipping, two passes per step and a
// sample at the end.
Bits computed(PositionKind positions, Precision precision) {
  const Runs runs;
  TrainOptions options = runs.options("out");
  options.steps = 24;
  options.accumulate = 2;
  options.precision = precision;
  options.learning_rate = 1e-2;
  options.evaluate_every = 12;
  options.sample_tokens = 40;
  std::string text;
  train(spec_with(positions), options, {}, [&](const TrainProgress& progress) {
    text += progress.sample;
    return true;
  });
  GenerateOptions generation;
  generation.max_tokens = 40;
  for (const auto weights : {WeightPrecision::full, WeightPrecision::int8, WeightPrecision::int4}) {
    const Model model = Model::open(options.out, nullptr, weights);
    text += "|" + generate(model, "the ", generation)[0].text;
  }
  return {hash_text(hash_bytes(state_bytes(options, options.steps))), hash_text(hash_bytes(text))};
}

class KnownBits : public testing::TestWithParam<std::string> {
 protected:
  ~KnownBits() override {
    set_thread_count(threads_);
    use_isa("auto");
  }
  const int threads_ = thread_count();
};

// Runs with one thread, then with two.
TEST_P(KnownBits, MatchAfterAShortTraining) {
  use_isa(GetParam());
  int threads = 1;
  for (const auto& [name, positions] :
       {std::pair("rotary", PositionKind::rotary), {"sinusoidal", PositionKind::sinusoidal}}) {
    for (const auto& [precision, dtype] :
         {std::pair(Precision::fp32, DType::f32), {Precision::bf16, DType::bf16}}) {
      set_thread_count(threads);
      const std::string key =
          std::string(name) + " " + std::string(name_of(dtype)) + " " + numeric_class(dtype);
      EXPECT_EQ(computed(positions, precision), kKnown.at(key)) << key << ", " << threads;
      threads = 3 - threads;
    }
    threads = 3 - threads;
  }
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, KnownBits, testing::ValuesIn(testable_isas()),
                         [](const auto& isa) {
                           std::string name = isa.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace fovea

// Measures tiled attention with typical shapes: milliseconds, and GFLOP/s that count only visible
// pairs of query and key (4 D operations per pair forward, 10 D backward).

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <vector>

#include "base/threads.h"
#include "fovea/core/random.h"
#include "kernels/isa.h"
#include "kernels/kernels.h"

namespace {

using namespace fovea;

struct Case {
  const char* name;
  int64_t batch, heads, queries, keys, width;
  float dropout;
};

constexpr Case kCases[] = {
    {"nano", 12, 4, 64, 64, 32, 0},
    {"baby", 16, 6, 256, 256, 64, 0},
    {"baby, dropout", 16, 6, 256, 256, 64, 0.2f},
    {"gpt2", 1, 12, 1024, 1024, 64, 0},
    {"long", 1, 1, 16384, 16384, 64, 0},
    {"decode", 1, 12, 1, 1024, 64, 0},
};

// Returns the seconds of the fastest of several runs: other programs can only slow a run down.
template <class Body>
double seconds(Body body) {
  using Clock = std::chrono::steady_clock;
  double best = 1e9, spent = 0;
  for (int run = 0; run < 3 || (spent < 0.3 && run < 1000); ++run) {
    const auto begin = Clock::now();
    body();
    const double taken = std::chrono::duration<double>(Clock::now() - begin).count();
    best = std::min(best, taken);
    spent += taken;
  }
  return best;
}

std::vector<float> random_floats(int64_t count, uint64_t seed) {
  Random random(seed, Stream::init);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = random.normal();
  return values;
}

void measure(const Kernels& kernels, const Case& of) {
  AttentionShape shape;
  shape.batch = of.batch;
  shape.queries = of.queries;
  shape.keys = shape.capacity = of.keys;
  shape.heads = shape.kv_heads = of.heads;
  shape.width = of.width;
  shape.scale = 1.0f / std::sqrt(static_cast<float>(of.width));
  shape.mask.causal = true;
  shape.mask.first_query = of.keys - of.queries;
  shape.dropout.probability = of.dropout;
  const int64_t rows = of.batch * of.queries * of.heads;
  const int64_t keys = of.batch * of.keys * of.heads;
  auto q = random_floats(rows * of.width, 1), dy = random_floats(rows * of.width, 2);
  auto k = random_floats(keys * of.width, 3), v = random_floats(keys * of.width, 4);
  auto y = q, lse = random_floats(rows, 5), dq = q, dk = k, dv = v;
  const double forward = seconds([&] {
    kernels.attention({y.data()}, {lse.data()}, {q.data()}, {k.data()}, {v.data()}, shape);
  });
  const double backward = seconds([&] {
    kernels.attention_backward({dq.data()}, {dk.data()}, {dv.data()}, {}, {dy.data()}, {q.data()},
                               {k.data()}, {v.data()}, {y.data()}, {lse.data()}, shape);
  });
  const double seen = static_cast<double>(rows) *
                      (static_cast<double>(of.keys) - static_cast<double>(of.queries - 1) / 2);
  const double work = seen * static_cast<double>(of.width) * 1e-9;
  fmt::print("{:14} forward {:9.3f} ms {:6.1f} GFLOP/s   backward {:9.3f} ms {:6.1f} GFLOP/s\n",
             of.name, forward * 1e3, 4 * work / forward, backward * 1e3, 10 * work / backward);
}

}  // namespace

// With an argument, measures only the case of that name.
int main(int argc, char** argv) {
  const Kernels& kernels = kernels_for(DType::f32);
  for (const std::string& isa : available_isas()) {
    use_isa(isa);
    fmt::print("{}, {} threads\n", isa, thread_count());
    for (const Case& of : kCases)
      if (argc < 2 || std::string(argv[1]) == of.name) measure(kernels, of);
  }
}

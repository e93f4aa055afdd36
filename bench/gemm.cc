// Our fp32 product beside oneDNN's, on the shapes of a GPT's training step and of decoding:
// bench_gemm [filter]

#include <immintrin.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <dnnl.hpp>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "base/threads.h"
#include "kernels/kernels.h"

namespace {

using fovea::GemmShape;

// One thread is timed by the processor time that it got, which other programs disturb less; a team
// by the clock.
double now() {
  timespec time{};
  clock_gettime(fovea::thread_count() == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Seconds of each one's fastest call of many, taken in turn: those that nothing else on the machine
// disturbed.
std::vector<double> seconds(const std::vector<std::function<void()>>& calls) {
  std::vector<double> best(calls.size(), 1e9);
  double total = 0;
  for (int round = 0; round < 4 || (total < 1 && round < 3000); ++round) {
    for (size_t i = 0; i < calls.size(); ++i) {
      const double begin = now();
      calls[i]();
      const double time = now() - begin;
      total += time;
      if (round > 0) best[i] = std::min(best[i], time);
    }
  }
  return best;
}

// On cache lines, as a Tensor's elements are.
class Floats {
 public:
  explicit Floats(int64_t size)
      : data_(static_cast<float*>(
                  std::aligned_alloc(64, (static_cast<size_t>(size) * 4 + 63) / 64 * 64)),
              std::free) {
    std::minstd_rand generator(1);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (int64_t i = 0; i < size; ++i) data_.get()[i] = uniform(generator);
  }
  float* data() const { return data_.get(); }

 private:
  std::unique_ptr<float, void (*)(void*)> data_;
};

// 16 independent chains on every thread: more than latency (4) times throughput (2).
__attribute__((target("avx512f"))) void multiply_add_loop(int64_t rounds) {
  __m512 sums[16], x = _mm512_set1_ps(0.5f);
  for (__m512& sum : sums) sum = x;
  for (int64_t i = 0; i < rounds; ++i) {
    for (__m512& sum : sums) sum = _mm512_fmadd_ps(sum, x, x);
    __asm__ volatile("" : "+v"(x));
  }
  for (__m512& sum : sums) __asm__ volatile("" ::"v"(sum));
}

__attribute__((target("avx2,fma"))) void multiply_add_loop_256(int64_t rounds) {
  __m256 sums[12], x = _mm256_set1_ps(0.5f);
  for (__m256& sum : sums) sum = x;
  for (int64_t i = 0; i < rounds; ++i) {
    for (__m256& sum : sums) sum = _mm256_fmadd_ps(sum, x, x);
    __asm__ volatile("" : "+x"(x));
  }
  for (__m256& sum : sums) __asm__ volatile("" ::"x"(sum));
}

double measured_peak() {
  constexpr int64_t kRounds = 1 << 20;
  const bool wide = fovea::active_isa() != "avx2";
  const double time = seconds({[&] {
    fovea::parallel_for(fovea::thread_count(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        wide ? multiply_add_loop(kRounds) : multiply_add_loop_256(kRounds);
    });
  }})[0];
  const double flops_per_round = 2 * (wide ? 16 * 16 : 12 * 8);
  return fovea::thread_count() * static_cast<double>(kRounds) * flops_per_round / time * 1e-9;
}

// One cached oneDNN primitive over plain row-major arrays.
class OneDnn {
 public:
  OneDnn(const GemmShape& s, float* c, float* a, float* b)
      : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
    using Memory = dnnl::memory;
    const auto layout = [](int64_t rows, int64_t columns, bool transposed) {
      return Memory::desc({rows, columns}, Memory::data_type::f32,
                          transposed ? Memory::format_tag::ba : Memory::format_tag::ab);
    };
    const auto la = layout(s.m, s.k, s.transpose_a), lb = layout(s.k, s.n, s.transpose_b),
               lc = layout(s.m, s.n, false);
    matmul_ = dnnl::matmul(dnnl::matmul::primitive_desc(dnnl::matmul::desc(la, lb, lc), engine_));
    arguments_ = {{DNNL_ARG_SRC, Memory(la, engine_, a)},
                  {DNNL_ARG_WEIGHTS, Memory(lb, engine_, b)},
                  {DNNL_ARG_DST, Memory(lc, engine_, c)}};
  }
  void run() {
    matmul_.execute(stream_, arguments_);
    stream_.wait();
  }

 private:
  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::matmul matmul_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

void compare(const std::string& name, const GemmShape& s, double peak) {
  const Floats a(s.m * s.k), b(s.k * s.n), c(s.m * s.n);
  OneDnn theirs(s, c.data(), a.data(), b.data());
  const double flops =
      2e-9 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
  const std::vector<double> times =
      seconds({[&] { fovea::cpu_kernels().gemm({c.data()}, {a.data()}, {b.data()}, {}, s); },
               [&] { theirs.run(); }});
  const double our_time = times[0], their_time = times[1];
  std::printf("%-22s %6ld %6ld %6ld %s%s %9.1f %9.1f %6.0f%% %8.0f%%", name.c_str(), s.m, s.n, s.k,
              s.transpose_a ? "t" : "n", s.transpose_b ? "t" : "n", flops / our_time,
              flops / their_time, 100 * their_time / our_time, 100 * flops / our_time / peak);
  const double bytes = 4e-9 * static_cast<double>(s.n) * static_cast<double>(s.k);
  if (s.m == 1)
    std::printf("  %5.1f GB/s of weights, oneDNN %5.1f", bytes / our_time, bytes / their_time);
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string filter = argc > 1 ? argv[1] : "";
  const double peak = measured_peak();
  std::printf("%d threads, %s, peak %.0f GFLOP/s\n", fovea::thread_count(),
              fovea::active_isa().c_str(), peak);
  std::printf("%-22s %6s %6s %6s    %9s %9s %7s %9s\n", "GFLOP/s", "m", "n", "k", "ours", "oneDNN",
              "ratio", "of peak");
  struct Layer {
    const char* model;
    int64_t tokens, outputs, inputs;
  };
  const Layer layers[] = {
      {"nano", 768, 128, 128},   {"nano", 768, 512, 128},   {"nano", 768, 128, 512},
      {"nano", 768, 65, 128},    {"baby", 4096, 384, 384},  {"baby", 4096, 1536, 384},
      {"baby", 4096, 384, 1536}, {"baby", 4096, 65, 384},   {"gpt2", 1024, 768, 768},
      {"gpt2", 1024, 3072, 768}, {"gpt2", 1024, 768, 3072}, {"gpt2", 1024, 50257, 768},
      {"decode", 1, 1536, 384},  {"decode", 1, 3072, 768},  {"decode", 1, 50257, 768},
      {"decode8", 8, 1536, 384}, {"decode8", 8, 3072, 768}, {"decode8", 8, 50257, 768}};
  for (const auto& [model, tokens, outputs, inputs] : layers) {
    const std::string name = model;
    if (name.find(filter) == std::string::npos) continue;
    compare(name + " forward", {tokens, outputs, inputs, false, true}, peak);
    if (name.starts_with("decode")) continue;
    compare(name + " input gradient", {tokens, inputs, outputs, false, false}, peak);
    compare(name + " weight gradient", {outputs, inputs, tokens, true, false}, peak);
  }
}

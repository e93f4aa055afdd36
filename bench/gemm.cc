// Measures matrix products of fovea and, if it is installed, of oneDNN, in fp32 and bf16, with the
// shapes of a GPT's training step, prompt and decoding. With an argument, measures only the
// shapes whose names contain it.

#include <immintrin.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <memory>
#include <random>
#include <unordered_map>
#include <vector>

#if __has_include(<dnnl.hpp>)
#define FOVEA_BENCH_ONEDNN 1
#include <dnnl.hpp>
#endif

#include "base/threads.h"
#include "kernels/isa.h"
#include "kernels/kernels.h"

namespace {

using fovea::GemmShape;

// Returns the processor time of a single thread, which other programs disturb less, or the elapsed
// time if there are several threads.
double now() {
  timespec time{};
  clock_gettime(fovea::thread_count() == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Returns the time of the fastest call of each function in seconds. The calls alternate, so that
// disturbances affect all functions.
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

// Numbers of a dtype, aligned to cache lines like the elements of a Tensor.
class Numbers {
 public:
  Numbers(int64_t size, fovea::DType dtype)
      : dtype_(dtype),
        data_(std::aligned_alloc(64, (static_cast<size_t>(size) * 4 + 63) / 64 * 64), std::free) {
    std::minstd_rand generator(1);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (int64_t i = 0; i < size; ++i) {
      const float value = uniform(generator);
      if (dtype == fovea::DType::bf16)
        static_cast<fovea::bf16*>(data_.get())[i] = fovea::narrow(value);
      else
        static_cast<float*>(data_.get())[i] = value;
    }
  }
  void* data() const { return data_.get(); }
  fovea::In in() const { return {data_.get(), dtype_}; }
  fovea::Out out() const { return {data_.get(), dtype_}; }

 private:
  fovea::DType dtype_;
  std::unique_ptr<void, void (*)(void*)> data_;
};

// Runs 16 independent chains of multiply-adds, more than latency (4 cycles) times throughput (2 per
// cycle), so that the peak is reached.
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
  const bool wide = fovea::instruction_set() != "avx2";
  const double time = seconds({[&] {
    fovea::parallel_for(fovea::thread_count(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        wide ? multiply_add_loop(kRounds) : multiply_add_loop_256(kRounds);
    });
  }})[0];
  const double flops_per_round = 2 * (wide ? 16 * 16 : 12 * 8);
  return fovea::thread_count() * static_cast<double>(kRounds) * flops_per_round / time * 1e-9;
}

#ifdef FOVEA_BENCH_ONEDNN
// A cached oneDNN primitive on plain row-major arrays.
class OneDnn {
 public:
  OneDnn(const GemmShape& s, fovea::DType dtype, const Numbers& c, fovea::DType c_dtype,
         const Numbers& a, const Numbers& b)
      : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
    using Memory = dnnl::memory;
    const auto layout = [](int64_t rows, int64_t columns, fovea::DType type, bool transposed) {
      return Memory::desc(
          {rows, columns},
          type == fovea::DType::bf16 ? Memory::data_type::bf16 : Memory::data_type::f32,
          transposed ? Memory::format_tag::ba : Memory::format_tag::ab);
    };
    const auto la = layout(s.m, s.k, dtype, s.transpose_a),
               lb = layout(s.k, s.n, dtype, s.transpose_b), lc = layout(s.m, s.n, c_dtype, false);
    matmul_ = dnnl::matmul(dnnl::matmul::primitive_desc(dnnl::matmul::desc(la, lb, lc), engine_));
    arguments_ = {{DNNL_ARG_SRC, Memory(la, engine_, a.data())},
                  {DNNL_ARG_WEIGHTS, Memory(lb, engine_, b.data())},
                  {DNNL_ARG_DST, Memory(lc, engine_, c.data())}};
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
#endif

// Measures a product with fovea and, if oneDNN is installed, with oneDNN; prints a line. The result
// for a transposed a (a weight gradient) is fp32; other results have the dtype of the operands.
void compare(const std::string& name, const GemmShape& s, fovea::DType dtype, double peak) {
  const fovea::DType c_dtype = s.transpose_a ? fovea::DType::f32 : dtype;
  const Numbers a(s.m * s.k, dtype), b(s.k * s.n, dtype), c(s.m * s.n, c_dtype);
  const double flops =
      2e-9 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
  std::vector<std::function<void()>> calls = {
      [&] { fovea::cpu_kernels().gemm(c.out(), a.in(), b.in(), {}, s); }};
#ifdef FOVEA_BENCH_ONEDNN
  OneDnn theirs(s, dtype, c, c_dtype, a, b);
  calls.emplace_back([&] { theirs.run(); });
#endif
  const std::vector<double> times = seconds(calls);
  std::printf("%-22s %s %6ld %6ld %6ld %s%s %9.1f %8.0f%%", name.c_str(),
              std::string(fovea::name_of(dtype)).c_str(), s.m, s.n, s.k, s.transpose_a ? "t" : "n",
              s.transpose_b ? "t" : "n", flops / times[0], 100 * flops / times[0] / peak);
  if (times.size() > 1) std::printf(" %9.1f %6.0f%%", flops / times[1], 100 * times[1] / times[0]);
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string filter = argc > 1 ? argv[1] : "";
  const double peak = measured_peak();
  std::printf("%d threads, %s, peak %.0f GFLOP/s\n", fovea::thread_count(),
              fovea::instruction_set().c_str(), peak);
  std::printf("%-22s %4s %6s %6s %6s    %9s %9s %9s %7s\n", "GFLOP/s", "", "m", "n", "k", "ours",
              "of peak", "oneDNN", "ratio");
  struct Layer {
    const char* model;
    int64_t tokens, outputs, inputs, units;
  };
  const Layer layers[] = {
      {"nano", 768, 128, 128, 12},   {"nano", 768, 512, 128, 12},   {"nano", 768, 128, 512, 12},
      {"nano", 768, 65, 128, 12},    {"baby", 4096, 384, 384, 16},  {"baby", 4096, 1536, 384, 16},
      {"baby", 4096, 384, 1536, 16}, {"baby", 4096, 65, 384, 16},   {"gpt2", 1024, 768, 768, 1},
      {"gpt2", 1024, 3072, 768, 1},  {"gpt2", 1024, 768, 3072, 1},  {"gpt2", 1024, 50257, 768, 1},
      {"prompt", 512, 576, 576, 1},  {"prompt", 512, 1536, 576, 1}, {"prompt", 512, 576, 1536, 1},
      {"decode", 1, 1536, 384, 1},   {"decode8", 8, 3072, 768, 1}};
  for (const auto& [model, tokens, outputs, inputs, units] : layers) {
    const std::string name = model;
    if (name.find(filter) == std::string::npos) continue;
    for (const fovea::DType dtype : {fovea::DType::f32, fovea::DType::bf16}) {
      compare(name + " forward", {tokens, outputs, inputs, false, true}, dtype, peak);
      if (name == "prompt" || name.starts_with("decode")) continue;
      compare(name + " input gradient", {tokens, inputs, outputs, false, false}, dtype, peak);
      compare(name + " weight gradient", {outputs, inputs, tokens, true, false, {units}}, dtype,
              peak);
    }
  }
}

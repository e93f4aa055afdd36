// Measures the kernels of a device: products with the shapes of a GPT's training step, prompt and
// decoding, attention, and the bandwidth of memory. Prints a JSON object for each.
//
// usage: bench_device [DEVICE], such as cuda; default: cpu

#include <chrono>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>

#include "fovea/core/machine.h"
#include "fovea/core/random.h"
#include "tensor/tensor.h"

namespace {

using namespace fovea;

Tensor noise(Shape shape, DType dtype) {
  Random random(1, Stream::init);
  std::vector<float> numbers(static_cast<size_t>(elements(shape)));
  for (float& each : numbers) each = 2 * random.uniform() - 1;
  const Tensor x = tensor_of(numbers, std::move(shape));
  return (dtype == DType::f32 ? x : convert(x, dtype)).to(default_device());
}

// The shortest time of a call, of several in a queue, in seconds.
double seconds(const Tensor& result, const std::function<void()>& call) {
  constexpr int kRounds = 5, kCalls = 10;
  double best = 1e9;
  for (int round = -1; round < kRounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kCalls; ++i) call();
    (void)kernels(result).sum(result, 1);  // waits
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    if (round >= 0) best = std::min(best, took.count() / kCalls);
  }
  return best;
}

void show(nlohmann::ordered_json line, double amount, const char* unit, double took) {
  line["microseconds"] = 1e6 * took;
  line[unit] = amount / took;
  std::puts(line.dump().c_str());
}

struct Product {
  const char* what;
  int64_t m, n, k;
  bool transpose_a, transpose_b;
};
// Of GPT-2 (124M) with 8 x 1024 tokens, and of a Llama of 1B.
constexpr Product kProducts[] = {{"query, key, value", 8192, 2304, 768, false, true},
                                 {"feed-forward up", 8192, 3072, 768, false, true},
                                 {"feed-forward down", 8192, 768, 3072, false, true},
                                 {"head", 8192, 50304, 768, false, true},
                                 {"gradient of weights", 3072, 768, 8192, true, false},
                                 {"gradient of input", 8192, 768, 3072, false, false},
                                 {"prompt of 512 tokens", 512, 8192, 2048, false, true},
                                 {"decoding", 1, 8192, 2048, false, true}};

void measure_products(DType dtype) {
  for (const auto& [what, m, n, k, transpose_a, transpose_b] : kProducts) {
    const Tensor a = noise({m, k}, dtype), b = noise({k, n}, dtype), c = noise({m, n}, dtype);
    const GemmShape shape = {m, n, k, transpose_a, transpose_b};
    const double took = seconds(c, [&] { kernels(a).gemm(c, a, b, {}, shape); });
    const double operations = 2 * static_cast<double>(m) * static_cast<double>(n) * double(k);
    show({{"product", what}, {"dtype", name_of(dtype)}, {"m", m}, {"n", n}, {"k", k}},
         1e-12 * operations, "teraflops", took);
  }
}

void measure_attention(DType dtype, int64_t tokens) {
  constexpr int64_t kHeads = 12, kWidth = 64;
  const int64_t batch = 8192 / tokens;
  const Shape heads = {batch, tokens, kHeads, kWidth};
  const Tensor q = noise(heads, dtype), k = noise(heads, dtype), v = noise(heads, dtype),
               dy = noise(heads, dtype), y = noise(heads, dtype), dq = noise(heads, dtype),
               dk = noise(heads, dtype), dv = noise(heads, dtype);
  const Tensor lse = noise({batch, kHeads, tokens}, DType::f32);
  AttentionShape shape;
  shape.batch = batch;
  shape.queries = shape.keys = shape.capacity = tokens;
  shape.heads = shape.kv_heads = kHeads;
  shape.width = kWidth;
  shape.scale = 0.125f;
  shape.mask.causal = true;
  const double products = 2.0 * double(batch * kHeads * kWidth) * double(tokens) * double(tokens);
  const nlohmann::ordered_json line = {{"dtype", name_of(dtype)}, {"tokens", tokens}};
  nlohmann::ordered_json forward = {{"attention", "forward"}},
                         backward = {{"attention", "backward"}};
  forward.update(line), backward.update(line);
  show(forward, 1e-12 * products, "teraflops",
       seconds(y, [&] { kernels(q).attention(y, lse, q, k, v, shape); }));
  show(backward, 2.5e-12 * products, "teraflops", seconds(dq, [&] {
         kernels(q).attention_backward(dq, dk, dv, {}, dy, q, k, v, y, lse, shape);
       }));
}

void measure_memory() {
  constexpr int64_t kElements = int64_t{1} << 26;
  const Tensor x = empty({kElements}).to(default_device()),
               y = empty({kElements}).to(default_device());
  show({{"memory", "y = x * 2"}}, 8e-9 * kElements, "gigabytes_per_second",
       seconds(y, [&] { kernels(x).scale(y, x, 2, kElements); }));
}

}  // namespace

int main(int count, char** arguments) {
  use_device(count > 1 ? arguments[1] : "cpu");
  measure_memory();
  for (const DType dtype : {DType::bf16, DType::f32}) {
    measure_products(dtype);
    for (const int64_t tokens : {1024, 4096}) measure_attention(dtype, tokens);
  }
}

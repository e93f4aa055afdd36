// Measures products with packed weights, as in decoding and in reading a prompt: bytes of weights
// and operations per second, and the read bandwidth of the machine. Usage: bench_packed [rows
// [format [megabytes]]], where the megabytes are those of all copies of a matrix

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <random>
#include <vector>

#include "base/half.h"
#include "base/threads.h"
#include "kernels/isa.h"
#include "kernels/layout/blocks.h"
#include "kernels/layout/packed.h"
#include "plan/speed.h"
#include "tensor/tensor.h"

namespace {

using namespace fovea;

// Returns the processor time of a single thread, which other programs disturb less, or the elapsed
// time if there are several threads.
double now() {
  timespec time{};
  clock_gettime(thread_count() == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Packs random blocks; their scales do not matter here.
void pack_random_blocks(const PackedMatrix& w, void* panels, void* scales) {
  const int64_t each = w.width / block_format(w.format).block;
  std::minstd_rand generator(1);
  std::vector<WeightBlock> blocks(static_cast<size_t>(w.outputs * each), WeightBlock{});
  const unsigned numbers = 1u << (block_format(w.format).low + block_format(w.format).high);
  for (WeightBlock& block : blocks) {
    for (uint8_t& number : block.numbers) number = static_cast<uint8_t>(generator() % numbers);
    block.scale = block.minimum = narrow_to_half(0.01f);
    for (int8_t& scale : block.scales) scale = static_cast<int8_t>(generator() % 32);
  }
  std::vector<const uint8_t*> begins;
  for (int64_t n = 0; n < w.outputs; ++n)
    begins.push_back(reinterpret_cast<const uint8_t*>(&blocks[static_cast<size_t>(n * each)]));
  const BlockReader copied = {sizeof(WeightBlock), [](const uint8_t* from, WeightBlock& to) {
                                std::memcpy(&to, from, sizeof to);
                              }};
  pack_panels(w, {begins, copied}, 0, panels_of(w), panels, scales);
}

// Copies of a matrix that together exceed the CPU's caches and are read in turn, like a model's
// layers.
struct Weights {
  std::vector<Tensor> panels, scales;
  std::vector<PackedMatrix> matrices;

  Weights(WeightFormat format, const Tensor& matrix, size_t bytes) {
    PackedMatrix w;
    w.format = format;
    w.outputs = matrix.dim(0);
    w.width = matrix.dim(1);
    w.group = 32;
    const int64_t size = panels_of(w) * panel_bytes(w);
    for (size_t total = 0; matrices.empty() || total < bytes; total += static_cast<size_t>(size)) {
      panels.push_back(empty({size}, DType::u8));
      scales.push_back(empty({scale_bytes(w)}, DType::u8));
      w.panels = panels.back().data();
      w.scales = scales.back().data_as<uint16_t>();
      if (matrices.empty()) {
        if (is_block_type(format))
          pack_random_blocks(w, panels.back().data(), scales.back().data());
        else
          pack(w, matrix, panels.back().data(), scales.back().data_as<uint16_t>());
      } else {
        std::memcpy(panels.back().data(), panels.front().data(), static_cast<size_t>(size));
        std::memcpy(scales.back().data(), scales.front().data(),
                    static_cast<size_t>(scale_bytes(w)));
      }
      matrices.push_back(w);
    }
  }
};

void measure(WeightFormat format, const Tensor& matrix, int64_t rows, size_t bytes) {
  const Weights weights(format, matrix, bytes);
  const Tensor x = full({rows, matrix.dim(1)}, 0.5), y = empty({rows, matrix.dim(0)});
  const double operations = 2.0 * static_cast<double>(rows * matrix.size());
  double best = 1e9;
  for (int round = 0; round < 8; ++round) {
    const double begin = now();
    for (const PackedMatrix& w : weights.matrices) {
      const PackedProduct product{y, {}, w};
      kernels(x).packed_linear({&product, 1}, x, rows);
    }
    best = std::min(best, (now() - begin) / static_cast<double>(weights.matrices.size()));
  }
  const PackedMatrix& w = weights.matrices[0];
  const auto size = static_cast<double>(panels_of(w) * panel_bytes(w) + scale_bytes(w));
  std::printf("%-5s %5ld x %5ld  rows %4ld  %9.2f us  %6.1f GB/s  %7.1f GOP/s\n", name_of(format),
              static_cast<long>(w.outputs), static_cast<long>(w.width), static_cast<long>(rows),
              best * 1e6, size / best / 1e9, operations / best / 1e9);
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  std::printf("%s, %d threads, reads %.1f GB/s\n", instruction_set().c_str(), thread_count(),
              train::measured_bandwidth(thread_count(), 0.3) / 1e9);
  std::vector<int64_t> counts = {1, 4, 16, 64, 512};
  if (argc > 1) counts = {std::atol(argv[1])};
  constexpr WeightFormat kFormats[] = {WeightFormat::f32,  WeightFormat::bf16, WeightFormat::int8,
                                       WeightFormat::int4, WeightFormat::q4_k, WeightFormat::q5_k,
                                       WeightFormat::q6_k};
  for (const auto& [outputs, width] : {std::pair{576, 576},
                                       {1536, 576},
                                       {576, 1536},
                                       {32000, 576},
                                       {384, 2048},
                                       {5632, 2048},
                                       {2048, 5632}}) {
    std::vector<float> values(static_cast<size_t>(outputs) * static_cast<size_t>(width));
    std::minstd_rand generator(1);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (float& value : values) value = uniform(generator);
    const Tensor matrix = tensor_of(values, {outputs, width});
    for (const int64_t rows : counts) {
      for (const WeightFormat format : kFormats) {
        if (argc > 2 && std::strcmp(argv[2], name_of(format)) != 0) continue;
        if (is_block_type(format) && width % block_format(format).block != 0) continue;
        const int64_t megabytes = argc > 3 ? std::atol(argv[3]) : rows == 1 ? 160 : 16;
        measure(format, matrix, rows, static_cast<size_t>(megabytes) << 20);
      }
    }
  }
}

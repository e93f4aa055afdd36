#include "plan/speed.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/threads.h"
#include "kernels/packed.h"
#include "tensor/tensor.h"

namespace fovea {
namespace {

constexpr int64_t kSize = 768;  // large enough to run at full rate, small enough for the caches
constexpr double kProduct = 2.0 * kSize * kSize * kSize;  // operations

// Calls `run` repeatedly and returns `amount` divided by the shortest time of a call.
template <class Run>
double best_rate(double amount, double seconds, const Run& run) {
  run();
  double best = 0, spent = 0;
  while (spent < seconds) {
    const auto start = std::chrono::steady_clock::now();
    run();
    const double took =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = std::max(best, amount / took);
    spent += took;
  }
  return best;
}

// Memory that exceeds the caches, read in pieces.
class Block {
 public:
  Block() { std::memset(block_.data(), 1, static_cast<size_t>(kPieces * kPieceBytes)); }

  void read(int threads) {
    team().run(
        kPieces, threads,
        [](void* block, int64_t piece) { static_cast<Block*>(block)->read_piece(piece); }, this);
  }
  static constexpr double kBytes = 256.0 * (1 << 20);

 private:
  static constexpr int64_t kPieces = 256, kPieceBytes = 1 << 20;
  // Eight streams in turn, as a product reads the panels of its weights: with a single stream, the
  // latency of the memory limits the rate.
  static constexpr int64_t kStreams = 8, kLine = 8;  // words of a cache line

  void read_piece(int64_t piece) const {
    constexpr int64_t kWords = kPieceBytes / 8 / kStreams;
    const uint64_t* words = static_cast<const uint64_t*>(block_.data()) + piece * kPieceBytes / 8;
    uint64_t sum[kLine] = {};
    for (int64_t i = 0; i < kWords; i += kLine)
      for (int64_t stream = 0; stream < kStreams; ++stream)
        for (int64_t j = 0; j < kLine; ++j) sum[j] += words[stream * kWords + i + j];
    for (const uint64_t part : sum) __asm__ volatile("" ::"r"(part));  // keeps the loop
  }

  Tensor block_ = empty({kPieces * kPieceBytes}, DType::u8);
};

}  // namespace

double measured_flops(DType dtype, double seconds) {
  const Tensor a = full({kSize, kSize}, 0.5, dtype), b = full({kSize, kSize}, 0.25, dtype),
               c = empty({kSize, kSize});
  return best_rate(kProduct, seconds, [&] {
    kernels(a).gemm(c, a, b, {}, {kSize, kSize, kSize, false, true});
  });
}

double measured_int8_operations(double seconds) {
  PackedMatrix weight{.format = WeightFormat::int8, .outputs = kSize, .width = kSize};
  weight.group = group_size(0, kSize);
  const Tensor panels = empty({panels_of(weight) * panel_bytes(weight)}, DType::u8),
               scales = empty({scale_bytes(weight)}, DType::u8);
  pack(weight, full({kSize, kSize}, 0.25), panels.data(), scales.data_as<uint16_t>());
  weight.panels = panels.data();
  weight.scales = scales.data_as<uint16_t>();
  const Tensor x = full({kSize, kSize}, 0.5), y = empty({kSize, kSize});
  const PackedProduct product{y, {}, weight};
  return best_rate(kProduct, seconds, [&] { kernels(x).packed_linear({&product, 1}, x, kSize); });
}

double measured_bandwidth(int threads, double seconds) {
  Block block;
  return best_rate(Block::kBytes, seconds, [&] { block.read(threads); });
}

}  // namespace fovea

#include "plan/speed.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/threads.h"
#include "kernels/layout/packed.h"
#include "tensor/tensor.h"

namespace fovea::train {
namespace {

constexpr int64_t kSide = 768;  // large enough to run at full rate, small enough for the caches
constexpr double operations(int64_t side) {
  const auto length = static_cast<double>(side);
  return 2 * length * length * length;
}
constexpr double kOperations = operations(kSide);

// Calls `run` repeatedly and returns `amount` divided by the shortest time of a call.
template <class Run>
double best_rate(double amount, double seconds, const Run& run) {
  run();
  double best = 0, spent = 0;
  do {
    const auto start = std::chrono::steady_clock::now();
    run();
    const double took =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = std::max(best, amount / took);
    spent += took;
  } while (spent < seconds);
  return best;
}

// Memory that exceeds the caches, read in pieces.
class LargeMemory {
 public:
  LargeMemory() { std::memset(bytes_.data(), 1, static_cast<size_t>(kPieces * kPieceBytes)); }

  void read(int threads) {
    team().run(
        kPieces, threads,
        [](void* memory, int64_t piece) { static_cast<LargeMemory*>(memory)->read_piece(piece); },
        this);
  }
  static constexpr double kBytes = 256.0 * (1 << 20);

 private:
  static constexpr int64_t kPieces = 256, kPieceBytes = 1 << 20;
  // Eight streams in turn, as a product reads the panels of its weights: with a single stream, the
  // latency of the memory limits the rate.
  static constexpr int64_t kStreams = 8, kLine = 8;  // words of a cache line

  void read_piece(int64_t piece) const {
    constexpr int64_t kWords = kPieceBytes / 8 / kStreams;
    const uint64_t* words = static_cast<const uint64_t*>(bytes_.data()) + piece * kPieceBytes / 8;
    uint64_t sum[kLine] = {};
    for (int64_t i = 0; i < kWords; i += kLine)
      for (int64_t stream = 0; stream < kStreams; ++stream)
        for (int64_t j = 0; j < kLine; ++j) sum[j] += words[stream * kWords + i + j];
    for (const uint64_t part : sum) __asm__ volatile("" ::"r"(part));  // keeps the loop
  }

  Tensor bytes_ = empty({kPieces * kPieceBytes}, DType::u8);
};

}  // namespace

double measured_flops(DType dtype, double seconds) {
  const Device& device = default_device();
  const auto rate = [&](int64_t side, double spent) {
    const Tensor a = full({side, side}, 0.5, dtype).to(device),
                 b = full({side, side}, 0.25, dtype).to(device), c = empty({side, side}).to(device);
    return best_rate(operations(side), spent, [&] {
      kernels(a).gemm(c, a, b, {}, {side, side, side, false, true});
      if (&device != &cpu_device()) (void)kernels(c).sum(c, 1);  // waits
    });
  };
  if (&device == &cpu_device()) return rate(kSide, seconds);
  // Products for which a GPU takes at least a millisecond; its model is too slow for them.
  constexpr int64_t kLeastSide = 64, kMostSide = 4096;
  constexpr double kLong = 1e-3;
  int64_t side = kLeastSide;
  while (side < kMostSide && operations(side) / rate(side, 0) < kLong) side *= 2;
  return rate(side, seconds);
}

double measured_int8_operations(double seconds) {
  PackedMatrix weight{.format = WeightFormat::int8, .outputs = kSide, .width = kSide};
  weight.group = group_size(0, kSide);
  const Tensor panels = empty({panels_of(weight) * panel_bytes(weight)}, DType::u8),
               scales = empty({scale_bytes(weight)}, DType::u8);
  pack(weight, full({kSide, kSide}, 0.25), panels.data(), scales.data_as<uint16_t>());
  weight.panels = panels.data();
  weight.scales = scales.data_as<uint16_t>();
  const Tensor x = full({kSide, kSide}, 0.5), y = empty({kSide, kSide});
  const PackedProduct product{y, {}, weight};
  return best_rate(kOperations, seconds,
                   [&] { kernels(x).packed_linear({&product, 1}, x, kSide); });
}

double measured_bandwidth(int threads, double seconds) {
  LargeMemory memory;
  return best_rate(LargeMemory::kBytes, seconds, [&] { memory.read(threads); });
}

}  // namespace fovea::train

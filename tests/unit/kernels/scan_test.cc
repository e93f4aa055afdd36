#include "kernels/scan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "fovea/core/random.h"
#include "kernels/isa.h"

namespace fovea {
namespace {

std::vector<float> normal_numbers(int64_t count, uint64_t seed) {
  Random random(seed, Stream::init);
  std::vector<float> x(static_cast<size_t>(count));
  for (float& each : x) each = random.normal();
  return x;
}

template <class T>
std::vector<T> random_bytes(int64_t count, int least, int most, uint64_t seed) {
  Random random(seed, Stream::init);
  std::vector<T> x(static_cast<size_t>(count));
  const auto values = static_cast<float>(most - least + 1);
  for (T& each : x)
    each = static_cast<T>(std::min(most, least + static_cast<int>(random.uniform() * values)));
  return x;
}

// Calls `use` with the kernels of each instruction set.
template <class Use>
void on_every_isa(const Use& use) {
  for (const std::string& isa : testable_isas()) {
    SCOPED_TRACE(isa);
    use_isa(isa);
    use(scan_kernels());
  }
  use_isa("auto");
}

TEST(ScanKernels, AreThoseOfTheReferenceIfItIsInUse) {
  use_isa("reference");
  EXPECT_EQ(&scan_kernels(), &reference_scan_kernels());
  use_isa("auto");
  EXPECT_NE(&scan_kernels(), &reference_scan_kernels());
}

TEST(ScanKernels, CompareFloatsWithTheSameBitsOnEveryInstructionSet) {
  for (const int64_t width : {1, 7, 16, 31, 32, 33, 100, 384, 1000}) {
    constexpr int64_t kRows = 9;
    const std::vector<float> x = normal_numbers(kRows * width, 1), q = normal_numbers(width, 2);
    for (const auto kernel : {&ScanKernels::dots, &ScanKernels::squared_distances}) {
      std::vector<float> wanted(kRows), first;
      (reference_scan_kernels().*kernel)(wanted.data(), x.data(), kRows, width, q.data());
      on_every_isa([&](const ScanKernels& kernels) {
        std::vector<float> y(kRows);
        (kernels.*kernel)(y.data(), x.data(), kRows, width, q.data());
        for (size_t r = 0; r < y.size(); ++r)
          EXPECT_NEAR(y[r], wanted[r], 3e-6 * static_cast<double>(width + 10)) << width;
        if (first.empty()) first = y;
        EXPECT_EQ(y, first) << width;
        float alone = 0;  // a row does not depend on the others
        (kernels.*kernel)(&alone, x.data() + 5 * width, 1, width, q.data());
        EXPECT_EQ(alone, y[5]);
      });
    }
  }
}

TEST(ScanKernels, MultiplyBytesExactly) {
  for (const int64_t width :
       {int64_t{64}, int64_t{128}, int64_t{192}, int64_t{384}, int64_t{1024}, kMostScannedBytes}) {
    constexpr int64_t kRows = 5;
    for (const bool extreme : {false, true}) {
      const auto x = extreme ? std::vector<uint8_t>(static_cast<size_t>(kRows * width), 255)
                             : random_bytes<uint8_t>(kRows * width, 1, 255, 3);
      const auto q = extreme ? std::vector<int8_t>(static_cast<size_t>(width), -127)
                             : random_bytes<int8_t>(width, -127, 127, 4);
      std::vector<int32_t> wanted(kRows);
      reference_scan_kernels().byte_dots(wanted.data(), x.data(), kRows, width, q.data());
      if (extreme) {
        EXPECT_EQ(wanted[0], -127 * 127 * width);
      }
      on_every_isa([&](const ScanKernels& kernels) {
        std::vector<int32_t> y(kRows);
        kernels.byte_dots(y.data(), x.data(), kRows, width, q.data());
        EXPECT_EQ(y, wanted) << width;
      });
    }
  }
}

TEST(ScanKernels, CountTheBitsThatDiffer) {
  for (const int64_t width : {8, 16, 48, 96, 136}) {
    constexpr int64_t kRows = 7;
    const auto x = random_bytes<uint8_t>(kRows * width, 0, 255, 5);
    const auto q = random_bytes<uint8_t>(width, 0, 255, 6);
    std::vector<int32_t> wanted(kRows);
    reference_scan_kernels().bit_distances(wanted.data(), x.data(), kRows, width, q.data());
    on_every_isa([&](const ScanKernels& kernels) {
      std::vector<int32_t> y(kRows);
      kernels.bit_distances(y.data(), x.data(), kRows, width, q.data());
      EXPECT_EQ(y, wanted) << width;
      kernels.bit_distances(y.data(), q.data(), 1, width, q.data());
      EXPECT_EQ(y[0], 0);
    });
  }
}

}  // namespace
}  // namespace fovea

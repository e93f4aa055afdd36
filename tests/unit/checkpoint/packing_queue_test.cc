#include "checkpoint/packing_queue.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/threads.h"
#include "checkpoint/weight_rows.h"

namespace fovea::model {
namespace {

// Values without a pattern, from -1 to 1.
Tensor values_of(int64_t outputs, int64_t width, int64_t seed) {
  Tensor x = empty({outputs, width});
  for (int64_t i = 0; i < x.size(); ++i)
    x.data_as<float>()[i] = static_cast<float>((i * 7919 + seed * 104729) % 2003 - 1001) / 1001;
  return x;
}

PackedWeight late(const Tensor& x, WeightFormat format) {
  return PackedWeight(format, x.dim(0), x.dim(1), 32, std::make_unique<TensorRows>(x, nullptr));
}

bool equal_bytes(const void* a, const void* b, int64_t bytes) {
  return bytes == 0 || std::memcmp(a, b, static_cast<size_t>(bytes)) == 0;
}

bool equal_bytes(const PackedWeight& a, const PackedWeight& b) {
  const PackedMatrix &x = a.packed(), &y = b.packed();
  return equal_bytes(x.panels, y.panels, panels_of(x) * panel_bytes(x)) &&
         equal_bytes(x.scales, y.scales, scale_bytes(x));
}

// One matrix has several pieces of work, one has only a part of a panel, and one is empty.
TEST(PackingQueue, PacksAllMatricesLikeEachAlone) {
  const int threads = thread_count();
  for (const int count : {1, 3}) {
    set_threads(count);
    for (const WeightFormat format :
         {WeightFormat::f32, WeightFormat::bf16, WeightFormat::int8, WeightFormat::int4}) {
      PackingQueue queue;
      std::vector<Tensor> values;
      std::vector<PackedWeight> packed;
      for (const auto& [outputs, width] :
           {std::pair{1000, 2048}, {5, 64}, {0, 32}, {64, 33}, {33, 96}}) {
        values.push_back(values_of(outputs, width, std::ssize(values)));
        packed.push_back(late(values.back(), format));
        queue.add_to_pack({packed.back()}, [](int64_t bad) { EXPECT_EQ(bad, 0); });
      }
      queue.run();
      for (size_t i = 0; i < values.size(); ++i) {
        EXPECT_EQ(packed[i].rows(), nullptr) << i;
        EXPECT_TRUE(equal_bytes(packed[i], PackedWeight(values[i], format, 32))) << i;
      }
    }
  }
  set_threads(threads);
}

TEST(PackingQueue, ReportsWhatIsNotFiniteInTheOrderOfTheTensors) {
  Tensor one = values_of(40, 64, 0), other = values_of(17, 32, 1);
  one.data_as<float>()[70] = NAN;
  other.data_as<float>()[3] = INFINITY;
  other.data_as<float>()[16 * 32] = -INFINITY;
  const Tensor halves = convert(other, DType::bf16);
  PackingQueue queue;
  std::vector<int64_t> counts;
  const auto report = [&](int64_t nonfinite) { counts.push_back(nonfinite); };
  queue.add_to_pack({late(one, WeightFormat::f32), late(other, WeightFormat::int8)}, report);
  queue.add_to_count({late(values_of(3, 32, 2), WeightFormat::bf16)}, report);
  const PackedWeight counted = late(halves, WeightFormat::bf16);
  queue.add_to_count({counted}, report);
  queue.run();
  EXPECT_EQ(counts, (std::vector<int64_t>{3, 0, 2}));
  EXPECT_NE(counted.rows(), nullptr);
  queue.run();  // nothing is left
  EXPECT_EQ(counts.size(), 3U);
}

}  // namespace
}  // namespace fovea::model

#include "tensor/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "support/expect_error.h"
#include "support/second_device.h"
#include "tensor/host_values.h"

namespace fovea {
namespace {

using Floats = std::vector<float>;

Tensor counting(Shape shape) {
  Floats values(static_cast<size_t>(elements(shape)));
  std::iota(values.begin(), values.end(), 0.0f);
  return tensor_of(values, std::move(shape));
}

TEST(Shapes, CountTheirElements) {
  EXPECT_EQ(elements({}), 1);
  EXPECT_EQ(elements({2, 3, 5}), 30);
  EXPECT_EQ(elements({2, 0, 5}), 0);
  EXPECT_EQ(describe({2, 3}), "[2, 3]");
  EXPECT_EQ(describe({}), "[]");
}

TEST(Shapes, RefuseOverflow) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const size_t live = tensor_memory().live;
  for (const Shape& shape :
       {Shape{int64_t{1} << 32, int64_t{1} << 32}, Shape{kMost, 2}, Shape{kMost},
        Shape{int64_t{1} << 62}, Shape{-1}, Shape{3, -2}, Shape{-1, -1}}) {
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
      expect_error(ErrorKind::InvalidArgument, {describe(shape), "not a possible size"},
                   [&] { empty(shape, dtype); });
    }
  }
  EXPECT_EQ(tensor_memory().live, live);
}

TEST(Shapes, LargerThanMemoryAreRefusedWithoutLeaks) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer ends the program if so much memory is requested";
#else
  const MemoryUse before = tensor_memory();
  expect_error(ErrorKind::OutOfMemory, {"bytes for a tensor"}, [] { empty({int64_t{1} << 50}); });
  EXPECT_EQ(tensor_memory().live, before.live);
  EXPECT_EQ(tensor_memory().peak, before.peak);
#endif
}

TEST(Tensors, AreEmptyByDefault) {
  const Tensor none;
  EXPECT_FALSE(none);
  EXPECT_EQ(none.data(), nullptr);
  EXPECT_TRUE(zeros({0, 3}));
  EXPECT_TRUE(to_floats(zeros({0, 3})).empty());
  EXPECT_EQ(to_floats(full({}, 2.5)), Floats{2.5f});
  EXPECT_EQ(full({2}, -3, DType::i32).data_as<int32_t>()[1], -3);
}

TEST(Tensors, HaveAtMostEightAxes) {
  EXPECT_EQ(zeros({1, 2, 1, 1, 1, 1, 1, 3}).rank(), 8);
  expect_error(ErrorKind::InvalidArgument, {"[1, 1, 1, 1, 1, 1, 1, 1]", "(5)", "at most 8 axes"},
               [] { zeros({1, 1, 1, 1, 1, 1, 1, 1, 5}); });
  Shape shape{2};
  shape.push_back(3);
  EXPECT_EQ(shape, (Shape{2, 3}));
  EXPECT_NE(shape, (Shape{2, 3, 1}));
  EXPECT_NE(shape, Shape{2});
}

TEST(Tensors, IndexAxesFromBothEnds) {
  const Tensor x = zeros({2, 3, 5});
  EXPECT_EQ(x.dim(0), 2);
  EXPECT_EQ(x.dim(-1), 5);
  EXPECT_EQ(x.dim(-3), 2);
  EXPECT_EQ(x.rank(), 3);
  for (const int axis : {3, -4}) {
    expect_error(ErrorKind::InvalidArgument, {fmt::format("axis {}", axis), "[2, 3, 5]"},
                 [&] { x.dim(axis); });
  }
}

TEST(Views, ShareElementsAndTheGradientSlot) {
  Tensor x = counting({2, 3});
  x.want_gradient();
  const Tensor y = x.view({3, 2});
  y.data_as<float>()[5] = 9;
  EXPECT_EQ(x.data_as<float>()[5], 9);
  EXPECT_TRUE(y.wants_gradient());
  EXPECT_FALSE(y.detach().wants_gradient());
  EXPECT_EQ(y.detach().data(), x.data());
  expect_error(ErrorKind::InvalidArgument, {"[4, 2]", "[2, 3]"}, [&] { x.view({4, 2}); });
}

TEST(Rows, AreSlicesOfTheFirstAxis) {
  const Tensor x = counting({4, 2});
  const Tensor y = x.rows(1, 3);
  EXPECT_EQ(y.shape(), (Shape{2, 2}));
  EXPECT_EQ(to_floats(y), (Floats{2, 3, 4, 5}));
  EXPECT_EQ(to_floats(y.rows(1, 2).view({2})), (Floats{4, 5}));
  EXPECT_EQ(y.rows(1, 1).size(), 0);
  y.data_as<float>()[0] = 7;
  EXPECT_EQ(x.data_as<float>()[2], 7);
  EXPECT_FALSE(counting({2}).want_gradient().rows(0, 1).wants_gradient());
  for (const Interval& wrong : {Interval{-1, 2}, Interval{3, 2}, Interval{0, 5}}) {
    expect_error(ErrorKind::InvalidArgument,
                 {fmt::format("rows {} to {} of [4, 2]", wrong.begin, wrong.end)},
                 [&] { x.rows(wrong.begin, wrong.end); });
  }
  expect_error(ErrorKind::InvalidArgument, {"of []"}, [] { full({}, 1).rows(0, 1); });
}

TEST(Rows, UseTheLastAxisAsWidth) {
  EXPECT_EQ(rows_of(zeros({2, 3, 5})).count, 6);
  EXPECT_EQ(rows_of(zeros({2, 3, 5})).width, 5);
  EXPECT_EQ(rows_of(zeros({})).count, 1);
  EXPECT_EQ(rows_of(zeros({4, 0})).count, 0);
}

TEST(Conversion, RoundsToTheNearestEven) {
  const Floats values{0, -0.0f, 1, 1 + 0x1p-8f, 1 + 0x3p-8f, 3e38f, INFINITY, -INFINITY, 1e-40f};
  const Tensor x = tensor_of(values, {9});
  const Tensor half = convert(x, DType::bf16);
  for (int64_t i = 0; i < 9; ++i)
    EXPECT_EQ(half.data_as<bf16>()[i].bits, narrow(values[static_cast<size_t>(i)]).bits) << i;
  EXPECT_EQ(to_floats(half)[3], 1.0f);
  EXPECT_EQ(to_floats(half)[4], 1 + 0x4p-8f);
  EXPECT_EQ(to_floats(convert(x, DType::f64)), values);
  EXPECT_EQ(to_floats(convert(convert(half, DType::f64), DType::bf16)), to_floats(half));
  EXPECT_TRUE(std::isnan(to_floats(tensor_of({NAN}, {1}, DType::bf16))[0]));
  expect_error(ErrorKind::InvalidArgument, {"3 values for shape [2]"},
               [] { tensor_of({1, 2, 3}, {2}); });
}

TEST(Conversion, AllocatesNewMemory) {
  Tensor x = counting({3});
  x.want_gradient();
  for (const Tensor& y : {copy(x), convert(x, DType::f32)}) {
    EXPECT_NE(y.data(), x.data());
    EXPECT_EQ(to_floats(y), to_floats(x));
    EXPECT_FALSE(y.wants_gradient());
  }
}

TEST(Memory, CountsLiveAndPeakBytesAndIsReused) {
  release_cached_memory();
  const MemoryUse before = tensor_memory();
  reset_peak_memory();
  const void* first = nullptr;
  {
    const Tensor x = zeros({1000});
    const Tensor shared = x.view({10, 100}).rows(2, 4);
    first = x.data();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 64, 0u);
    EXPECT_EQ(tensor_memory().live, before.live + 4032);  // 4000, rounded up to cache lines
    EXPECT_EQ(tensor_memory().held, before.held + 4032);
  }
  EXPECT_EQ(tensor_memory().live, before.live);
  EXPECT_EQ(tensor_memory().peak, before.live + 4032);
  EXPECT_EQ(tensor_memory().held, before.held + 4032);
  EXPECT_EQ(zeros({1001}).data(), first);  // the same number of cache lines
  reset_peak_memory();
  EXPECT_EQ(tensor_memory().peak, before.live);
  release_cached_memory();
  EXPECT_EQ(tensor_memory().held, before.held);
}

// Allocates the activations of batches of different shapes, and frees them in reverse order, as in
// a backward pass.
TEST(Memory, IsReusedForOtherShapes) {
  release_cached_memory();
  const size_t before = tensor_memory().held;
  reset_peak_memory();
  const size_t live = tensor_memory().live;
  for (int64_t batch = 0; batch < 50; ++batch) {
    std::vector<Tensor> activations;
    for (int64_t layer = 0; layer < 20; ++layer)
      activations.push_back(empty({1000 * (100 + 7 * batch) + 4096 * layer}));
    for (size_t i = 0; i < activations.size(); ++i)
      for (size_t j = 0; j < i; ++j) EXPECT_NE(activations[i].data(), activations[j].data());
    while (!activations.empty()) activations.pop_back();
  }
  const size_t most = tensor_memory().peak - live, segment = size_t{64} << 20;
  EXPECT_LT(tensor_memory().held, before + most + segment);
  release_cached_memory();
  EXPECT_EQ(tensor_memory().held, before);
}

TEST(Memory, IsFreedWithItsLastUser) {
  const size_t live = tensor_memory().live;
  Tensor part;
  {
    part = counting({4, 2}).rows(3, 4);
    EXPECT_GT(tensor_memory().live, live);
  }
  EXPECT_EQ(to_floats(part), (Floats{6, 7}));
  part = {};
  EXPECT_EQ(tensor_memory().live, live);
}

TEST(Memory, DoesNotOwnBorrowedBuffers) {
  const size_t live = tensor_memory().live, held = tensor_memory().held;
  Floats mine{1, 2, 3, 4};
  auto owner = std::make_shared<int>(0);
  Tensor x = borrow(mine.data(), {2, 2}, DType::f32, owner);
  EXPECT_EQ(owner.use_count(), 2);
  EXPECT_EQ(to_floats(x), mine);
  x = borrow(mine.data(), {4}, DType::f32, nullptr);
  EXPECT_EQ(owner.use_count(), 1);
  x = {};
  EXPECT_EQ(tensor_memory().live, live);
  EXPECT_EQ(tensor_memory().held, held);
  EXPECT_EQ(mine, (Floats{1, 2, 3, 4}));
}

TEST(Devices, ReceiveCopiesOfTensors) {
  const Device& second = test::second_device();
  const Tensor x = counting({2, 3}), there = x.to(second), back = there.to(cpu_device());
  EXPECT_EQ(&there.device(), &second);
  EXPECT_EQ(&back.device(), &cpu_device());
  EXPECT_EQ(there.shape(), x.shape());
  EXPECT_NE(back.data(), x.data());
  EXPECT_EQ(to_floats(back), to_floats(x));
  EXPECT_EQ(to_floats(there), to_floats(x));
  EXPECT_EQ(there.to(second).data(), there.data());
  EXPECT_FALSE(Tensor().to(second));
}

TEST(Devices, MakeTensors) {
  const Device& second = test::second_device();
  EXPECT_EQ(to_floats(zeros({2}, DType::f32, second)), (Floats{0, 0}));
  EXPECT_EQ(number_of(full({1}, 3, DType::f64, second)), 3);
  const Tensor x = counting({2, 3}).to(second);
  for (const Tensor& y : {copy(x), convert(x, DType::bf16), x.view({6}), x.rows(1, 2)})
    EXPECT_EQ(&y.device(), &second);
  EXPECT_EQ(to_floats(copy(x)), to_floats(x));
  EXPECT_EQ(to_floats(x.rows(1, 2)), (Floats{3, 4, 5}));
}

TEST(Devices, FreeTheirMemory) {
  const size_t before = test::SecondMemory::live_bytes();
  {
    const Tensor x = empty({1000}, DType::f32, test::second_device());
    EXPECT_GE(test::SecondMemory::live_bytes(), before + 4000);
  }
  EXPECT_EQ(test::SecondMemory::live_bytes(), before);
}

TEST(Devices, RefuseAccessFromTheHost) {
  const Tensor x = zeros({2, 3}, DType::f32, test::second_device());
  expect_error(ErrorKind::InvalidArgument,
               {"a tensor [2, 3] is on device second; expected it in host memory"},
               [&] { (void)x.data_as<float>(); });
  EXPECT_DEATH(EXPECT_EQ(*static_cast<float*>(x.data()), 0), "");  // their memory is protected
}

TEST(Devices, DoNotMix) {
  const Tensor x = zeros({2}), there = x.to(test::second_device());
  expect_error(ErrorKind::InvalidArgument,
               {"add: inputs are on devices ", "cpu", "second", "; expected all on one"},
               [&] { kernels(x).add(empty_like(x), x, there, 2); });
  expect_error(ErrorKind::InvalidArgument, {"copy: inputs are on devices second and cpu"},
               [&] { copy_bytes(there, 0, x, 0, 4); });
}

TEST(Devices, MayQueueTheirKernels) {
  test::SecondQueue::wait();
  const Device& second = test::second_device();
  const Tensor y = empty({2}, DType::f32, second);
  {
    const Tensor x = tensor_of({1, 2}, {2}), there = x.to(second);
    x.span<float>()[0] = 7;  // the copy does not change
    kernels(there).scale(y, there, 2, 2);
  }
  EXPECT_EQ(test::SecondQueue::length(), 2u);  // a copy and a kernel
  EXPECT_EQ(to_floats(y), (Floats{2, 4}));
  EXPECT_EQ(test::SecondQueue::length(), 0u);
}

TEST(HostValues, AreThoseOfTheTensorOnAnyDevice) {
  const Tensor x = counting({2, 3});
  EXPECT_EQ(HostValues<float>(x).all().data(), x.data());  // no copy
  for (const Tensor& each : {x, x.to(test::second_device())}) {
    const HostValues<float> values(each);
    EXPECT_EQ(values.size(), 6);
    EXPECT_EQ(values[4], 4);
    EXPECT_TRUE(std::ranges::equal(values.row(1), Floats{3, 4, 5}));
    EXPECT_TRUE(std::ranges::equal(values, to_floats(x)));
  }
  expect_error(ErrorKind::InvalidArgument, {"span", "fp32"}, [&] { HostValues<int32_t>{x}; });
}

TEST(TensorFrom, CallsTheFunctionOfEachIndex) {
  const Tensor x = tensor_from<int32_t>({2, 2}, [](int64_t i) { return 10 * i; });
  EXPECT_EQ(x.dtype(), DType::i32);
  EXPECT_TRUE(std::ranges::equal(x.span<int32_t>(), std::vector<int32_t>{0, 10, 20, 30}));
  EXPECT_EQ(tensor_from<double>({1}, [](int64_t) { return 0.5; }).dtype(), DType::f64);
}

TEST(CopyElements, CopiesBetweenDevices) {
  const Tensor x = counting({2, 3});
  for (const Device* to : {&cpu_device(), &test::second_device()}) {
    for (const Device* from : {&cpu_device(), &test::second_device()}) {
      const Tensor y = zeros({4}, DType::f32, *to);
      copy_elements(y, 1, x.to(*from), 4, 2);
      EXPECT_EQ(to_floats(y), (Floats{0, 4, 5, 0}));
    }
  }
  const Tensor y = zeros({4});
  expect_error(ErrorKind::InvalidArgument, {"copy: 2 elements from 5 of [2, 3] to 0 of [4]"},
               [&] { copy_elements(y, 0, x, 5, 2); });
  expect_error(ErrorKind::InvalidArgument, {"to 3 of [4]"}, [&] { copy_elements(y, 3, x, 0, 2); });
  expect_error(ErrorKind::InvalidArgument, {"fp32", "int32"},
               [&] { copy_elements(zeros({4}, DType::i32), 0, x, 0, 2); });
}

TEST(TensorSpan, HasTheElementsOfTheType) {
  const Tensor x = tensor_of({1, 2, 3}, {3}), ids = tensor_of(std::vector<int32_t>{4, 5}, {2});
  x.span<float>()[1] = 20;
  EXPECT_EQ(to_floats(x), (std::vector<float>{1, 20, 3}));
  EXPECT_EQ(ids.dtype(), DType::i32);
  EXPECT_EQ(ids.span<int32_t>()[1], 5);
  expect_error(ErrorKind::InvalidArgument, {"span", "[2]", "fp32"}, [&] { ids.span<float>(); });
  expect_error(ErrorKind::InvalidArgument, {"2 values", "[3]"},
               [] { tensor_of(std::vector<int32_t>{4, 5}, {3}); });
}

TEST(TensorNormal, DependsOnTheSeedAndTheNumber) {
  const auto x = to_floats(normal({1000}, 2, 1));
  EXPECT_EQ(to_floats(normal({1000}, 2, 1, 0)), x);
  EXPECT_NE(to_floats(normal({1000}, 2, 2)), x);
  EXPECT_NE(to_floats(normal({1000}, 2, 1, 1)), x);
  double sum = 0, squares = 0;
  for (const float each : x) sum += each, squares += double{each} * each;
  EXPECT_NEAR(sum / 1000, 0, 0.2);
  EXPECT_NEAR(squares / 1000, 4, 0.5);
}

}  // namespace
}  // namespace fovea

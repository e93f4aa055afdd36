// Tables without an entry, devices by name, and calls with arrays of several devices.

#include "kernels/device.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace fovea {
namespace {

// The reference kernels without all entries but two.
const Kernels kPartial = {
    .device = "partial",
    .convert = [](Out y, In x, int64_t size) { reference_kernels().convert(y, x, size); },
    .add = [](Out y, In a, In b, int64_t size) { reference_kernels().add(y, a, b, size); }};

const Device& partial_device() {
  static const Device& device =
      add_device({.name = "partial", .kernels = [](DType) -> const Kernels& { return kPartial; }});
  return device;
}

TEST(Table, RunsTheEntriesThatItHas) {
  const float a = 1, b = 2;
  float y = 0;
  kPartial.add({&y}, {&a}, {&b}, 1);
  EXPECT_EQ(y, 3);
}

TEST(Table, RefusesAnEntryThatItLacks) {
  float x = 1;
  expect_error(ErrorKind::Unsupported,
               {"softmax: device partial has no kernel for it; expected a device that has one"},
               [&] { kPartial.softmax({&x}, {&x}, {1, 1}); });
  expect_error(ErrorKind::Unsupported, {"sum: device partial has no kernel"},
               [&] { (void)kPartial.sum({&x}, 1); });
}

TEST(Table, KeepsTheNameOfItsDeviceInCopies) {
  const Kernels copy = kPartial;
  float x = 1;
  expect_error(ErrorKind::Unsupported, {"scale: device partial"},
               [&] { copy.scale({&x}, {&x}, 2, 1); });
}

TEST(Table, RefusesArraysOfSeveralDevices) {
  const uint8_t other = partial_device().number;
  float x = 1;
  const int32_t id = 0;
  const auto refused = [](const std::string& name, auto&& call) {
    expect_error(ErrorKind::InvalidArgument,
                 {name + ": inputs are on devices ", "cpu", "partial", "; expected all on one"},
                 call);
  };
  const Kernels& k = reference_kernels();
  refused("add", [&] { k.add({&x}, {&x}, {&x, DType::f32, other}, 1); });
  refused("scale", [&] { k.scale({&x, DType::f32, false, other}, {&x}, 1, 1); });
  refused("embedding", [&] { k.embedding({&x}, {&x}, {&id, other}, {1, 1}); });
  // Arrays inside other arguments.
  AttentionShape shape;
  shape.bias = {&x, DType::f32, other};
  refused("attention", [&] { k.attention({&x}, {}, {&x}, {&x}, {&x}, shape); });
  const PackedProduct product{{&x}, {&x, DType::f32, other}, {}};
  refused("packed_linear", [&] { k.packed_linear({&product, 1}, {&x}, 1); });
  const PackedProduct panels{{&x}, {}, {.panels = &x, .device = other}};
  refused("packed_linear", [&] { k.packed_linear({&panels, 1}, {&x}, 1); });
  const PackedMatrix matrix = {.panels = &x, .device = other};
  refused("packed_gemm", [&] { k.packed_gemm({&x}, {&x}, matrix, {}, {}); });
  const PageRows rows{nullptr, PagePart::keys, {&x, DType::u8}, 0, 1, {&x, DType::f32, other}};
  refused("put_in_pages", [&] { k.put_in_pages({&rows, 1}); });
  const CellGradients gradients{{}, {}, {}, {}, {&x, DType::f32, false, other}};
  refused("recurrent_cell_backward",
          [&] { k.recurrent_cell_backward(gradients, {&x}, {}, {}, {}, {}, {}, {}, {}); });
  // An array that is not given is on no device.
  k.add({nullptr, DType::f32, false, other}, {&x}, {&x}, 0);
}

TEST(Device, IsFoundByName) {
  const Device& partial = partial_device();
  EXPECT_EQ(&device_named("cpu"), &cpu_device());
  EXPECT_EQ(cpu_device().number, 0);
  EXPECT_EQ(&device_named("partial"), &partial);
  EXPECT_EQ(&device_of(partial.number), &partial);
  expect_error(ErrorKind::InvalidArgument, {"device: 'gpu' is not known; expected cpu, partial"},
               [] { (void)device_named("gpu"); });
  expect_error(ErrorKind::InvalidArgument, {"device: cpu is in use; expected another name"},
               [] { (void)add_device({.name = "cpu"}); });
}

}  // namespace
}  // namespace fovea

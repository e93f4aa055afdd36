// Exchange of tensors with other libraries; needs the header of DLPack.

#include <gtest/gtest.h>

#if __has_include(<dlpack/dlpack.h>)

#include <memory>

#include "fovea/core/dlpack.h"
#include "support/expect_error.h"

namespace fovea {
namespace {

// A tensor of another library: counts the calls of its deleter.
struct Foreign {
  std::vector<float> values = {1, 2, 3, 4, 5, 6};
  int64_t shape[2] = {2, 3}, strides[2] = {3, 1};
  int deleted = 0;
  DLManagedTensor managed = {};

  Foreign() {
    DLTensor& t = managed.dl_tensor;
    t.data = values.data();
    t.device = {kDLCPU, 0};
    t.ndim = 2;
    t.dtype = {kDLFloat, 32, 1};
    t.shape = shape;
    t.strides = strides;
    managed.manager_ctx = this;
    managed.deleter = [](DLManagedTensor* self) {
      ++static_cast<Foreign*>(self->manager_ctx)->deleted;
    };
  }
};

TEST(DLPack, SharesTheElementsInBothDirections) {
  Foreign foreign;
  {
    const Tensor x = from_dlpack(&foreign.managed), second = x.rows(1, 2);
    EXPECT_EQ(x.shape(), (Shape{2, 3}));
    x.span<float>()[3] = 40;
    EXPECT_EQ(foreign.values[3], 40);
    EXPECT_EQ(to_floats(second), (std::vector<float>{40, 5, 6}));
  }
  EXPECT_EQ(foreign.deleted, 1);

  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::i32, DType::u8}) {
    const Tensor x = full({2, 2}, 3, dtype);
    DLManagedTensor* given = to_dlpack(x);
    EXPECT_EQ(given->dl_tensor.ndim, 2);
    const Tensor back = from_dlpack(given);  // the elements live as long as `back`
    EXPECT_EQ(back.dtype(), dtype);
    EXPECT_EQ(back.shape(), x.shape());
    EXPECT_EQ(back.data(), x.data());
  }
}

TEST(DLPack, RefusesWhatTensorsCannotBe) {
  const auto refused = [](const char* what, Foreign& foreign) {
    expect_error(ErrorKind::InvalidArgument, {"from_dlpack", what},
                 [&] { from_dlpack(&foreign.managed); });
    EXPECT_EQ(foreign.deleted, 0);
  };
  Foreign device, strided, type, axes;
  device.managed.dl_tensor.device.device_type = kDLCUDA;
  refused("another device", device);
  strided.strides[0] = 4;
  refused("not contiguous", strided);
  type.managed.dl_tensor.dtype = {kDLFloat, 32, 4};
  refused("unknown type", type);
  axes.managed.dl_tensor.ndim = 9;
  refused("too many axes", axes);
  expect_error(ErrorKind::InvalidArgument, {"from_dlpack"}, [] { from_dlpack(nullptr); });
  expect_error(ErrorKind::InvalidArgument, {"to_dlpack"}, [] { to_dlpack({}); });
}

}  // namespace
}  // namespace fovea

#endif

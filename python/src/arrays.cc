#include "arrays.h"

#include "call.h"
#include "fovea/core/error.h"

namespace nb = nanobind;

namespace fovea::python {
namespace {

nb::dlpack::dtype type_of(DType type) {
  using enum nb::dlpack::dtype_code;
  const auto made = [](nb::dlpack::dtype_code code, uint8_t bits) {
    return nb::dlpack::dtype{static_cast<uint8_t>(code), bits, 1};
  };
  switch (type) {
    case DType::f32: return made(Float, 32);
    case DType::f64: return made(Float, 64);
    case DType::f16: return made(Float, 16);
    case DType::bf16: return made(Bfloat, 16);
    case DType::i32: return made(Int, 32);
    case DType::i64: return made(Int, 64);
    case DType::i8: return made(Int, 8);
    case DType::u8: return made(UInt, 8);
  }
  return {};
}

DType type_from(nb::dlpack::dtype type) {
  for (const DType each : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64,
                           DType::i8, DType::u8})
    if (type == type_of(each)) return each;
  throw Error(ErrorKind::InvalidArgument,
              "array: an unknown type of elements; expected floating-point numbers or integers");
}

template <class... Access>
nb::object view_of(const Tensor& tensor) {
  std::vector<size_t> shape(tensor.shape().begin(), tensor.shape().end());
  const nb::capsule owner(new Tensor(tensor),
                          [](void* p) noexcept { delete static_cast<Tensor*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, Access...>(tensor.data(), shape.size(), shape.data(),
                                                    owner, nullptr, type_of(tensor.dtype())));
}

}  // namespace

nb::object array_of(const Tensor& tensor, bool writable) {
  if (!tensor) return nb::none();
  const Tensor held = tensor.device_number() == 0 ? tensor : tensor.to(cpu_device());
  if (held.dtype() == DType::bf16) return array_of(convert(held, DType::f32), writable);
  return writable ? view_of<>(held) : view_of<nb::ro>(held);
}

Tensor tensor_from(const nb::object& array) {
  using Given = nb::ndarray<nb::c_contig, nb::device::cpu>;
  Given given;
  if (!nb::try_cast<Given>(array, given, false)) {
    using ReadOnly = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
    if (nb::try_cast<ReadOnly>(array, *std::make_unique<ReadOnly>(), false))
      throw Error(ErrorKind::InvalidArgument,
                  "array: cannot be written; expected a copy of it, such as numpy.array(x)");
    throw Error(ErrorKind::InvalidArgument,
                "array: not an array in host memory whose rows follow one another; expected one, "
                "such as numpy.ascontiguousarray(x)");
  }
  Shape shape;
  for (size_t axis = 0; axis < given.ndim(); ++axis)
    shape.push_back(static_cast<int64_t>(given.shape(axis)));
  const DType type = type_from(given.dtype());
  void* const data = given.data();
  return borrow(data, shape, type, shared(nb::cast(array)));
}

}  // namespace fovea::python

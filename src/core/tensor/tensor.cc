#include "tensor/tensor.h"

#include <cstring>
#include <type_traits>

#include "base/error.h"
#include "fovea/core/random.h"
#include "kernels/allocator.h"

namespace fovea {
namespace {

// Like describe(), but formatted only for an error: these checks run with every op.
auto listed(const Shape& shape) { return fmt::join(shape, ", "); }

template <class T>
Tensor filled(std::span<const T> values, const Shape& shape, DType dtype) {
  const Tensor y = empty(shape, dtype);
  check(y.size() == std::ssize(values), "{} values for shape [{}]; expected one per element",
        values.size(), listed(shape));
  std::ranges::copy(values, y.data_as<T>());
  return y;
}

// The types of elements that span() returns.
template <class T>
constexpr DType kTypeOf = std::is_same_v<T, float>     ? DType::f32
                          : std::is_same_v<T, double>  ? DType::f64
                          : std::is_same_v<T, int32_t> ? DType::i32
                          : std::is_same_v<T, int64_t> ? DType::i64
                          : std::is_same_v<T, int8_t>  ? DType::i8
                                                       : DType::u8;

// Copies bytes between any two devices, through host memory if neither is the CPU.
void transfer(const Tensor& to, int64_t to_begin, const Tensor& from, int64_t from_begin,
              int64_t count) {
  if (count == 0) return;
  const Device &target = to.device(), &source = from.device();
  if (target.number != source.number && target.number != 0 && source.number != 0)
    return transfer(to, to_begin, from.to(cpu_device()), from_begin, count);
  const CopyKind kind = target.number == source.number ? CopyKind::within
                        : target.number == 0           ? CopyKind::to_host
                                                       : CopyKind::to_device;
  (target.number == 0 ? source : target)
      .copy(static_cast<char*>(to.data()) + to_begin,
            static_cast<const char*>(from.data()) + from_begin, static_cast<size_t>(count), kind);
}

}  // namespace

Storage::Storage(size_t bytes, const Device& device) : bytes_(bytes), device_(&device) {
  data_ = device.allocate(bytes_);
}
Storage::Storage(void* borrowed, size_t bytes, std::shared_ptr<const void> owner)
    : data_(borrowed), bytes_(bytes), owner_(std::move(owner)) {}
Storage::~Storage() {
  if (device_ != nullptr) device_->free(data_, bytes_);
}

MemoryUse tensor_memory() { return Allocator::all().use(); }
void reset_peak_memory() { Allocator::all().reset_peak(); }
void release_cached_memory() { Allocator::all().release(); }

size_t Tensor::bytes() const { return static_cast<size_t>(size_) * size_of(dtype_); }
const Device& Tensor::device() const { return device_of(device_); }

int64_t Tensor::dim(int axis) const {
  const int from_start = axis < 0 ? axis + rank() : axis;
  check(from_start >= 0 && from_start < rank(),
        "axis {}: the tensor has shape [{}]; expected {} to {}", axis, listed(shape_), -rank(),
        rank() - 1);
  return shape_[static_cast<size_t>(from_start)];
}

Tensor Tensor::view(const Shape& shape) const {
  check(elements(shape) == size_,
        "view: shape [{}] of a tensor [{}]; expected the same number of elements", listed(shape),
        listed(shape_));
  Tensor y = *this;
  if (recipe_) {  // a view of a recomputable tensor is recomputable
    y.set_recipe([recipe = recipe_, shape] { return (*recipe)().view(shape); });
  }
  y.shape_ = shape;
  return y;
}

Tensor Tensor::rows(int64_t begin, int64_t end) const {
  check(rank() > 0 && begin >= 0 && begin <= end && end <= shape_[0],
        "rows {} to {} of [{}]; expected a range of its first axis", begin, end, listed(shape_));
  Tensor y = detach();
  const int64_t width = shape_[0] > 0 ? size_ / shape_[0] : 0;
  y.data_ += begin * width * static_cast<int64_t>(size_of(dtype_));
  y.shape_[0] = end - begin;
  y.size_ = (end - begin) * width;
  return y;
}

Tensor Tensor::detach() const {
  Tensor y = *this;
  y.gradient_ = nullptr;
  y.recipe_ = nullptr;
  return y;
}

Tensor Tensor::to(const Device& target) const {
  if (target.number == device_ || !storage_) return *this;
  Tensor y = empty(shape_, dtype_, target);
  transfer(y, 0, *this, 0, static_cast<int64_t>(bytes()));
  return y;
}

template <class T>
std::span<T> Tensor::span() const {
  check(dtype_ == kTypeOf<T>, "span: a tensor [{}] has elements of type {}; expected {}",
        listed(shape_), name_of(dtype_), name_of(kTypeOf<T>));
  return {data_as<T>(), static_cast<size_t>(size_)};
}
template std::span<float> Tensor::span() const;
template std::span<double> Tensor::span() const;
template std::span<int32_t> Tensor::span() const;
template std::span<int64_t> Tensor::span() const;
template std::span<int8_t> Tensor::span() const;
template std::span<uint8_t> Tensor::span() const;

void Tensor::refuse_access() const {
  fail(ErrorKind::InvalidArgument,
       "data: a tensor [{}] is on device {}; expected it in host memory (see Tensor::to)",
       listed(shape_), device().name);
}

Tensor& Tensor::want_gradient() {
  gradient_ = std::make_shared<Gradient>();
  gradient_->leaf = true;
  return *this;
}

Tensor Tensor::gradient() const { return gradient_ ? gradient_->value : Tensor(); }
void Tensor::clear_gradient() const {
  if (gradient_) gradient_->value = Tensor();
}

Tensor empty(const Shape& shape, DType dtype, const Device& device) {
  Tensor y;
  y.size_ = elements(shape);
  y.shape_ = shape;
  y.dtype_ = dtype;
  y.device_ = device.number;
  y.storage_ = std::make_shared<Storage>(y.bytes(), device);
  y.data_ = static_cast<char*>(y.storage_->data());
  return y;
}

Tensor empty_like(const Tensor& x) { return empty(x.shape(), x.dtype(), x.device()); }

Tensor zeros(const Shape& shape, DType dtype, const Device& device) {
  Tensor y = empty(shape, dtype);
  if (y.size() > 0) std::memset(y.data(), 0, y.bytes());
  return y.to(device);
}

Tensor full(const Shape& shape, double value, DType dtype, const Device& device) {
  Tensor y = empty(shape, dtype);
  for (int64_t i = 0; i < y.size(); ++i) {
    if (dtype == DType::f64)
      y.data_as<double>()[i] = value;
    else if (dtype == DType::bf16)
      y.data_as<bf16>()[i] = narrow(static_cast<float>(value));
    else if (dtype == DType::i32)
      y.data_as<int32_t>()[i] = static_cast<int32_t>(value);
    else if (dtype == DType::i8)
      y.data_as<int8_t>()[i] = static_cast<int8_t>(value);
    else if (dtype == DType::u8)
      y.data_as<uint8_t>()[i] = static_cast<uint8_t>(value);
    else
      y.data_as<float>()[i] = static_cast<float>(value);
  }
  return y.to(device);
}

Tensor borrow(void* data, const Shape& shape, DType dtype, std::shared_ptr<const void> owner) {
  Tensor y;
  y.size_ = elements(shape);
  y.shape_ = shape;
  y.dtype_ = dtype;
  y.storage_ = std::make_shared<Storage>(data, y.bytes(), std::move(owner));
  y.data_ = static_cast<char*>(data);
  return y;
}

Tensor tensor_of(std::span<const float> values, const Shape& shape, DType dtype) {
  const Tensor y = filled(values, shape, DType::f32);
  return dtype == DType::f32 ? y : convert(y, dtype);
}

Tensor tensor_of(std::initializer_list<float> values, const Shape& shape, DType dtype) {
  return tensor_of(std::span(values.begin(), values.size()), shape, dtype);
}

Tensor tensor_of(std::span<const int32_t> values, const Shape& shape) {
  return filled(values, shape, DType::i32);
}

Tensor normal(const Shape& shape, float deviation, uint64_t seed, uint32_t number) {
  const Tensor y = empty(shape);
  Random random(seed, Stream::init, number);
  for (float& each : y.span<float>()) each = deviation * random.normal();
  return y;
}

Tensor convert(const Tensor& x, DType dtype) {
  Tensor y = empty(x.shape(), dtype, x.device());
  kernels(dtype == DType::f64 ? y : x).convert(y, x, x.size());
  return y;
}

Tensor copy(const Tensor& x) {
  Tensor y = empty_like(x);
  copy_bytes(y, 0, x, 0, static_cast<int64_t>(x.bytes()));
  return y;
}

void copy_bytes(const Tensor& to, int64_t to_begin, const Tensor& from, int64_t from_begin,
                int64_t count) {
  if (&to.device() != &from.device())
    refuse_devices("copy", to.device().number, from.device().number);
  transfer(to, to_begin, from, from_begin, count);
}

void copy_elements(const Tensor& to, int64_t to_begin, const Tensor& from, int64_t from_begin,
                   int64_t count) {
  check(to.dtype() == from.dtype(), "copy: elements of type {} and {}; expected one type",
        name_of(from.dtype()), name_of(to.dtype()));
  const auto holds = [&](const Tensor& x, int64_t begin) {
    return begin >= 0 && count >= 0 && count <= x.size() - begin;
  };
  check(holds(from, from_begin) && holds(to, to_begin),
        "copy: {} elements from {} of [{}] to {} of [{}]; expected a range inside both", count,
        from_begin, listed(from.shape()), to_begin, listed(to.shape()));
  const auto size = static_cast<int64_t>(size_of(to.dtype()));
  transfer(to, to_begin * size, from, from_begin * size, count * size);
}

std::vector<float> to_floats(const Tensor& x) {
  const Tensor floats = (x.dtype() == DType::f32 ? x : convert(x, DType::f32)).to(cpu_device());
  return {floats.data_as<float>(), floats.data_as<float>() + x.size()};
}

double number_of(const Tensor& x) {
  const Tensor host = x.to(cpu_device());
  return x.dtype() == DType::f64 ? *host.data_as<double>() : *host.data_as<float>();
}

Rows rows_of(const Tensor& x) {
  const int64_t width = x.rank() == 0 ? 1 : x.dim(-1);
  return {width == 0 ? 0 : x.size() / width, width};
}

const Kernels& kernels(const Tensor& x) { return x.device().kernels(x.dtype()); }

}  // namespace fovea

#include "tensor/tensor.h"

#include <sys/mman.h>

#include <cstring>
#include <map>
#include <mutex>
#include <new>

#include "base/error.h"

namespace fovea {
namespace {

// Freed blocks by size. Sizes are rounded up so that the few shapes of a step meet their like, and
// where batches differ in length a block at most a quarter larger does as well; a mutex is enough,
// since an op allocates once while its kernel runs for microseconds at least.
class Cache {
 public:
  // `bytes` becomes the block's own size.
  void* take(size_t& bytes) {
    const std::lock_guard lock(mutex_);
    const size_t most = bytes + bytes / 4;
    for (auto at = free_.lower_bound(bytes); at != free_.end() && at->first <= most; ++at) {
      if (at->second.empty()) continue;
      void* block = at->second.back();  // the last one freed is the one that caches still hold
      at->second.pop_back();
      bytes = at->first;
      count(bytes);
      return block;
    }
    void* block = std::aligned_alloc(kAlignment, bytes);
    if (block == nullptr) {
      release();
      block = std::aligned_alloc(kAlignment, bytes);
    }
    if (block == nullptr) {
      fail(ErrorKind::OutOfMemory, "memory: {} bytes for a tensor are not there ({} in use)", bytes,
           use_.live);
    }
    // Large blocks in huge pages: a weight gradient walks thousands of rows, one page table entry
    // each otherwise.
    if (bytes >= size_t{2} << 20) madvise(block, bytes, MADV_HUGEPAGE);
    use_.held += bytes;
    count(bytes);
    return block;
  }

  void give(void* block, size_t bytes) {
    const std::lock_guard lock(mutex_);
    use_.live -= bytes;
    free_[bytes].push_back(block);
  }

  MemoryUse use() {
    const std::lock_guard lock(mutex_);
    return use_;
  }
  void reset_peak() {
    const std::lock_guard lock(mutex_);
    use_.peak = use_.live;
  }
  void release_all() {
    const std::lock_guard lock(mutex_);
    release();
  }

  static size_t rounded(size_t bytes) {
    const size_t unit = bytes >= (size_t{2} << 20) ? size_t{64} << 10 : kAlignment;
    return std::max(unit, (bytes + unit - 1) / unit * unit);
  }

 private:
  static constexpr size_t kAlignment = 64;  // a cache line, and the widest vector

  void count(size_t bytes) {
    use_.live += bytes;
    use_.peak = std::max(use_.peak, use_.live);
  }

  void release() {
    for (auto& [bytes, blocks] : free_) {
      for (void* block : blocks) std::free(block);
      use_.held -= bytes * blocks.size();
    }
    free_.clear();
  }

  std::mutex mutex_;
  std::map<size_t, std::vector<void*>> free_;  // by size
  MemoryUse use_;
};

Cache& cache() {
  static Cache* instance = new Cache;  // never destroyed: tensors may outlive main
  return *instance;
}

// As describe(), but made only where a message is: these checks run with every op.
auto listed(const Shape& shape) { return fmt::join(shape, ", "); }

}  // namespace

int64_t elements(const Shape& shape) {
  constexpr int64_t kMost = int64_t{1} << 59;  // so that bytes, rounded up, fit int64 as well
  int64_t product = 1;
  for (const int64_t extent : shape) {
    check(extent >= 0 && !__builtin_mul_overflow(product, extent, &product) && product <= kMost,
          "shape [{}]: not a possible size; expected axes of at least 0, and memory that can be "
          "addressed",
          listed(shape));
  }
  return product;
}

std::string describe(const Shape& shape) { return fmt::format("[{}]", listed(shape)); }

Storage::Storage(size_t bytes) : bytes_(Cache::rounded(bytes)), cached_(true) {
  data_ = cache().take(bytes_);
}
Storage::Storage(void* borrowed, size_t bytes, std::shared_ptr<const void> owner)
    : data_(borrowed), bytes_(bytes), owner_(std::move(owner)) {}
Storage::~Storage() {
  if (cached_) cache().give(data_, bytes_);
}

MemoryUse tensor_memory() { return cache().use(); }
void reset_peak_memory() { cache().reset_peak(); }
void release_cached_memory() { cache().release_all(); }

int64_t Tensor::dim(int axis) const {
  const int from_start = axis < 0 ? axis + rank() : axis;
  check(from_start >= 0 && from_start < rank(), "axis {} of a tensor of shape [{}]", axis,
        listed(shape_));
  return shape_[static_cast<size_t>(from_start)];
}

Tensor Tensor::view(Shape shape) const {
  check(elements(shape) == size_, "view: [{}] does not hold the elements of [{}]", listed(shape),
        listed(shape_));
  Tensor y = *this;
  if (recipe_) {  // a view of what can be computed again can be computed again
    y.set_recipe([recipe = recipe_, shape] { return (*recipe)().view(shape); });
  }
  y.shape_ = std::move(shape);
  return y;
}

Tensor Tensor::rows(int64_t begin, int64_t end) const {
  check(rank() > 0 && begin >= 0 && begin <= end && end <= shape_[0], "rows {} to {} of [{}]",
        begin, end, listed(shape_));
  Tensor y = detach();
  const int64_t width = shape_[0] > 0 ? size_ / shape_[0] : 0;
  y.offset_ += static_cast<size_t>(begin * width) * size_of(dtype_);
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

Tensor& Tensor::want_gradient() {
  gradient_ = std::make_shared<Gradient>();
  gradient_->leaf = true;
  return *this;
}

Tensor Tensor::gradient() const { return gradient_ ? gradient_->value : Tensor(); }
void Tensor::clear_gradient() const {
  if (gradient_) gradient_->value = Tensor();
}

Tensor empty(Shape shape, DType dtype) {
  Tensor y;
  y.size_ = elements(shape);
  y.shape_ = std::move(shape);
  y.dtype_ = dtype;
  y.storage_ = std::make_shared<Storage>(y.bytes());
  return y;
}

Tensor empty_like(const Tensor& x) { return empty(x.shape(), x.dtype()); }

Tensor zeros(Shape shape, DType dtype) {
  Tensor y = empty(std::move(shape), dtype);
  if (y.size() > 0) std::memset(y.data(), 0, y.bytes());
  return y;
}

Tensor full(Shape shape, double value, DType dtype) {
  Tensor y = empty(std::move(shape), dtype);
  for (int64_t i = 0; i < y.size(); ++i) {
    if (dtype == DType::f64)
      y.data_as<double>()[i] = value;
    else if (dtype == DType::bf16)
      y.data_as<bf16>()[i] = narrow(static_cast<float>(value));
    else
      y.data_as<float>()[i] = static_cast<float>(value);
  }
  return y;
}

Tensor borrow(void* data, Shape shape, DType dtype, std::shared_ptr<const void> owner) {
  Tensor y;
  y.size_ = elements(shape);
  y.shape_ = std::move(shape);
  y.dtype_ = dtype;
  y.storage_ = std::make_shared<Storage>(data, y.bytes(), std::move(owner));
  return y;
}

Tensor from(const std::vector<float>& values, Shape shape, DType dtype) {
  Tensor y = empty(std::move(shape), DType::f32);
  check(y.size() == static_cast<int64_t>(values.size()), "{} values for shape [{}]", values.size(),
        listed(y.shape()));
  std::copy(values.begin(), values.end(), y.data_as<float>());
  return dtype == DType::f32 ? y : convert(y, dtype);
}

Tensor convert(const Tensor& x, DType dtype) {
  Tensor y = empty(x.shape(), dtype);
  kernels(dtype == DType::f64 ? y : x).convert(y, x, x.size());
  return y;
}

Tensor copy(const Tensor& x) {
  Tensor y = empty_like(x);
  if (x.size() > 0) std::memcpy(y.data(), x.data(), x.bytes());
  return y;
}

std::vector<float> to_floats(const Tensor& x) {
  const Tensor floats = x.dtype() == DType::f32 ? x : convert(x, DType::f32);
  return {floats.data_as<float>(), floats.data_as<float>() + x.size()};
}

Rows rows_of(const Tensor& x) {
  const int64_t width = x.rank() == 0 ? 1 : x.dim(-1);
  return {width == 0 ? 0 : x.size() / width, width};
}

const Kernels& kernels(const Tensor& x) { return kernels_for(x.dtype()); }

}  // namespace fovea

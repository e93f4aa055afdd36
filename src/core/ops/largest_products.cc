#include "ops/largest_products.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>

#include "base/error.h"
#include "base/threads.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "tensor/host_values.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

constexpr int64_t kGrain = 4096;  // products or elements that are worth another thread

using Counts = std::vector<int64_t>;
// The rows of z with the largest products, [N, R]; below 0: the text has no tokens.
using LargestRows = std::shared_ptr<const std::vector<int32_t>>;

// Compares the products of token `row` with the largest ones of its text so far. NaN counts as
// larger than all numbers.
template <class Number>
void compare(const Number* products, Interval columns, int32_t row, Number* values, int32_t* rows) {
  for (int64_t r = columns.begin; r < columns.end; ++r) {
    const bool larger = !(products[r] <= values[r]) && values[r] == values[r];
    values[r] = larger ? products[r] : values[r];
    rows[r] = larger ? row : rows[r];
  }
}

// Sets y [N, R], in host memory, and returns the rows.
template <class Number>
LargestRows find_largest(const Tensor& y, const Tensor& x, const Tensor& z, const Counts& counts) {
  const NoGradient off;
  const int64_t R = x.dim(0), S = z.dim(0), block = std::max<int64_t>(1, kLogitsOfBlock / R);
  auto rows = std::make_shared<std::vector<int32_t>>(static_cast<size_t>(y.size()), -1);
  Number* const values = y.data_as<Number>();
  std::vector<int64_t> text_of;  // of each token
  for (size_t n = 0; n < counts.size(); ++n) {
    const Number least = counts[n] > 0 ? -std::numeric_limits<Number>::infinity() : Number{0};
    std::fill_n(values + static_cast<int64_t>(n) * R, R, least);
    text_of.insert(text_of.end(), static_cast<size_t>(counts[n]), static_cast<int64_t>(n));
  }
  for (int64_t begin = 0; begin < S; begin += block) {
    const int64_t end = std::min(begin + block, S);
    const HostValues<Number> products(linear(z.rows(begin, end), x.detach(), {}, y.dtype()));
    parallel_for(R, kGrain, [&](int64_t from, int64_t to) {
      for (int64_t t = begin; t < end; ++t) {
        const int64_t first = text_of[static_cast<size_t>(t)] * R;
        compare(products.row(t - begin).data(), {from, to}, static_cast<int32_t>(t), values + first,
                rows->data() + first);
      }
    });
  }
  return rows;
}

// y += factor * x
template <class Number>
void add_scaled(std::span<Number> y, std::span<const Number> x, Number factor) {
  for (size_t i = 0; i < y.size(); ++i) y[i] += factor * x[i];
}

// The gradients of x and z from that of y; either of them may be empty, if it is not wanted.
template <class Number>
void add_gradients(const Tensor& dx, const Tensor& dz, const Tensor& given, const Tensor& x,
                   const Tensor& z, const Counts& counts, const std::vector<int32_t>& rows) {
  const int64_t N = std::ssize(counts), R = x.dim(0), C = x.dim(1);
  const HostValues<Number> dy(given), from_x(x), from_z(z);
  const auto row_of = [C](const Tensor& y, int64_t r) {
    return std::span<Number>(y.data_as<Number>() + r * C, static_cast<size_t>(C));
  };
  // Calls use(row of z, gradient) if the product of text n and row r has a gradient.
  const auto each = [&](int64_t n, int64_t r, const auto& use) {
    const int32_t t = rows[static_cast<size_t>(n * R + r)];
    if (t >= 0 && dy[n * R + r] != 0) use(t, dy[n * R + r]);
  };
  if (dx)  // dx[r] = sum over n of dy[n, r] z[t]
    parallel_for(R, std::max<int64_t>(1, kGrain / C), [&](int64_t from, int64_t to) {
      for (int64_t r = from; r < to; ++r)
        for (int64_t n = 0; n < N; ++n)
          each(n, r, [&](int32_t t, Number g) { add_scaled(row_of(dx, r), from_z.row(t), g); });
    });
  if (dz)  // dz[t] = sum over r whose largest product is that of t of dy[n, r] x[r]
    parallel_tasks(N, [&](int64_t n) {
      for (int64_t r = 0; r < R; ++r)
        each(n, r, [&](int32_t t, Number g) { add_scaled(row_of(dz, t), from_x.row(r), g); });
    });
}

template <class Number>
Tensor largest_of(const Tensor& x, const Tensor& z, const Counts& counts) {
  const DType type = working_type(x);
  const Tensor found = empty({std::ssize(counts), x.dim(0)}, type);
  const LargestRows rows = find_largest<Number>(found, x, z, counts);
  return record(found.to(x.device()), {x, z},
                [=, x = Saved(x), z = Saved(z)](const Tensor& dy, Gradients& d) {
                  const Tensor from_x = in_dtype(x.elements(), type),
                               from_z = in_dtype(z.elements(), type);
                  const Tensor dx = d.wants(x) ? zeros(from_x.shape(), type) : Tensor(),
                               dz = d.wants(z) ? zeros(from_z.shape(), type) : Tensor();
                  add_gradients<Number>(dx, dz, dy, from_x, from_z, counts, *rows);
                  for (const auto& [input, gradient] : {std::pair(&x, &dx), {&z, &dz}})
                    if (*gradient)
                      kernels(dy).convert(d[*input], gradient->to(dy.device()), gradient->size());
                });
}

}  // namespace

Tensor largest_products(const Tensor& x, const Tensor& z, const Counts& counts) {
  const bool given = std::ranges::all_of(counts, [](int64_t count) { return count >= 0; });
  check(x.rank() == 2 && z.rank() == 2 && x.dim(1) == z.dim(1) && x.dim(0) > 0 && x.dim(1) > 0 &&
            x.dtype() == z.dtype(),
        "largest_products: {} {} and {} {}; expected [R, C] and [S, C] of one dtype",
        name_of(x.dtype()), x.shape(), name_of(z.dtype()), z.shape());
  check(given && std::accumulate(counts.begin(), counts.end(), int64_t{0}) == z.dim(0),
        "largest_products: counts of {} texts for {}; expected their sum to be {}", counts.size(),
        z.shape(), z.dim(0));
  return x.dtype() == DType::f64 ? largest_of<double>(x, z, counts)
                                 : largest_of<float>(x, z, counts);
}

}  // namespace fovea

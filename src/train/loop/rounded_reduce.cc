#include "loop/rounded_reduce.h"

#include <utility>

#include "tensor/in_place.h"

namespace fovea::train {
namespace {

std::span<uint16_t> codes_in(const Tensor& x) {
  return {static_cast<uint16_t*>(x.data()), static_cast<size_t>(x.size())};
}

void convert(const Tensor& to, const Tensor& from) { kernels(from).convert(to, from, from.size()); }

// Returns x + errors in bf16, and sets the errors to what that leaves.
Tensor rounded(Tensor x, Tensor& errors) {
  if (errors) add_scaled(x, errors, 1);
  Tensor y = empty(x.shape(), DType::bf16);
  convert(y, x);
  const Tensor widened = empty_like(x);
  convert(widened, y);
  add_scaled(x, widened, -1);
  errors = std::move(x);
  return y;
}

}  // namespace

Tensor RoundedReduction::scatter(Tensor own, std::span<const int64_t> counts) {
  const auto ranks = static_cast<int64_t>(counts.size());
  const int64_t mine = counts[static_cast<size_t>(ranks_.rank())];
  const Tensor sent = rounded(std::move(own), sent_errors_),
               received = empty({ranks, mine}, DType::bf16);
  ranks_.all_to_all({codes_in(sent), counts},
                    {codes_in(received), std::vector<int64_t>(counts.size(), mine)});
  const Tensor sum = empty({mine}), next = empty({mine});
  convert(sum, received.rows(0, 1));
  for (int64_t r = 1; r < ranks; ++r) {
    convert(next, received.rows(r, r + 1));
    add_scaled(sum, next, 1);
  }
  return sum;
}

Tensor RoundedReduction::operator()(Tensor own) {
  const int64_t size = own.size(), ranks = ranks_.size();
  std::vector<int64_t> counts;
  for (int64_t r = 0; r < ranks; ++r) counts.push_back(size * (r + 1) / ranks - size * r / ranks);
  const Tensor all = empty({size}, DType::bf16);
  const int64_t begin = size * ranks_.rank() / ranks;
  const Tensor part = rounded(scatter(std::move(own), counts), total_errors_);
  copy_elements(all, begin, part, 0, part.size());
  ranks_.all_gather({codes_in(all), counts});
  Tensor total = empty({size});
  convert(total, all);
  return total;
}

}  // namespace fovea::train

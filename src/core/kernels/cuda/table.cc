// The table of the GPU device, and its entries that are not in other files.

#include <numeric>

#include "base/error.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/start.h"
#include "kernels/sum_block.h"

namespace fovea::cuda {
namespace {

// Waits for the kernels.
std::vector<int32_t> on_host(Indices numbers, int64_t count) {
  std::vector<int32_t> all(static_cast<size_t>(count));
  if (count > 0)
    backend().copy(all.data(), numbers.data, all.size() * sizeof(int32_t), CopyKind::to_host);
  return all;
}

}  // namespace

void embedding(Out y, In table, Indices ids, Rows rows) {
  if (rows.count > 0 && rows.width > 0)
    launch(kernel::embedding, over(rows.count * rows.width), y, table, ids.data, rows.count,
           rows.width);
}

// The host sorts the ids, of which there are few.
void embedding_backward(Out dtable, In dy, Indices ids, Rows rows, int64_t entries) {
  if (entries == 0 || rows.width == 0) return;
  const std::vector<int32_t> of_rows = on_host(ids, rows.count);
  std::vector<int64_t> starts(static_cast<size_t>(entries + 1)), units, order(of_rows.size());
  for (const int32_t id : of_rows) ++starts[static_cast<size_t>(id) + 1];
  std::partial_sum(starts.begin(), starts.end(), starts.begin());
  std::vector<int64_t> next(starts.begin(), starts.end() - 1);
  for (int64_t row = 0; row < rows.count; ++row) {
    const auto id = static_cast<size_t>(of_rows[static_cast<size_t>(row)]);
    order[static_cast<size_t>(next[id]++)] = row;
    units.push_back(rows.units.of(row, rows.count));
  }
  using Numbers = std::span<const int64_t>;
  const OnDevice its_order{Numbers(order)}, its_starts{Numbers(starts)}, its_units{Numbers(units)};
  launch(kernel::embedding_backward, over(entries * rows.width), dtable, dy, its_order.data(),
         its_starts.data(), its_units.data(), entries, rows.width);
}

void copy_columns(Out y, In x, const ColumnCopy& c) {
  const int64_t elements = c.rows * c.copies * c.width;
  if (elements > 0) launch(kernel::copy_columns, over(elements), y, x, c);
}

void copy_columns_backward(Out dx, In dy, const ColumnCopy& c) {
  if (c.rows * c.width > 0)
    launch(kernel::copy_columns_backward, over(c.rows * c.width), dx, dy, c);
}

void unfold(Out y, In x, const Windows& w) {
  const int64_t elements = w.batch * w.count * w.width * w.kernel;
  if (elements > 0) launch(kernel::unfold, over(elements), y, x, w);
}

void unfold_backward(Out dx, In dy, const Windows& w) {
  const int64_t elements = w.batch * w.tokens * w.width;
  if (elements > 0) launch(kernel::unfold_backward, over(elements), dx, dy, w);
}

// ---- Experts

void choose_experts(Out experts, In scores, In bias, const ExpertChoice& choice, Rows rows) {
  if (rows.width > kMostExperts)
    fail(ErrorKind::Unsupported, "choose_experts: {} experts on {}; expected at most {}",
         rows.width, backend().device(), kMostExperts);
  if (rows.count > 0)
    launch(kernel::choose_experts, over(rows.count), experts, scores, bias, choice, rows.count,
           rows.width);
}

int64_t first_outside(Indices numbers, int64_t count, int64_t limit) {
  const std::vector<int32_t> all = on_host(numbers, count);
  const auto outside = [limit](int32_t n) { return n < 0 || n >= limit; };
  const auto found = std::find_if(all.begin(), all.end(), outside);
  return found == all.end() ? -1 : found - all.begin();
}

// The host sorts, since it needs the counts.
void group_by_expert(Out rows, Out slots, int64_t* counts, Indices choices, int64_t row_count,
                     int64_t k, int64_t experts) {
  const std::vector<int32_t> chosen = on_host(choices, row_count * k);
  std::vector<int32_t> of_rows(chosen.size()), of_slots(chosen.size());
  std::fill_n(counts, experts, 0);
  for (const int32_t expert : chosen) ++counts[expert];
  std::vector<int64_t> next(static_cast<size_t>(experts));
  std::exclusive_scan(counts, counts + experts, next.begin(), int64_t{0});
  for (size_t i = 0; i < chosen.size(); ++i) {
    const int64_t slot = next[static_cast<size_t>(chosen[i])]++;
    of_rows[static_cast<size_t>(slot)] = static_cast<int32_t>(static_cast<int64_t>(i) / k);
    of_slots[i] = static_cast<int32_t>(slot);
  }
  const size_t bytes = chosen.size() * sizeof(int32_t);
  if (bytes == 0) return;
  backend().copy(rows.data, of_rows.data(), bytes, CopyKind::to_device);
  backend().copy(slots.data, of_slots.data(), bytes, CopyKind::to_device);
}

void pick(Out y, In x, Indices columns, int64_t k, Rows rows) {
  if (rows.count * k > 0)
    launch(kernel::pick, over(rows.count * k), y, x, columns.data, k, rows.count, rows.width);
}

void pick_backward(Out dx, In dy, Indices columns, int64_t k, Rows rows) {
  if (rows.count * rows.width > 0)
    launch(kernel::pick_backward, over(rows.count * rows.width), dx, dy, columns.data, k,
           rows.count, rows.width);
}

void distance_terms(Out y, In of_queries, In of_keys, Indices rows, const DistanceTerms& n) {
  const int64_t size = n.heads * n.queries * n.keys;
  if (size > 0)
    launch(kernel::distance_terms, over(size), y, of_queries, of_keys, rows.data, n, size);
}

void distance_terms_backward(Out dof_queries, Out dof_keys, In dy, Indices rows,
                             const DistanceTerms& n) {
  const auto add = [&](Out y, int64_t count, bool of_keys) {
    const int64_t size = n.heads * count * n.vectors;
    if (y.data == nullptr || size == 0) return;
    const OnDevice<float> sums(static_cast<size_t>(size));
    launch(kernel::sum_distance_terms, over(n.heads * count), sums.data(), dy, rows.data, n,
           of_keys, n.heads * count);
    launch(kernel::convert, over(size), y, In{sums.data(), DType::f32}, size);
  };
  add(dof_queries, n.queries, false);
  add(dof_keys, n.keys, true);
}

void combine(Out y, In z, Indices slots, In weights, int64_t choices, Rows rows) {
  if (rows.count * rows.width > 0)
    launch(kernel::combine, over(rows.count * rows.width), y, z, slots.data, weights, choices,
           rows.count, rows.width);
}

void combine_backward(Out dz, Out dweights, In dy, In z, Indices slots, In weights, int64_t choices,
                      Rows rows) {
  if (rows.count * choices > 0)
    launch(kernel::combine_backward, over_rows(rows.count * choices), dz, dweights, dy, z,
           slots.data, weights, choices, rows.count, rows.width);
}

// ---- Others

void rotate(Out y, In x, In cosines, In sines, const Rotation& rotation) {
  const int64_t elements = rotation.rows * rotation.heads * rotation.width;
  if (elements > 0) launch(kernel::rotate, over(elements), y, x, cosines, sines, rotation);
}

void sgd(Out weight, Out m, In gradient, const Sgd& step, int64_t size) {
  if (size > 0) launch(kernel::sgd, over(size), weight, m, gradient, step, size);
}

void lion(Out weight, Out m, In gradient, const Lion& step, int64_t size) {
  if (size > 0) launch(kernel::lion, over(size), weight, m, gradient, step, size);
}

void adamw(Out weight, Out m, Out v, In gradient, const AdamW& step, int64_t size) {
  if (size > 0) launch(kernel::adamw, over(size), weight, m, v, gradient, step, size);
}

void packed_adamw(Out weight, const PackedMoments& moments, In gradient, const AdamW& step,
                  int64_t size) {
  if (size > 0)
    launch(kernel::packed_adamw, over_rows((size + kMomentBlock - 1) / kMomentBlock), weight,
           moments, gradient, step, size);
}

void recurrent_cell(Out h, Out c, Out y, Out kept, In x, In u, In h0, In c0,
                    const CellShape& shape) {
  if (shape.rows * shape.width > 0)
    launch(kernel::recurrent_cell, over(shape.rows * shape.width), h, c, y, kept, x, u, h0, c0,
           shape, gates_of(shape.cell), kept_of(shape.cell));
}

void recurrent_cell_backward(const CellGradients& d, In dy, In dh, In dc, In kept, In h0, In c0,
                             In c, const CellShape& shape) {
  if (shape.rows * shape.width > 0)
    launch(kernel::recurrent_cell_backward, over(shape.rows * shape.width), d, dy, dh, dc, kept, h0,
           c0, c, shape, gates_of(shape.cell), kept_of(shape.cell));
}

void dropout(Out y, In x, const Dropout& dropout, int64_t size) {
  if (size > 0) launch(kernel::dropout, over(size), y, x, dropout, size);
}

void cross_entropy(Out losses, Out lse, In logits, Indices targets, float smoothing, Rows rows) {
  if (rows.count > 0)
    launch(kernel::cross_entropy, over_rows(rows.count), losses, lse, logits, targets.data,
           smoothing, rows.count, rows.width);
}

void cross_entropy_backward(Out dlogits, In logits, In lse, Indices targets, In factors,
                            float factor, float smoothing, Rows rows, Classes classes) {
  if (rows.count > 0 && rows.width > 0)
    launch(kernel::cross_entropy_backward, over(rows.count * rows.width), dlogits, logits, lse,
           targets.data, factors, factor, smoothing, rows.count, rows.width, classes);
}

void kl_divergence(Out losses, Out lse, Out rest, In logits, Indices top, In log_p,
                   const TopClasses& classes, Rows rows) {
  if (rows.count > 0)
    launch(kernel::kl_divergence, over_rows(rows.count), losses, lse, rest, logits, top.data, log_p,
           classes, rows.count, rows.width);
}

void kl_divergence_backward(Out dlogits, In logits, In lse, In rest, Indices top, In log_p,
                            const TopClasses& classes, float factor, Rows rows, Classes columns) {
  if (rows.count > 0 && rows.width > 0)
    launch(kernel::kl_divergence_backward, over_rows(rows.count), dlogits, logits, lse, rest,
           top.data, log_p, classes, factor, rows.count, rows.width, columns);
}

namespace {

double sum_of(In x, bool squares, int64_t size) {
  if (size == 0) return 0;
  const int64_t blocks = (size + kSumBlock - 1) / kSumBlock;
  const OnDevice<double> partial(static_cast<size_t>(blocks)), total(1);
  launch(kernel::sum_of_blocks, over(blocks * 16), partial.data(), x, squares, size);
  launch(kernel::add_partial_sums, {}, total.data(), partial.data(), blocks);
  return total.number();
}

}  // namespace

double sum(In x, int64_t size) { return sum_of(x, false, size); }
double sum_of_squares(In x, int64_t size) { return sum_of(x, true, size); }

namespace {

const Kernels kTable = {
    .device = "cuda",
    .gemm = gemm,
    .packed_linear = packed_linear,
    .packed_gemm = packed_gemm,
    .unpack_rows = unpack_rows,
    .convert = Elementwise<kernel::convert>::run,
    .add = Elementwise<kernel::add>::run,
    .multiply = Elementwise<kernel::multiply>::run,
    .scale = Elementwise<kernel::scale>::run,
    .shift = Elementwise<kernel::shift>::run,
    .softcap = Elementwise<kernel::softcap>::run,
    .softcap_backward = Elementwise<kernel::softcap_backward>::run,
    .activation = Elementwise<kernel::activation>::run,
    .gated_activation = Elementwise<kernel::gated_activation>::run,
    .activation_backward = Elementwise<kernel::activation_backward>::run,
    .gated_activation_backward = Elementwise<kernel::gated_activation_backward>::run,
    .elementary = Elementwise<kernel::elementary>::run,
    .elementary_backward = Elementwise<kernel::elementary_backward>::run,
    .minimum = Elementwise<kernel::minimum>::run,
    .minimum_backward = Elementwise<kernel::minimum_backward>::run,
    .clip = Elementwise<kernel::clip>::run,
    .clip_backward = Elementwise<kernel::clip_backward>::run,
    .dropout = dropout,
    .sum_rows = sum_rows,
    .layer_norm = layer_norm,
    .layer_norm_backward = layer_norm_backward,
    .rms_norm = rms_norm,
    .rms_norm_backward = rms_norm_backward,
    .scale_columns = scale_columns,
    .dynamic_tanh = dynamic_tanh,
    .dynamic_tanh_backward = dynamic_tanh_backward,
    .softmax = softmax,
    .softmax_backward = softmax_backward,
    .divide_by_sum = divide_by_sum,
    .divide_by_sum_backward = divide_by_sum_backward,
    .rotate = rotate,
    .recurrent_cell = recurrent_cell,
    .recurrent_cell_backward = recurrent_cell_backward,
    .unfold = unfold,
    .unfold_backward = unfold_backward,
    .copy_columns = copy_columns,
    .copy_columns_backward = copy_columns_backward,
    .choose_experts = choose_experts,
    .first_outside = first_outside,
    .group_by_expert = group_by_expert,
    .pick = pick,
    .pick_backward = pick_backward,
    .combine = combine,
    .combine_backward = combine_backward,
    .embedding = embedding,
    .embedding_backward = embedding_backward,
    .attention = attention,
    .attention_paged = attention_paged,
    .put_in_pages = put_in_pages,
    .attention_backward = attention_backward,
    .attention_sink_terms = attention_sink_terms,
    .attention_weights = attention_weights,
    .distance_terms = distance_terms,
    .distance_terms_backward = distance_terms_backward,
    .cross_entropy = cross_entropy,
    .cross_entropy_backward = cross_entropy_backward,
    .kl_divergence = kl_divergence,
    .kl_divergence_backward = kl_divergence_backward,
    .adamw = adamw,
    .packed_adamw = packed_adamw,
    .sgd = sgd,
    .lion = lion,
    .sum = sum,
    .sum_of_squares = sum_of_squares};

}  // namespace

const Kernels& kernels(DType dtype) {
  if (dtype == DType::f64)
    fail(ErrorKind::Unsupported, "cuda: no kernels for {}; expected fp32 or bf16", name_of(dtype));
  return kTable;
}

}  // namespace fovea::cuda

#include <fmt/format.h>

#include "unit/ops/cases.h"

namespace fovea::test {
namespace {

void add_rotations(std::vector<Case>& all) {
  struct Size {
    Shape x;
    int64_t rotated;
    bool each_row;  // separate angles for each of the B*T rows
  };
  for (const auto& [shape, rotated, each_row] :
       {Size{{1, 1, 1, 2}, 2, false}, Size{{2, 3, 2, 6}, 6, false}, Size{{2, 3, 2, 7}, 4, true},
        Size{{2, 5, 3, 70}, 66, true}, Size{{1, 3, 1, 130}, 130, false},
        Size{{1, 2, 2, 3}, 0, false}}) {
    const Shape angles{each_row ? shape[0] * shape[1] : shape[1], rotated / 2};
    // The op accepts any numbers; they need not be cosines and sines of the same angle.
    const Tensor cosines = convert(normal(angles, 2), DType::f32);
    const Tensor sines = convert(normal(angles, 3), DType::f32);
    for (const Pairing pairing : {Pairing::halves, Pairing::neighbours}) {
      all.push_back(
          {"rotate",
           fmt::format("{} of {}, pairing {}", rotated, describe(shape), static_cast<int>(pairing)),
           {rounded(shape, 1)},
           [=](auto& in) { return rotate(in[0], cosines, sines, pairing); }});
    }
  }
}

void add_windows(std::vector<Case>& all) {
  struct Size {
    Shape x;
    int64_t kernel, stride, padding;
  };
  for (const auto& [shape, kernel, stride, padding] :
       {Size{{1, 1, 1}, 1, 1, 0}, Size{{2, 7, 3}, 3, 1, 1}, Size{{2, 8, 3}, 3, 2, 1},
        Size{{1, 5, 67}, 2, 2, 0}, Size{{2, 11, 2}, 4, 5, 3}, Size{{1, 3, 2}, 7, 1, 2}}) {
    all.push_back(
        {"unfold",
         fmt::format("{}, kernel {}, stride {}, padding {}", describe(shape), kernel, stride,
                     padding),
         {rounded(shape, 1)},
         [=, k = kernel, s = stride, p = padding](auto& in) { return unfold(in[0], k, s, p); }});
  }
  for (const auto& [shape, size] :
       {std::pair<Shape, int64_t>{{1, 1, 1, 1}, 1}, {{2, 3, 4, 6}, 2}, {{1, 2, 9, 3}, 3}}) {
    all.push_back({"patches",
                   fmt::format("of {} in {}", size, describe(shape)),
                   {rounded(shape, 1)},
                   [s = size](auto& in) { return patches(in[0], s); },
                   false});
  }
}

void add_concatenations(std::vector<Case>& all) {
  for (const auto& [first, second] : {std::pair<Shape, Shape>{{1, 1, 1}, {1, 1, 1}},
                                      {{1, 1, 5}, {3, 4, 5}},
                                      {{3, 2, 5}, {3, 4, 5}},
                                      {{2, 3, 67}, {2, 1, 67}},
                                      {{1, 2, 3}, {2, 0, 3}}}) {
    all.push_back({"concat_tokens",
                   fmt::format("{} and {}", describe(first), describe(second)),
                   {rounded(first, 1), rounded(second, 2)},
                   [](auto& in) { return concat_tokens(in[0], in[1]); }});
  }
  all.push_back({"concat_tokens", "with itself", {rounded({2, 3, 5}, 1)}, [](auto& in) {
                   return concat_tokens(in[0], in[0]);
                 }});
}

// Products of heads, the terms that depend on distances, and attention with such terms.
void add_distances(std::vector<Case>& all) {
  const Tensor q = rounded({4, 3, 4, 5}, 1), k = rounded({4, 6, 2, 5}, 2);
  const auto products = [](auto& in) { return head_products(in[0], in[1]); };
  all.push_back({"head_products", "grouped", {q, k}, products});
  all.push_back({"head_products", "keys of two parts", {q, rounded({2, 7, 4, 5}, 3)}, products});
  all.push_back({"head_products",
                 "one element",
                 {rounded({1, 1, 1, 1}, 4), rounded({1, 1, 1, 1}, 5)},
                 products});
  const Tensor of_queries = rounded({2, 3, 4, 5}, 6), of_keys = rounded({2, 3, 6, 5}, 7);
  const Tensor rows = integers({0, 0, 1, 2, 2, 3, 4, 4, 4}, {9});
  all.push_back({"distance_terms", "both", {of_queries, of_keys}, [=](auto& in) {
                   return distance_terms(in[0], in[1], rows, 0.5f);
                 }});
  all.push_back({"distance_terms", "of queries", {of_queries}, [=](auto& in) {
                   return distance_terms(in[0], {}, rows, 0.5f);
                 }});
  all.push_back({"distance_terms", "of keys", {of_keys}, [=](auto& in) {
                   return distance_terms({}, in[0], rows, -2);
                 }});
  const Tensor v = rounded({4, 6, 2, 3}, 8), terms = rounded({4, 4, 3, 6}, 9);
  AttentionOptions options;
  options.scale = 0.5f;
  options.softcap = 3;
  options.mask.valid = {{0, 6}, {2, 5}, {0, 1}, {0, 4}};
  all.push_back({"attention", "with terms", {q, k, v, terms}, [=](auto& in) {
                   AttentionOptions with = options;
                   with.terms = cast(in[3], in[3].dtype() == DType::f64 ? DType::f64 : DType::f32);
                   return attention(in[0], in[1], in[2], with);
                 }});
}

}  // namespace

void add_position_cases(std::vector<Case>& all) {
  add_rotations(all);
  add_windows(all);
  add_concatenations(all);
  add_distances(all);
}

}  // namespace fovea::test

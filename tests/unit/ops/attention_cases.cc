#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "kernels/layout/kv_page.h"
#include "unit/ops/cases.h"

namespace fovea::test {
namespace {

struct AttentionSize {
  int64_t batch, queries, keys, heads, kv_heads, width;
};

void add_attention(std::vector<Case>& all, const std::string& what, AttentionSize s,
                   AttentionOptions options) {
  options.scale = 1 / std::sqrt(static_cast<float>(s.width));
  const Tensor q = rounded({s.batch, s.queries, s.heads, s.width}, 1, 1.5);
  const Tensor k = rounded({s.batch, s.keys, s.kv_heads, s.width}, 2, 1.5);
  const Tensor v = rounded({s.batch, s.keys, s.kv_heads, s.width}, 3);
  const std::string size = fmt::format("[{}, {}, {}, {}] on {} keys of {} heads", s.batch,
                                       s.queries, s.heads, s.width, s.keys, s.kv_heads);
  all.push_back({"attention", what + " " + size, {q, k, v}, [=](auto& in) {
                   return attention(in[0], in[1], in[2], options);
                 }});
  all.push_back({"attention_weights",
                 what + " " + size,
                 {q, k},
                 [=](auto& in) { return attention_weights(in[0], in[1], options); },
                 false});
  AttentionOptions seen;
  seen.scale = 0.5f;
  all.push_back({"attention_scores",
                 "of two key-value heads",
                 {rounded({2, 5, 4, 6}, 1), rounded({2, 5, 2, 6}, 2)},
                 [=](auto& in) { return attention_scores(in[0], in[1], seen); },
                 false});
  all.push_back({"weighted_values",
                 what + " " + size,
                 {rounded({s.batch, s.heads, s.queries, s.keys}, 4), v},
                 [](auto& in) { return weighted_values(in[0], in[1]); }});
}

// Returns x [kPageTokens, 1, 4] as a page with one head of width 4.
std::vector<char> page_of(const Tensor& x, PagePart part) {
  const PageLayout layout{1, 4, x.dtype()};
  std::vector<char> page(static_cast<size_t>(layout.page_bytes()));
  put_in_page(layout, part, page.data(), 0, x, kPageTokens);
  return page;
}

// Adds a ragged batch of two texts: the first three tokens of one, and the ninth token of the
// other.
void add_paged_attention(std::vector<Case>& all) {
  const Tensor q = rounded({4, 2, 4}, 1), k = rounded({kPageTokens, 1, 4}, 2);
  const Tensor v = rounded({kPageTokens, 1, 4}, 3);
  all.push_back({"attention_paged",
                 "of two texts",
                 {q, k, v},
                 [](auto& in) {
                   const std::vector<char> key_page = page_of(in[1], PagePart::keys);
                   const std::vector<char> value_page = page_of(in[2], PagePart::values);
                   const void* const keys = key_page.data();
                   const void* const values = value_page.data();
                   PagedText first{.row = 0, .queries = 3, .keys = 3, .mask = {}};
                   PagedText second{.row = 3, .queries = 1, .keys = 9, .mask = {}};
                   first.mask.causal = second.mask.causal = true;
                   second.mask.first_query = 8;
                   for (PagedText* text : {&first, &second})
                     text->key_pages = &keys, text->value_pages = &values;
                   return attention_paged(in[0], {first, second},
                                          {.kv_heads = 1, .pages = in[1].dtype(), .scale = 0.5f});
                 },
                 false});
}

// Adds the ops of latent attention, and attention whose values have another width than its keys.
void add_latent_attention(std::vector<Case>& all) {
  for (const auto& [B, T, H, N, D] : {std::array<int64_t, 5>{1, 1, 1, 1, 1}, {2, 3, 4, 5, 7}}) {
    all.push_back({"concat_shared",
                   fmt::format("{} heads", H),
                   {rounded({B, T, 1, N}, 1), rounded({B, T, H, D}, 2)},
                   [](auto& in) { return concat_shared(in[0], in[1]); }});
    for (const bool transpose : {false, true})
      all.push_back({"linear_by_head",
                     fmt::format("{} heads{}", H, transpose ? ", transposed" : ""),
                     {rounded({B, T, H, N + D}, 1),
                      rounded(transpose ? Shape{H * D, 6} : Shape{H * 6, D}, 2)},
                     [N = N, transpose](auto& in) {
                       const NoGradient off;
                       return linear_by_head(in[0], N, in[1], transpose);
                     },
                     false});
  }
  AttentionOptions options;
  options.scale = 0.5f;
  options.mask.causal = true;
  for (const int64_t width : {3, 9})
    all.push_back(
        {"attention",
         fmt::format("values of width {}", width),
         {rounded({2, 5, 4, 6}, 1), rounded({2, 5, 2, 6}, 2), rounded({2, 5, 2, width}, 3)},
         [=](auto& in) { return attention(in[0], in[1], in[2], options); }});
}

// Adds attention with a bias by distance, which is the last input.
void add_biased_attention(std::vector<Case>& all, const std::string& what, AttentionSize s,
                          AttentionOptions options) {
  options.scale = 1 / std::sqrt(static_cast<float>(s.width));
  const auto biased = [options](auto& in) {
    AttentionOptions all_options = options;
    all_options.bias = cast(in.back(), in[0].dtype() == DType::f64 ? DType::f64 : DType::f32);
    return all_options;
  };
  const Tensor q = rounded({s.batch, s.queries, s.heads, s.width}, 1, 1.5);
  const Tensor k = rounded({s.batch, s.keys, s.kv_heads, s.width}, 2, 1.5);
  const Tensor v = rounded({s.batch, s.keys, s.kv_heads, s.width}, 3);
  const Tensor bias = rounded({s.heads, s.queries + s.keys - 1}, 4);
  all.push_back({"attention", "bias " + what, {q, k, v, bias}, [=](auto& in) {
                   return attention(in[0], in[1], in[2], biased(in));
                 }});
  all.push_back({"attention_weights",
                 "bias " + what,
                 {q, k, bias},
                 [=](auto& in) { return attention_weights(in[0], in[1], biased(in)); },
                 false});
}

void add_attention_with_sinks(std::vector<Case>& all) {
  AttentionOptions options;
  options.scale = 0.6f;
  options.mask.causal = true;
  options.mask.window = 4;
  options.mask.valid = {{0, 5}, {4, 4}};  // row 1 sees its sinks alone
  const auto with = [options](const auto& in) {
    AttentionOptions all_options = options;
    all_options.sinks = cast(in.back(), in[0].dtype() == DType::f64 ? DType::f64 : DType::f32);
    return all_options;
  };
  const Tensor q = rounded({2, 5, 4, 3}, 1), k = rounded({2, 5, 2, 3}, 2);
  const Tensor v = rounded({2, 5, 2, 7}, 3), sinks = rounded({4}, 4);
  all.push_back({"attention", "sinks", {q, k, v, sinks}, [=](auto& in) {
                   return attention(in[0], in[1], in[2], with(in));
                 }});
  options.dropout = {.probability = 0.3f, .seed = 5, .substream = 1, .step = 2};
  all.push_back({"attention", "sinks, dropout", {q, k, v, sinks}, [=](auto& in) {
                   AttentionOptions dropped = with(in);
                   dropped.dropout = options.dropout;
                   return attention(in[0], in[1], in[2], dropped);
                 }});
  all.push_back({"attention_weights",
                 "sinks",
                 {q, k, sinks},
                 [=](auto& in) { return attention_weights(in[0], in[1], with(in)); },
                 false});
}

void add_biased_attentions(std::vector<Case>& all) {
  AttentionOptions options;
  add_biased_attention(all, "alone", {2, 5, 9, 4, 2, 3}, options);
  add_biased_attention(all, "of one", {1, 1, 1, 1, 1, 1}, options);
  options.softcap = 1.5f;
  add_attention(all, "softcap", {2, 5, 9, 4, 2, 3}, options);
  add_biased_attention(all, "softcap", {2, 5, 9, 4, 2, 3}, options);
  options.mask.causal = true;
  add_biased_attention(all, "beyond a tile", {1, 67, 67, 2, 1, 5}, options);
  options.mask.first_query = 4;
  options.mask.window = 2;
  options.mask.global = 1;
  options.mask.valid = {{0, 9}, {1, 8}};
  options.dropout = {.probability = 0.3f, .seed = 5, .substream = 1, .step = 2};
  add_biased_attention(all, "everything", {2, 5, 9, 4, 2, 3}, options);
  options = {};
  options.mask.window = 3;
  options.mask.global = 2;
  add_attention(all, "two-sided window, global", {2, 9, 9, 2, 1, 3}, options);
  options.mask.causal = true;
  options.mask.prefix = 4;
  add_attention(all, "prefix", {2, 9, 9, 2, 1, 3}, options);
}

void add_masks(std::vector<Case>& all) {
  const Mask causal{.causal = true, .first_query = 0, .window = 0, .valid = {}};
  Mask window = causal, later = causal, left = causal, right, wide, many = causal, hidden = causal;
  window.window = 2;
  later.first_query = 4;
  left.valid = {{3, 9}, {0, 9}};
  right.valid = {{0, 5}, {0, 1}};
  wide.valid = {{-3, 100}, {2, 7}};
  many.first_query = 5, many.window = 4, many.valid = {{1, 9}, {6, 8}};
  hidden.valid = {{4, 4}, {6, 9}};  // row 0 has no keys; those of row 1 are after its queries
  const std::pair<const char*, Mask> masks[] = {
      {"all", {}},       {"causal", causal}, {"window", window}, {"first_query", later},
      {"left", left},    {"right", right},   {"wide", wide},     {"many", many},
      {"hidden", hidden}};
  for (const auto& [name, mask] : masks) {
    AttentionOptions options;
    options.mask = mask;
    add_attention(all, name, {2, 5, 9, 2, 2, 3}, options);
    add_attention(all, name, {2, 3, 9, 4, 2, 5}, options);
    add_attention(all, name, {2, 1, 9, 3, 1, 8}, options);
    options.dropout = {.probability = 0.3f, .seed = 5, .substream = 1, .step = 2};
    add_attention(all, std::string(name) + " dropout", {2, 5, 9, 2, 1, 3}, options);
  }
  AttentionOptions options;
  add_attention(all, "one", {1, 1, 1, 1, 1, 1}, options);
  options.mask = causal;
  add_attention(all, "beyond a tile", {1, 67, 67, 2, 1, 17}, options);
  options.mask.window = 65;
  options.keys = 71;
  options.mask.first_query = 60;
  add_attention(all, "part of the keys", {1, 11, 75, 1, 1, 5}, options);
}

}  // namespace

void add_attention_cases(std::vector<Case>& all) {
  add_masks(all);
  add_paged_attention(all);
  add_attention_with_sinks(all);
  add_biased_attentions(all);
  add_latent_attention(all);
}

}  // namespace fovea::test

#include "generate/attention_trace.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "kernels/layout/kv_page.h"
#include "spec/mixers.h"

namespace fovea::infer {
namespace {

Tensor in_f32(const Tensor& x) { return x.dtype() == DType::f32 ? x : cast(x, DType::f32); }

// Returns the query of one head and row.   q [1, R, H, D] -> f32 [1, 1, 1, D]
Tensor query_of(const Tensor& q, int64_t row, int64_t head) {
  const int64_t H = q.dim(-2), D = q.dim(-1);
  const Tensor heads = q.view({q.size() / D, D});
  return in_f32(heads.rows(row * H + head, row * H + head + 1)).view({1, 1, 1, D});
}

// Returns the keys of one group of a text, copied from its pages; zeros for null pages, which the
// mask hides -> f32 [1, S, 1, D]
Tensor keys_of(const PagedText& text, int64_t group, int64_t D, const PagedOptions& options) {
  const Tensor keys = zeros({1, text.keys, 1, D});
  const PageLayout layout{options.kv_heads, D, options.pages};
  std::vector<double> row(static_cast<size_t>(D));
  for (int64_t s = 0; s < text.keys; ++s) {
    if (text.key_pages[s / kPageTokens] == nullptr) continue;
    get_from_page(layout, PagePart::keys, text.key_pages[s / kPageTokens], s % kPageTokens, group,
                  row.data());
    std::transform(row.begin(), row.end(), keys.data_as<float>() + s * D,
                   [](double x) { return static_cast<float>(x); });
  }
  return keys;
}

// Returns the bias of one head for the scores of a query at `position` -> [1, S]
Tensor bias_of(const PagedOptions& options, int64_t head, int64_t position, int64_t S) {
  const Tensor bias = empty({1, S});
  copy_elements(bias, 0, options.bias, head * options.bias.dim(-1) + options.bias_zero - position,
                S);
  return bias;
}

// Returns the attention weights of one head for one row of a text -> [S]
std::vector<float> weights_of(const Tensor& q, const PagedText& text, int64_t row, int64_t head,
                              const PagedOptions& paged) {
  const int64_t group = head / (q.dim(-2) / paged.kv_heads);
  AttentionOptions options;
  options.scale = paged.scale;
  options.softcap = paged.softcap;
  options.mask = text.mask;
  options.mask.first_query += row - text.row;
  if (paged.sinks) {  // that of the head
    options.sinks = empty({1}, paged.sinks.dtype());
    copy_elements(options.sinks, 0, paged.sinks, head, 1);
  }
  if (paged.bias) options.bias = bias_of(paged, head, options.mask.first_query, text.keys);
  return to_floats(
      attention_weights(query_of(q, row, head), keys_of(text, group, q.dim(-1), paged), options));
}

std::vector<std::pair<int32_t, float>> strongest(const std::vector<float>& weights, int64_t count) {
  std::vector<int32_t> order(weights.size());
  std::iota(order.begin(), order.end(), 0);
  const auto weight = [&](int32_t key) { return weights[static_cast<size_t>(key)]; };
  const auto kept = order.begin() + std::min<int64_t>(count, std::ssize(order));
  std::partial_sort(order.begin(), kept, order.end(), [&](int32_t a, int32_t b) {
    return weight(a) != weight(b) ? weight(a) > weight(b) : a < b;
  });
  std::vector<std::pair<int32_t, float>> keys;
  for (auto key = order.begin(); key != kept && weight(*key) > 0; ++key)
    keys.emplace_back(*key, weight(*key));
  return keys;
}

}  // namespace

void check_attention_trace(const AttentionTraceOptions& trace, const model::StackSpec& decoder) {
  if (trace.attention) {
    const auto& [layer, head, top_k] = *trace.attention;
    check(layer >= 0 && layer < decoder.layers, "attention: layer {}; expected 0 to {}", layer,
          decoder.layers - 1);
    check(!model::is_recurrent(decoder, layer),
          "attention: layer {} is recurrent; expected an attention layer", layer);
    check(head >= 0 && head < decoder.attention.heads, "attention: head {}; expected 0 to {}", head,
          decoder.attention.heads - 1);
    check(top_k >= 1, "attention: top_k {}; expected at least 1", top_k);
  }
  const int64_t hidden = trace.hidden.value_or(0);
  check(hidden >= 0 && hidden <= decoder.layers, "hidden states: layer {}; expected 0 to {}",
        hidden, decoder.layers);
}

void AttentionTracer::want(const AttentionTraceOptions& trace, size_t member, int64_t first,
                           int64_t rows) {
  if (!trace.attention && !trace.hidden) return;
  members_[member] = {trace, first, std::vector<AttentionTrace>(static_cast<size_t>(rows))};
}

void AttentionTracer::see(const model::ProbePoint& point, const Tensor& value) {
  if (point.what != model::ProbePoint::What::hidden) return;
  for (auto& [number, member] : members_) {
    if (member.trace.hidden != point.layer) continue;  // always a layer of the decoder
    const int64_t C = value.dim(-1);
    for (size_t i = 0; i < member.rows.size(); ++i) {
      const int64_t row = member.first + static_cast<int64_t>(i);
      const std::vector<float> all =
          to_floats(value.view({value.size() / C, C}).rows(row, row + 1));
      member.rows[i].hidden = all;
    }
  }
}

void AttentionTracer::attend(int64_t layer, const Tensor& q, const std::vector<PagedText>& texts,
                             const PagedOptions& options) {
  for (auto& [number, member] : members_) {
    if (!member.trace.attention || member.trace.attention->layer != layer) continue;
    for (size_t i = 0; i < member.rows.size(); ++i) {
      const int64_t row = member.first + static_cast<int64_t>(i);
      const auto weights = weights_of(q, texts[number], row, member.trace.attention->head, options);
      member.rows[i].keys = strongest(weights, member.trace.attention->top_k);
    }
  }
}

std::vector<AttentionTrace> AttentionTracer::take(size_t member) {
  const auto found = members_.find(member);
  return found == members_.end() ? std::vector<AttentionTrace>() : std::move(found->second.rows);
}

}  // namespace fovea::infer

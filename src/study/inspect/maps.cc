// Attention weights of requested rows and heads, and statistics of heads.

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/checked.h"
#include "base/error.h"
#include "base/fields.h"
#include "base/math.h"
#include "base/threads.h"
#include "inspect/inspection.h"
#include "tensor/host_values.h"
#include "tensor/tape.h"

namespace fovea::study {
namespace {

constexpr int64_t kQueryRows = 256;                 // query rows computed at a time
constexpr int64_t kMapElements = int64_t{1} << 24;  // limit of a map: 64 MiB of weights

// Copies rows of one head to a tensor of one head.   x [1, T, H, D] -> [1, R, 1, D]
Tensor one_head(const Tensor& x, int64_t head, Interval rows) {
  const int64_t H = x.dim(2), D = x.dim(3), R = rows.end - rows.begin;
  const Tensor y = empty({1, R, 1, D});
  for (int64_t r = 0; r < R; ++r) copy_elements(y, r * D, x, ((rows.begin + r) * H + head) * D, D);
  return y;
}

Interval whole(int64_t first, int64_t end, int64_t size, const char* what) {
  const Interval seen{first, end < 0 ? size : end};
  check(0 <= seen.begin && seen.begin < seen.end && seen.end <= size,
        "{}: {} to {}; expected a range within 0 to {}", what, seen.begin, seen.end, size);
  return seen;
}

// The mean entropy of the attention weights of queries, each divided by the log of the number of
// visible keys; queries that see only one key are skipped.
class Diffuseness {
 public:
  Diffuseness(const Mask& mask, int64_t keys) : mask_(mask), keys_(keys) {}

  void add(int64_t query, const float* weights) {
    Interval parts[Mask::kMostIntervals];
    int64_t seen = 0;
    const int count = mask_.intervals(0, query, keys_, parts);
    for (int i = 0; i < count; ++i) seen += parts[i].end - parts[i].begin;
    if (seen < 2) return;
    double entropy = 0;
    for (int64_t s = 0; s < keys_; ++s)
      if (weights[s] > 0) entropy -= double{weights[s]} * math::log(double{weights[s]});
    sum_ += entropy / math::log(static_cast<double>(seen));
    ++queries_;
  }
  double mean() const { return queries_ > 0 ? sum_ / static_cast<double>(queries_) : 0; }

 private:
  const Mask& mask_;
  int64_t keys_, queries_ = 0;
  double sum_ = 0;
};

// Considers only ASCII punctuation; that of other scripts would need tables.
bool is_punctuation(const InspectedToken& token) {
  bool mark = false;
  for (const char c : token.text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80 || std::isalnum(byte) != 0) return false;
    mark = mark || std::ispunct(byte) != 0;
  }
  return mark && !token.special;
}

}  // namespace

Inspection::State::HeadRows Inspection::State::head_rows(model::AttentionKind kind, int64_t layer,
                                                         int64_t head, Interval rows) const {
  const AttentionMap& here = attended(kind, layer);
  const int64_t T = here.q.dim(1), S = here.k.dim(1), R = rows.end - rows.begin;
  check_head(head, here.q.dim(2));
  const int64_t group = head / (here.q.dim(2) / here.k.dim(2));
  AttentionOptions options = here.options;
  options.mask.first_query += rows.begin;
  if (options.bias) {  // entry s - t + T - 1 for query t moves to s - (t - rows.begin) + R - 1
    const int64_t N = T + S - 1;
    const Tensor bias = empty({1, R + S - 1});
    copy_elements(bias, 0, here.options.bias, head * N + T - R - rows.begin, R + S - 1);
    options.bias = bias;
  }
  if (options.sinks) {
    options.sinks = empty({1}, here.options.sinks.dtype());
    copy_elements(options.sinks, 0, here.options.sinks, head, 1);
  }
  if (options.terms) {
    options.terms = empty({1, 1, R, S});
    copy_elements(options.terms, 0, here.options.terms, (head * T + rows.begin) * S, R * S);
  }
  return {one_head(here.q, head, rows), one_head(here.k, group, {0, S}), options};
}

Tensor Inspection::State::weights(model::AttentionKind kind, int64_t layer, int64_t head,
                                  Interval rows) const {
  const NoGradient off;
  const auto [q, k, options] = head_rows(kind, layer, head, rows);
  return attention_weights(q, k, options).view({q.dim(1), k.dim(1)});
}

Tensor Inspection::State::scores(model::AttentionKind kind, int64_t layer, int64_t head,
                                 Interval rows) const {
  const NoGradient off;
  const auto [q, k, options] = head_rows(kind, layer, head, rows);
  return attention_scores(q, k, options).view({q.dim(1), k.dim(1)});
}

AttentionWeights Inspection::map(const MapQuery& query) const {
  const InspectionCall state(*state_);
  const Interval rows =
      whole(query.first_row, query.end_row, state->run(query.kind).tokens(), "query rows");
  const Interval columns = whole(query.first_key, query.end_key, state->keys(query.kind), "keys");
  check(query.step > 0 && !query.heads.empty(), "step {} and {} heads; expected at least 1",
        query.step, query.heads.size());
  const int64_t R = rows.end - rows.begin, K = columns.end - columns.begin;
  // A larger step changes nothing, and could overflow.
  const int64_t step = std::min(query.step, std::max(R, K)), S = state->keys(query.kind);
  AttentionWeights map{
      query.mean ? 1 : std::ssize(query.heads), divide_up(R, step), divide_up(K, step), {}};
  check(map.rows <= kMapElements / map.keys && map.rows * map.keys <= kMapElements / map.heads,
        "map: {} x {} x {} weights; expected at most {}; select a part of it, or a larger step",
        map.heads, map.rows, map.keys, kMapElements);
  map.weights.assign(static_cast<size_t>(map.heads * map.rows * map.keys), 0.0f);
  const float share = 1.0f / static_cast<float>(query.heads.size());
  const int64_t strip = std::max(step, kQueryRows / step * step);
  for (int64_t begin = rows.begin; begin < rows.end; begin += strip) {
    const Interval part{begin, std::min(begin + strip, rows.end)};
    std::vector<float> mean(query.mean ? static_cast<size_t>((part.end - begin) * S) : 0, 0.0f);
    for (size_t n = 0; n < query.heads.size(); ++n) {
      const HostValues<float> here(state->weights(query.kind, query.layer, query.heads[n], part));
      const float* w = here.all().data();
      if (query.mean) {
        for (size_t i = 0; i < mean.size(); ++i) mean[i] += share * w[i];
        if (n + 1 < query.heads.size()) continue;
        w = mean.data();
      }
      float* to =
          map.weights.data() + (query.mean ? 0 : static_cast<int64_t>(n) * map.rows * map.keys);
      for (int64_t r = begin; r < part.end; ++r)
        for (int64_t s = columns.begin; s < columns.end; ++s) {
          float& cell = to[(r - rows.begin) / step * map.keys + (s - columns.begin) / step];
          cell = std::max(cell, w[(r - begin) * S + s]);
        }
    }
  }
  return map;
}

std::vector<std::vector<KeyWeight>> Inspection::strongest(const MapQuery& query,
                                                          int64_t count) const {
  MapQuery mean = query;
  mean.mean = true;
  mean.step = 1;
  const AttentionWeights map = this->map(mean);
  const int64_t kept = std::clamp<int64_t>(count, 1, map.keys);
  std::vector<std::vector<KeyWeight>> all(static_cast<size_t>(map.rows));
  std::vector<int32_t> order(static_cast<size_t>(map.keys));
  for (int64_t r = 0; r < map.rows; ++r) {
    const float* w = map.weights.data() + r * map.keys;
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + kept, order.end(),
                      [&](int32_t a, int32_t b) { return w[a] != w[b] ? w[a] > w[b] : a < b; });
    for (int64_t i = 0; i < kept && w[order[static_cast<size_t>(i)]] > 0; ++i) {
      const int32_t key = order[static_cast<size_t>(i)];
      all[static_cast<size_t>(r)].push_back({key + static_cast<int32_t>(query.first_key), w[key]});
    }
  }
  return all;
}

std::vector<HeadScores> Inspection::head_scores(model::AttentionKind kind, int64_t layer) const {
  const InspectionCall state(*state_);
  const StackRun& queries = state->run(kind);
  const bool cross = kind == model::AttentionKind::cross;
  const std::vector<int32_t>& key_ids = cross ? state->source.ids : queries.ids;
  const int64_t T = queries.tokens(), S = state->keys(kind),
                H = state->stack_spec(kind).attention.heads;
  std::vector<bool> punctuation;
  for (const InspectedToken& token : kind == model::AttentionKind::self ? tokens() : source())
    punctuation.push_back(is_punctuation(token));
  punctuation.resize(static_cast<size_t>(S));
  const Mask mask = state->attended(kind, layer).options.mask;
  std::vector<HeadScores> scores(static_cast<size_t>(H));
  for (int64_t h = 0; h < H; ++h) {
    HeadScores sum;
    Diffuseness diffuse(mask, S);
    for (int64_t begin = 0; begin < T; begin += kQueryRows) {
      const Interval strip{begin, std::min(begin + kQueryRows, T)};
      const HostValues<float> here(state->weights(kind, layer, h, strip));
      for (int64_t t = begin; t < strip.end; ++t) {
        const float* w = here.row(t - begin).data();
        if (t > 0 && t - 1 < S) sum.previous += double{w[t - 1]};
        if (t + 1 < S) sum.next += double{w[t + 1]};
        if (t < S) sum.itself += double{w[t]};
        sum.first += double{w[0]};
        diffuse.add(t, w);
        for (int64_t s = 0; s < S; ++s) {
          const double p = w[s];
          const auto at = static_cast<size_t>(s);
          if (s != t && key_ids[at] == queries.ids[static_cast<size_t>(t)]) sum.same += p;
          if (punctuation[at]) sum.punctuation += p;
          sum.distance += p * static_cast<double>(std::abs(s - t));
        }
      }
    }
    for (double HeadScores::* part :
         {&HeadScores::previous, &HeadScores::next, &HeadScores::itself, &HeadScores::first,
          &HeadScores::same, &HeadScores::punctuation, &HeadScores::distance})
      scores[static_cast<size_t>(h)].*part = sum.*part / static_cast<double>(T);
    scores[static_cast<size_t>(h)].diffuse = diffuse.mean();
  }
  return scores;
}

// Tokens period, period + 1, ... repeat tokens 0, 1, ...: an induction head attends to the token
// after the earlier occurrence of the query's token.
std::vector<double> induction(const Inspection::State& state, int64_t layer, int64_t period) {
  const StackRun& here = state.run(model::AttentionKind::self);
  const int64_t T = here.tokens(), H = state.stack_spec(model::AttentionKind::self).attention.heads;
  std::vector<double> scores;
  if (!here.stack->block(layer)->attends()) return scores;
  for (int64_t h = 0; h < H; ++h) {
    const HostValues<float> w(state.weights(model::AttentionKind::self, layer, h, {0, T}));
    double sum = 0;
    for (int64_t t = period; t < T; ++t) sum += double{w[t * T + t - period + 1]};
    scores.push_back(sum / static_cast<double>(T - period));
  }
  return scores;
}

std::vector<float> Inspection::rollout(model::AttentionKind kind, int64_t token) const {
  const InspectionCall state(*state_);
  check_field(kind != model::AttentionKind::cross, "look", "cross; expected self or encoder");
  const StackRun& run = state->run(kind);
  const int64_t T = run.tokens(), H = state->stack_spec(kind).attention.heads;
  check_field(token >= 0 && token < T, "token", "{}; expected 0 to {}", token, T - 1);
  std::vector<double> row(static_cast<size_t>(T), 0.0);
  row[static_cast<size_t>(token)] = 1;
  for (int64_t layer = run.stack->layers; layer-- > 0;) {
    std::vector<double> rolled(row.size(), 0.0);  // row A
    for (int64_t h = 0; h < H; ++h)
      for (int64_t begin = 0; begin < T; begin += kQueryRows) {
        const Interval strip{begin, std::min(begin + kQueryRows, T)};
        const HostValues<float> w(state->weights(kind, layer, h, strip));
        for (int64_t t = begin; t < strip.end; ++t)
          for (int64_t s = 0; s < T; ++s)
            rolled[static_cast<size_t>(s)] +=
                row[static_cast<size_t>(t)] * double{w[(t - begin) * T + s]};
      }
    for (size_t s = 0; s < row.size(); ++s)
      row[s] = 0.5 * row[s] + 0.5 * rolled[s] / static_cast<double>(H);
  }
  return {row.begin(), row.end()};
}

std::vector<LayerSizes> Inspection::sizes(model::AttentionKind kind, bool gradients) const {
  const InspectionCall state(*state_);
  const StackRun& here = state->run(kind);
  const int64_t T = here.tokens(), S = state->keys(kind);
  std::vector<LayerSizes> all;
  for (int64_t layer = 0; layer < here.stack->layers; ++layer) {
    LayerSizes& sizes = all.emplace_back();
    const HostValues<float> x(here.stream[static_cast<size_t>(layer)]);
    double squares = 0;
    for (const float each : x) squares += double{each} * double{each};
    sizes.stream = static_cast<float>(std::sqrt(squares / static_cast<double>(x.size())));
    if (!here.stack->block(layer)->attends()) continue;
    for (int64_t h = 0; h < state->stack_spec(kind).attention.heads; ++h) {
      const Mask mask = state->attended(kind, layer).options.mask;
      Diffuseness diffuse(mask, S);
      for (int64_t begin = 0; begin < T; begin += kQueryRows) {
        const Interval strip{begin, std::min(begin + kQueryRows, T)};
        const HostValues<float> w(state->weights(kind, layer, h, strip));
        for (int64_t r = 0; r < strip.end - begin; ++r) diffuse.add(begin + r, w.row(r).data());
      }
      sizes.entropy.push_back(static_cast<float>(diffuse.mean()));
    }
  }
  if (!gradients || kind != model::AttentionKind::self) return all;
  state->check_text("gradients");
  const std::vector<float> found = gradient_sizes(state->model, here.ids);
  for (size_t layer = 0; layer < found.size(); ++layer) all[layer].gradient = found[layer];
  return all;
}

}  // namespace fovea::study

// Applies the model's head to hidden states of the last layer and of intermediate layers.

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/fields.h"
#include "base/math.h"
#include "base/threads.h"
#include "inspect/inspection.h"
#include "tensor/host_values.h"
#include "tensor/tape.h"

namespace fovea::study {
namespace {

constexpr int64_t kLogitRows = 64;  // rows of logits computed at a time: 64 x 256,000 take 65 MB

struct Distribution {
  double log_sum = 0;  // log of the sum of exp(logit)
  double entropy = 0;
  int32_t likeliest = 0;
};

Distribution distribution(const float* logits, int64_t V) {
  Distribution d;
  d.likeliest = static_cast<int32_t>(std::max_element(logits, logits + V) - logits);
  const double most = logits[d.likeliest];
  double sum = 0, weighted = 0;
  for (int64_t i = 0; i < V; ++i) {
    const double e = math::exp(double{logits[i]} - most);
    sum += e;
    weighted += e * (double{logits[i]} - most);
  }
  d.log_sum = most + math::log(sum);
  d.entropy = math::log(sum) - weighted / sum;
  return d;
}

Tensor rows_of_stream(const Tensor& x, int64_t first, int64_t end) {
  return x.view({x.dim(1), x.dim(2)}).rows(first, end);
}

}  // namespace

Tensor Inspection::State::logits_of(const Tensor& rows) const {
  const NoGradient off;
  return model.logits(rows);
}

std::vector<std::vector<float>> Inspection::vectors(model::AttentionKind kind,
                                                    int64_t token) const {
  const InspectionCall call(*state_);
  const StackRun& run = state_->run(kind);
  check_field(token >= 0 && token < run.tokens(), "token", "{}; expected 0 to {}", token,
              run.tokens() - 1);
  std::vector<std::vector<float>> all;
  const auto add = [&](const Tensor& x) {  // x [1, T, C]
    const Tensor row = x.view({x.dim(1), x.dim(2)}).rows(token, token + 1);
    all.push_back(to_floats(row));
  };
  for (const Tensor& stream : run.stream) add(stream);
  add(run.output);
  return all;
}

std::vector<float> Inspection::logits(int64_t position) const {
  const InspectionCall state(*state_);
  const StackRun& run = state->main;
  const NoGradient off;
  const model::HeadKind kind = state->model.spec.head.kind;
  if (kind == model::HeadKind::sequence || kind == model::HeadKind::pooled)
    return to_floats(state->model.logits(run.output));
  check(position >= 0 && position < run.tokens(), "position {}; expected 0 to {}", position,
        run.tokens() - 1);
  return to_floats(state->logits_of(rows_of_stream(run.output, position, position + 1)));
}

std::vector<std::vector<LikelyToken>> Inspection::lens(int64_t first, int64_t end) const {
  const InspectionCall state(*state_);
  const StackRun& run = state->main;
  const NoGradient off;
  check(state->model.spec.head.kind == model::HeadKind::language_model,
        "logit lens: this model predicts no tokens; expected a language model");
  check(0 <= first && first < end && end <= run.tokens() && end - first <= kLogitRows,
        "positions {} to {}; expected at most {} of 0 to {}", first, end, kLogitRows, run.tokens());
  const int64_t V = state->model.spec.vocabulary;
  std::vector<std::vector<LikelyToken>> all;
  for (const auto& states : run.stream) {
    const Tensor rows = rows_of_stream(states, first, end);
    const HostValues<float> z(state->logits_of(run.stack->norm(rows, DType::f32)));
    std::vector<LikelyToken>& likeliest = all.emplace_back(static_cast<size_t>(end - first));
    parallel_for(end - first, 1, [&](int64_t b, int64_t e) {
      for (int64_t r = b; r < e; ++r) {
        const float* row = z.row(r).data();
        const Distribution d = distribution(row, V);
        likeliest[static_cast<size_t>(r)] = {
            d.likeliest, static_cast<float>(math::exp(double{row[d.likeliest]} - d.log_sum))};
      }
    });
  }
  return all;
}

std::vector<Surprise> Inspection::surprise() const {
  const InspectionCall state(*state_);
  const StackRun& run = state->main;
  const NoGradient off;
  if (state->model.spec.head.kind != model::HeadKind::language_model) return {};
  // A decoder predicts token t + 1 at position t; an encoder predicts each token at the token's own
  // position.
  const int64_t ahead = run.stack->decodes ? 1 : 0, V = state->model.spec.vocabulary;
  const int64_t count = run.tokens() - ahead;
  std::vector<Surprise> all(static_cast<size_t>(count));
  for (int64_t begin = 0; begin < count; begin += kLogitRows) {
    const int64_t end = std::min(begin + kLogitRows, count);
    const HostValues<float> z(state->logits_of(rows_of_stream(run.output, begin, end)));
    parallel_for(end - begin, 1, [&](int64_t b, int64_t e) {
      for (int64_t r = b; r < e; ++r) {
        const float* row = z.row(r).data();
        const Distribution d = distribution(row, V);
        const int32_t id = run.ids[static_cast<size_t>(begin + r + ahead)];
        Surprise& s = all[static_cast<size_t>(begin + r)];
        s = {id,
             d.likeliest,
             math::exp(double{row[id]} - d.log_sum),
             d.entropy,
             math::exp(double{row[d.likeliest]} - d.log_sum),
             0};
        for (int64_t i = 0; i < V; ++i) s.rank += row[i] > row[id];
      }
    });
  }
  return all;
}

double Inspection::loss() const {
  const FloatMode mode;
  double sum = 0;
  const std::vector<Surprise> all = surprise();
  for (const Surprise& s : all) sum -= math::log(s.probability);
  return all.empty() ? 0 : sum / static_cast<double>(all.size());
}

// Uses a copy of the model, so that the caller's weights get no gradients.
std::vector<float> gradient_sizes(const model::Transformer& model,
                                  const std::vector<int32_t>& ids) {
  const model::Spec& spec = model.spec;
  const bool one = !spec.encoder && spec.head.kind == model::HeadKind::language_model &&
                   spec.decoder->layer_groups == 0;
  if (!one || ids.size() < 2) return {};
  model::Transformer own = model;
  own.each([](const std::string&, model::Parameter& p) { p.value.want_gradient(); });
  const auto T = std::ssize(ids);
  std::vector<int32_t> next(ids.begin() + 1, ids.end());
  next.push_back(-1);
  const Tensor read = tensor_of(ids, {1, T}), targets = tensor_of(next, {1, T});
  backward(cross_entropy(own.logits(own.decode({read, {}, {}, {}}, {})), targets));
  std::vector<double> squares(own.decoder.blocks.size(), 0.0);
  for (size_t layer = 0; layer < squares.size(); ++layer) {
    const auto visit_parameter = [&](const std::string&, model::Parameter& p) {
      const Tensor gradient = p.value.gradient();
      if (!gradient) return;  // an expert that no token chose
      for (const float g : to_floats(gradient)) squares[layer] += double{g} * double{g};
    };
    own.decoder.blocks[layer].each(visit_parameter, "");
  }
  std::vector<float> sizes;
  for (const double sum : squares) sizes.push_back(static_cast<float>(std::sqrt(sum)));
  return sizes;
}

}  // namespace fovea::study

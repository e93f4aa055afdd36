// Runs in which the residual stream is that of another text, or is moved in a direction.

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/fields.h"
#include "fovea/study/circuits.h"
#include "inspect/inspection.h"
#include "tensor/host_values.h"
#include "tensor/tape.h"

namespace fovea::study {
namespace {

constexpr int64_t kMostPatched = 256;   // tokens of a text
constexpr int64_t kTokensAtOnce = 512;  // of a batch of texts with one patch each
constexpr int64_t kMostSteered = 64;    // new tokens, each of which needs a pass over the text

void check_words(const model::Spec& spec) {
  if (spec.head.kind != model::HeadKind::language_model || (spec.encoder && spec.decoder))
    fail(ErrorKind::Unsupported,
         "model: an encoder-decoder, or predicts no tokens; expected a language model with one "
         "stack");
}

void check_answers(const model::Spec& spec, int32_t one, int32_t other) {
  for (const int32_t id : {one, other})
    check_field(id >= 0 && id < spec.vocabulary, "answers", "{}; expected 0 to {}", id,
                spec.vocabulary - 1);
}

// Returns x [1, T, C] once for each of the tokens, each time with that token's row of `other`.
Tensor patched_copies(const Tensor& x, const Tensor& other, const std::vector<int64_t>& tokens) {
  const int64_t T = x.dim(1), C = x.dim(2), B = std::ssize(tokens);
  const Tensor copies = empty({B, T, C});
  for (int64_t b = 0; b < B; ++b) {
    const int64_t t = tokens[static_cast<size_t>(b)];
    copy_elements(copies, b * T * C, x, 0, T * C);
    copy_elements(copies, b * T * C + t * C, other, t * C, C);
  }
  return copies;
}

// Returns the differences of two logits at the last token of each batch row.
std::vector<double> differences(const Inspection::State& all, const Tensor& output, int32_t one,
                                int32_t other) {
  const int64_t B = output.dim(0), T = output.dim(1), C = output.dim(2);
  const Tensor last = empty({B, C});
  for (int64_t b = 0; b < B; ++b) copy_elements(last, b * C, output, (b * T + T - 1) * C, C);
  const HostValues<float> z(all.logits_of(last));
  std::vector<double> found;
  for (int64_t b = 0; b < B; ++b) {
    const std::span<const float> row = z.row(b);
    found.push_back(double{row[static_cast<size_t>(one)]} -
                    double{row[static_cast<size_t>(other)]});
  }
  return found;
}

// x [1, ...] -> [count, ...]; nothing of nothing
Tensor copies(const Tensor& x, int64_t count) {
  if (!x) return {};
  Shape shape = x.shape();
  shape[0] = count;
  const Tensor all = empty(shape);
  for (int64_t b = 0; b < count; ++b) copy_elements(all, b * x.size(), x, 0, x.size());
  return all;
}

// Runs the layers from `layer` on, and the final norm.   x [B, T, C] -> [B, T, C]
Tensor rest_of_stack(const Inspection::State& all, const StackRun& run, int64_t layer, Tensor x) {
  const model::Probe probe = all.probe(nullptr);
  model::LayerPass pass = run.pass;
  pass.probe = &probe;
  Tensor first = copies(run.first_values_of(layer), x.dim(0));
  for (int64_t l = layer; l < run.stack->layers; ++l) {
    pass.first_values = first;
    pass.new_values = first ? nullptr : &first;
    x = (*run.stack->block(l))(x, pass);
  }
  return run.stack->norm(x, DType::f32);
}

// Returns the mean of the rows of x [1, T, C].
std::vector<double> mean_row(const Tensor& x) {
  const int64_t T = x.dim(1), C = x.dim(2);
  std::vector<double> mean(static_cast<size_t>(C));
  const HostValues<float> all(x);
  for (int64_t i = 0; i < T * C; ++i)
    mean[static_cast<size_t>(i % C)] += double{all[i]} / static_cast<double>(T);
  return mean;
}

}  // namespace

PatchedDifferences patch_differences(const Inspection& into, const Inspection& from, int32_t one,
                                     int32_t other) {
  const InspectionCall state(into.state());
  const NoGradient off;
  const model::Spec& spec = state->model.spec;
  const StackRun &run = state->main, &source = from.state().main;
  check_words(spec);
  check_answers(spec, one, other);
  check_field(source.stream.size() == run.stream.size() && source.output.dim(2) == spec.width,
              "other", "a text of another model; expected one of the same model");
  const int64_t T = run.tokens();
  check_field(source.tokens() == T && T <= kMostPatched, "other",
              "{} tokens; expected {}, as in the text, and at most {}", source.tokens(), T,
              kMostPatched);
  PatchedDifferences found;
  found.into = differences(*state, run.output, one, other)[0];
  found.from = differences(*state, source.output, one, other)[0];
  for (size_t l = 0; l + 1 < run.stream.size(); ++l) {
    const Tensor &x = run.stream[l], &y = source.stream[l];
    const HostValues<float> here(x), there(y);
    std::vector<double>& row = found.patched.emplace_back(static_cast<size_t>(T), found.into);
    std::vector<int64_t> differ;  // tokens with equal rows change nothing
    for (int64_t t = 0; t < T; ++t)
      if (std::memcmp(here.row(t).data(), there.row(t).data(), here.row(t).size_bytes()) != 0)
        differ.push_back(t);
    const auto at_once = std::max<int64_t>(1, kTokensAtOnce / T);
    for (int64_t begin = 0; begin < std::ssize(differ); begin += at_once) {
      const int64_t end = std::min(begin + at_once, std::ssize(differ));
      const std::vector<int64_t> some(differ.begin() + begin, differ.begin() + end);
      const Tensor output =
          rest_of_stack(*state, run, static_cast<int64_t>(l), patched_copies(x, y, some));
      const std::vector<double> values = differences(*state, output, one, other);
      for (size_t i = 0; i < some.size(); ++i) row[static_cast<size_t>(some[i])] = values[i];
    }
  }
  return found;
}

std::vector<int32_t> steer(const Inspection& run, const Inspection& toward,
                           const SteerOptions& options) {
  const InspectionCall state(run.state());
  const NoGradient off;
  const model::Spec& spec = state->model.spec;
  check_words(spec);
  if (!spec.decoder)
    fail(ErrorKind::Unsupported, "model: an encoder, which writes no text; expected a decoder");
  state->check_text("steering");
  state->check_layer(model::AttentionKind::self, options.layer);
  check_field(options.tokens >= 1 && options.tokens <= kMostSteered, "tokens",
              "{}; expected 1 to {}", options.tokens, kMostSteered);
  const StackRun& other = toward.state().main;
  check_field(other.stream.size() == state->main.stream.size() && other.output.dim(2) == spec.width,
              "other", "a text of another model; expected one of the same model");
  const auto layer = static_cast<size_t>(options.layer);
  const std::vector<double> here = mean_row(state->main.stream[layer]),
                            there = mean_row(other.stream[layer]);
  const model::Probe probe = state->probe([&](const model::ProbePoint& point, Tensor& value) {
    if (point.what != model::ProbePoint::What::hidden || point.layer != options.layer) return;
    const HostValues<float> x(value);
    value = tensor_from<float>(value.shape(), [&](int64_t i) {
      const auto c = static_cast<size_t>(i % spec.width);
      return double{x[i]} + options.strength * (there[c] - here[c]);
    });
  });
  std::vector<int32_t> ids = state->main.ids;
  const size_t given = ids.size();
  while (std::ssize(ids) < static_cast<int64_t>(given) + options.tokens &&
         std::ssize(ids) < spec.context) {
    const Tensor read = tensor_of(ids, {1, std::ssize(ids)});
    model::Pass pass;
    pass.probe = &probe;
    const Tensor output = state->model.decode({read, {}, {}, {}}, pass);
    const std::vector<float> z =
        to_floats(state->logits_of(row_of(output, output.dim(1) - 1).view({1, output.dim(2)})));
    ids.push_back(static_cast<int32_t>(std::max_element(z.begin(), z.end()) - z.begin()));
  }
  return {ids.begin() + static_cast<int64_t>(given), ids.end()};
}

}  // namespace fovea::study

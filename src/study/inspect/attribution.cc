// Direct logit attribution: the difference of two logits goes back through the layers as a
// direction in the residual stream, whose product with the output of each part is its share.

#include <cmath>

#include "base/error.h"
#include "base/fields.h"
#include "fovea/study/circuits.h"
#include "inspect/frozen_norm.h"
#include "inspect/layer_rows.h"
#include "tensor/tape.h"

namespace fovea::study {
namespace {

using Direction = std::vector<double>;  // [C]

template <class Row>
double dot(const Direction& g, const Row& row) {
  double sum = 0;
  for (size_t c = 0; c < row.size(); ++c) sum += g[c] * double{row[c]};
  return sum;
}

// Returns the difference of two rows of the head's matrix, and adds that of the biases.
Direction head_direction(const model::Transformer& model, int32_t one, int32_t other,
                         double& biases) {
  const model::Head& head = model.head;
  if (head.spec.kind != model::HeadKind::language_model || head.transform.weight.present())
    fail(ErrorKind::Unsupported,
         "model: its head is not one matrix over the vocabulary; expected a language model");
  const int64_t V = model.spec.vocabulary;
  for (const int32_t id : {one, other})
    check_field(id >= 0 && id < V, "answers", "{}; expected 0 to {}", id, V - 1);
  const model::Parameter& table = head.spec.tied ? model.token_embedding : head.output.weight;
  const Tensor ids = tensor_of(std::vector<int32_t>{one, other}, {1, 2});
  const std::vector<float> rows =
      to_floats(table.packed ? embedding(ids, table.packed) : embedding(ids, table.value));
  const size_t C = rows.size() / 2;
  const double factor =
      head.spec.scale * (head.spec.scaled ? 1 / std::sqrt(static_cast<double>(C)) : 1);
  Direction g(C);
  for (size_t c = 0; c < C; ++c) g[c] = factor * (double{rows[c]} - double{rows[C + c]});
  if (head.output.bias.present()) {
    const std::vector<float> bias = to_floats(head.output.bias.value);
    biases += double{bias[static_cast<size_t>(one)]} - double{bias[static_cast<size_t>(other)]};
  }
  return g;
}

// The way back through the layers of a stack.
class WayBack {
 public:
  WayBack(const Inspection::State& all, int64_t token, LogitAttribution& found, Direction g)
      : all_(all), run_(all.main), token_(token), found_(found), g_(std::move(g)) {}

  void run() {
    const FrozenNorm last(run_.stack->norm, to_floats(row_of(run_.stream.back(), token_)));
    found_.difference = found_.biases + dot(g_, to_floats(row_of(run_.output, token_)));
    g_ = before_norm(last, std::move(g_));
    const auto layers = static_cast<size_t>(run_.stack->layers);
    found_.heads.resize(layers);
    for (auto* each : {&found_.recurrence, &found_.cross, &found_.feed_forward})
      each->resize(layers);
    for (size_t l = layers; l-- > 0;) layer(l);
    found_.embedding = dot(g_, to_floats(row_of(run_.stream[0], token_)));
  }

 private:
  // Adds the part of the norm's bias. Returns the direction before the norm.
  Direction before_norm(const FrozenNorm& norm, Direction g) {
    found_.biases += dot(g, norm.bias);
    return norm.backward(std::move(g));
  }

  // Goes back through h = sum_norm(scale x + output_norm(y)): g_ becomes the direction at x.
  // Returns that at y.
  Direction sublayer(const model::Block& block, const model::Norms& norms, const Tensor& y,
                     const Tensor& sum) {
    if (sum) g_ = before_norm(FrozenNorm(norms.sum, to_floats(sum)), std::move(g_));
    Direction at_y = before_norm(FrozenNorm(norms.output, to_floats(y)), g_);
    for (double& each : g_) each *= block.residual ? double{block.residual_scale} : 0;
    return at_y;
  }

  void layer(size_t l) {
    const auto held = run_.stack->block(static_cast<int64_t>(l));
    const model::Block& block = *held;
    const LayerRows rows =
        layer_rows(all_, model::AttentionKind::self, static_cast<int64_t>(l), token_);
    if (block.parallel) {
      found_.feed_forward[l] = dot(g_, to_floats(rows.fed));
    } else if (rows.fed) {
      const Direction g = sublayer(block, block.ffn_norm, rows.fed, rows.fed_sum);
      found_.feed_forward[l] = dot(g, to_floats(rows.fed));
    }
    if (rows.cross) {
      const Direction g = sublayer(block, block.cross_norm, rows.cross, rows.cross_sum);
      found_.cross[l] = dot(g, to_floats(rows.cross));
    }
    const Direction g = sublayer(block, block.attention_norm, rows.mixed, rows.mixed_sum);
    const double all = dot(g, to_floats(rows.mixed));
    if (!rows.heads) {
      found_.recurrence[l] = all;
      return;
    }
    const int64_t H = all_.stack_spec(model::AttentionKind::self).attention.heads,
                  D = rows.heads.size() / H;
    const Tensor alone = zeros({1, H, H * D});  // row h: the output of head h, and 0 elsewhere
    for (int64_t h = 0; h < H; ++h) copy_elements(alone, h * H * D + h * D, rows.heads, h * D, D);
    double sum = 0;
    for (const auto& row :
         product_rows(block, block.mixer_output(), alone, block.attention_scale)) {
      found_.heads[l].push_back(dot(g, row));
      sum += found_.heads[l].back();
    }
    found_.biases += all - sum;  // the bias of the output matrix
  }

  const Inspection::State& all_;
  const StackRun& run_;
  int64_t token_;
  LogitAttribution& found_;
  Direction g_;
};

}  // namespace

LogitAttribution attribute_logits(const Inspection& run, int64_t token, int32_t one,
                                  int32_t other) {
  const InspectionCall state(run.state());
  const NoGradient off;
  check_field(token >= 0 && token < state->main.tokens(), "token", "{}; expected 0 to {}", token,
              state->main.tokens() - 1);
  LogitAttribution found;
  Direction g = head_direction(state->model, one, other, found.biases);
  WayBack(*state, token, found, std::move(g)).run();
  return found;
}

}  // namespace fovea::study

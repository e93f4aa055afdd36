#include "losses/replaced_tokens.h"

#include <algorithm>
#include <cmath>

#include "base/math.h"
#include "tensor/host_values.h"
#include "tensor/tape.h"

namespace fovea::train {
namespace {

// Draws an index with the probabilities of a softmax: the first one whose cumulative probability
// exceeds `number`, which is in [0, 1). Computed in double.
int32_t draw(std::span<const float> logits, float number) {
  const float most = std::ranges::max(logits);
  double sum = 0;
  for (const float logit : logits) sum += math::exp(double{logit} - most);
  double left = double{number} * sum;
  for (size_t i = 0; i < logits.size(); ++i) {
    left -= math::exp(double{logits[i]} - most);
    if (left < 0) return static_cast<int32_t>(i);
  }
  return static_cast<int32_t>(logits.size() - 1);
}

// Returns the positions of the labels.
std::vector<int64_t> labelled_positions(const HostValues<int32_t>& labels) {
  std::vector<int64_t> positions;
  for (int64_t i = 0; i < labels.size(); ++i)
    if (labels[i] >= 0) positions.push_back(i);
  return positions;
}

}  // namespace

model::Spec generator_spec(const model::Spec& model, double size) {
  const auto part = [size](int64_t of) {
    return std::max<int64_t>(1, std::llround(size * static_cast<double>(of)));
  };
  model::Spec spec = model;
  model::StackSpec& stack = *spec.encoder;
  model::AttentionSpec& a = stack.attention;
  spec.embedding_width = model::embedding_width_of(model);
  a.heads = part(a.heads);
  a.kv_heads = 0;
  spec.width = a.heads * a.head_width;
  stack.ffn.width = part(stack.ffn.width);
  spec.head = {.bias = true, .transform = true, .transform_norm = true};
  return model::validated(spec);
}

void share_embeddings(const model::Transformer& model, model::Transformer& generator) {
  generator.token_embedding = model.token_embedding;
  generator.type_embedding = model.type_embedding;
  generator.encoder.positions.table = model.encoder.positions.table;
  generator.encoder.embedding_norm = model.encoder.embedding_norm;
}

std::vector<model::NamedParameter> own_parameters_of(model::Transformer& generator) {
  std::vector<model::NamedParameter> own;
  generator.each([&](const std::string& name, model::Parameter& p) {
    const bool shared = name.starts_with("embedding.") || name == "encoder.position" ||
                        name.starts_with("encoder.norm.embedding");
    if (!shared) own.push_back({"generator." + name, &p});
  });
  return own;
}

ReplacedTokens replace_tokens(const model::Transformer& generator, const Batch& batch,
                              const model::Pass& pass, double divisor) {
  const HeadInputs inputs = head_inputs(generator, batch, pass);
  ReplacedTokens result;
  {
    const UnitScope units(inputs.units);
    result.generator_loss = generator.loss(inputs.hidden, inputs.valid, inputs.labels, {divisor});
  }
  const HostValues<int32_t> original(batch.labels), given(batch.source.ids);
  const HostValues<float> numbers(std::get<DrawnTokens>(batch.meaning).numbers);
  const std::vector<int64_t> positions = labelled_positions(original);
  std::vector<int32_t> ids(given.begin(), given.end()), replaced(ids.size());
  const NoGradient off;
  const bool all = inputs.labels.size() == batch.labels.size();  // the rows are those of all tokens
  each_block_of_logits(generator, inputs, [&](const Tensor& logits, int64_t begin, int64_t end) {
    const HostValues<float> z(logits);
    for (int64_t row = begin; row < end; ++row) {
      const int64_t position = all ? row : positions[static_cast<size_t>(row)];
      if (original[position] < 0) continue;
      const int32_t drawn = draw(z.row(row - begin), numbers[position]);
      ids[static_cast<size_t>(position)] = drawn;
      replaced[static_cast<size_t>(position)] = drawn != original[position];
    }
  });
  Batch& next = result.batch = batch;
  next.meaning = {};
  next.source.ids = tensor_of(ids, batch.source.ids.shape());
  next.labels = tensor_of(replaced, batch.labels.shape());
  next.predictions = next.labels.size();
  return result;
}

Tensor detection_logits(const model::Transformer& model, const Batch& batch,
                        const model::Pass& pass) {
  const Tensor z = all_logits(model, batch, pass);  // [B, T, 1]
  return z.view(batch.labels.shape());
}

Tensor detection_loss(const Tensor& z, const Tensor& labels, double divisor) {
  std::vector<float> signs;
  for (const int32_t label : HostValues<int32_t>(labels))
    signs.push_back(label == 1 ? 1.0f : -1.0f);
  const Tensor signed_z = multiply(z, tensor_of(signs, z.shape(), z.dtype()).to(z.device()));
  const Tensor sum = segment_sums(log_sigmoid(signed_z), {z.size()});  // f64 [1]
  return multiply(sum, full({1}, -1 / divisor, DType::f64, sum.device()));
}

}  // namespace fovea::train

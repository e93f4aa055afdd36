#include "losses/replaced_tokens.h"

#include <algorithm>
#include <cmath>

#include "base/math.h"
#include "tensor/tape.h"

namespace fovea::train {
namespace {

// Draws an index with the probabilities of a softmax: the first one whose cumulative probability
// exceeds `number`, which is in [0, 1). Computed in double.
int32_t draw(const float* logits, int64_t count, float number) {
  const float most = *std::max_element(logits, logits + count);
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += math::exp(double{logits[i]} - most);
  double left = double{number} * sum;
  for (int64_t i = 0; i < count; ++i) {
    left -= math::exp(double{logits[i]} - most);
    if (left < 0) return static_cast<int32_t>(i);
  }
  return static_cast<int32_t>(count - 1);
}

// Returns the places of the labels.
std::vector<int64_t> labelled_places(const Tensor& labels) {
  std::vector<int64_t> places;
  for (int64_t i = 0; i < labels.size(); ++i)
    if (labels.data_as<int32_t>()[i] >= 0) places.push_back(i);
  return places;
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
  const Questions asked = questions(generator, batch, pass);
  ReplacedTokens result;
  {
    const UnitScope units(asked.units);
    result.generator_loss = generator.loss(asked.hidden, asked.valid, asked.labels, {divisor});
  }
  Batch& next = result.batch = batch;
  next.targets = {};
  next.source.ids = copy(batch.source.ids);
  next.labels = zeros(batch.labels.shape(), DType::i32);
  next.asked = next.labels.size();
  const std::vector<int64_t> places = labelled_places(batch.labels);
  const NoGradient off;
  const bool all = asked.labels.size() == batch.labels.size();  // the rows are those of all tokens
  each_block_of_logits(generator, asked, [&](const Tensor& logits, int64_t begin, int64_t end) {
    const int64_t V = logits.dim(-1);
    for (int64_t row = begin; row < end; ++row) {
      const int64_t place = all ? row : places[static_cast<size_t>(row)];
      const int32_t original = batch.labels.data_as<int32_t>()[place];
      if (original < 0) continue;
      const int32_t drawn = draw(logits.data_as<float>() + (row - begin) * V, V,
                                 batch.targets.data_as<float>()[place]);
      next.source.ids.data_as<int32_t>()[place] = drawn;
      next.labels.data_as<int32_t>()[place] = drawn != original;
    }
  });
  return result;
}

Tensor detection_logits(const model::Transformer& model, const Batch& batch,
                        const model::Pass& pass) {
  const Tensor z = all_logits(model, batch, pass);  // [B, T, 1]
  return z.view(batch.labels.shape());
}

Tensor detection_loss(const Tensor& z, const Tensor& labels, double divisor) {
  std::vector<float> signs;
  for (int64_t i = 0; i < labels.size(); ++i)
    signs.push_back(labels.data_as<int32_t>()[i] == 1 ? 1.0f : -1.0f);
  const Tensor signed_z = multiply(z, tensor_of(signs, z.shape(), z.dtype()).to(z.device()));
  const Tensor sum = segment_sums(log_sigmoid(signed_z), {z.size()});  // f64 [1]
  return multiply(sum, full({1}, -1 / divisor, DType::f64, sum.device()));
}

}  // namespace fovea::train

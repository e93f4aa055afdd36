#include "explain/outputs.h"

#include <algorithm>
#include <charconv>
#include <numeric>

#include "base/fields.h"
#include "embed/head_states.h"
#include "embed/losses.h"
#include "fovea/core/excerpt.h"
#include "tensor/host_values.h"
#include "tensor/tape.h"

namespace fovea::study {
namespace {

constexpr int64_t kLikely = 10;  // tokens to list

// Returns the weights of the rows in the pooling of a text with `prompt` tokens before it. Max
// pooling takes each element from another row, so all rows count alike.
std::vector<double> rows_of_vector(const infer::PoolingModule& pooling, int64_t prompt,
                                   int64_t rows) {
  std::vector<double> weights(static_cast<size_t>(rows), 0.0);
  const int64_t begin = pooling.include_prompt ? 0 : std::min(prompt, rows - 1);
  const double share = 1 / static_cast<double>(pooling.modes.size());
  double weight_sum = 0;  // the sum of t + 1
  for (int64_t t = begin; t < rows; ++t) weight_sum += static_cast<double>(t + 1);
  for (const infer::TokenPooling mode : pooling.modes) {
    for (int64_t t = begin; t < rows; ++t) {
      const double weight = mode == infer::TokenPooling::cls    ? (t == begin ? 1 : 0)
                            : mode == infer::TokenPooling::last ? (t == rows - 1 ? 1 : 0)
                            : mode == infer::TokenPooling::weighted_mean
                                ? static_cast<double>(t + 1) / weight_sum
                                : 1 / static_cast<double>(rows - begin);
      weights[static_cast<size_t>(t)] += share * weight;
    }
  }
  return weights;
}

// Returns the logits of the next token of each text.   -> [B, V]
Tensor next_logits(const model::Transformer& model, const infer::TokenBatch& batch,
                   const model::Probe* probe) {
  model::Pass pass;
  pass.mask.valid = batch.valid;
  pass.probe = probe;
  const Tensor states = model.decode(batch.sequence, pass);
  const int64_t B = states.dim(0), T = states.dim(1);
  const Tensor last = tensor_from<int32_t>(
      {B}, [&](int64_t b) { return b * T + batch.valid[static_cast<size_t>(b)].end - 1; });
  return model.logits(gather(last, states.view({B * T, states.dim(2)})));
}

}  // namespace

ExplainedOutput label_output(const infer::Classifier::Parts& parts, const ExactModel& exact,
                             int64_t label) {
  const auto values = [&parts, exact, label](const infer::TokenBatch& batch,
                                             const model::Probe* probe) {
    const Tensor states = infer::head_states(*exact, batch, parts.start, DType::f32, probe);
    const Tensor logits = exact->logits(states, batch.valid);  // [B, labels]
    return pick(logits, full({logits.dim(0), 1}, static_cast<double>(label), DType::i32));
  };
  const model::Pooling pooling = exact->spec.head.pooling;
  return {exact, values, [pooling](int64_t rows) { return pooled_rows(pooling, rows); }};
}

ExplainedOutput similarity_output(const infer::SentenceModel& model, const ExactModel& exact,
                                  const std::string& other, const infer::EmbedOptions& options) {
  const infer::SentenceModules& modules = model.modules;
  const infer::Similarity kind = modules.similarity;
  if (kind != infer::Similarity::cosine && kind != infer::Similarity::dot)
    fail(ErrorKind::Unsupported,
         "similarity: the model compares vectors by {}; expected cosine or dot",
         infer::name_of(kind));
  const int64_t width = options.dimensions > 0 ? options.dimensions : modules.width;
  const bool unit = kind == infer::Similarity::cosine || options.normalise.value_or(false);
  const infer::EmbedInput input = infer::read_texts(model, {other}, options);
  check(!input.texts[0].ids.empty(), "other text: has no tokens; expected a text");
  const auto vectors = [&modules, exact, width, unit, prompt = input.prompt](
                           const infer::TokenBatch& batch, const model::Probe* probe) {
    const Tensor x = infer::text_vectors(*exact, modules, batch, prompt, DType::f32, probe);
    return unit ? infer::first_dimensions(x, width) : infer::first_columns(x, width);  // [B, width]
  };
  const NoGradient off;
  const Tensor to = vectors(infer::token_batch(input.texts, {0}), nullptr);  // [1, width]
  return {exact,
          [vectors, to](const infer::TokenBatch& batch, const model::Probe* probe) {
            return linear(vectors(batch, probe), to);
          },
          [&modules, prompt = input.prompt](int64_t rows) {
            return rows_of_vector(modules.pooling, prompt, rows);
          }};
}

ExplainedOutput token_output(const ExactModel& exact, int32_t id) {
  const auto values = [exact, id](const infer::TokenBatch& batch, const model::Probe* probe) {
    const Tensor logits = next_logits(*exact, batch, probe);
    const Tensor targets = full({logits.dim(0)}, id, DType::i32);
    return log_probability(logits, targets).view({logits.dim(0), 1});
  };
  return {exact, values, [](int64_t rows) { return pooled_rows(model::Pooling::last, rows); }};
}

std::vector<NextToken> most_probable(const std::vector<float>& p) {
  std::vector<int32_t> order(p.size());
  std::iota(order.begin(), order.end(), 0);
  const auto kept = std::min<int64_t>(kLikely, std::ssize(order));
  const auto at = [&](int32_t id) { return p[static_cast<size_t>(id)]; };
  std::partial_sort(order.begin(), order.begin() + kept, order.end(),
                    [&](int32_t a, int32_t b) { return at(a) != at(b) ? at(a) > at(b) : a < b; });
  order.resize(static_cast<size_t>(kept));
  std::vector<NextToken> likely;
  for (const int32_t id : order) likely.push_back({id, double{at(id)}});
  return likely;
}

std::vector<NextToken> likely_tokens(const model::Transformer& exact,
                                     const infer::TokenizedText& text) {
  const NoGradient off;
  return most_probable(
      to_floats(softmax(next_logits(exact, infer::token_batch({text}, {0}), nullptr))));
}

int32_t token_named(const std::string& name, const text::Tokenizer* tokenizer, int64_t vocabulary) {
  const bool marked = name.starts_with('#');
  const char* const begin = name.data() + (marked ? 1 : 0);
  const char* const end = name.data() + name.size();
  int32_t id = -1;
  const auto [stop, error] = std::from_chars(begin, end, id);
  if ((marked || tokenizer == nullptr) && error == std::errc() && stop == end) {
    check_field(id >= 0 && id < vocabulary, "target", "{}; expected an id of 0 to {}", name,
                vocabulary - 1);
    return id;
  }
  check_field(tokenizer != nullptr, "target",
              "\"{}\": the model has no tokenizer; expected an id of 0 to {}", excerpt(name),
              vocabulary - 1);
  const std::vector<int32_t> ids = tokenizer->encode(name);
  check_field(ids.size() == 1 && ids[0] < vocabulary, "target",
              "\"{}\" is {} tokens; expected the text of one token, or #ID", excerpt(name),
              ids.size());
  return ids[0];
}

}  // namespace fovea::study

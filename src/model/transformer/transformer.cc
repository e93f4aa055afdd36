#include "transformer/transformer.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/math.h"
#include "fovea/core/random.h"
#include "ops/units.h"
#include "transformer/token_vectors.h"

namespace fovea::model {
namespace {

Shape table(int64_t rows, int64_t width, bool present) {
  return present ? Shape{rows, width} : Shape{};
}

// x [B, T, C] with rows[i] of its B * T rows replaced by vectors[i]   -> [B, T, C]
Tensor with_vectors(const Tensor& x, const Tensor& vectors, const Tensor& rows) {
  const int64_t R = x.dim(0) * x.dim(1), C = x.dim(2), N = vectors.dim(0);
  const UnitScope none({});  // the rows of both are no equal units
  const Tensor all = concat_tokens(x.view({1, R, C}), vectors.view({1, N, C}).to(x.device()));
  const Tensor indices = empty({x.dim(0), x.dim(1)}, DType::i32);
  std::iota(indices.data_as<int32_t>(), indices.data_as<int32_t>() + R, 0);
  for (int64_t i = 0; i < N; ++i)
    indices.data_as<int32_t>()[rows.data_as<int32_t>()[i]] = static_cast<int32_t>(R + i);
  return gather(indices.to(x.device()), all.view({R + N, C}));
}

// Returns the factor of token embeddings.
float embedding_scale_of(const Spec& spec) {
  const float root = spec.scaled_embedding ? std::sqrt(static_cast<float>(spec.width)) : 1.0f;
  return root * spec.embedding_scale;
}

const StackSpec& last_stack(const Spec& s) { return s.decoder ? *s.decoder : *s.encoder; }

}  // namespace

Transformer::Transformer(const Spec& s)
    : spec(s),
      token_embedding{table(s.vocabulary, embedding_width_of(s),
                            s.decoder || s.input.kind == InputKind::tokens),
                      Role::token_embedding,
                      {}},
      source_embedding{
          table(s.source_vocabulary, s.width, s.source_vocabulary > 0), Role::token_embedding, {}},
      type_embedding{table(s.token_types, embedding_width_of(s), s.token_types > 0),
                     Role::token_embedding,
                     {}},
      input(s.input, s.width),
      head(s, last_stack(s)) {
  if (s.encoder) {
    const int64_t context = s.input.kind == InputKind::tokens ? s.context : input.positions();
    encoder =
        Stack(*s.encoder, s.dropout, {s.width, s.embedding_width}, context, Stack::Kind::encoder);
  }
  if (s.decoder) {
    decoder = Stack(*s.decoder, s.dropout, {s.width, 0}, s.context,
                    s.encoder ? Stack::Kind::decoder_across : Stack::Kind::decoder);
  }
  // The scale of the embeddings is undone by a larger epsilon.
  const float scale = embedding_scale_of(s);
  for (Stack* stack : {&encoder, &decoder})
    if (stack->norm_before_positions) stack->embedding_norm.spec.epsilon *= scale * scale;
}

const char* Transformer::head_name() const {
  switch (spec.head.kind) {
    case HeadKind::language_model: return "head";
    case HeadKind::pooled: return "pooler";
    case HeadKind::sequence: return "sequence";
    // Two heads of one family: the one with a layer before the output detects replaced tokens.
    case HeadKind::token:
      return spec.head.transform && !spec.head.transform_norm ? "detector" : "tagger";
    case HeadKind::span: return "span";
  }
  return "";
}

Tensor token_vectors(const Transformer& model, const Tensor& ids, const Parameter& table) {
  Tensor x = table.packed ? embedding(ids, table.packed)
                          : embedding(ids, table.value, model.spec.padding);  // [B, T, C]
  if (x.dtype() == DType::bf16) x = cast(x, DType::f32);  // a table that was not widened on load
  const float factor = embedding_scale_of(model.spec);
  return factor == 1 ? x : scale(x, factor);
}

Tensor Transformer::embed(const Sequence& sequence, const Parameter& table) const {
  const Tensor x = token_vectors(*this, sequence.ids, table);  // [B, T, C]
  if (!type_embedding.present()) return x;
  const Tensor types = sequence.types ? sequence.types : zeros(sequence.ids.shape(), DType::i32);
  return add(x, embedding(types, type_embedding.value));
}

Tensor Transformer::encode(const Sequence& source, const Pass& given) const {
  Pass pass = given;
  pass.cache = nullptr;
  if (spec.decoder) pass.stack = ProbePoint::Stack::encoder;
  const Parameter& table = source_embedding.present() ? source_embedding : token_embedding;
  const Tensor x = spec.input.kind == InputKind::tokens ? embed(source, table)
                                                        : input(source.signal, pass.compute);
  return encoder(x, pass, source.positions, &input);
}

Tensor Transformer::decode(const Sequence& tokens, const Pass& given) const {
  Pass pass = given;
  if (spec.encoder) pass.stack = ProbePoint::Stack::decoder;
  Tensor x = embed(tokens, token_embedding);
  if (tokens.vectors) x = with_vectors(x, tokens.vectors, tokens.vector_rows);
  return decoder(x, pass, tokens.positions);
}

void Transformer::remember(const Tensor& memory, const Pass& pass) const {
  for (int64_t layer = 0; layer < decoder.layers; ++layer) {
    const auto block = decoder.block(layer);
    const auto [k, v] = block->cross->of_memory(memory, LayerPass(pass));
    pass.cache->set_memory(layer, k, v, pass.memory_valid);
  }
}

Tensor Transformer::hidden(const Tensor& ids, const Pass& pass, const Tensor& positions) const {
  const Sequence sequence{ids, positions, {}, {}};
  return spec.decoder ? decode(sequence, pass) : encode(sequence, pass);
}

std::vector<Interval> Transformer::read_by_head(const Tensor& ids,
                                                std::vector<Interval> valid) const {
  const bool last = spec.head.kind == HeadKind::sequence && spec.head.pooling == Pooling::last;
  if (!last || spec.encoder || spec.padding < 0) return valid;
  const int64_t B = ids.dim(0), T = ids.dim(1);
  if (valid.empty()) valid.assign(static_cast<size_t>(B), {0, T});
  for (int64_t b = 0; b < B; ++b) {
    Interval& row = valid[static_cast<size_t>(b)];
    const int32_t* const read = ids.data_as<int32_t>() + b * T;
    while (row.end > row.begin + 1 && read[row.end - 1] == spec.padding) --row.end;
  }
  return valid;
}

Tensor Transformer::logits(const Tensor& hidden, const std::vector<Interval>& valid) const {
  return head(hidden, token_embedding, valid);
}

Tensor Transformer::loss(const Tensor& hidden, const std::vector<Interval>& valid,
                         const Tensor& labels, const LossOptions& options) const {
  return head.loss(hidden, token_embedding, valid, labels, options);
}

Tensor Transformer::log_probabilities(const Tensor& hidden, const Tensor& labels) const {
  return head.log_probabilities(hidden, token_embedding, labels);
}

namespace {

// Whether DeepNorm scales the initial weights (Wang et al. 2022, 2.2): those of feed-forward
// layers, and of the values and outputs of attention.
bool is_scaled_by_deepnorm(const std::string& name, Role role) {
  const auto contains = [&](const char* part) { return name.find(part) != std::string::npos; };
  if (contains(".router.") || contains(".shared_gate.")) return false;
  return role == Role::residual_matrix || contains(".ffn.") || contains(".value");
}

// Returns the standard deviation of a matrix's initial weights. Radford et al. 2019: the matrices
// that write into the residual stream have a deviation that is smaller by the factor sqrt(2 n),
// where n is the number of the stack's layers.
float initial_deviation(const Initial& how, const std::string& name, Role role) {
  const StackSpec* stack = how.stack;
  if (stack == nullptr) return how.deviation;
  if (stack->zero_outputs && role == Role::residual_matrix) return 0;
  if (stack->init_scale > 0)
    return is_scaled_by_deepnorm(name, role) ? how.deviation * stack->init_scale : how.deviation;
  if (role != Role::residual_matrix) return how.deviation;
  return how.deviation / std::sqrt(2.0f * static_cast<float>(stack->layers));
}

// The heads of linear attention begin with rates from 1 to 16 and steps from 0.001 to 0.1, in equal
// ratios, in opposite orders (the ranges of Gu and Dao 2024, "Transformers are SSMs"; theirs are
// drawn). A step is softplus(bias).
Tensor initial_decays(Role role, int64_t heads) {
  std::vector<float> values;
  for (int64_t h = 0; h < heads; ++h) {
    const double share = heads > 1 ? static_cast<double>(h) / static_cast<double>(heads - 1) : 0.5;
    const double step = 0.1 * math::pow(0.01, share);
    values.push_back(static_cast<float>(role == Role::decay_rate ? share * math::log(16.0)
                                                                 : math::log(math::exp(step) - 1)));
  }
  return tensor_of(values, {heads});
}

}  // namespace

void initialise(Parameter& p, const std::string& name, uint32_t number, const Initial& how) {
  if (p.role == Role::sinusoids) {
    p.value = sinusoids(p.shape[0], p.shape[1], how.stack->position.waves);
    return;
  }
  switch (p.role) {
    case Role::gain: p.value = full(p.shape, 1); break;
    case Role::tanh_scale: p.value = full(p.shape, how.norm.alpha); break;
    // Huang 2024: softplus(alpha_p) = 0.8 and beta + softplus(alpha_n) = 0.8.
    case Role::positive_slope: p.value = full(p.shape, 0.20325542f); break;
    case Role::negative_slope: p.value = full(p.shape, -1.0502257f); break;
    case Role::linear_slope: p.value = full(p.shape, 0.5); break;
    case Role::least_argument: p.value = full(p.shape, -1e-6f); break;
    case Role::layer_scale: p.value = full(p.shape, how.stack->layer_scale); break;
    case Role::convolution:  // the deviation of nn.Conv1d in PyTorch
      p.value =
          normal(p.shape, 1 / std::sqrt(3.0f * static_cast<float>(p.shape[1])), how.seed, number);
      break;
    case Role::decay_rate:
    case Role::decay_step: p.value = initial_decays(p.role, p.shape[0]); break;
    case Role::gain_minus_one:
    case Role::bias:
    case Role::selection_bias: p.value = zeros(p.shape); break;
    default: p.value = normal(p.shape, initial_deviation(how, name, p.role), how.seed, number);
  }
}

void initialise(Transformer& model, uint64_t seed) {
  const Spec& spec = model.spec;
  uint32_t number = 0;
  model.each([&](const std::string& name, Parameter& p) {
    const StackSpec* stack = name.starts_with("encoder.")   ? &*spec.encoder
                             : name.starts_with("decoder.") ? &*spec.decoder
                                                            : nullptr;
    // The head's norm has the settings of the last stack.
    const NormSpec& norm = (stack != nullptr ? *stack : last_stack(spec)).norm;
    initialise(p, name, number++, {stack, norm, spec.init_deviation, seed});
  });
}

void move_to(const Device& device, Transformer& model) {
  model.each([&](const std::string&, Parameter& p) {
    if (!p.packed)
      p.value = p.value.to(device);
    else if (&p.packed.device() != &device)  // else weights stay that are packed when they are used
      p.packed = p.packed.to(device);
  });
}

std::vector<NamedParameter> parameters_of(Transformer& model) {
  std::vector<NamedParameter> parameters;
  model.each([&](const std::string& name, Parameter& p) { parameters.push_back({name, &p}); });
  return parameters;
}

int64_t parameter_count(Transformer& model) {
  int64_t count = 0;
  model.each([&](const std::string&, Parameter& p) { count += elements(p.shape); });
  return count;
}

Tensor moved_by_one(const Tensor& ids, int32_t start) {
  const int64_t B = ids.dim(0), T = ids.dim(1);
  const Tensor moved = empty({B, T}, DType::i32);
  for (int64_t b = 0; b < B; ++b) {
    const int32_t* const from = ids.data_as<int32_t>() + b * T;
    int32_t* const to = moved.data_as<int32_t>() + b * T;
    *to = start;
    std::copy_n(from, T - 1, to + 1);
  }
  return moved;
}

}  // namespace fovea::model

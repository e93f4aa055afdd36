// What a head looks for and what it writes (Elhage et al. 2021), and the rotation of its layer.

#include <algorithm>

#include "base/error.h"
#include "base/fields.h"
#include "inspect/layer_rows.h"
#include "inspect/top_tokens.h"
#include "tensor/host_values.h"
#include "tensor/tape.h"
#include "transformer/token_vectors.h"

namespace fovea::study {
namespace {

constexpr int64_t kVocabularyRows = 1024;  // tokens whose keys are computed at a time
constexpr int64_t kMostCircuit = 64;       // tokens of a text

// Returns the input of a layer for bare embeddings.   -> [n, 1, C]
Tensor bare(const Inspection::State& all, const StackRun& run, const model::Block& block,
            const std::vector<int32_t>& tokens) {
  const model::Transformer& model = all.model;
  const bool source = run.stack == &model.encoder && model.source_embedding.present();
  const Tensor ids = tensor_of(tokens, {std::ssize(tokens), 1});
  Tensor x =
      model::token_vectors(model, ids, source ? model.source_embedding : model.token_embedding);
  x = run.stack->embedding_norm(x, DType::f32);
  if (run.stack->projection.weight.present()) x = run.stack->projection(x);
  return block.attention_norm.input(x, DType::f32);
}

// The queries and values of one head for bare embeddings, and the scale of its scores.
struct BareHead {
  std::vector<float> queries, values;  // [n][D], [n][D']
  int64_t width = 0, value_width = 0;
  float scale = 1;
};

std::vector<float> part_of(const Tensor& x, int64_t part) {  // x [n, 1, parts, D]
  const int64_t n = x.dim(0), parts = x.dim(2);
  std::vector<float> rows;
  const HostValues<float> all(x);
  for (int64_t i = 0; i < n; ++i)
    std::ranges::copy(all.row(i * parts + part), std::back_inserter(rows));
  return rows;
}

// Returns the values of the first attention layer for bare embeddings, if a layer reads them.
Tensor bare_first_values(const Inspection::State& all, const StackRun& run, int64_t layer,
                         const std::vector<int32_t>& tokens) {
  if (!run.first_values_of(layer)) return {};
  Tensor values;
  const model::Probe probe{
      .attend = [&](const model::ProbePoint&, const model::AttentionInputs& here) {
        values = here.v.detach();
      }};
  model::LayerPass pass;
  pass.probe = &probe;
  const auto first = run.stack->block(run.first_attention);
  first->mix(bare(all, run, *first, tokens), pass);
  return values;
}

BareHead bare_head(const model::Block& block, const Tensor& x, const Tensor& first_values,
                   int64_t head) {
  BareHead found;
  const model::Probe probe{
      .attend = [&](const model::ProbePoint&, const model::AttentionInputs& here) {
        const int64_t group = head / (here.q.dim(2) / here.k.dim(2));
        found = {part_of(here.q, head), part_of(here.v, group), here.q.dim(3), here.v.dim(3),
                 here.options.scale};
      }};
  model::LayerPass pass;  // without angles, queries are not rotated
  pass.probe = &probe;
  pass.first_values = first_values;
  block.mix(x, pass);
  return found;
}

// Returns the scores of each query with the keys of some tokens, [queries][tokens].
std::vector<std::vector<float>> scores_with(const model::Block& block, const BareHead& of,
                                            const Tensor& x, int64_t group) {
  const std::vector<float> keys =
      part_of(block.mixer_as<model::Attention>()->of_memory(x, {}).keys, group);
  const auto D = static_cast<size_t>(of.width);
  std::vector<std::vector<float>> scores(of.queries.size() / D);
  for (size_t q = 0; q < scores.size(); ++q)
    for (size_t k = 0; k < keys.size() / D; ++k) {
      double sum = 0;
      for (size_t d = 0; d < D; ++d) sum += double{of.queries[q * D + d]} * double{keys[k * D + d]};
      scores[q].push_back(static_cast<float>(sum * double{of.scale}));
    }
  return scores;
}

// Returns the tokens that each value of a head promotes, [n].
std::vector<std::vector<TokenValue>> written_by(const Inspection::State& all, const StackRun& run,
                                                const model::Block& block, const BareHead& of,
                                                int64_t head, int64_t count) {
  const int64_t D = of.value_width, n = std::ssize(of.values) / D, C = run.output.dim(2),
                W = block.mixer_as<model::Attention>()->spec.heads * D;
  const Tensor alone = zeros({1, n, W}), values = tensor_of(of.values, {n, D});
  for (int64_t i = 0; i < n; ++i) copy_elements(alone, i * W + head * D, values, i * D, D);
  std::vector<float> written;
  for (const auto& row : product_rows(block, block.mixer_output(), alone, block.attention_scale))
    written.insert(written.end(), row.begin(), row.end());
  written.resize(static_cast<size_t>((n + 1) * C));
  return raised_tokens(all.logits_of(run.stack->norm(tensor_of(written, {n + 1, C}), DType::f32)),
                       count);
}

// Keeps the tokens with the largest values of two lists.
std::vector<TokenValue> larger(std::vector<TokenValue> one, const std::vector<TokenValue>& other,
                               int64_t count) {
  one.insert(one.end(), other.begin(), other.end());
  std::stable_sort(one.begin(), one.end(), [](const TokenValue& a, const TokenValue& b) {
    return a.value != b.value ? a.value > b.value : a.id < b.id;
  });
  one.resize(std::min(one.size(), static_cast<size_t>(count)));
  return one;
}

}  // namespace

HeadCircuit head_circuit(const Inspection& inspection, model::AttentionKind kind, int64_t layer,
                         int64_t head, int64_t count) {
  const InspectionCall state(inspection.state());
  const NoGradient off;
  check_field(kind != model::AttentionKind::cross, "look", "cross; expected self or encoder");
  state->check_text("circuit");
  state->check_layer(kind, layer);
  Inspection::State::check_head(head, state->stack_spec(kind).attention.heads);
  const StackRun& run = state->run(kind);
  const auto held = run.stack->block(layer);
  const model::Block& block = *held;
  if (block.mixer_as<model::Attention>() == nullptr)
    fail(ErrorKind::Unsupported, "layer: {} has no keys of its own; expected an attention layer",
         layer);
  std::vector<int32_t> tokens = run.ids;
  tokens.resize(std::min(tokens.size(), static_cast<size_t>(kMostCircuit)));
  const Tensor x = bare(*state, run, block, tokens);
  const BareHead of = bare_head(block, x, bare_first_values(*state, run, layer, tokens), head);
  const model::AttentionSpec& spec = state->stack_spec(kind).attention;
  const int64_t group = head / (spec.heads / spec.kv_heads);
  HeadCircuit found;
  found.scores = scores_with(block, of, x, group);
  found.sought.resize(tokens.size());
  const bool source = run.stack == &state->model.encoder && state->model.source_embedding.present();
  const int64_t V =
      (source ? state->model.source_embedding : state->model.token_embedding).shape[0];
  for (int64_t begin = 0; begin < V; begin += kVocabularyRows) {
    std::vector<int32_t> some(static_cast<size_t>(std::min(V - begin, kVocabularyRows)));
    std::iota(some.begin(), some.end(), static_cast<int32_t>(begin));
    const auto scores = scores_with(block, of, bare(*state, run, block, some), group);
    for (size_t q = 0; q < scores.size(); ++q) {
      std::vector<TokenValue> top = top_tokens(scores[q], count);
      for (TokenValue& each : top) each.id += static_cast<int32_t>(begin);
      found.sought[q] = larger(std::move(found.sought[q]), top, count);
    }
  }
  if (state->model.spec.head.kind == model::HeadKind::language_model && &run == &state->main)
    found.written = written_by(*state, run, block, of, head, count);
  return found;
}

RotaryAngles rotary_angles(const Inspection& inspection, model::AttentionKind kind, int64_t layer) {
  const InspectionCall state(inspection.state());
  check_field(kind != model::AttentionKind::cross, "look", "cross; expected self or encoder");
  state->check_layer(kind, layer);
  const StackRun& run = state->run(kind);
  const auto held = run.stack->block(layer);
  const model::Block& block = *held;
  const model::LayerPass& pass = run.pass;
  const auto* attention = block.mixer_as<model::Attention>();
  const model::Angles& angles =
      attention == nullptr ? pass.latent_angles : attention->key_angles(pass);
  if (!angles.cosines || !block.attends())
    fail(ErrorKind::Unsupported, "layer: {} rotates no queries; expected rotary positions", layer);
  return {angles.cosines.dim(1), pass.pairing == Pairing::halves, to_floats(angles.cosines),
          to_floats(angles.sines)};
}

}  // namespace fovea::study

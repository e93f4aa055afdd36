// Cross-encoders: a sequence classifier with one label, which reads a query and a document together
// (Nogueira and Cho 2019, arXiv:1901.04085).

#include "base/error.h"
#include "checkpoint/module_files.h"
#include "embed/batching.h"
#include "embed/cross_encoder.h"
#include "embed/head_states.h"
#include "families/registry.h"
#include "loop/adapters.h"
#include "loop/new_head.h"
#include "open/directory.h"
#include "ops/ops.h"
#include "tasks/retriever_model.h"
#include "tensor/host_values.h"

namespace fovea::train {
namespace {

class PairScorer : public RetrieverModel {
 public:
  PairScorer(const EmbedderTraining& training, infer::CrossEncoder model, bool fresh)
      : training_(training), model_(std::move(model)), fresh_(fresh) {}

  const infer::TextFormat& format() const override { return model_.format; }
  const model::Origin& origin() const override { return model_.origin; }
  int64_t width() const override { return 1; }
  std::string note() const override { return fresh_ ? "a new head for a score" : ""; }
  // As many as MultipleNegativesRankingLoss of sentence-transformers draws.
  int64_t drawn_negatives() const override {
    return training_.loss == EmbeddingLoss::ranking ? 4 : 0;
  }

  // Pairs of query i and candidate k of query i, in the order of the candidates.
  std::vector<RetrieverInput> inputs(const TextPointers& queries,
                                     const TextPointers& candidates) const override {
    const auto prompt = model_.prompts.prompts.find(model_.prompts.default_prompt);
    const std::string before = prompt == model_.prompts.prompts.end() ? "" : prompt->second;
    std::vector<std::vector<int32_t>> ids;
    for (const std::string* query : queries) ids.push_back(format().own_ids(before + *query));
    RetrieverInput input;
    input.texts = infer::tokenize_all(candidates.size(), [&](size_t i) {
      return format().pair(ids[i % ids.size()], *candidates[i]);
    });
    for (size_t i = 0; i < candidates.size(); ++i) input.add_rows(1);
    return {std::move(input)};
  }

  Tensor rows(const model::Transformer& transformer, const RetrieverInput& input,
              const std::vector<size_t>& chosen) const override {
    const infer::TokenBatch batch = infer::token_batch(input.texts, chosen);
    return infer::head_logits(transformer, batch,
                              infer::head_states(transformer, batch, model_.start, DType::f32,
                                                 nullptr, training_.recompute));
  }

  // The scores of pairs have an order of their own: those of a query are `queries` apart.
  RetrieverScores scores(const std::vector<RetrieverInput>&, const std::vector<Tensor>& rows,
                         int64_t queries, bool) const override {
    const int64_t B = queries, K = rows[0].dim(0) / B;
    const Tensor order =
        tensor_from<int32_t>({B * K}, [=](int64_t i) { return i % K * B + i / K; });
    return {gather(order, rows[0]).view({B, K}), {}};
  }

  bool copies_modules() const override { return !fresh_ && model::has_modules(training_.model); }
  void write_modules(const std::string&, const model::Spec&) const override {}

 private:
  const EmbedderTraining training_;
  const infer::CrossEncoder model_;
  const bool fresh_;
};

// Returns a model of this encoder with a new head for a score.
infer::CrossEncoder with_new_head(const std::string& inner, const EmbedderTraining& training) {
  const auto [weights, packing] = base_weights(training.lora);
  const model::ModelFiles before = model::open_model_files(inner, model::Weights::mapped);
  const model::Family& family = *before.origin.family;
  const model::HeadSpec head =
      model::head_of(family, before.model.spec, model::HeadKind::sequence, 1);
  model::ModelFiles files = model::open_with_head(inner, weights, packing, head);
  initialise_missing(files.model, training.seed);
  move_to(default_device(), files.model);
  infer::TextFormat format = infer::TextFormat::open(inner, files.model.spec);
  files.origin.labels = {"score"};
  return {std::move(files.model),
          std::move(format),
          {},
          {},
          std::move(files.warnings),
          {},
          std::move(files.origin),
          inner};
}

}  // namespace

std::unique_ptr<RetrieverModel> open_pair_scorer(const EmbedderTraining& training,
                                                 model::Transformer& transformer, const Say& say) {
  const std::string inner = model::transformer_folder(training.model);
  const model::Spec spec = model::read_model_spec(inner);
  const bool ready = spec.head.kind == model::HeadKind::sequence && spec.head.labels == 1;
  const bool encodes = spec.encoder && !spec.decoder && spec.input.kind == model::InputKind::tokens;
  if (!ready && !encodes)
    fail(ErrorKind::Unsupported,
         "{}: is neither a sequence classifier with one label nor an encoder of text; expected one "
         "of them",
         training.model);
  const auto [weights, packing] = base_weights(training.lora);
  infer::CrossEncoder model = ready ? infer::CrossEncoder::open(training.model, weights, packing)
                                    : with_new_head(inner, training);
  for (const std::string& warning : model.warnings) say(warning);
  transformer = std::move(model.transformer);
  return std::make_unique<PairScorer>(training, std::move(model), !ready);
}

}  // namespace fovea::train

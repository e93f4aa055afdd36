// Sparse encoders: a masked language model whose logits are pooled (SPLADE: Formal et al. 2021,
// arXiv:2109.10086).

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "checkpoint/module_files.h"
#include "embed/batching.h"
#include "embed/retrieval_parts.h"
#include "loop/adapters.h"
#include "losses/score_losses.h"
#include "ops/ops.h"
#include "tasks/retriever_model.h"
#include "tensor/host_values.h"

namespace fovea::train {
namespace {

using infer::TextRole;

class SparseRetriever : public RetrieverModel {
 public:
  SparseRetriever(const EmbedderTraining& training, infer::SparseModel model)
      : training_(training), model_(std::move(model)) {}

  const infer::TextFormat& format() const override { return model_.encoder->format; }
  const model::Origin& origin() const override { return model_.encoder->origin; }
  int64_t width() const override { return model_.width; }

  std::vector<RetrieverInput> inputs(const TextPointers& queries,
                                     const TextPointers& candidates) const override {
    return {input(queries, TextRole::query), input(candidates, TextRole::document)};
  }

  Tensor rows(const model::Transformer& transformer, const RetrieverInput& input,
              const std::vector<size_t>& chosen) const override {
    return infer::dense_rows(transformer, model_.encoder->pooling,
                             infer::token_batch(input.texts, chosen), training_.recompute);
  }

  RetrieverScores scores(const std::vector<RetrieverInput>&, const std::vector<Tensor>& rows,
                         int64_t, bool) const override {
    const Tensor all = linear(rows[0], rows[1]);
    const auto B = static_cast<int32_t>(all.dim(0)), K = static_cast<int32_t>(all.dim(1)) / B;
    std::vector<int32_t> own;
    for (int32_t b = 0; b < B; ++b)
      for (int32_t k = 0; k < K; ++k) own.push_back(k * B + b);
    return {pick_columns(all, own), all};
  }

  Tensor regulariser(const std::vector<Tensor>& rows, double risen) const override {
    const bool flops = training_.regulariser == Regulariser::flops;
    const auto part = [&](const Tensor& x, double weight) {
      return scale(flops ? flops_of(x) : absolute_sum_of(x), static_cast<float>(weight * risen));
    };
    return add(part(rows[0], training_.query_weight), part(rows[1], training_.document_weight));
  }

  bool copies_modules() const override { return model::has_modules(training_.model); }
  void write_modules(const std::string& folder, const model::Spec& spec) const override;

 private:
  RetrieverInput input(const TextPointers& texts, TextRole role) const {
    const std::string prompt = infer::prompt_for(model_, role, {});
    RetrieverInput input{
        infer::tokenize_all(texts.size(),
                            [&](size_t i) { return format().text(prompt, *texts[i]); }),
        role};
    for (size_t i = 0; i < texts.size(); ++i) input.add_rows(1);
    return input;
  }

  const EmbedderTraining training_;
  const infer::SparseModel model_;
};

// The types of modules are those of sentence-transformers 5, which later releases know too.
void SparseRetriever::write_modules(const std::string& folder, const model::Spec& spec) const {
  using Json = nlohmann::json;
  if (copies_modules()) return;
  const std::string types = "sentence_transformers.sparse_encoder.models.";
  Json modules = Json::array();
  for (const auto& [path, kind] :
       {std::pair{"", "MLMTransformer"}, {"1_SpladePooling", "SpladePooling"}})
    modules.push_back({{"idx", modules.size()},
                       {"name", fmt::format("{}", modules.size())},
                       {"path", path},
                       {"type", types + kind}});
  write_file_atomically(folder + "/modules.json", pretty(modules));
  make_directories(folder + "/1_SpladePooling");
  write_file_atomically(folder + "/1_SpladePooling/config.json",
                        pretty(Json{{"pooling_strategy", "max"},
                                    {"activation_function", "relu"},
                                    {"word_embedding_dimension", spec.vocabulary}}));
  write_file_atomically(folder + "/config_sentence_transformers.json",
                        pretty(Json{{"model_type", "SparseEncoder"},
                                    {"prompts", {{"query", ""}, {"document", ""}}},
                                    {"default_prompt_name", nullptr},
                                    {"similarity_fn_name", "dot"}}));
}

}  // namespace

std::unique_ptr<RetrieverModel> open_sparse_retriever(const EmbedderTraining& training,
                                                      model::Transformer& transformer,
                                                      const Say& say) {
  const auto [weights, packing] = base_weights(training.lora);
  infer::SparseModel model = infer::SparseModel::open(training.model, weights, packing);
  if (!model.encoder || model.table)
    fail(ErrorKind::Unsupported,
         "{}: has a table of the weights of tokens; expected a Transformer and SpladePooling for "
         "queries and documents",
         training.model);
  if (model.encoder->scores)
    fail(
        ErrorKind::Unsupported,
        "{}: the layer for the weights of its tokens cannot be trained; expected a masked language "
        "model, or SpladePooling",
        training.model);
  if (model.encoder->pooling.sum)
    fail(ErrorKind::Unsupported, "{}: pooling_strategy is sum; expected max, which can be trained",
         training.model);
  for (const std::string& warning : model.warnings) say(warning);
  transformer = std::move(model.encoder->transformer);
  return std::make_unique<SparseRetriever>(training, std::move(model));
}

}  // namespace fovea::train

// Late interaction models: a vector for each token of a text (ColBERT: Khattab and Zaharia 2020,
// arXiv:2004.12832).

#include <map>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "checkpoint/module_files.h"
#include "embed/batching.h"
#include "embed/retrieval_parts.h"
#include "embed/vector_kind.h"
#include "loop/adapters.h"
#include "losses/score_losses.h"
#include "ops/ops.h"
#include "safetensors/safetensors.h"
#include "tasks/retriever_model.h"
#include "tensor/host_values.h"

namespace fovea::train {
namespace {

using infer::TextRole;
using TokenJson = nlohmann::json;

class TokenRetriever : public RetrieverModel {
 public:
  // `listed`: whether the directory has modules, whose files are copied.
  TokenRetriever(const EmbedderTraining& training, infer::MultiVectorModel model, bool listed)
      : training_(training), model_(std::move(model)), listed_(listed) {}

  const infer::TextFormat& format() const override { return model_.format; }
  const model::Origin& origin() const override { return model_.origin; }
  int64_t width() const override { return model_.width; }
  std::vector<model::NamedParameter> parameters() override;
  std::string note() const override {
    return fmt::format("vectors of tokens have {} elements", width());
  }

  std::vector<RetrieverInput> inputs(const TextPointers& queries,
                                     const TextPointers& candidates) const override {
    return {input(queries, TextRole::query), input(candidates, TextRole::document)};
  }

  Tensor rows(const model::Transformer& transformer, const RetrieverInput& input,
              const std::vector<size_t>& chosen) const override {
    std::vector<int64_t> added;
    for (const size_t i : chosen) added.push_back(input.added[i]);
    return model_.all_rows(transformer, infer::token_batch(input.texts, chosen), added, input.role,
                           training_.recompute);
  }

  RetrieverScores scores(const std::vector<RetrieverInput>& inputs, const std::vector<Tensor>& rows,
                         int64_t count, bool needs_all) const override;
  bool copies_modules() const override { return listed_; }
  void write_modules(const std::string& folder, const model::Spec& spec) const override;

 private:
  RetrieverInput input(const TextPointers& texts, TextRole role) const;
  void write_settings(const std::string& folder) const;

  const EmbedderTraining training_;
  infer::MultiVectorModel model_;
  const bool listed_;
};

// Calls f(dense, index) for the layers after the Transformer.
template <class Model, class F>
void each_dense(Model& model, const F& f) {
  for (size_t i = 0; i < model.after.size(); ++i)
    if (auto* dense = std::get_if<infer::DenseModule>(&model.after[i])) f(*dense, i);
}

std::vector<model::NamedParameter> TokenRetriever::parameters() {
  std::vector<model::NamedParameter> all;
  each_dense(model_, [&](infer::DenseModule& dense, size_t i) {
    for (const auto& [name, parameter] : {std::pair("weight", &dense.linear.weight),
                                          {"bias", &dense.linear.bias},
                                          {"residual", &dense.projection.weight}})
      if (parameter->present()) all.push_back({fmt::format("dense.{}.{}", i, name), parameter});
  });
  return all;
}

RetrieverInput TokenRetriever::input(const TextPointers& texts, TextRole role) const {
  const std::string prompt = infer::prompt_for(model_, role, {});
  RetrieverInput input;
  input.role = role;
  input.added.resize(texts.size());
  input.texts = infer::tokenize_all(texts.size(), [&](size_t i) {
    infer::RoleTokens read = model_.tokens(prompt, *texts[i], role);
    input.added[i] = read.added;
    return std::move(read.text);
  });
  for (const infer::TokenizedText& text : input.texts)
    input.add_rows(model_.vectors_of(text, role));
  return input;
}

// Returns the rows of the given texts, and the number of each.
struct TextRows {
  Tensor rows;
  std::vector<int64_t> counts;
};
TextRows rows_of(const RetrieverInput& input, const Tensor& rows,
                 const std::vector<size_t>& texts) {
  std::vector<int32_t> indices;
  TextRows chosen;
  for (const size_t text : texts) {
    chosen.counts.push_back(input.rows_of(text));
    for (int64_t row = input.starts[text]; row < input.starts[text + 1]; ++row)
      indices.push_back(static_cast<int32_t>(row));
  }
  chosen.rows = gather(vector_tensor(indices), rows);
  return chosen;
}

// Without `needs_all`, only the products of each query and its own candidates are computed.
RetrieverScores TokenRetriever::scores(const std::vector<RetrieverInput>& inputs,
                                       const std::vector<Tensor>& rows, int64_t count,
                                       bool needs_all) const {
  const RetrieverInput &queries = inputs[0], &candidates = inputs[1];
  const auto B = static_cast<size_t>(count);
  const size_t K = candidates.texts.size() / B;
  const auto similarities = [&](const std::vector<size_t>& of_queries,
                                const std::vector<size_t>& of_candidates) {
    const TextRows q = rows_of(queries, rows[0], of_queries),
                   d = rows_of(candidates, rows[1], of_candidates);
    return late_interactions(q.rows, q.counts, d.rows, d.counts, model_.mean);
  };
  if (needs_all) {
    std::vector<size_t> all_queries(B), all_candidates(B * K);
    for (size_t i = 0; i < B; ++i) all_queries[i] = i;
    for (size_t i = 0; i < B * K; ++i) all_candidates[i] = i;
    return {{}, similarities(all_queries, all_candidates)};
  }
  Tensor own;  // [1, scores so far, 1]
  for (size_t b = 0; b < B; ++b) {
    std::vector<size_t> of_query;
    for (size_t k = 0; k < K; ++k) of_query.push_back(k * B + b);
    const Tensor next = similarities({b}, of_query).view({1, static_cast<int64_t>(K), 1});
    own = own ? concat_tokens(own, next) : next;
  }
  return {own.view({static_cast<int64_t>(B), static_cast<int64_t>(K)}), {}};
}

// Writes the tensors of a Dense module.
void write_dense(const std::string& folder, const infer::DenseModule& dense) {
  std::map<std::string, Tensor> tensors;
  for (const auto& [name, parameter] : {std::pair("linear.weight", &dense.linear.weight),
                                        {"linear.bias", &dense.linear.bias},
                                        {"residual.weight", &dense.projection.weight}})
    if (parameter->present()) tensors[name] = parameter->value.detach().to(cpu_device());
  write_safetensors(folder + "/model.safetensors", tensors);
}

// A directory without modules becomes one of PyLate, which sentence-transformers 6 opens too.
void TokenRetriever::write_settings(const std::string& folder) const {
  const text::Tokenizer& tokenizer = model_.format.tokenizer();
  const auto prompt = [&](const char* name) {
    const auto found = model_.prompts.find(name);
    std::string text = found == model_.prompts.end() ? "" : found->second;
    while (text.ends_with(' ')) text.pop_back();
    return text;
  };
  TokenJson skipped = TokenJson::array();
  for (const int32_t id : model_.skipped) skipped.push_back(std::string(tokenizer.text_of(id)));
  const auto& expansion = model_.expansion;
  const TokenJson settings = {{"model_type", "ColBERT"},
                              {"prompts", TokenJson::object()},
                              {"default_prompt_name", nullptr},
                              {"query_prefix", prompt("query")},
                              {"document_prefix", prompt("document")},
                              {"query_length", model_.query_length},
                              {"document_length", model_.document_length},
                              {"do_query_expansion", expansion.has_value()},
                              {"attend_to_expansion_tokens", expansion && expansion->attended},
                              {"skiplist_words", skipped},
                              {"similarity_fn_name", "MaxSim"}};
  write_file_atomically(folder + "/config_sentence_transformers.json", pretty(settings));
  const TokenJson modules = TokenJson::array(
      {{{"idx", 0},
        {"name", "0"},
        {"path", ""},
        {"type", "sentence_transformers.models.Transformer"}},
       {{"idx", 1}, {"name", "1"}, {"path", "1_Dense"}, {"type", "pylate.models.Dense.Dense"}}});
  write_file_atomically(folder + "/modules.json", pretty(modules));
}

void TokenRetriever::write_modules(const std::string& folder, const model::Spec&) const {
  if (listed_) {
    std::vector<std::string> paths;  // of the Dense modules, in the order of model_.after
    for (const model::ListedModule& module : model::list_modules(folder))
      if (module.kind == "Dense") paths.push_back(module.folder);
    size_t next = 0;
    return each_dense(model_, [&](const infer::DenseModule& dense, size_t) {
      write_dense(paths.at(next++), dense);
    });
  }
  write_settings(folder);
  make_directories(folder + "/1_Dense");
  each_dense(model_, [&](const infer::DenseModule& dense, size_t) {
    const Shape& shape = dense.linear.weight.shape;
    write_dense(folder + "/1_Dense", dense);
    write_file_atomically(
        folder + "/1_Dense/config.json",
        pretty(TokenJson{{"in_features", shape[1]},
                         {"out_features", shape[0]},
                         {"bias", false},
                         {"activation_function", "torch.nn.modules.linear.Identity"},
                         {"use_residual", false}}));
  });
}

}  // namespace

std::unique_ptr<RetrieverModel> open_token_retriever(const EmbedderTraining& training,
                                                     model::Transformer& transformer,
                                                     const Say& say) {
  const auto [weights, packing] = base_weights(training.lora);
  const bool exists = infer::vector_kind(training.model) == infer::VectorKind::multiple;
  infer::MultiVectorModel model =
      exists ? infer::MultiVectorModel::open(training.model, weights, packing)
             : infer::MultiVectorModel::create(training.model, training.token_width, training.seed,
                                               weights, packing);
  for (const std::string& warning : model.warnings) say(warning);
  transformer = std::move(model.transformer);
  return std::make_unique<TokenRetriever>(training, std::move(model),
                                          exists && model::has_modules(training.model));
}

}  // namespace fovea::train

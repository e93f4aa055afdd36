#include "search/exact_search.h"

#include <algorithm>

#include "base/threads.h"
#include "nn/linear.h"
#include "tensor/host_values.h"
#include "tensor/tape.h"

namespace fovea::infer {
namespace {

Tensor matrix_of(const Embeddings& vectors) {
  return tensor_from<float>({vectors.count, vectors.width},
                            [&](int64_t i) { return vectors.values[static_cast<size_t>(i)]; });
}

int64_t count_cut(const std::vector<int64_t>& cut) {
  return std::count_if(cut.begin(), cut.end(), [](int64_t tokens) { return tokens > 0; });
}

}  // namespace

ExactSearch::ExactSearch(const PassageModel& model, const std::vector<std::string>& queries,
                         const EmbedOptions& options)
    : model_(model), queries_(std::ssize(queries)) {
  switch (model.kind()) {
    case VectorKind::dense: dense_ = model.dense_vectors(queries, TextRole::query, options); break;
    case VectorKind::sparse:
      sparse_ = model.sparse_vectors(queries, TextRole::query, options);
      break;
    case VectorKind::multiple:
      for (const std::string& query : queries)
        tokens_.push_back(model.token_model().embed({query}, TextRole::query, options));
  }
}

ExactSearch::Similarities ExactSearch::similarities(const std::vector<std::string>& documents,
                                                    const EmbedOptions& options) const {
  Similarities found;
  found.of_query.resize(static_cast<size_t>(queries_));
  for (std::vector<float>& row : found.of_query) row.resize(documents.size());
  const auto compare = [&](const auto& vectors, auto how) {
    found.cut = count_cut(vectors.cut);
    (this->*how)(vectors, found);
  };
  switch (model_.kind()) {
    case VectorKind::dense:
      compare(model_.dense_vectors(documents, TextRole::document, options),
              &ExactSearch::compare_dense);
      break;
    case VectorKind::sparse:
      compare(model_.sparse_vectors(documents, TextRole::document, options),
              &ExactSearch::compare_sparse);
      break;
    case VectorKind::multiple:
      compare(model_.token_model().embed(documents, TextRole::document, options),
              &ExactSearch::compare_tokens);
  }
  return found;
}

void ExactSearch::compare_dense(const Embeddings& documents, Similarities& found) const {
  if (model_.similarity() == Similarity::cosine || model_.similarity() == Similarity::dot) {
    const NoGradient off;
    const Tensor queries = matrix_of(dense_);
    model::Linear products;
    products.weight = {queries.shape(), model::Role::matrix, queries};
    const HostValues<float> rows(products(matrix_of(documents)));  // [documents, queries]
    for (int64_t i = 0; i < documents.count; ++i)
      for (int64_t q = 0; q < queries_; ++q)
        found.of_query[static_cast<size_t>(q)][static_cast<size_t>(i)] =
            rows.row(i)[static_cast<size_t>(q)];
    return;
  }
  const ArrayView queries = dense_.view(), texts = documents.view();
  parallel_tasks(queries_, [&](int64_t q) {
    std::vector<float>& row = found.of_query[static_cast<size_t>(q)];
    for (int64_t i = 0; i < documents.count; ++i)
      row[static_cast<size_t>(i)] =
          model_.dense_model().similarity(queries.row<float>(q), texts.row<float>(i));
  });
}

void ExactSearch::compare_sparse(const SparseVectors& documents, Similarities& found) const {
  const PostingLists lists(documents);
  parallel_tasks(queries_, [&](int64_t q) {
    std::vector<TermWeight> query;
    for (auto i = static_cast<size_t>(sparse_.starts[static_cast<size_t>(q)]);
         i < static_cast<size_t>(sparse_.starts[static_cast<size_t>(q) + 1]); ++i)
      query.push_back({sparse_.indices[i], sparse_.values[i]});
    for (const auto& [number, score] : lists.matches(query))
      found.of_query[static_cast<size_t>(q)][static_cast<size_t>(number)] = score;
  });
}

void ExactSearch::compare_tokens(const MultiVectors& documents, Similarities& found) const {
  for (size_t q = 0; q < tokens_.size(); ++q)
    found.of_query[q] = model_.token_model().scores(tokens_[q], documents);
}

}  // namespace fovea::infer

#include "fovea/infer/retrieval_queue.h"

#include <numeric>
#include <optional>

#include "embed/batch_queue.h"
#include "embed/retrieval_parts.h"

namespace fovea::infer {
namespace {

EmbedOptions without_callbacks(EmbedOptions options) {
  options.stop = nullptr;
  options.name_of_text = nullptr;
  return options;
}

TokenBatch whole_batch(const std::vector<TokenizedText>& texts) {
  std::vector<size_t> all(texts.size());
  std::iota(all.begin(), all.end(), size_t{0});
  return token_batch(texts, all);
}

std::string unnamed(size_t) { return "a text"; }

// Calls `done` with what compute() returns, or with its error.
template <class Done, class Compute>
void finish(const Done& done, const Compute& compute) {
  std::optional<decltype(compute())> result;
  try {
    result.emplace(compute());
  } catch (const Error& error) {
    return done(nullptr, &error);
  }
  done(&*result, nullptr);
}

}  // namespace

class SparseRowQueue : public BatchQueue<TokenizedText, SparseRow> {
  using BatchQueue::BatchQueue;
};
class MultiVectorRowQueue : public BatchQueue<RoleTokens, Tensor> {
  using BatchQueue::BatchQueue;
};

// A group is a role.
SparseQueue::SparseQueue(const SparseEmbedder& embedder, const QueueOptions& options)
    : embedder_(embedder),
      queue_(std::make_unique<SparseRowQueue>(
          [this](const std::vector<TokenizedText>& texts, int64_t role) {
            const SparseModel& model = embedder_.parts().model;
            std::vector<SparseRow> rows;
            if (model.uses_table(static_cast<TextRole>(role))) {
              for (const TokenizedText& text : texts) rows.push_back(model.table->row(text));
              return rows;
            }
            return model.encoder->rows(whole_batch(texts), unnamed);
          },
          options)) {}
SparseQueue::~SparseQueue() = default;

uint64_t SparseQueue::submit(const std::vector<std::string>& texts, TextRole role,
                             const EmbedOptions& options, Done done) {
  const FloatMode mode;
  if (queue_->full()) return 0;
  const SparseModel& model = embedder_.parts().model;
  std::vector<TokenizedText> tokens = read_texts(model, texts, role, options);
  std::vector<TextLength> lengths = lengths_of(tokens);
  return queue_->add(std::move(tokens), static_cast<int64_t>(role),
                     [&model, lengths = std::move(lengths), done = std::move(done)](
                         std::vector<SparseRow> rows, const Error* error) {
                       if (error != nullptr) return done(nullptr, error);
                       finish(done, [&] { return vectors_of(model, std::move(rows), lengths); });
                     });
}

void SparseQueue::cancel(uint64_t request) { queue_->cancel(request); }
QueueStatus SparseQueue::status() const { return queue_->status(); }

MultiVectorQueue::MultiVectorQueue(const MultiVectorEmbedder& embedder, const QueueOptions& options)
    : embedder_(embedder),
      queue_(std::make_unique<MultiVectorRowQueue>(
          [this](const std::vector<RoleTokens>& texts, int64_t role) {
            std::vector<TokenizedText> tokens;
            std::vector<int64_t> added;
            for (const RoleTokens& text : texts) {
              tokens.push_back(text.text);
              added.push_back(text.added);
            }
            return finite_rows(embedder_.parts().model, whole_batch(tokens), added,
                               static_cast<TextRole>(role), unnamed);
          },
          options)) {}
MultiVectorQueue::~MultiVectorQueue() = default;

uint64_t MultiVectorQueue::submit(const std::vector<std::string>& texts, TextRole role,
                                  const EmbedOptions& options, Done done) {
  const FloatMode mode;
  if (queue_->full()) return 0;
  const MultiVectorModel& model = embedder_.parts().model;
  std::vector<RoleTokens> read = read_texts(model, texts, role, options);
  std::vector<TextLength> lengths;
  for (const RoleTokens& text : read) lengths.push_back({length_of(text), text.text.cut});
  return queue_->add(std::move(read), static_cast<int64_t>(role),
                     [&model, lengths = std::move(lengths), done = std::move(done)](
                         const std::vector<Tensor>& rows, const Error* error) {
                       if (error != nullptr) return done(nullptr, error);
                       finish(done, [&] { return vectors_of(model, rows, lengths); });
                     });
}

uint64_t MultiVectorQueue::submit_scores(const std::string& query,
                                         const std::vector<std::string>& texts,
                                         const EmbedOptions& options, ScoresDone done) {
  return submit_scores(std::vector{query}, texts, options, std::move(done));
}

uint64_t MultiVectorQueue::submit_scores(const std::vector<std::string>& queries,
                                         const std::vector<std::string>& texts,
                                         const EmbedOptions& options, ScoresDone done) {
  check(queries.size() == 1 || queries.size() == texts.size(),
        "queries: {}; expected 1 or {}, one for each text", queries.size(), texts.size());
  std::vector<std::string> different;  // of equal queries in a row only one
  std::vector<int64_t> query_of;
  for (const std::string& query : queries) {
    if (different.empty() || different.back() != query) different.push_back(query);
    query_of.push_back(std::ssize(different) - 1);
  }
  auto score = [this, different, query_of, plain = without_callbacks(options),
                done = std::move(done)](const MultiVectors* vectors, const Error* error) {
    if (error != nullptr) return done(nullptr, error);
    finish(done, [&] {
      RerankScores scores;
      const MultiVectors of_queries = embedder_.embed(different, TextRole::query, plain);
      for (int64_t i = 0; i < vectors->count; ++i) {
        const int64_t query = query_of[query_of.size() == 1 ? 0 : static_cast<size_t>(i)];
        scores.values.push_back(embedder_.similarity(of_queries.rows(query), vectors->rows(i)));
        scores.tokens +=
            of_queries.tokens[static_cast<size_t>(query)] + vectors->tokens[static_cast<size_t>(i)];
      }
      return scores;
    });
  };
  return submit(texts, TextRole::document, options, std::move(score));
}

void MultiVectorQueue::cancel(uint64_t request) { queue_->cancel(request); }
QueueStatus MultiVectorQueue::status() const { return queue_->status(); }

}  // namespace fovea::infer

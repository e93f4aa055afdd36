#include "fovea/infer/retrieval_queue.h"

#include "embed/text_queue.h"

namespace fovea::infer {
namespace {

// The settings of a request that affect its vectors.
std::string group_of(TextRole role, const EmbedOptions& options) {
  return fmt::format("{} {} {} {} {}", static_cast<int>(role), options.truncate,
                     options.batch_tokens, options.prompt_name,
                     options.prompt ? "=" + *options.prompt : "");
}

EmbedOptions without_callbacks(EmbedOptions options) {
  options.stop = nullptr;
  options.name_of_text = nullptr;
  return options;
}

template <class Vectors>
Vectors rows_between(const Vectors& all, int64_t begin, int64_t end) {
  const auto slice = [](const auto& values, int64_t from, int64_t to) {
    return std::remove_cvref_t<decltype(values)>(values.begin() + from, values.begin() + to);
  };
  Vectors part;
  part.count = end - begin;
  part.width = all.width;
  const int64_t first = all.starts[static_cast<size_t>(begin)];
  for (int64_t i = begin; i < end; ++i)
    part.starts.push_back(all.starts[static_cast<size_t>(i) + 1] - first);
  const int64_t last = first + part.starts.back();
  if constexpr (requires { all.indices; }) {
    part.indices = slice(all.indices, first, last);
    part.values = slice(all.values, first, last);
  } else {
    part.values = slice(all.values, first * all.width, last * all.width);
  }
  part.tokens = slice(all.tokens, begin, end);
  part.cut = slice(all.cut, begin, end);
  return part;
}

}  // namespace

SparseQueue::SparseQueue(const SparseEmbedder& embedder, const QueueOptions& options)
    : embedder_(embedder),
      queue_(std::make_unique<TextQueue<SparseVectors>>(rows_between<SparseVectors>, options)) {}
SparseQueue::~SparseQueue() = default;

uint64_t SparseQueue::submit(const std::vector<std::string>& texts, TextRole role,
                             const EmbedOptions& options, Done done) {
  auto compute = [this, role,
                  plain = without_callbacks(options)](const std::vector<std::string>& all) {
    return embedder_.embed(all, role, plain);
  };
  return queue_->add(group_of(role, options), texts, std::move(compute), std::move(done));
}

void SparseQueue::cancel(uint64_t request) { queue_->cancel(request); }
QueueStatus SparseQueue::status() const { return queue_->status(); }

MultiVectorQueue::MultiVectorQueue(const MultiVectorEmbedder& embedder, const QueueOptions& options)
    : embedder_(embedder),
      queue_(std::make_unique<TextQueue<MultiVectors>>(rows_between<MultiVectors>, options)) {}
MultiVectorQueue::~MultiVectorQueue() = default;

uint64_t MultiVectorQueue::submit(const std::vector<std::string>& texts, TextRole role,
                                  const EmbedOptions& options, Done done) {
  auto compute = [this, role,
                  plain = without_callbacks(options)](const std::vector<std::string>& all) {
    return embedder_.embed(all, role, plain);
  };
  return queue_->add(group_of(role, options), texts, std::move(compute), std::move(done));
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
    RerankScores scores;
    try {
      const MultiVectors of_queries = embedder_.embed(different, TextRole::query, plain);
      for (int64_t i = 0; i < vectors->count; ++i) {
        const int64_t query = query_of[query_of.size() == 1 ? 0 : static_cast<size_t>(i)];
        scores.values.push_back(embedder_.similarity(of_queries.rows(query), vectors->rows(i)));
        scores.tokens +=
            of_queries.tokens[static_cast<size_t>(query)] + vectors->tokens[static_cast<size_t>(i)];
      }
    } catch (const Error& wrong) {
      return done(nullptr, &wrong);
    }
    done(&scores, nullptr);
  };
  return submit(texts, TextRole::document, options, std::move(score));
}

void MultiVectorQueue::cancel(uint64_t request) { queue_->cancel(request); }
QueueStatus MultiVectorQueue::status() const { return queue_->status(); }

}  // namespace fovea::infer

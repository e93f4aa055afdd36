#include "fovea/infer/evaluate_retrieval.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "base/fields.h"
#include "base/files.h"
#include "base/float_mode.h"
#include "base/threads.h"
#include "metrics/bootstrap.h"
#include "metrics/ranking.h"
#include "search/exact_search.h"
#include "search/retrieval_set.h"

namespace fovea::infer {
namespace {

constexpr size_t kDocumentsAtOnce = 512;  // whose vectors are in memory at once
constexpr int64_t kDefaultDepth = 1000, kDefaultRerankedDepth = 100;

// A document found for a query.
struct FoundDocument {
  size_t number;  // index in the corpus
  float score;
};
using FoundDocuments = std::vector<FoundDocument>;

// Finds the documents for each query and scores their order.
class RetrievalRun {
 public:
  RetrievalRun(const PassageModel& model, const RetrievalData& data,
               const RetrievalProgress& progress)
      : model_(model),
        data_(data),
        progress_(progress),
        set_(read_retrieval_set(data.files[0], data.files[1], data.files[2])),
        depth_(depth_of(data)),
        found_(set_.queries.size()) {}

  RetrievalEvaluation evaluate() {
    search();
    if (data_.reranker) rerank();
    if (!data_.run_out.empty()) write_file_atomically(data_.run_out, run_text());
    RetrievalEvaluation result{std::ssize(set_.queries), std::ssize(set_.documents), metrics(), {}};
    const auto note = [&](int64_t count, const std::string& what) {
      if (count > 0) result.notes.push_back(fmt::format("{} {}", count, what));
    };
    note(set_.unjudged, "queries have no judgements and are left out");
    note(set_.missing, "judgements are of documents that the corpus lacks, which cannot be found");
    note(cut_, fmt::format("documents are truncated to {} tokens", model_.max_tokens()));
    return result;
  }

  static size_t depth_of(const RetrievalData& data) {
    const int64_t depth = data.reranker ? kDefaultRerankedDepth : kDefaultDepth;
    return static_cast<size_t>(data.depth > 0 ? data.depth : depth);
  }

 private:
  RankedDocument ranked(const FoundDocument& found) const {
    return {set_.documents[found.number].id, found.score};
  }
  // Sorts documents, of which the first `most` stay.
  void sort(FoundDocuments& found, size_t most) const {
    const auto before = [&](const FoundDocument& a, const FoundDocument& b) {
      return ranks_before(ranked(a), ranked(b));
    };
    const size_t kept = std::min(most, found.size());
    std::partial_sort(found.begin(), found.begin() + static_cast<int64_t>(kept), found.end(),
                      before);
    found.resize(kept);
  }

  EmbedOptions options(const std::function<std::string(size_t)>& name) const {
    EmbedOptions options;
    options.name_of_text = name;
    return options;
  }

  // The steps are the documents and, with a reranker, the queries.
  void reach(size_t documents, size_t queries) const {
    const size_t all = set_.documents.size() + (data_.reranker ? set_.queries.size() : 0);
    const double fraction = static_cast<double>(documents + queries) / static_cast<double>(all);
    if (progress_ && !progress_(fraction))
      fail(ErrorKind::Failed, "retrieval: stopped by the caller");
  }

  void search() {
    std::vector<std::string> queries;
    for (const RetrievalQuery& query : set_.queries) queries.push_back(query.text);
    const ExactSearch search(model_, queries,
                             options([&](size_t i) { return "query " + set_.queries[i].id; }));
    for (size_t begin = 0; begin < set_.documents.size(); begin += kDocumentsAtOnce) {
      reach(begin, 0);
      const size_t end = std::min(begin + kDocumentsAtOnce, set_.documents.size());
      std::vector<std::string> texts;
      for (size_t i = begin; i < end; ++i) texts.push_back(set_.documents[i].text);
      const ExactSearch::Similarities block = search.similarities(
          texts, options([&](size_t i) { return "document " + set_.documents[begin + i].id; }));
      cut_ += block.cut;
      parallel_tasks(std::ssize(found_), [&](int64_t q) {
        add_block(block.of_query[static_cast<size_t>(q)], begin, static_cast<size_t>(q));
      });
    }
    reach(set_.documents.size(), 0);
  }

  void add_block(const std::vector<float>& scores, size_t begin, size_t query) {
    FoundDocuments& found = found_[query];
    for (size_t i = 0; i < scores.size(); ++i)
      if (set_.documents[begin + i].id != set_.queries[query].id)
        found.push_back({begin + i, scores[i]});
    sort(found, depth_);
  }

  void rerank() {
    for (size_t q = 0; q < found_.size(); ++q) {
      std::vector<std::string> texts;
      for (const FoundDocument& each : found_[q]) texts.push_back(set_.documents[each.number].text);
      const std::vector<float> scores = data_.reranker(set_.queries[q].text, texts);
      check(scores.size() == texts.size(), "reranker: {} scores of {} texts", scores.size(),
            texts.size());
      for (size_t i = 0; i < scores.size(); ++i) found_[q][i].score = scores[i];
      sort(found_[q], depth_);
      reach(set_.documents.size(), q + 1);
    }
  }

  std::string run_text() const {
    std::string out;
    for (size_t q = 0; q < found_.size(); ++q)
      for (size_t i = 0; i < found_[q].size(); ++i)
        fmt::format_to(std::back_inserter(out), "{} Q0 {} {} {} fovea\n", set_.queries[q].id,
                       set_.documents[found_[q][i].number].id, i + 1, found_[q][i].score);
    return out;
  }

  std::vector<JudgedRanking> judged_rankings() const {
    std::vector<JudgedRanking> rankings(found_.size());
    for (size_t q = 0; q < found_.size(); ++q) {
      const auto& relevance = set_.queries[q].relevance;
      for (const auto& [document, number] : relevance) rankings[q].judged.push_back(number);
      for (const FoundDocument& each : found_[q]) {
        const auto judged = relevance.find(set_.documents[each.number].id);
        rankings[q].found.push_back(judged == relevance.end() ? 0 : judged->second);
      }
    }
    return rankings;
  }

  std::vector<std::pair<std::string, Estimate>> metrics() const {
    const std::vector<JudgedRanking> rankings = judged_rankings();
    std::vector<std::pair<std::string, Estimate>> all;
    const auto add = [&](const std::string& name, auto metric, int64_t k) {
      std::vector<double> values;
      for (const JudgedRanking& ranking : rankings) values.push_back(metric(ranking, k));
      const auto mean = [&](const std::vector<int32_t>& queries) {
        double sum = 0;
        for (const int32_t q : queries) sum += values[static_cast<size_t>(q)];
        return sum / static_cast<double>(queries.size());
      };
      all.emplace_back(name, bootstrap(std::ssize(values), data_.bootstrap, data_.seed, mean));
    };
    for (const int64_t k : data_.cutoffs) {
      add(fmt::format("ndcg_at_{}", k), normalised_gain, k);
      add(fmt::format("map_at_{}", k), average_precision_at, k);
      add(fmt::format("recall_at_{}", k), recall_at, k);
      add(fmt::format("precision_at_{}", k), precision_at, k);
      add(fmt::format("mrr_at_{}", k), reciprocal_rank, k);
    }
    add("map", average_precision_at, static_cast<int64_t>(depth_));
    return all;
  }

  const PassageModel& model_;
  const RetrievalData& data_;
  const RetrievalProgress& progress_;
  const RetrievalSet set_;
  const size_t depth_;
  std::vector<FoundDocuments> found_;  // of each query, best first
  int64_t cut_ = 0;
};

RetrievalEvaluation evaluate_with(const PassageModel& model, const RetrievalData& data,
                                  const RetrievalProgress& progress) {
  const FloatMode mode;
  check_fields(data);
  check_field(data.files.size() == 3, "files",
              "{} files; expected three: queries, documents, judgements", data.files.size());
  check_field(!data.cutoffs.empty(), "cutoffs", "no value; expected at least one");
  const auto depth = static_cast<int64_t>(RetrievalRun::depth_of(data));
  for (const int64_t k : data.cutoffs)
    check_field(k <= depth, "cutoffs", "{}; expected at most {}, the `depth`", k, depth);
  return RetrievalRun(model, data, progress).evaluate();
}

}  // namespace

void visit(RetrievalData& o, OptionVisitor& v) {
  constexpr int64_t kMost = 1'000'000;
  v.texts({"files", "queries, documents, judgements in the layout of BEIR (docs/embed.md)"},
          o.files);
  v.integer({"depth", "documents to find for each query; 0 = 1000, or 100 that are reranked"},
            o.depth, 0, kMost);
  v.integers({"cutoffs", "evaluate the first k documents found, for each k"}, o.cutoffs, 1, kMost);
  v.text({"run_out", "write the documents found to this file, in the format of trec_eval"},
         o.run_out);
  visit_bootstrap(o.bootstrap, v);
  v.seed({"seed", "seed of the intervals"}, o.seed);
}

RetrievalEvaluation evaluate_retrieval(const Embedder& model, const RetrievalData& data,
                                       const RetrievalProgress& progress) {
  return evaluate_with(PassageModel(model), data, progress);
}
RetrievalEvaluation evaluate_retrieval(const SparseEmbedder& model, const RetrievalData& data,
                                       const RetrievalProgress& progress) {
  return evaluate_with(PassageModel(model), data, progress);
}
RetrievalEvaluation evaluate_retrieval(const MultiVectorEmbedder& model, const RetrievalData& data,
                                       const RetrievalProgress& progress) {
  return evaluate_with(PassageModel(model), data, progress);
}

}  // namespace fovea::infer

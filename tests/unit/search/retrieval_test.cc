// Retrieval over all documents of a small corpus, by each kind of vectors, and errors of the files.

#include <algorithm>
#include <sstream>

#include "base/files.h"
#include "base/threads.h"
#include "fovea/infer/evaluate_retrieval.h"
#include "fovea/infer/metrics.h"
#include "search/exact_search.h"
#include "search/retrieval_set.h"
#include "support/expect_error.h"
#include "support/golden_folder.h"
#include "support/temporary_folder.h"

namespace fovea::infer {
namespace {

using Rows = std::vector<std::vector<std::string>>;

class Retrieval : public testing::Test {
 protected:
  Retrieval() {
    write("queries.jsonl", R"({"_id": "q1", "text": "the fox"}
{"_id": "q2", "text": "night", "metadata": {}}
{"_id": "q3", "text": "bird"}
{"_id": "q4", "text": "not judged"}
)");
    // d1 and d2 have the same text; q3 is the id of a query too.
    write("corpus.jsonl", R"({"_id": "d1", "title": "the fox", "text": "sees the bird"}
{"_id": "d2", "title": "", "text": "the fox sees the bird"}
{"_id": "d3", "text": "light falls on the eye"}
{"_id": "d4", "title": "night", "text": ""}
{"_id": "q3", "text": "bird"}
{"_id": "d5", "text": "the light never sleeps in the night"}
)");
    write("qrels.tsv",
          "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td5\t1\nq2\td4\t1\nq2\tgone\t1\nq3\td3\t0\n");
    data_.files = {folder_ / "queries.jsonl", folder_ / "corpus.jsonl", folder_ / "qrels.tsv"};
    data_.cutoffs = {1, 3};
    data_.bootstrap = 40;
    data_.run_out = folder_ / "run";
  }
  void write(const std::string& name, const std::string& text) const {
    write_file_atomically(folder_ / name, text);
  }
  // The rows of the run: query, Q0, document, rank, score, name.
  Rows run() const {
    Rows rows;
    std::istringstream lines(read_file(folder_ / "run"));
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      rows.emplace_back();
      for (std::string word; words >> word;) rows.back().push_back(word);
    }
    return rows;
  }
  // The texts of the documents, by their ids.
  std::string text_of(const std::string& id) const {
    for (const RetrievalText& each :
         read_retrieval_set(data_.files[0], data_.files[1], data_.files[2]).documents)
      if (each.id == id) return each.text;
    return "";
  }
  void refused(const std::string& name, const std::string& text,
               std::initializer_list<std::string> parts) const {
    const std::string before = read_file(folder_ / name);
    write(name, text);
    expect_error(ErrorKind::BadFile, parts,
                 [&] { read_retrieval_set(data_.files[0], data_.files[1], data_.files[2]); });
    write(name, before);
  }

  TemporaryFolder folder_;
  RetrievalData data_;
};

double metric(const RetrievalEvaluation& result, const std::string& name) {
  for (const auto& [each, estimate] : result.metrics)
    if (each == name) return estimate.value;
  ADD_FAILURE() << name;
  return -1;
}

TEST_F(Retrieval, ReadsTheLayoutOfBeir) {
  const RetrievalSet set = read_retrieval_set(data_.files[0], data_.files[1], data_.files[2]);
  ASSERT_EQ(set.queries.size(), 3u);
  EXPECT_EQ(set.unjudged, 1);
  EXPECT_EQ(set.missing, 1);
  EXPECT_EQ(set.queries[0].relevance, (std::map<std::string, int64_t>{{"d1", 2}, {"d5", 1}}));
  EXPECT_EQ(set.documents[0].text, "the fox sees the bird");
  EXPECT_EQ(set.documents[1].text, "the fox sees the bird");
  EXPECT_EQ(set.documents[3].text, "night");
}

TEST_F(Retrieval, FindsTheMostSimilarDocumentsOfDenseVectors) {
  const Embedder embedder = Embedder::open("tests/goldens/sentence_model");
  const RetrievalEvaluation result = evaluate_retrieval(embedder, data_);
  EXPECT_EQ(result.queries, 3);
  EXPECT_EQ(result.documents, 6);
  EXPECT_EQ(result.notes.size(), 2u);
  const Rows rows = run();
  ASSERT_EQ(rows.size(), 17u);  // all documents but the one with the id of a query
  EmbedOptions of_query;
  of_query.prompt_name = "query";
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::string text = rows[i][0] == "q1" ? "the fox" : rows[i][0] == "q2" ? "night" : "bird";
    const Embeddings query = embedder.embed({text}, of_query);
    const Embeddings document = embedder.embed({text_of(rows[i][2])});
    const float score = std::stof(rows[i][4]);
    EXPECT_NEAR(score, embedder.similarity(query.values, document.values), 1e-6);
    EXPECT_FALSE(rows[i][0] == "q3" && rows[i][2] == "q3");
    if (i == 0 || rows[i][0] != rows[i - 1][0]) continue;
    const float before = std::stof(rows[i - 1][4]);
    EXPECT_GE(before, score);
    EXPECT_TRUE(before > score || rows[i - 1][2] > rows[i][2]);
  }
  const auto rank = [&](const std::string& query, const std::string& document) {
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const auto& each) {
      return each[0] == query && each[2] == document;
    });
    return row == rows.end() ? 0 : std::stoi((*row)[3]);
  };
  EXPECT_EQ(rank("q1", "d1"), rank("q1", "d2") + 1);  // equal scores, by descending id
  const double of_q1 = 1.0 / std::min(rank("q1", "d1"), rank("q1", "d5"));
  const double of_q2 = 1.0 / rank("q2", "d4");
  EXPECT_NEAR(metric(result, "mrr_at_3"),
              ((of_q1 >= 1.0 / 3 ? of_q1 : 0) + (of_q2 >= 1.0 / 3 ? of_q2 : 0)) / 3, 1e-12);
  data_.cutoffs = {1000};
  EXPECT_NEAR(metric(evaluate_retrieval(embedder, data_), "recall_at_1000"), (1 + 0.5 + 0) / 3,
              1e-12);
}

TEST_F(Retrieval, GivesTheSameBitsForAnyNumberOfThreadsAndDepth) {
  const Embedder embedder = Embedder::open("tests/goldens/sentence_model");
  const auto once = evaluate_retrieval(embedder, data_).metrics;
  const Rows rows = run();
  const int before = thread_count();
  for (const int count : {1, 3}) {
    set_threads(count);
    const auto again = evaluate_retrieval(embedder, data_).metrics;
    for (size_t i = 0; i < once.size(); ++i) {
      EXPECT_EQ(again[i].second.value, once[i].second.value);
      EXPECT_EQ(again[i].second.low, once[i].second.low);
      EXPECT_EQ(again[i].second.high, once[i].second.high);
    }
    EXPECT_EQ(run(), rows);
  }
  set_threads(before);
  data_.depth = 3;
  evaluate_retrieval(embedder, data_);
  Rows first;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(first),
               [](const auto& row) { return std::stoi(row[3]) <= 3; });
  EXPECT_EQ(run(), first);
}

TEST_F(Retrieval, ComparesSparseVectorsAndThoseOfTokens) {
  const auto sparse = SparseEmbedder::open("tests/goldens/sparse_model");
  evaluate_retrieval(sparse, data_);
  Rows rows = run();
  ASSERT_EQ(rows.size(), 17u);
  const SparseVectors query = sparse.embed({"the fox"}, TextRole::query);
  for (const auto& row : rows) {
    if (row[0] != "q1") continue;
    const SparseVectors document = sparse.embed({text_of(row[2])});
    double sum = 0;
    for (size_t i = 0; i < query.indices.size(); ++i)
      for (size_t j = 0; j < document.indices.size(); ++j)
        if (query.indices[i] == document.indices[j])
          sum += double{query.values[i]} * double{document.values[j]};
    EXPECT_NEAR(std::stod(row[4]), sum, 1e-5);
  }
  const auto tokens = MultiVectorEmbedder::open("tests/goldens/multi_vector_model");
  evaluate_retrieval(tokens, data_);
  rows = run();
  ASSERT_EQ(rows.size(), 17u);
  for (const auto& row : rows) {
    if (row[0] != "q1") continue;
    EXPECT_NEAR(std::stof(row[4]), tokens.score("the fox", {text_of(row[2])})[0], 1e-5);
  }
}

TEST_F(Retrieval, SortsTheDocumentsByAReranker) {
  data_.depth = 3;
  data_.reranker = [](const std::string&, const std::vector<std::string>& texts) {
    std::vector<float> scores;
    for (const std::string& text : texts) scores.push_back(-static_cast<float>(text.size()));
    return scores;
  };
  evaluate_retrieval(Embedder::open("tests/goldens/sentence_model"), data_);
  const Rows rows = run();
  ASSERT_EQ(rows.size(), 9u);
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_LE(i % 3 == 0 ? 0 : text_of(rows[i - 1][2]).size(), text_of(rows[i][2]).size());
  }
}

TEST_F(Retrieval, NamesTheInvalidRow) {
  const auto queries = [&](const char* text, std::initializer_list<std::string> parts) {
    refused("queries.jsonl", text, parts);
  };
  queries("{\"text\": \"x\"}", {"queries.jsonl:1: has no \"_id\""});
  queries("{\"_id\": \"q1\"}", {"queries.jsonl:1: has no \"text\""});
  queries("{\"_id\": \"\", \"text\": \"x\"}", {"queries.jsonl:1: \"_id\" is empty"});
  queries("{\"_id\": \"q1\", \"text\": []}", {"queries.jsonl:1: \"text\" is an array"});
  queries("{\"_id\": \"q1\", \"text\": \"x\"}\n{\"_id\": \"q1\", \"text\": \"y\"}",
          {"queries.jsonl:2: \"_id\" q1 occurs twice"});
  refused("corpus.jsonl", "{\"_id\": \"d\", \"text\": \"x\"}\n{\"_id\": \"d\", \"text\": \"y\"}",
          {"corpus.jsonl:2: \"_id\" d occurs twice"});
  refused("corpus.jsonl", "", {"corpus.jsonl: no documents"});
  const auto judgements = [&](const std::string& rows, std::initializer_list<std::string> parts) {
    refused("qrels.tsv", "query-id\tcorpus-id\tscore\n" + rows, parts);
  };
  judgements("", {"qrels.tsv: no judgements"});
  judgements("q1\td1\n", {"qrels.tsv:2: "});
  judgements("q1\td1\t1\nq9\td1\t1\n", {"qrels.tsv:3: query-id q9 is not in the queries"});
  judgements("q1\td1\t1\nq1\td1\t1\n", {"qrels.tsv:3: query q1 and document d1 occur twice"});
  judgements("q1\td1\t0.5\n", {"qrels.tsv:2: score is 0.5; expected an integer"});
  refused("qrels.tsv", "q1\td1\t1\n",
          {"qrels.tsv: has no names of columns; expected a first row with query-id, corpus-id, "
           "score"});
}

TEST_F(Retrieval, RefusesOptionsOutOfRange) {
  const Embedder embedder = Embedder::open("tests/goldens/sentence_model");
  data_.depth = 2;
  expect_error(ErrorKind::InvalidArgument, {"cutoffs: 3; expected at most 2"},
               [&] { evaluate_retrieval(embedder, data_); });
  data_.depth = 0;
  data_.files.pop_back();
  expect_error(ErrorKind::InvalidArgument, {"files: 2 files; expected three"},
               [&] { evaluate_retrieval(embedder, data_); });
  data_.files.push_back(folder_ / "qrels.tsv");
  expect_error(ErrorKind::Failed, {"stopped by the caller"},
               [&] { evaluate_retrieval(embedder, data_, [](double) { return false; }); });
}

}  // namespace
}  // namespace fovea::infer

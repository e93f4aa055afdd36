#include "search/retrieval_set.h"

#include <charconv>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "records/named_records.h"

namespace fovea::infer {
namespace {

using text::NamedField;
using text::NamedRecord;

// Adds an id that must be new.
void add_id(const NamedRecord& record, std::unordered_set<std::string>& ids) {
  const std::string& id = record.values[0].value();
  if (id.empty()) fail(ErrorKind::BadFile, "{}: \"_id\" is empty; expected an id", record.location);
  if (!ids.insert(id).second)
    fail(ErrorKind::BadFile, "{}: \"_id\" {} occurs twice; expected different ids", record.location,
         id);
}

std::string_view stripped(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r\n\v\f";
  const size_t begin = text.find_first_not_of(kSpaces);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpaces) + 1 - begin);
}

std::vector<RetrievalText> read_corpus(const std::string& path) {
  std::vector<RetrievalText> documents;
  std::unordered_set<std::string> ids;
  text::each_named_record(
      path, {{{"_id"}}, {{"text"}}, {{"title"}, false}}, [&](const NamedRecord& record) {
        add_id(record, ids);
        const std::string whole = record.values[2].value_or("") + " " + record.values[1].value();
        documents.push_back({record.values[0].value(), std::string(stripped(whole))});
      });
  if (documents.empty()) fail(ErrorKind::BadFile, "{}: no documents; expected some", path);
  return documents;
}

std::vector<RetrievalQuery> read_queries(const std::string& path) {
  std::vector<RetrievalQuery> queries;
  std::unordered_set<std::string> ids;
  text::each_named_record(path, {{{"_id"}}, {{"text"}}}, [&](const NamedRecord& record) {
    add_id(record, ids);
    queries.push_back({record.values[0].value(), record.values[1].value(), {}});
  });
  return queries;
}

int64_t relevance_of(const NamedRecord& record) {
  const std::string& text = record.values[2].value();
  int64_t relevance = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), relevance);
  if (error != std::errc() || end != text.data() + text.size())
    fail(ErrorKind::BadFile, "{}: score is {}; expected an integer", record.location, text);
  return relevance;
}

void read_judgements(const std::string& path, std::vector<RetrievalQuery>& queries) {
  std::unordered_map<std::string, size_t> numbers;
  for (size_t i = 0; i < queries.size(); ++i) numbers.emplace(queries[i].id, i);
  bool any = false;
  text::each_named_record(
      path, {{{"query-id"}}, {{"corpus-id"}}, {{"score"}}}, [&](const NamedRecord& record) {
        const std::string &query = record.values[0].value(), &document = record.values[1].value();
        const auto number = numbers.find(query);
        if (number == numbers.end())
          fail(ErrorKind::BadFile, "{}: query-id {} is not in the queries", record.location, query);
        any = true;
        auto& relevance = queries[number->second].relevance;
        if (!relevance.emplace(document, relevance_of(record)).second)
          fail(ErrorKind::BadFile,
               "{}: query {} and document {} occur twice; expected one judgement", record.location,
               query, document);
      });
  if (!any) fail(ErrorKind::BadFile, "{}: no judgements; expected some", path);
}

}  // namespace

RetrievalSet read_retrieval_set(const std::string& queries, const std::string& corpus,
                                const std::string& judgements) {
  RetrievalSet set;
  set.queries = read_queries(queries);
  read_judgements(judgements, set.queries);
  set.unjudged = static_cast<int64_t>(std::erase_if(
      set.queries, [](const RetrievalQuery& query) { return query.relevance.empty(); }));
  set.documents = read_corpus(corpus);
  std::unordered_set<std::string_view> known;
  for (const RetrievalText& document : set.documents) known.insert(document.id);
  for (const RetrievalQuery& query : set.queries)
    for (const auto& [document, relevance] : query.relevance)
      set.missing += known.contains(document) ? 0 : 1;
  return set;
}

}  // namespace fovea::infer

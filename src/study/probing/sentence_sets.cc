#include "probing/sentence_sets.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "fovea/core/excerpt.h"
#include "records/named_records.h"
#include "records/table.h"

namespace fovea::study {
namespace {

enum Field { kText, kFirst, kSecond, kScore, kLabel };

const std::vector<text::NamedField> kFields = {{{"text", "sentence", "sentences"}, false},
                                               {{"sentence1", "text1"}, false},
                                               {{"sentence2", "text2"}, false},
                                               {{"score", "similarity_score"}, false},
                                               {{"label", "labels"}, false}};

constexpr const char* kExpected =
    "expected sentence1 and sentence2, with score, label or neither, or text and label";

SentenceTask task_of(const text::NamedRecord& record) {
  const auto has = [&](Field field) { return record.values[field].has_value(); };
  if (has(kText) && has(kLabel) && !has(kFirst) && !has(kSecond) && !has(kScore))
    return SentenceTask::topics;
  if (!has(kText) && has(kFirst) && has(kSecond) && !(has(kScore) && has(kLabel)))
    return has(kScore)   ? SentenceTask::similarity
           : has(kLabel) ? SentenceTask::pairs
                         : SentenceTask::translations;
  fail(ErrorKind::BadFile, "{}: has other names; {}", record.location, kExpected);
}

// Returns the number of a label among the names, to which a new one is added.
int32_t number_of(const std::string& label, std::vector<std::string>& names) {
  const auto found = std::find(names.begin(), names.end(), label);
  const auto number = static_cast<int32_t>(found - names.begin());
  if (found == names.end()) names.push_back(label);
  return number;
}

void add_record(const text::NamedRecord& record, SentenceSet& set) {
  const auto value = [&](Field field) { return record.values[field].value(); };
  if (set.task == SentenceTask::topics) {
    set.texts.push_back(value(kText));
    set.labels.push_back(number_of(value(kLabel), set.names));
    return;
  }
  set.texts.insert(set.texts.end(), {value(kFirst), value(kSecond)});
  if (set.task == SentenceTask::similarity) {
    const std::optional<double> score = text::finite_number(value(kScore));
    if (!score)
      fail(ErrorKind::BadFile, "{}: score is \"{}\"; expected a number", record.location,
           excerpt(value(kScore), 40));
    set.scores.push_back(*score);
  } else if (set.task == SentenceTask::pairs) {
    const std::optional<double> label = text::finite_number(value(kLabel));
    if (label != 0 && label != 1)
      fail(ErrorKind::BadFile, "{}: label is \"{}\"; expected 0 or 1", record.location,
           excerpt(value(kLabel), 40));
    set.labels.push_back(label == 1 ? 1 : 0);
  }
}

}  // namespace

SentenceSet read_sentence_set(const std::string& path) {
  SentenceSet set;
  each_named_record(path, kFields, [&](const text::NamedRecord& record) {
    const SentenceTask task = task_of(record);
    if (set.locations.empty()) set.task = task;
    if (task != set.task)
      fail(ErrorKind::BadFile, "{}: has other names than the first record; {}", record.location,
           kExpected);
    add_record(record, set);
    set.locations.push_back(record.location);
  });
  return set;
}

}  // namespace fovea::study

#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fovea::train {

// A question about a context, and the answers that people gave: parts of the context.
struct LabelledQuestion {
  std::string id, text;
  size_t context = 0;  // index of QuestionSet::contexts
  struct Answer {
    std::string text;
    int64_t begin = 0;  // in bytes of the context; it ends at begin + text.size()
  };
  std::vector<Answer> answers;  // empty: the context does not have the answer
};

struct QuestionSet {
  std::vector<std::string> contexts;
  std::vector<LabelledQuestion> questions;
  uint64_t hash = 0;  // hash of the content
};

// Returns whether the files are JSON that read_questions() reads.
bool hold_questions(const std::vector<std::string>& files);

// Reads files in the format of SQuAD 1.1 and 2.0 (Rajpurkar et al. 2016, 2018): {"data":
// [{"paragraphs": [{"context", "qas": [{"id", "question", "answers": [{"text", "answer_start"}],
// "is_impossible"}]}]}]}, where answer_start counts characters, or JSON records as in the data sets
// of Hugging Face: {"id", "context", "question", "answers": {"text": [], "answer_start": []}}.
// Throws BadFile, naming the path of the key in the file, if a value is missing or has another
// kind, or if an answer is not in its context at this offset; also if there is no question.
QuestionSet read_questions(const std::vector<std::string>& files);

}  // namespace fovea::train

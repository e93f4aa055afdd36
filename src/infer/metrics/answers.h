#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fovea::infer {

// Returns the text without punctuation and English articles, in lower case, with single spaces, as
// the evaluation of SQuAD compares answers (Rajpurkar et al. 2016, 2018).
std::string normal_answer(std::string_view text);

// An answer of a model (empty = the context does not have it) with the true ones (empty = there is
// none).
using AnswerPairs = std::vector<std::pair<std::string, std::vector<std::string>>>;

// Return the means, in percent, over the questions, of the best score against a true answer: equal
// after normal_answer(), and F1 of the words.
double exact_answers(const AnswerPairs& answers);
double answer_f1(const AnswerPairs& answers);

}  // namespace fovea::infer

#pragma once

// Answers to questions from the passages of a search, with the passages quoted by number.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fovea/infer/classify.h"
#include "fovea/infer/generate.h"
#include "fovea/infer/search.h"
#include "fovea/text/chat.h"

namespace fovea {

struct AnswerOptions {
  // Passages whose vectors are less similar to the question are not used. Without any passage, the
  // question is not answered.
  double least_similarity = 0.25;
};
void visit(AnswerOptions& options, OptionVisitor& visitor);  // fovea/core/options.h

struct PassageAnswer {
  // Whether the question was answered; false if no passage is similar enough, or if the model
  // writes that the passages do not answer it.
  bool answered = false;
  // Whether the question was answered and the answer quotes at least one of the passages that the
  // model read. Whether that passage says what the answer says is not checked.
  bool supported = false;
  std::string text;  // as generated
  // The passages that the model read; source n is sources[n - 1].
  std::vector<infer::FoundPassage> sources;
  // Numbers of sources in the text, ascending; those in thoughts before </think> do not count.
  std::vector<int64_t> cited;
  std::vector<int64_t> unknown;  // numbers in the text that no source has, ascending
  infer::FinishReason finish = infer::FinishReason::none;
  std::optional<double> score = {};  // of an answer that was found in a passage
};

// Asks `model` to answer a question from passages, the best first, and to quote them as [1], [2],
// ... `chat`: the model's chat format; unset: the model continues a plain text. Passages that do
// not fit into the context are left out, from the last. Throws the errors of generate() and of
// ChatFormat::render, and InvalidArgument if not even the first passage fits. `stream`: see
// generate().
PassageAnswer answer_from_passages(const model::Model& model,
                                   const std::optional<text::ChatFormat>& chat,
                                   const std::string& question,
                                   const std::vector<infer::FoundPassage>& passages,
                                   const infer::GenerateOptions& generation,
                                   const AnswerOptions& options = {},
                                   const infer::TextSink& stream = {});

// Finds the answer to a question in one of the passages, by a model that answers questions from a
// context: that of the greatest score among those which the model prefers to the empty answer (see
// Classifier::answer()). The text is the answer and the number of its passage. Throws the errors of
// Classifier::answer().
PassageAnswer answer_from_passages(const infer::Classifier& model, const std::string& question,
                                   const std::vector<infer::FoundPassage>& passages,
                                   const AnswerOptions& options = {});

// Returns the numbers n of all [n] in a text, also in lists such as [1, 2], ascending.
std::vector<int64_t> cited_numbers(const std::string& text);

}  // namespace fovea

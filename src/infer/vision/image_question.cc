#include "fovea/infer/image_question.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/fields.h"
#include "base/float_mode.h"
#include "base/ordered_json.h"
#include "fovea/core/excerpt.h"
#include "fovea/infer/generate.h"
#include "fovea/text/chat.h"
#include "vision/expanded_prompt.h"

namespace fovea::infer {
namespace {

bool ends_with_space(const std::string& text) {
  return text.empty() || std::string_view(" \t\n\r").find(text.back()) != std::string_view::npos;
}

}  // namespace

ImageQuestion image_question(const model::Model& model, const std::string& folder,
                             const std::string& question) {
  const std::string mark = image_mark(model);
  const int64_t marks = image_marks(model, question);
  check_field(marks <= 1, "question", "{} marks {}; expected one, or none", marks, mark);
  if (marks == 1) return {question};
  const auto format = text::chat_format(folder, "", model.tokenizer());
  if (!format) return {mark + "\n" + question};
  using text::ChatValue;
  const ChatValue content =
      ChatValue::list({ChatValue::object({{"type", "image"}}),
                       ChatValue::object({{"type", "text"}, {"text", question}})});
  text::ChatRequest request;
  request.messages = ChatValue::list({text::chat_message("user", content)});
  return {text::render_with_images(*format, request, model.tokenizer(), mark),
          text::SpecialTokens::guarded};
}

std::vector<double> label_logprobs(const model::Model& model, const ImageQuestion& question,
                                   const media::Image& image,
                                   const std::vector<std::string>& labels,
                                   const std::string& name) {
  const FloatMode mode;
  check_field(!labels.empty(), "labels", "none; expected at least one label");
  ExpandedPrompt expanded(model, question.text, 1, [&](size_t) { return image; }, question.special,
                          {name});
  ImagePrompt prompt = expanded.prompt();
  const bool guards = question.special == text::SpecialTokens::guarded;
  const std::string space = ends_with_space(question.text) ? "" : " ";
  std::vector<std::vector<int32_t>> whole;
  // The last tokens of the question may be others if a label follows.
  auto end = prompt.ids.end();
  for (const std::string& label : labels) {
    whole.push_back(expanded.ids(space + (guards ? model.tokenizer().guarded(label) : label)));
    end = std::mismatch(prompt.ids.begin(), end, whole.back().begin(), whole.back().end()).first;
  }
  const auto begin = end - prompt.ids.begin();
  for (size_t i = 0; i < labels.size(); ++i) {
    whole[i].erase(whole[i].begin(), whole[i].begin() + begin);
    check_field(!whole[i].empty(), "labels", "\"{}\" has no tokens; expected a text",
                excerpt(labels[i]));
  }
  prompt.ids.resize(static_cast<size_t>(begin));
  return score(model, prompt, whole);
}

}  // namespace fovea::infer

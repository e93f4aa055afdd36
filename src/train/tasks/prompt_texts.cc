#include "tasks/prompt_texts.h"

#include <cmath>

#include "base/fields.h"
#include "chat/builtin_templates.h"
#include "data/held_out.h"
#include "loop/conversation_text.h"
#include "loop/special_tokens.h"

namespace fovea::train {
namespace {

class PromptReader {
 public:
  PromptReader(const model::Spec& spec, const std::optional<text::ModelChat>& chat,
               const text::Tokenizer& tokenizer)
      : spec_(spec), chat_(chat), tokenizer_(tokenizer), text_(chat, tokenizer, TrainOn::last) {}

  // Adds a prompt to a part, unless it is too long. Returns whether it does.
  bool add(Prompt prompt, std::vector<PromptText>& part) {
    std::vector<int32_t> ids = ids_of(prompt.conversation);
    check(!ids.empty(), "{}: the prompt has no tokens; expected a text",
          prompt.conversation.location);
    const int64_t most = spec_.encoder ? spec_.context : spec_.context - 1;
    if (std::ssize(ids) > most) {
      ++long_;
      return false;
    }
    longest_ = std::max(longest_, std::ssize(ids));
    part.push_back({std::move(prompt), std::move(ids)});
    return true;
  }
  int64_t too_long() const { return long_; }
  int64_t longest() const { return longest_; }

 private:
  std::vector<int32_t> ids_of(const Conversation& conversation) const {
    if (spec_.encoder) {
      check(conversation.plain.has_value(),
            "{}: has messages; expected a text, since the model is an encoder-decoder",
            conversation.location);
      return translation_ids(tokenizer_, conversation.plain->prompt);
    }
    check_field(chat_.has_value() || conversation.plain.has_value(), "chat_template",
                "not given, but {} is a conversation and the model has no template; expected {}, "
                "or a file",
                conversation.location, text::builtin_template_names());
    return text_.prompt(conversation);
  }

  const model::Spec& spec_;
  const std::optional<text::ModelChat>& chat_;
  const text::Tokenizer& tokenizer_;
  ConversationText text_;
  int64_t longest_ = 0, long_ = 0;
};

}  // namespace

int64_t PromptTexts::tokens() const {
  double all = 0;
  for (const WeightedGroup& group : groups)
    for (int64_t i = group.begin; i < group.end; ++i)
      all += group.weight * static_cast<double>(training[static_cast<size_t>(i)].ids.size());
  return std::llround(all);
}

PromptTexts prompt_texts(Prompts data, Prompts validation, double share, const model::Spec& spec,
                         const std::optional<text::ModelChat>& chat,
                         const text::Tokenizer& tokenizer, const Say& say) {
  PromptReader reader(spec, chat, tokenizer);
  PromptTexts made;
  std::vector<size_t> files;
  const bool separate = !validation.all.empty();
  for (size_t i = 0; i < data.all.size(); ++i) {
    const bool held = !separate && is_held_out(static_cast<int64_t>(i), share);
    const size_t file = data.all[i].conversation.file;
    if (reader.add(std::move(data.all[i]), held ? made.held_out : made.training) && !held)
      files.push_back(file);
  }
  for (Prompt& prompt : validation.all) reader.add(std::move(prompt), made.held_out);
  if (reader.too_long() > 0)
    say(fmt::format("{} prompts that leave no room for an answer in the context are skipped",
                    reader.too_long()));
  if (made.training.empty())
    fail(ErrorKind::BadFile, "{}: contains no prompt for training; expected at least one",
         data.files.front().path);
  made.groups = groups_of(data.files, files);
  made.longest = reader.longest();
  return made;
}

}  // namespace fovea::train

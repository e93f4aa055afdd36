#include "tasks/preference_text.h"

#include <algorithm>

#include "base/fields.h"
#include "chat/builtin_templates.h"
#include "loop/special_tokens.h"

namespace fovea::train {

PreferenceTextMaker::PreferenceTextMaker(const std::optional<text::ModelChat>& chat,
                                         const text::Tokenizer& tokenizer, const Options& options)
    : text_(chat, tokenizer, options.train_on), options_(options) {
  if (chat) options_.pairs.reset();
}

// The answer after the start token, which is not trained.
TrainedText PreferenceTextMaker::target_of(const Conversation& conversation) const {
  check(conversation.plain.has_value(),
        "{}: has messages; expected texts, since the model is an encoder-decoder",
        conversation.location);
  TrainedText made{{options_.start}, {}};
  const std::vector<int32_t> ids =
      translation_ids(options_.translation->target, conversation.plain->completion);
  made.ids.insert(made.ids.end(), ids.begin(), ids.end());
  made.trained.assign(made.ids.size(), true);
  made.trained.front() = false;
  return made;
}

bool PreferenceTextMaker::set_source(const Conversation& conversation, PreferenceText& made) {
  if (options_.translation == nullptr) return true;
  made.source = translation_ids(options_.translation->source, conversation.plain->prompt);
  if (std::ssize(made.source) <= options_.longest) return true;
  ++long_;
  made.source.resize(static_cast<size_t>(options_.longest));
  return options_.too_long == TooLong::cut;
}

TrainedText PreferenceTextMaker::text_of(const Conversation& conversation,
                                         std::vector<int32_t>& types, bool& cut) const {
  if (options_.translation != nullptr) return target_of(conversation);
  if (options_.pairs) {
    check_field(conversation.plain.has_value(), "chat_template",
                "not given, but {} is a conversation and the model has no template; expected {}, "
                "or a file",
                conversation.location, text::builtin_template_names());
    const infer::TextFormat& format = *options_.pairs;
    infer::TokenizedText found =
        format.pair(format.own_ids(conversation.plain->prompt), conversation.plain->completion);
    types = found.all_types();
    cut = found.cut > 0;
    return {std::move(found.ids), {}};
  }
  std::vector<TrainedText> texts = text_.texts(conversation);
  check(texts.size() == 1,
        "{}: the chat template changes earlier answers when others follow, so the answers are {} "
        "texts; expected one answer after the prompt",
        conversation.location, texts.size());
  types.assign(texts.front().ids.size(), 0);
  return std::move(texts.front());
}

// Truncates a text, if the format of pairs has not. Returns false if it cannot be used. A reward is
// read at the end of a text, so its last token is kept.
bool PreferenceTextMaker::fit(TrainedText& text, std::vector<int32_t>& types, bool cut) {
  const bool is_long = std::ssize(text.ids) > options_.longest;
  long_ += cut || is_long;
  if ((cut || is_long) && options_.too_long == TooLong::skip) return false;
  if (is_long) {
    const auto most = static_cast<size_t>(options_.longest);
    if (options_.rewards) text.ids[most - 1] = text.ids.back();
    text.ids.resize(most);
    if (!types.empty()) types.resize(most);
    if (!text.trained.empty()) text.trained.resize(most);
  }
  const auto first = text.trained.begin() + (text.trained.empty() ? 0 : 1);
  const bool learnt = options_.rewards
                          ? !text.ids.empty()
                          : std::find(first, text.trained.end(), true) != text.trained.end();
  untrained_ += !learnt;
  return learnt;
}

// Each of the texts is counted.
bool PreferenceTextMaker::fit_both(PreferenceText& made) {
  const bool first = fit(made.first, made.first_types, made.first_cut),
             second = fit(made.second, made.second_types, made.second_cut);
  return first && second;
}

std::optional<PreferenceText> PreferenceTextMaker::pair(const Preference& record) {
  PreferenceText made;
  made.value = record.margin;
  made.first = text_of(record.chosen, made.first_types, made.first_cut);
  made.second = text_of(*record.rejected, made.second_types, made.second_cut);
  const auto equal = [&] {
    const bool same = made.first.ids == made.second.ids;
    equal_ += same;
    return same;
  };
  if (equal()) return std::nullopt;
  const bool fits = fit_both(made);
  if (!set_source(record.chosen, made) || !fits || equal()) return std::nullopt;
  return made;
}

std::optional<PreferenceText> PreferenceTextMaker::judged(const Conversation& answer,
                                                          bool desirable,
                                                          const Conversation& other) {
  PreferenceText made;
  made.value = desirable ? 1 : -1;
  made.first = text_of(answer, made.first_types, made.first_cut);
  made.second = text_of(with_completion_of(answer, other), made.second_types, made.second_cut);
  const bool fits = fit_both(made);
  if (!set_source(answer, made) || !fits) return std::nullopt;
  return made;
}

void PreferenceTextMaker::report(const Say& say) const {
  if (long_ > 0)
    say(fmt::format("{} texts with more than {} tokens are {}", long_, options_.longest,
                    options_.too_long == TooLong::cut ? "truncated" : "skipped"));
  if (untrained_ > 0)
    say(fmt::format("{} texts without a token of the answer are skipped", untrained_));
  if (equal_ > 0) say(fmt::format("{} pairs of equal answers are skipped", equal_));
}

}  // namespace fovea::train

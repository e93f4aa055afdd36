#include "loop/conversation_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/fields.h"
#include "base/files.h"
#include "chat/builtin_templates.h"
#include "chat/image_messages.h"
#include "fovea/text/text_lines.h"
#include "loop/special_tokens.h"

namespace fovea::train {
namespace {

using TextSpan = text::ChatTemplate::Span;

// The time that templates receive: a run must not depend on the day on which it is resumed.
std::tm template_time() {
  std::tm time{};
  time.tm_year = 124;  // Friday, 26 July 2024
  time.tm_mon = 6;
  time.tm_mday = 26;
  time.tm_wday = 5;
  time.tm_yday = 207;
  return time;
}

// The tokens of a text and the bytes that they cover.
class TrainedTextBuilder {
 public:
  TrainedTextBuilder(const std::string& text, const text::Tokenizer& tokenizer,
                     text::SpecialTokens special)
      : tokenizer_(tokenizer), tokens_(tokenizer.tokens(text, special)), begin_(text.data()) {
    for (const text::Token& token : tokens_) made_.ids.push_back(token.id);
    made_.trained.resize(tokens_.size());
  }

  // Trains the tokens from the first to the last one that covers a byte of the span. If
  // `without_space` is true, white space after a special token at the end is not trained.
  void train(TextSpan span, bool without_space = false) {
    size_t first = tokens_.size(), last = 0;
    for (size_t i = 0; i < tokens_.size(); ++i) {
      const size_t begin = static_cast<size_t>(tokens_[i].text.data() - begin_),
                   end = begin + tokens_[i].text.size();
      if (begin >= span.end || end <= span.begin || begin == end) continue;
      first = std::min(first, i);
      last = i + 1;
    }
    if (without_space) last = without_space_after_end(first, last, span.end);
    for (size_t i = first; i < last; ++i) made_.trained[i] = true;
  }

  TrainedText take() { return std::move(made_); }

 private:
  // The last token may continue after the span, in which it is white space.
  size_t without_space_after_end(size_t first, size_t last, size_t span_end) const {
    const auto inside = [&](std::string_view text) {
      return text.substr(0, static_cast<size_t>(begin_ + span_end - text.data()));
    };
    size_t end = last;
    while (end > first && text::is_blank(inside(tokens_[end - 1].text))) --end;
    return end > first && tokenizer_.is_special(tokens_[end - 1].id) ? end : last;
  }

  const text::Tokenizer& tokenizer_;
  std::vector<text::Token> tokens_;
  const char* begin_;
  TrainedText made_;
};

std::string content_of(const Conversation::Message& message) {
  const auto json = nlohmann::json::parse(message.json);
  const auto content = json.find("content");
  return content != json.end() && content->is_string() ? content->get<std::string>() : "";
}

bool has_blocks(const text::ChatTemplate& of) {
  return of.source().find("endgeneration") != std::string::npos;
}

text::ChatRequest request_of(const Conversation& conversation, size_t count, bool prompt) {
  text::ChatRequest request;
  std::vector<text::ChatValue> messages;
  for (size_t i = 0; i < count; ++i)
    messages.push_back(text::ChatValue::parse(conversation.messages[i].json, "messages"));
  request.messages = text::ChatValue::list(messages);
  if (!conversation.tools.empty())
    request.tools = text::ChatValue::parse(conversation.tools, "tools");
  request.add_generation_prompt = prompt;
  return request;
}

}  // namespace

std::vector<int32_t> labels_of_text(const TrainedText& text) {
  std::vector<int32_t> labels(text.ids.size(), -1);
  for (size_t i = 1; i < text.trained.size(); ++i)
    if (text.trained[i]) labels[i - 1] = text.ids[i];
  return labels;
}

std::optional<text::ModelChat> open_chat(const std::string& name, const std::string& folder,
                                         const text::Tokenizer& tokenizer) {
  if (name.empty()) {
    if (folder.empty() || !text::ModelChat::has_template(folder)) return std::nullopt;
    return text::ModelChat::open(folder);
  }
  const text::BuiltinTemplate* const builtin = text::find_builtin_template(name);
  if (builtin == nullptr) {
    check_field(is_file(name), "chat_template", "{} is not a file; expected one, or {}", name,
                text::builtin_template_names());
    return text::ModelChat::open_file(name, tokenizer);
  }
  check_field(!builtin->needs_end || tokenizer.eos_id().has_value(), "chat_template",
              "{} ends answers with the end-of-text token, which the tokenizer of the model "
              "lacks; expected another template",
              name);
  return text::ModelChat::of_source(builtin->source, name, tokenizer);
}

ConversationText::ConversationText(std::optional<text::ModelChat> chat, text::Tokenizer tokenizer,
                                   TrainOn train_on)
    : chat_(std::move(chat)), tokenizer_(std::move(tokenizer)), train_on_(train_on) {}

void ConversationText::show(ShownImages images) {
  images_ = std::move(images);
  as_parts_ = chat_ && text::knows_parts(chat_->choose({}).source());
}

std::vector<TrainedText> ConversationText::texts(const Conversation& conversation) const {
  if (!chat_) {
    check_field(conversation.plain.has_value(), "chat_template",
                "not given, but {} is a conversation and the model has no template; expected {}, "
                "or a file",
                conversation.location, text::builtin_template_names());
    check_field(std::ranges::all_of(conversation.messages,
                                    [](const auto& message) { return message.images.empty(); }),
                "chat_template",
                "not given, but {} has images and the model has no template; expected a file",
                conversation.location);
    return {plain(conversation)};
  }
  const std::vector<size_t> trained = answers(conversation);
  if (trained.empty()) return std::vector<TrainedText>(1);
  const text::ChatTemplate& chosen = chat_->choose(request_of(conversation, 0, false));
  check(conversation.tools.empty() || chosen.source().find("tools") != std::string::npos,
        "{}: has tools, which the chat template does not use; expected another template, or no "
        "tools",
        conversation.location);
  if (has_blocks(chosen)) {
    const text::ChatTemplate::Result whole =
        render(conversation, conversation.messages.size(), false);
    if (whole.assistant) return {by_blocks(conversation, trained, whole)};
  }
  return by_turns(conversation, trained);
}

std::vector<int32_t> ConversationText::prompt(const Conversation& conversation) const {
  if (!chat_) {
    std::vector<int32_t> ids = around_text(tokenizer_).before;
    if (conversation.plain) tokenizer_.encode(conversation.plain->prompt, ids);
    return ids;
  }
  const std::vector<size_t> trained = answers(conversation);
  if (trained.empty()) return {};
  return tokenizer_.encode(render(conversation, trained.front(), true).text,
                           text::SpecialTokens::guarded);
}

// The answer itself has been generated, and the template may render it in other tokens, or without
// the thoughts in it. So a mark takes the place of its content: what follows the mark is needed.
std::vector<int32_t> ConversationText::tokens_after(const Conversation& conversation, size_t answer,
                                                    const std::vector<int32_t>& ends) const {
  constexpr std::string_view kMark = "uzkqvx";
  const size_t last = conversation.messages.size() - 1;
  if (!chat_) {
    std::string text;
    for (size_t i = answer + 1; i < last; ++i) text += content_of(conversation.messages[i]);
    return tokenizer_.encode(text);
  }
  Conversation marked = conversation;
  auto message = nlohmann::ordered_json::parse(conversation.messages[answer].json);
  message["content"] = kMark;
  marked.messages[answer].json = message.dump();
  std::string before = render(marked, answer + 1, false).text,
              after = render(marked, last, true).text;
  const size_t end = before.find(kMark), same = after.find(kMark);
  if (end != before.npos && same != after.npos) {  // a template may not show it beside calls
    before.erase(0, end + kMark.size());
    after.erase(0, same + kMark.size());
  }
  check(after.starts_with(before),
        "{}: the chat template renders an answer differently when a message follows it; expected "
        "another `chat_template`",
        conversation.location);
  std::vector<int32_t> ids;
  for (const text::Token& token : tokenizer_.tokens(after, text::SpecialTokens::guarded)) {
    const bool of_answer = token.text.data() - after.data() < std::ssize(before);
    if (of_answer && std::ranges::find(ends, token.id) != ends.end())
      ids.clear();  // so far, the answer's
    else
      ids.push_back(token.id);
  }
  return ids;
}

// Returns the messages that are trained.
std::vector<size_t> ConversationText::answers(const Conversation& conversation) const {
  std::vector<size_t> all;
  for (size_t i = conversation.first_trained; i < conversation.messages.size(); ++i)
    if (conversation.messages[i].answer && conversation.messages[i].trained) all.push_back(i);
  if (train_on_ == TrainOn::last && !all.empty()) all = {all.back()};
  return all;
}

// Renders the first `count` messages.
text::ChatTemplate::Result ConversationText::render(const Conversation& conversation, size_t count,
                                                    bool prompt) const {
  try {
    text::ChatRequest request = request_of(conversation, count, prompt);
    if (images_) request = text::with_shown_images(request, as_parts_);
    text::ChatTemplate::Result rendered =
        chat_->render(text::guarded(request, tokenizer_), {}, template_time);
    if (images_) insert_images(conversation, count, rendered);
    return rendered;
  } catch (const Error& error) {
    throw Error(error.kind(), conversation.location + ": " + error.what());
  }
}

// Replaces the marks of the images in the first `count` messages by their texts.
void ConversationText::insert_images(const Conversation& conversation, size_t count,
                                     text::ChatTemplate::Result& rendered) const {
  std::vector<const ImagePart*> images;
  for (size_t i = 0; i < count; ++i)
    for (const ImagePart& image : conversation.messages[i].images) images.push_back(&image);
  const std::string mark(as_parts_ ? images_->mark : text::kShownImage);
  const std::vector<size_t> marks = text::marks_in(rendered.text, mark);
  if (marks.size() != images.size())
    fail(ErrorKind::BadFile, "the chat template shows {} images of {}; expected each of them once",
         marks.size(), images.size());
  std::string text;
  size_t end = 0;                                // of the last mark
  std::vector<std::pair<size_t, size_t>> moved;  // the end of each mark, and how far it moves
  for (size_t i = 0; i < marks.size(); ++i) {
    text += rendered.text.substr(end, marks[i] - end) + images_->text(*images[i]);
    end = marks[i] + mark.size();
    moved.emplace_back(end, text.size() - end);
  }
  rendered.text = text + rendered.text.substr(end);
  const auto moved_offset = [&](size_t before) {
    size_t by = 0;
    for (const auto& [from, distance] : moved)
      if (from <= before) by = distance;
    return before + by;
  };
  if (!rendered.assistant) return;
  for (TextSpan& span : *rendered.assistant)
    span = {moved_offset(span.begin), moved_offset(span.end)};
}

TrainedText ConversationText::plain(const Conversation& conversation) const {
  const auto& [prompt, completion] = *conversation.plain;
  const std::string text = prompt + completion;
  TrainedTextBuilder builder(text, tokenizer_, text::SpecialTokens::as_text);
  builder.train({prompt.size(), text.size()});
  TrainedText made = builder.take();
  const std::vector<int32_t> before = around_text(tokenizer_).before;
  made.ids.insert(made.ids.begin(), before.begin(), before.end());
  made.trained.insert(made.trained.begin(), before.size(), false);
  if (const auto end = end_id(tokenizer_)) {
    made.ids.push_back(*end);
    made.trained.push_back(true);
  }
  return made;
}

// Trains the blocks of these answers.
TrainedText ConversationText::by_blocks(const Conversation& conversation,
                                        const std::vector<size_t>& answers,
                                        const text::ChatTemplate::Result& whole) const {
  // The number of blocks in the first `count` messages.
  const auto blocks = [&](size_t count) -> size_t {
    const auto end = conversation.messages.begin() + static_cast<std::ptrdiff_t>(count);
    if (end == conversation.messages.end()) return whole.assistant->size();
    if (std::none_of(conversation.messages.begin(), end, [](const auto& m) { return m.answer; }))
      return 0;
    const text::ChatTemplate::Result part = render(conversation, count, false);
    return part.assistant ? part.assistant->size() : 0;
  };
  TrainedTextBuilder builder(whole.text, tokenizer_, text::SpecialTokens::guarded);
  const auto train = [&](size_t first, size_t last) {
    for (size_t i = first; i < last; ++i) builder.train((*whole.assistant)[i]);
  };
  const bool all =
      std::all_of(conversation.messages.begin() + static_cast<std::ptrdiff_t>(answers.front()),
                  conversation.messages.end(), [](const auto& m) { return m.trained; });
  if (all)
    train(blocks(answers.front()), whole.assistant->size());
  else
    for (const size_t i : answers) train(blocks(i), blocks(i + 1));
  return builder.take();
}

// A conversation up to and including an answer, which is a part of the text.
struct ConversationText::Turn {
  std::string text;
  TextSpan answer;
};

std::vector<TrainedText> ConversationText::by_turns(const Conversation& conversation,
                                                    const std::vector<size_t>& answers) const {
  std::vector<Turn> turns;
  for (const size_t i : answers) {
    const std::string before = render(conversation, i, true).text;
    std::string text = render(conversation, i + 1, false).text;
    check(text.starts_with(before),
          "{}: the chat template renders message {} differently from the prompt before it, so its "
          "part of the text is unknown; expected a `chat_template` that marks it with "
          "{{% generation %}} and {{% endgeneration %}}",
          conversation.location, i + 1);
    const TextSpan answer = {before.size(), text.size()};
    turns.push_back({std::move(text), answer});
  }
  const std::string& last = turns.back().text;
  const bool together = std::all_of(turns.begin(), turns.end(),
                                    [&](const Turn& turn) { return last.starts_with(turn.text); });
  std::vector<TrainedText> made;
  if (together) {
    TrainedTextBuilder builder(last, tokenizer_, text::SpecialTokens::guarded);
    for (const Turn& turn : turns) builder.train(turn.answer, true);
    return {builder.take()};
  }
  for (const Turn& turn : turns) {
    TrainedTextBuilder builder(turn.text, tokenizer_, text::SpecialTokens::guarded);
    builder.train(turn.answer, true);
    made.push_back(builder.take());
  }
  return made;
}

}  // namespace fovea::train

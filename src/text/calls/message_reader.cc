#include <algorithm>
#include <utility>

#include "calls/call_reader.h"
#include "calls/lenient_calls.h"
#include "calls/lenient_value.h"

namespace fovea::text {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

// The length of the longest suffix of a text that is a proper prefix of a mark.
size_t partial(std::string_view text, std::string_view mark) {
  size_t tail = mark.empty() ? 0 : std::min(text.size(), mark.size() - 1);
  while (text.substr(text.size() - tail) != mark.substr(0, tail)) --tail;
  return tail;
}

}  // namespace

// The text is divided by marks: reasoning between its marks, sections of calls, frames, which
// are dropped, and content.
struct MessageReader::State {
  explicit State(MessageRules given)
      : rules(std::move(given)), functions(signatures_of(rules.functions)) {
    const MessageFormat& format = rules.format;
    if (format.calls != nullptr) frames = format.calls->frames;
    reasons = rules.split_reasoning && !format.reasoning_end.empty();
    mode = reasons && rules.in_reasoning ? Mode::reasoning : Mode::content;
    text = rules.begun;
    if (functions.empty()) return;
    marks = call_marks();
    if (format.calls == nullptr) return;
    const std::string own = format.calls->trigger;
    if (!own.empty() && !std::ranges::count(marks, own)) marks.push_back(own);
    if (rules.enforced && own.empty()) own_head = format.calls->head();
  }

  enum class Mode { reasoning, content, calls, held };
  // A mark in content, and what follows it.
  struct Mark {
    size_t at = std::string_view::npos, size = 0;
    enum Kind { none, reasoning, frame, calls } kind = none;
  };

  void read(bool ended) {
    while (true) {
      const Mode before = mode;
      const size_t left = text.size();
      switch (mode) {
        case Mode::reasoning: read_reasoning(ended); break;
        case Mode::content: read_content(ended); break;
        case Mode::calls: read_calls(ended); break;
        case Mode::held:
          if (ended) read_held();
          break;
      }
      if (mode == before && text.size() == left) return;
    }
  }

  void read_reasoning(bool ended) {
    const std::string& end = rules.format.reasoning_end;
    const size_t at = text.find(end);
    if (at != std::string::npos) {
      emit_reasoning(text.substr(0, at));
      space.clear();
      text.erase(0, at + end.size());
      mode = Mode::content;
      after_reasoning = true;
      return;
    }
    const size_t keep = ended ? 0 : partial(text, end);
    emit_reasoning(text.substr(0, text.size() - keep));
    text.erase(0, text.size() - keep);
  }

  // Without the white space around it.
  void emit_reasoning(std::string more) {
    if (!any_reasoning) more.erase(0, after_space(more, 0));
    more = std::exchange(space, {}) + more;
    const size_t last = more.find_last_not_of(kSpace);
    space = more.substr(last == std::string::npos ? 0 : last + 1);
    more.resize(more.size() - space.size());
    if (more.empty()) return;
    any_reasoning = true;
    parts.push_back({MessagePart::reasoning, std::move(more)});
  }

  // Appends content. White space is kept back until text follows, since it is dropped before calls,
  // and after reasoning.
  void emit(std::string more) {
    if (after_reasoning) {
      more.erase(0, after_space(more, 0));
      if (more.empty()) return;
      after_reasoning = false;
    }
    more = std::exchange(space, {}) + more;
    if (!functions.empty()) {
      const size_t last = more.find_last_not_of(kSpace);
      space = more.substr(last == std::string::npos ? 0 : last + 1);
      more.resize(more.size() - space.size());
    }
    if (more.empty()) return;
    any_content = true;
    parts.push_back({MessagePart::content, std::move(more)});
  }

  bool at_start() const { return !any_content && calls == 0; }

  void find(const std::string& mark, Mark::Kind kind, Mark& first, size_t& keep) const {
    const size_t at = text.find(mark);
    if (at < first.at) first = {at, mark.size(), kind};
    if (at == std::string::npos) keep = std::max(keep, partial(text, mark));
  }

  void read_content(bool ended) {
    if (at_start() && !functions.empty() && may_begin_calls(space + text, functions)) {
      if (!own_head.empty() && begin_own_section()) return;
      if (!ended) return;
      const size_t begin = after_space(text, 0);
      emit(text.substr(0, begin));
      text.erase(0, begin);
      mode = text.empty() ? Mode::content : Mode::held;
      return;
    }
    Mark first;
    size_t keep = 0;
    // Reasoning begins a message, except in formats with frames, whose parts have any order.
    const bool blank_before = at_start() && !any_reasoning;
    if (reasons && (blank_before || !frames.empty())) {
      find(rules.format.reasoning_begin, Mark::reasoning, first, keep);
      if (first.kind == Mark::reasoning && frames.empty() && after_space(text, 0) < first.at)
        first = {};
    }
    for (const std::string& frame : frames) find(frame, Mark::frame, first, keep);
    for (const std::string& mark : marks) find(mark, Mark::calls, first, keep);
    if (first.kind == Mark::none) {
      if (ended) keep = 0;
      emit(text.substr(0, text.size() - keep));
      text.erase(0, text.size() - keep);
      return;
    }
    // A frame may contain the mark of a call.
    const std::string_view rest = std::string_view(text).substr(first.at);
    const bool may_be_frame = std::ranges::any_of(
        frames, [&](const std::string& frame) { return frame != rest && frame.starts_with(rest); });
    emit(text.substr(0, first.at));
    const bool keeps_mark = first.kind == Mark::calls || (may_be_frame && !ended);
    text.erase(0, keeps_mark ? first.at : first.at + first.size);
    if (may_be_frame && !ended) return;
    if (first.kind == Mark::reasoning) {
      mode = Mode::reasoning;
      space.clear();
    } else if (first.kind == Mark::calls) {
      begin_section();
    } else if (!any_content) {
      space.clear();
    }
  }

  // Returns whether the text begins with the text before the first name of a call.
  bool begin_own_section() {
    const Matched head = match(text, after_space(text, 0), own_head);
    if (head.result != Matched::yes) return false;
    text.erase(0, after_space(text, 0));
    section.emplace(*rules.format.calls, functions);
    mode = Mode::calls;
    return true;
  }

  void begin_section() {
    const CallFormat* const own = rules.format.calls;
    if (rules.enforced && own != nullptr && text.starts_with(own->trigger)) {
      section.emplace(*own, functions);
      mode = Mode::calls;
    } else {
      mode = Mode::held;
    }
  }

  // Calls are passed on as they are generated: the format is enforced.
  void read_calls(bool ended) {
    std::vector<MessagePart> more;
    section->read(text, ended, more);
    for (MessagePart& part : more) {
      part.call_index += calls;
      any_call_part = true;
      parts.push_back(std::move(part));
    }
    if ((section->failed() || ended) && section->calls() == 0 && !any_call_part) {
      mode = Mode::held;
      return;
    }
    if (!section->done() && !section->failed()) {
      if (ended) text.clear();  // a call that was cut off
      return;
    }
    end_section(section->calls(), section->end());
    section.reset();
  }

  void end_section(size_t found, size_t end) {
    calls += found;
    text.erase(0, end);
    space.clear();
    mode = Mode::content;
    any_call_part = false;
    if (!any_content) after_reasoning = true;  // white space after calls is dropped
  }

  // At the end of the text: reads the calls that it begins with, or passes on its mark as content.
  void read_held() {
    FoundCalls found = find_calls(text, functions);
    if (found.parts.empty()) {
      mode = Mode::content;
      const size_t size = std::min<size_t>(1, text.size());
      // The mark alone is content; further marks may follow.
      emit(text.substr(0, size));
      any_content = true;
      text.erase(0, size);
      return;
    }
    for (MessagePart& part : found.parts) {
      part.call_index += calls;
      parts.push_back(std::move(part));
    }
    end_section(found.parts.size(), found.end);
  }

  MessageRules rules;
  std::vector<Signature> functions;
  std::vector<std::string> frames, marks;
  std::string own_head;  // of a format without a mark, if it is enforced
  bool reasons = false;
  Mode mode = Mode::content;
  std::string text;   // not read yet
  std::string space;  // white space that is passed on once text follows it
  bool any_reasoning = false, any_content = false, after_reasoning = false, any_call_part = false;
  size_t calls = 0;
  std::optional<CallReader> section;
  std::vector<MessagePart> parts;
};

MessageReader::MessageReader(MessageRules rules)
    : state_(std::make_unique<State>(std::move(rules))) {}
MessageReader::~MessageReader() = default;
MessageReader::MessageReader(MessageReader&&) noexcept = default;
MessageReader& MessageReader::operator=(MessageReader&&) noexcept = default;

std::vector<MessagePart> MessageReader::add(std::string_view text) {
  state_->text += text;
  state_->read(false);
  return std::exchange(state_->parts, {});
}

std::vector<MessagePart> MessageReader::finish() {
  state_->read(true);
  // White space at the end of content is a part of it, unless calls precede it.
  if (state_->calls == 0 && state_->mode == State::Mode::content && !state_->after_reasoning &&
      !state_->space.empty())
    state_->parts.push_back({MessagePart::content, std::exchange(state_->space, {})});
  return std::exchange(state_->parts, {});
}

}  // namespace fovea::text

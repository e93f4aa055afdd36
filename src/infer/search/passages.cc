#include "search/passages.h"

#include <algorithm>

#include "base/error.h"

namespace fovea::infer {
namespace {

struct Unit {  // a sentence, or a part of one
  size_t begin, end;
  int64_t tokens;
  bool begins_paragraph;
};

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// Returns the length of the mark at `at` if it ends a sentence: an ASCII mark with its closing
// quotes and brackets before white space, or an ideographic mark. Otherwise returns 0.
size_t sentence_end(std::string_view text, size_t at) {
  for (const std::string_view mark : {"。", "！", "？"})
    if (text.substr(at).starts_with(mark)) return mark.size();
  if (text[at] != '.' && text[at] != '!' && text[at] != '?') return 0;
  size_t end = at + 1;
  while (end < text.size() && std::string_view("\"')]!?.").find(text[end]) != text.npos) ++end;
  return end == text.size() || is_space(text[end]) ? end - at : 0;
}

// Returns whether the line after this line end is blank or missing.
bool ends_paragraph(std::string_view text, size_t line_end) {
  for (size_t i = line_end + 1; i < text.size(); ++i) {
    if (text[i] == '\n') return true;
    if (!is_space(text[i])) return false;
  }
  return true;
}

// Calls on_sentence(begin, end, begins_paragraph) for each sentence, without surrounding white
// space.
template <class OnSentence>
void each_sentence(std::string_view text, OnSentence&& on_sentence) {
  bool fresh = true;
  size_t at = 0;
  while (at < text.size()) {
    while (at < text.size() && is_space(text[at])) {
      fresh = fresh || (text[at] == '\n' && ends_paragraph(text, at));
      ++at;
    }
    size_t end = at;
    while (end < text.size() && !(text[end] == '\n' && ends_paragraph(text, end))) {
      if (const size_t mark = sentence_end(text, end); mark > 0) {
        end += mark;
        break;
      }
      ++end;
    }
    size_t last = end;
    while (last > at && is_space(text[last - 1])) --last;
    if (last > at) on_sentence(at, last, fresh);
    fresh = false;
    at = end;
  }
}

// Adds a long sentence in pieces of at most `most` tokens.
void add_pieces(std::string_view text, Unit sentence, int64_t most,
                const text::Tokenizer& tokenizer, std::vector<Unit>& units) {
  const std::string_view whole = text.substr(sentence.begin, sentence.end - sentence.begin);
  const std::vector<text::Token> tokens = tokenizer.tokens(whole);
  const auto offset_of = [&](const char* at) { return static_cast<size_t>(at - text.data()); };
  const auto step = static_cast<size_t>(most);
  for (size_t first = 0; first < tokens.size(); first += step) {
    const size_t next = std::min(first + step, tokens.size());
    const size_t begin = first == 0 ? sentence.begin : offset_of(tokens[first].text.data());
    size_t end = next == tokens.size() ? sentence.end : offset_of(tokens[next].text.data());
    while (end > begin && is_space(text[end - 1])) --end;
    if (begin < end)
      units.push_back({begin, end, static_cast<int64_t>(next - first),
                       sentence.begins_paragraph && first == 0});
  }
}

std::vector<Unit> units_of(std::string_view text, int64_t most, const text::Tokenizer& tokenizer) {
  std::vector<Unit> units;
  each_sentence(text, [&](size_t begin, size_t end, bool begins_paragraph) {
    const auto tokens =
        static_cast<int64_t>(tokenizer.encode(text.substr(begin, end - begin)).size());
    const Unit unit{begin, end, tokens, begins_paragraph};
    if (tokens <= most)
      units.push_back(unit);
    else
      add_pieces(text, unit, most, tokenizer, units);
  });
  return units;
}

// Returns the index of the first unit of the overlap: the last units of [first + 1, next) that
// together have at most `most` tokens.
size_t overlap_before(const std::vector<Unit>& units, size_t first, size_t next, int64_t most) {
  int64_t tokens = 0;
  size_t at = next;
  while (at > first + 1 && tokens + units[at - 1].tokens <= most) tokens += units[--at].tokens;
  return at;
}

}  // namespace

std::vector<PassageSpan> cut_passages(std::string_view text, const PassageRules& rules,
                                      const text::Tokenizer& tokenizer) {
  check(
      rules.most_tokens > 0 && rules.overlap_tokens >= 0 &&
          rules.overlap_tokens < rules.most_tokens,
      "passages: {} tokens with an overlap of {}; expected a positive number and a smaller overlap",
      rules.most_tokens, rules.overlap_tokens);
  const int64_t few = rules.most_tokens / 4;  // a shorter paragraph is joined with the next
  const std::vector<Unit> units = units_of(text, rules.most_tokens, tokenizer);
  std::vector<PassageSpan> passages;
  int64_t line = 1;
  size_t counted = 0;
  const auto line_of = [&](size_t at) {
    if (at < counted) line = 1, counted = 0;
    line += std::count(text.begin() + static_cast<std::ptrdiff_t>(counted),
                       text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    counted = at;
    return line;
  };
  for (size_t first = 0; first < units.size();) {
    int64_t tokens = units[first].tokens;
    size_t next = first + 1;
    for (; next < units.size(); tokens += units[next++].tokens) {
      if (tokens + units[next].tokens > rules.most_tokens) break;
      if (units[next].begins_paragraph && tokens >= few) break;
    }
    const size_t begin = units[first].begin, end = units[next - 1].end;
    const int64_t begin_line = line_of(begin);
    passages.push_back({begin, end, begin_line, line_of(end)});
    const bool within = next < units.size() && !units[next].begins_paragraph;
    // The overlap must leave room for new text.
    const int64_t room = within ? rules.most_tokens - units[next].tokens : 0;
    first = overlap_before(units, first, next, std::min(room, rules.overlap_tokens));
  }
  return passages;
}

}  // namespace fovea::infer

#include "generate/markup.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string_view>

namespace fovea::infer {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name(char c) { return is_letter(c) || is_digit(c) || c == '_' || c == '.' || c == '-'; }
bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

size_t skip_name(std::string_view text, size_t at) {
  while (at < text.size() && is_name(text[at])) ++at;
  return at;
}

// Returns the length of the tag or comment at the start of `text`; 0 = there is none.
size_t tag_length(std::string_view text) {
  if (text.starts_with("<!--")) {
    const size_t end = text.find("-->");
    return end == std::string_view::npos ? 0 : end + 3;
  }
  if (text.size() < 3 || text[0] != '<') return 0;
  if (!is_letter(text[1]) && !(text[1] == '/' && is_letter(text[2]))) return 0;
  const size_t end = text.find_first_of("<>", 1);
  return end == std::string_view::npos || text[end] != '>' ? 0 : end + 1;
}

size_t url_length(std::string_view text) {
  const bool begins =
      text.starts_with("http://") || text.starts_with("https://") || text.starts_with("www.");
  if (!begins) return 0;
  size_t end = 0;
  while (end < text.size() && !is_space(text[end]) && text[end] != '<' && text[end] != '"') ++end;
  // Punctuation after a URL belongs to the sentence.
  while (std::string_view(".,;:!?)'").find(text[end - 1]) != std::string_view::npos) --end;
  return end;
}

// Returns the length of a placeholder: {name}, {{name}}, ${name}, $1, %s, %1$s, %(name)s.
size_t placeholder_length(std::string_view text) {
  if (text.size() < 2) return 0;
  const auto braced = [&](size_t at, std::string_view open, std::string_view close) -> size_t {
    if (!text.substr(at).starts_with(open)) return 0;
    const size_t name = at + open.size(), end = skip_name(text, name);
    return end > name && text.substr(end).starts_with(close) ? end + close.size() : 0;
  };
  if (const size_t n = braced(0, "{{", "}}")) return n;
  if (const size_t n = braced(0, "{", "}")) return n;
  if (const size_t n = braced(0, "${", "}")) return n;
  if (text[0] == '$' && is_digit(text[1])) return 2;
  if (text[0] != '%') return 0;
  size_t at = 1;
  if (text[1] == '(') {
    at = braced(1, "(", ")");
    if (at == 0) return 0;
  } else {
    while (at < text.size() && is_digit(text[at])) ++at;
    if (at > 1 && at < text.size() && text[at] == '$')
      ++at;
    else
      at = 1;
  }
  constexpr std::string_view kKinds = "sdifuxXgeEcr@";
  const bool ends = at < text.size() && kKinds.find(text[at]) != std::string_view::npos &&
                    (at + 1 == text.size() || !is_letter(text[at + 1]));
  return ends ? at + 1 : 0;
}

std::string tag_name(const std::string& tag) {
  const size_t begin = tag.starts_with("</") ? 2 : 1;
  return tag.substr(begin, skip_name(tag, begin) - begin);
}

// Connects opening tags with the closing tags of the same name.
void find_partners(std::vector<MarkedLine::Tag>& tags) {
  std::vector<size_t> open;
  for (size_t i = 0; i < tags.size(); ++i) {
    const std::string& text = tags[i].text;
    const bool tag = text.size() > 2 && text[0] == '<' && text[1] != '!';
    if (!tag || text.ends_with("/>")) continue;
    if (text[1] != '/') {
      open.push_back(i);
      continue;
    }
    const auto match = std::find_if(open.rbegin(), open.rend(), [&](size_t one) {
      return tag_name(tags[one].text) == tag_name(text);
    });
    if (match == open.rend()) continue;
    tags[*match].partner = i;
    tags[i].partner = *match;
    open.erase(match.base() - 1, open.end());
  }
}

struct Word {
  size_t begin, end;
};

std::vector<Word> words_of(const std::string& text) {
  std::vector<Word> words;
  for (size_t at = 0; at < text.size();) {
    while (at < text.size() && is_space(text[at])) ++at;
    const size_t begin = at;
    while (at < text.size() && !is_space(text[at])) ++at;
    if (at > begin) words.push_back({begin, at});
  }
  return words;
}

// Returns the index of the first word that ends after `offset`.
int64_t word_at(const std::vector<Word>& words, size_t offset) {
  const auto found =
      std::find_if(words.begin(), words.end(), [&](const Word& word) { return word.end > offset; });
  return found - words.begin();
}

// Words [first, last) of the translation that are aligned with words [begin, end) of the line.
struct Span {
  int64_t first, last;
};
std::optional<Span> aligned_with(const std::vector<std::pair<int64_t, int64_t>>& aligned,
                                 int64_t begin, int64_t end) {
  std::optional<Span> span;
  for (const auto& [source, target] : aligned) {
    if (source < begin || source >= end) continue;
    if (!span) span = Span{target, target + 1};
    span->first = std::min(span->first, target);
    span->last = std::max(span->last, target + 1);
  }
  return span;
}

// Returns the word of the translation before which a tag without words belongs: that of the next
// aligned word, else after that of the last one.
int64_t target_word(const std::vector<std::pair<int64_t, int64_t>>& aligned, int64_t word,
                    int64_t source_words, int64_t target_words) {
  for (int64_t next = word; next < source_words; ++next)
    if (const auto span = aligned_with(aligned, next, next + 1)) return span->first;
  for (int64_t before = std::min(word, source_words) - 1; before >= 0; --before)
    if (const auto span = aligned_with(aligned, before, before + 1)) return span->last;
  return word == 0 ? 0 : target_words;
}

}  // namespace

MarkedLine without_markup(const std::string& line,
                          const std::function<bool(const std::string&)>& writes) {
  MarkedLine marked;
  for (size_t at = 0; at < line.size();) {
    const std::string_view rest = std::string_view(line).substr(at);
    const size_t tag = tag_length(rest);
    const size_t fixed = tag > 0 ? 0 : std::max(url_length(rest), placeholder_length(rest));
    const std::string text(rest.substr(0, std::max(tag, fixed)));
    if (tag > 0 || (fixed > 0 && !writes(text))) {
      marked.tags.push_back({marked.plain.size(), text, marked.tags.size()});
    } else if (fixed > 0) {
      marked.plain += text;
      marked.fixed.push_back(text);
    } else {
      marked.plain += rest[0];
    }
    at += std::max<size_t>(1, text.size());
  }
  find_partners(marked.tags);
  return marked;
}

std::string with_markup(const MarkedLine& line, const std::string& translation,
                        const std::vector<std::pair<int64_t, int64_t>>& aligned) {
  const std::vector<Word> source = words_of(line.plain), target = words_of(translation);
  const int64_t S = std::ssize(source), T = std::ssize(target);
  std::vector<Span> spans(line.tags.size());
  for (size_t i = 0; i < line.tags.size(); ++i) {
    const MarkedLine::Tag& tag = line.tags[i];
    const int64_t word = word_at(source, tag.offset);
    const size_t end = line.tags[tag.partner].offset;
    const int64_t index = std::clamp<int64_t>(target_word(aligned, word, S, T), 0, T);
    spans[i] = {index, index};
    if (tag.partner <= i) continue;
    // A word that contains the closing tag, such as "word</b>.", is between the tags.
    const auto after = std::find_if(source.begin(), source.end(),
                                    [&](const Word& one) { return one.begin >= end; });
    if (const auto span = aligned_with(aligned, word, after - source.begin()))
      spans[i] = {std::clamp<int64_t>(span->first, 0, T), std::clamp<int64_t>(span->last, 0, T)};
    // A pair that would cross an earlier one begins after it.
    for (size_t k = 0; k < i; ++k) {
      if (line.tags[k].partner <= k || line.tags[k].partner > i) continue;
      Span& mine = spans[i];
      if (mine.first < spans[k].last && mine.last > spans[k].last) mine.first = spans[k].last;
      if (mine.first < spans[k].first && mine.last > spans[k].first && mine.last < spans[k].last)
        mine.last = spans[k].first;
    }
    spans[tag.partner] = spans[i];
  }
  // The tags before each word, and after it.
  std::vector<std::string> before(static_cast<size_t>(T) + 1), after(static_cast<size_t>(T) + 1);
  for (size_t i = 0; i < line.tags.size(); ++i) {
    const MarkedLine::Tag& tag = line.tags[i];
    if (tag.partner < i) {
      const Span span = spans[tag.partner];
      (span.last > span.first ? after[static_cast<size_t>(span.last - 1)]
                              : before[static_cast<size_t>(span.first)]) += tag.text;
    } else {
      before[static_cast<size_t>(spans[i].first)] += tag.text;
    }
  }
  std::string out;
  size_t copied = 0;
  for (size_t i = 0; i < target.size(); ++i) {
    out += translation.substr(copied, target[i].begin - copied) + before[i];
    out += translation.substr(target[i].begin, target[i].end - target[i].begin) + after[i];
    copied = target[i].end;
  }
  return out + translation.substr(copied) + before[target.size()];
}

}  // namespace fovea::infer

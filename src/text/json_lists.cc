#include "text/json_lists.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/error.h"
#include "text/utf8.h"

namespace fovea {
namespace {

// A place in a JSON text. Each function answers whether it found what its name says; the place is
// behind it then.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  size_t at() const { return at_; }
  bool at_end() {
    skip_space();
    return at_ == text_.size();
  }
  bool take(char c) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  char next() {
    skip_space();
    return at_ == text_.size() ? '\0' : text_[at_];
  }

  bool string(std::string& value) {
    value.clear();
    if (!take('"')) return false;
    while (true) {
      const size_t begin = at_;
      while (at_ < text_.size() && is_plain(text_[at_])) ++at_;
      value.append(text_, begin, at_ - begin);
      if (at_ == text_.size()) return false;
      const char c = text_[at_++];
      if (c == '"') return true;
      if (c != '\\' || !escape(value)) return false;
    }
  }

  template <class Number>
  bool number(Number& value) {
    skip_space();
    const char* end = text_.data() + text_.size();
    const auto [behind, error] = std::from_chars(text_.data() + at_, end, value);
    at_ = static_cast<size_t>(behind - text_.data());
    return error == std::errc();
  }

  // Any value, without a look at more than its brackets and strings.
  bool skip_value() {
    size_t depth = 0;
    skip_space();
    const size_t begin = at_;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"') {
        if (!skip_string()) return false;
      } else if (c == '[' || c == '{') {
        ++depth;
        ++at_;
      } else if (c == ']' || c == '}') {
        if (depth == 0) break;
        --depth;
        ++at_;
      } else if (c == ',' && depth == 0) {
        break;
      } else {
        ++at_;
        if (depth > 0 || !is_space(c)) continue;
      }
      if (depth == 0) break;
    }
    return at_ > begin && depth == 0;
  }

 private:
  static bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
  static bool is_plain(char c) { return c != '"' && c != '\\' && static_cast<uint8_t>(c) >= 0x20; }
  void skip_space() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }

  bool skip_string() {
    ++at_;
    while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
    if (at_ >= text_.size()) return false;
    ++at_;
    return true;
  }

  std::optional<uint32_t> four_digits() {
    if (text_.size() - at_ < 4) return {};
    uint32_t value = 0;
    const char* begin = text_.data() + at_;
    const auto [behind, error] = std::from_chars(begin, begin + 4, value, 16);
    if (error != std::errc() || behind != begin + 4) return {};
    at_ += 4;
    return value;
  }

  bool escape(std::string& value) {
    if (at_ == text_.size()) return false;
    constexpr std::string_view letters = "\"\\/bfnrt", meant = "\"\\/\b\f\n\r\t";
    const char letter = text_[at_++];
    if (const size_t index = letters.find(letter); index != letters.npos) {
      value.push_back(meant[index]);
      return true;
    }
    if (letter != 'u') return false;
    const auto unit = four_digits();
    if (!unit) return false;
    char32_t c = *unit;
    if (c >= 0xDC00 && c < 0xE000) return false;  // the second half of a pair, without the first
    if (c >= 0xD800 && c < 0xDC00) {
      if (text_.substr(at_, 2) != "\\u") return false;
      at_ += 2;
      const auto second = four_digits();
      if (!second || *second < 0xDC00 || *second >= 0xE000) return false;
      c = 0x10000 + (c - 0xD800) * 0x400 + (*second - 0xDC00);
    }
    utf8::append(value, c);
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
};

// Calls member(key) for each member of an object, which reads or skips the value.
template <class Member>
bool for_each_member(Cursor& cursor, Member&& member) {
  if (!cursor.take('{')) return false;
  if (cursor.take('}')) return true;
  std::string key;
  do {
    if (!cursor.string(key) || !cursor.take(':') || !member(key)) return false;
  } while (cursor.take(','));
  return cursor.take('}');
}

template <class Element>
bool for_each_element(Cursor& cursor, Element&& element) {
  if (!cursor.take('[')) return false;
  if (cursor.take(']')) return true;
  do {
    if (!element()) return false;
  } while (cursor.take(','));
  return cursor.take(']');
}

[[noreturn]] void refuse(const std::string& path, const char* list, size_t entries,
                         const char* expected) {
  fail(ErrorKind::BadFile, "{}: entry {} is damaged ({}); expected {}", path, entries, list,
       expected);
}

}  // namespace

TokenizerText take_lists_out(std::string_view file) {
  TokenizerText text;
  Cursor cursor(file);
  struct Range {
    size_t begin, end;
  };
  std::vector<Range> ranges;
  const auto take_out = [&](std::string_view& list) {
    if (!list.empty() || (cursor.next() != '{' && cursor.next() != '[')) return cursor.skip_value();
    const size_t begin = cursor.at();
    if (!cursor.skip_value()) return false;
    list = file.substr(begin, cursor.at() - begin);
    ranges.push_back({begin, cursor.at()});
    return true;
  };
  const bool whole = for_each_member(cursor, [&](const std::string& key) {
    if (key != "model" || cursor.next() != '{') return cursor.skip_value();
    return for_each_member(cursor, [&](const std::string& inner) {
      if (inner == "vocab") return take_out(text.vocab);
      if (inner == "merges") return take_out(text.merges);
      return cursor.skip_value();
    });
  });
  if (!whole || utf8::valid_prefix(file) != file.size()) return {std::string(file), {}, {}};
  size_t done = 0;
  for (const Range& range : ranges) {
    text.rest.append(file, done, range.begin - done);
    text.rest += "null";
    done = range.end;
  }
  text.rest.append(file, done, file.size() - done);
  return text;
}

std::vector<std::pair<std::string, int64_t>> read_ids(std::string_view vocab,
                                                      const std::string& path) {
  std::vector<std::pair<std::string, int64_t>> ids;
  Cursor cursor(vocab);
  const bool good = for_each_member(cursor, [&](std::string& text) {
    int64_t id = 0;
    if (!cursor.number(id)) return false;
    ids.emplace_back(std::move(text), id);
    return true;
  });
  if (!good || !cursor.at_end())
    refuse(path, "model.vocab", ids.size(), "the text of a token and its id");
  return ids;
}

std::vector<std::pair<std::string, double>> read_scores(std::string_view vocab,
                                                        const std::string& path) {
  std::vector<std::pair<std::string, double>> scores;
  Cursor cursor(vocab);
  std::string text;
  double score = 0;
  const bool good = for_each_element(cursor, [&] {
    if (!cursor.take('[') || !cursor.string(text) || !cursor.take(',') || !cursor.number(score) ||
        !cursor.take(']')) {
      return false;
    }
    scores.emplace_back(text, score);
    return true;
  });
  if (!good || !cursor.at_end())
    refuse(path, "model.vocab", scores.size(), "the text of a token and its score");
  return scores;
}

std::vector<std::pair<std::string, std::string>> read_merges(std::string_view merges,
                                                             const std::string& path) {
  std::vector<std::pair<std::string, std::string>> pairs;
  Cursor cursor(merges);
  std::string first, second;
  const bool good = for_each_element(cursor, [&] {
    if (cursor.take('[')) {
      if (!cursor.string(first) || !cursor.take(',') || !cursor.string(second) || !cursor.take(']'))
        return false;
    } else {
      if (!cursor.string(first)) return false;
      const size_t space = first.find(' ');
      if (space == first.npos || first.find(' ', space + 1) != first.npos) return false;
      second = first.substr(space + 1);
      first.resize(space);
    }
    pairs.emplace_back(first, second);
    return true;
  });
  if (!good || !cursor.at_end())
    refuse(path, "model.merges", pairs.size(), "two texts, or one with a space between its parts");
  return pairs;
}

}  // namespace fovea

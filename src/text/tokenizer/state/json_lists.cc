#include "tokenizer/state/json_lists.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <utility>

#include "base/error.h"
#include "unicode/utf8.h"

namespace fovea::text {
namespace {

// A position in a JSON text. The reading functions return whether they found the element that their
// name describes; if so, the position is after the element.
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

  bool integer(int64_t& value) {
    skip_space();
    const char* end = text_.data() + text_.size();
    const auto [after, error] = std::from_chars(text_.data() + at_, end, value);
    at_ = static_cast<size_t>(after - text_.data());
    return error == std::errc();
  }

  // Parses a number in the same way as serde_json, whose result may be wrong in the last bit: reads
  // the digits as an integer, then multiplies or divides it by a power of ten. The last bit of a
  // sum of scores can decide how a text is split.
  bool score(double& value) {
    skip_space();
    const bool negative = take('-');
    uint64_t digits = 0;
    int64_t exponent = 0;
    const size_t begin = at_;
    take_digits(digits, exponent, 0);
    if (at_ == begin) return false;
    if (at_ < text_.size() && text_[at_] == '.') {
      ++at_;
      const size_t fraction = at_;
      take_digits(digits, exponent, -1);
      if (at_ == fraction) return false;
    }
    if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
      at_ += at_ + 1 < text_.size() && text_[at_ + 1] == '+' ? 2 : 1;
      int64_t power = 0;
      if (!integer(power) || power < -100'000 || power > 100'000) return false;
      exponent += power;
    }
    if (!scale(static_cast<double>(digits), exponent, value)) return false;
    if (negative) value = -value;
    return true;
  }

  // Skips any value; checks only its brackets and strings.
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
  // Reads as many digits as fit into 64 bits. Further digits before the decimal point increase the
  // exponent; those after it are ignored.
  void take_digits(uint64_t& digits, int64_t& exponent, int step) {
    bool all = true;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      const auto digit = static_cast<uint64_t>(text_[at_] - '0');
      all = all && digits <= (UINT64_MAX - digit) / 10;
      if (all) {
        digits = digits * 10 + digit;
        exponent += step;
      } else if (step == 0) {
        ++exponent;
      }
    }
  }

  static bool scale(double digits, int64_t exponent, double& value) {
    constexpr int64_t most = 308;  // the largest exponent of ten that a double can hold
    for (; exponent < -most && digits != 0; exponent += most) digits /= 1e308;
    if (exponent > most && digits != 0) return false;
    const double power = digits == 0 ? 1 : power_of_ten(std::abs(exponent));
    value = exponent < 0 ? digits / power : digits * power;
    return std::isfinite(value);
  }

  static double power_of_ten(int64_t exponent) {
    static const std::vector<double> powers = [] {
      std::vector<double> all;
      for (int i = 0; i <= 308; ++i)
        all.push_back(std::strtod(fmt::format("1e{}", i).c_str(), nullptr));
      return all;
    }();
    return powers[static_cast<size_t>(exponent)];
  }

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
    const auto [after, error] = std::from_chars(begin, begin + 4, value, 16);
    if (error != std::errc() || after != begin + 4) return {};
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
    if (c >= 0xDC00 && c < 0xE000) return false;  // the second of two surrogates without the first
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

// Calls member(key) for each member of an object; `member` must read or skip the value.
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

using Ids = std::vector<std::pair<std::string, int64_t>>;
using Scores = std::vector<std::pair<std::string, double>>;
using Merges = std::vector<std::pair<std::string, std::string>>;

bool read_ids(Cursor& cursor, Ids& ids) {
  return for_each_member(cursor, [&](std::string& text) {
    int64_t id = 0;
    if (!cursor.integer(id)) return false;
    ids.emplace_back(std::move(text), id);
    return true;
  });
}

bool read_scores(Cursor& cursor, Scores& scores) {
  std::string text;
  double score = 0;
  return for_each_element(cursor, [&] {
    if (!cursor.take('[') || !cursor.string(text) || !cursor.take(',') || !cursor.score(score) ||
        !cursor.take(']')) {
      return false;
    }
    scores.emplace_back(std::move(text), score);
    return true;
  });
}

bool read_merges(Cursor& cursor, Merges& merges) {
  std::string first, second;
  return for_each_element(cursor, [&] {
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
    merges.emplace_back(std::move(first), std::move(second));
    return true;
  });
}

// Reads the members of the file's object and of its "model".
class ListReader {
 public:
  ListReader(std::string_view file, const std::string& path)
      : file_(file), path_(path), cursor_(file) {}

  TokenizerText read() {
    const bool whole = for_each_member(cursor_, [&](const std::string& key) {
      if (key != "model" || cursor_.next() != '{') return cursor_.skip_value();
      return for_each_member(cursor_, [&](const std::string& inner) { return member(inner); });
    });
    if (!whole || !cursor_.at_end() || utf8::valid_prefix(file_) != file_.size()) {
      text_.rest = file_;
      return std::move(text_);
    }
    if (!damage_.empty()) throw Error(ErrorKind::BadFile, damage_);
    text_.rest.append(file_, done_, file_.size() - done_);
    return std::move(text_);
  }

 private:
  bool member(const std::string& key) {
    if (key == "vocab" && !std::exchange(text_.has_vocab, true)) {
      if (cursor_.next() == '{') return take_out(key, "a string and its id", text_.ids, read_ids);
      if (cursor_.next() == '[')
        return take_out(key, "a string and its score", text_.scores, read_scores);
    }
    if (key == "merges" && cursor_.next() == '[' && !std::exchange(has_merges_, true))
      return take_out(key, "two strings, or one with a space between its parts", text_.merges,
                      read_merges);
    return cursor_.skip_value();
  }

  // A list that cannot be read is either JSON of another form, or not JSON; reading the rest of the
  // file shows which.
  template <class List>
  bool take_out(const std::string& key, const char* expected, List& list,
                bool (*read_list)(Cursor&, List&)) {
    cursor_.next();
    const Cursor start = cursor_;
    text_.rest.append(file_, done_, start.at() - done_);
    text_.rest += "null";
    if (!read_list(cursor_, list)) {
      damage_ = fmt::format("{}: entry {} is damaged (model.{}); expected {}", path_, list.size(),
                            key, expected);
      cursor_ = start;
      if (!cursor_.skip_value()) return false;
    }
    done_ = cursor_.at();
    return true;
  }

  std::string_view file_;
  const std::string& path_;
  Cursor cursor_;
  TokenizerText text_;
  std::string damage_;
  size_t done_ = 0;  // bytes of the file already copied to `rest` or parsed
  bool has_merges_ = false;
};

}  // namespace

TokenizerText take_lists_out(std::string_view file, const std::string& path) {
  return ListReader(file, path).read();
}

}  // namespace fovea::text

#include "calls/lenient_value.h"

#include <algorithm>
#include <string>
#include <utility>

#include "unicode/utf8.h"

namespace fovea::text {
namespace {

using nlohmann::ordered_json;

class Reader {
 public:
  Reader(std::string_view text, size_t at, std::string_view mark)
      : text_(text), at_(at), mark_(mark) {}

  bool value(ordered_json& value, int depth = 0) {
    if (depth > kMostDepth) return false;
    skip();
    if (at_ >= text_.size()) return false;
    if (take('{')) return object(value, depth);
    if (take('[')) return list(value, depth);
    const size_t begin = at_;
    if (std::string string; quoted(string)) {
      value = std::move(string);
      return true;
    }
    return at_ == begin && word(value);  // not within a text that does not end
  }

  size_t at() const { return at_; }

 private:
  void skip() { at_ = after_space(text_, at_); }
  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool take(std::string_view text) {
    if (text.empty() || !text_.substr(at_).starts_with(text)) return false;
    at_ += text.size();
    return true;
  }

  bool object(ordered_json& value, int depth) {
    value = ordered_json::object();
    for (skip(); !take('}'); skip()) {
      std::string name;
      if (!quoted(name) && !bare(name)) return false;
      skip();
      ordered_json member;
      if (!take(':') || !this->value(member, depth + 1)) return false;
      value[name] = std::move(member);
      skip();
      if (!take(',') && (at_ >= text_.size() || text_[at_] != '}')) return false;
    }
    return true;
  }

  bool list(ordered_json& value, int depth) {
    value = ordered_json::array();
    for (skip(); !take(']'); skip()) {
      ordered_json item;
      if (!this->value(item, depth + 1)) return false;
      value.push_back(std::move(item));
      skip();
      if (!take(',') && (at_ >= text_.size() || text_[at_] != ']')) return false;
    }
    return true;
  }

  bool bare(std::string& name) {
    const size_t end = text_.find_first_of(": \t\r\n{}[],\"'", at_);
    if (end == std::string_view::npos || end == at_) return false;
    name = text_.substr(at_, end - at_);
    at_ = end;
    return true;
  }

  bool quoted(std::string& string) {
    if (take(mark_)) {
      const size_t end = text_.find(mark_, at_);
      if (end == std::string_view::npos) return false;
      string = text_.substr(at_, end - at_);
      at_ = end + mark_.size();
      return true;
    }
    if (at_ >= text_.size() || (text_[at_] != '"' && text_[at_] != '\'')) return false;
    const char quote = text_[at_++];
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == quote) return true;
      if (c != '\\') {
        string += c;
      } else if (!escape(string)) {
        return false;
      }
    }
    return false;
  }

  bool escape(std::string& string) {
    if (at_ >= text_.size()) return false;
    const char c = text_[at_++];
    switch (c) {
      case 'b': string += '\b'; return true;
      case 'f': string += '\f'; return true;
      case 'n': string += '\n'; return true;
      case 'r': string += '\r'; return true;
      case 't': string += '\t'; return true;
      case 'u': return unicode(string);
      default: string += c; return true;
    }
  }

  std::optional<char32_t> hexadecimal() {
    if (at_ + 4 > text_.size()) return std::nullopt;
    char32_t code = 0;
    for (int i = 0; i < 4; ++i) {
      const char c = text_[at_++];
      const char* const digits = "0123456789abcdef";
      const char lower = c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
      const char* const found = std::char_traits<char>::find(digits, 16, lower);
      if (found == nullptr) return std::nullopt;
      code = code * 16 + static_cast<char32_t>(found - digits);
    }
    return code;
  }

  bool unicode(std::string& string) {
    const auto high = hexadecimal();
    if (!high) return false;
    char32_t code = *high;
    if (code >= 0xD800 && code < 0xDC00 && take("\\u")) {
      const auto low = hexadecimal();
      if (!low) return false;
      code = *low >= 0xDC00 && *low < 0xE000 ? 0x10000 + ((code - 0xD800) << 10) + (*low - 0xDC00)
                                             : 0xFFFD;
    }
    utf8::append(string, code >= 0xD800 && code < 0xE000 ? 0xFFFD : code);
    return true;
  }

  // A number, or a constant of JSON or Python.
  bool word(ordered_json& value) {
    const size_t end = std::min(text_.find_first_of(" \t\r\n{}[](),:;\"'<", at_), text_.size());
    const std::string_view word = text_.substr(at_, end - at_);
    const size_t begin = std::exchange(at_, end);
    if (word == "true" || word == "True") return value = true, true;
    if (word == "false" || word == "False") return value = false, true;
    if (word == "null" || word == "None") return value = nullptr, true;
    value = ordered_json::parse(word, nullptr, false);
    if (value.is_number()) return true;
    at_ = begin;
    return false;
  }

  std::string_view text_;
  size_t at_;
  std::string_view mark_;
};

}  // namespace

size_t after_space(std::string_view text, size_t at) {
  return std::min(text.find_first_not_of(" \t\r\n", at), text.size());
}

std::string_view trimmed(std::string_view text) {
  const size_t end = text.find_last_not_of(" \t\r\n");
  text = text.substr(0, end == std::string_view::npos ? 0 : end + 1);
  return text.substr(after_space(text, 0));
}

std::optional<nlohmann::ordered_json> lenient_value(std::string_view text, size_t& at,
                                                    std::string_view mark) {
  Reader reader(text, at, mark);
  ordered_json value;
  if (!reader.value(value)) return std::nullopt;
  at = reader.at();
  return value;
}

}  // namespace fovea::text

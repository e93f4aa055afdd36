#include "grammar/key_scanner.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

namespace fovea::text {
namespace {

// Returns the text of a string in JSON; escapes can write a key in different ways.
std::string unescaped(const std::string& written) {
  if (written.find('\\') == std::string::npos) return written;
  const nlohmann::json parsed = nlohmann::json::parse("\"" + written + "\"", nullptr, false);
  return parsed.is_string() ? parsed.get<std::string>() : written;
}

}  // namespace

bool KeyScanner::end_string() {
  in_string_ = false;
  if (!std::exchange(key_next_, false)) return true;
  return levels_.back().keys.insert(unescaped(text_)).second;
}

bool KeyScanner::read(std::string_view bytes) {
  for (const char c : bytes) {
    if (in_string_) {
      if (c == '"' && !escaped_) {
        if (!end_string()) return false;
        continue;
      }
      escaped_ = c == '\\' && !escaped_;
      text_ += c;
      continue;
    }
    if (c == '"') {
      in_string_ = true;
      escaped_ = false;
      text_.clear();
    } else if (c == '{' || c == '[') {
      levels_.push_back({c == '{'});
      key_next_ = c == '{';
    } else if ((c == '}' || c == ']') && !levels_.empty()) {
      levels_.pop_back();
      key_next_ = false;
    } else if (c == ',') {
      key_next_ = !levels_.empty() && levels_.back().object;
    }
  }
  return true;
}

bool KeyScanner::repeats(std::string_view bytes) const {
  const auto quotes = std::count(bytes.begin(), bytes.end(), '"');
  if (quotes == 0 || levels_.empty()) return false;
  if (!in_string_ && quotes == 1) return false;  // only begins a string
  if (in_string_ && !key_next_ && quotes < 3) return false;
  KeyScanner ahead = *this;
  return !ahead.read(bytes);
}

}  // namespace fovea::text

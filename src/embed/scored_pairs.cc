#include "embed/scored_pairs.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"

namespace fovea {
namespace {

std::optional<double> number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

std::vector<ScoredPair> read_json_lines(const std::string& text, const std::string& file) {
  std::vector<ScoredPair> pairs;
  size_t line = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string name = fmt::format("{}: line {}", file, ++line);
    const std::string object = text.substr(at, end - at);
    at = end + 1;
    if (object.find_first_not_of(" \t\r") == std::string::npos) continue;
    const nlohmann::json json = parse_json(object, name);
    if (!json.is_object())
      fail(ErrorKind::BadFile, "{}: not an object; expected sentence1, sentence2 and score", name);
    pairs.push_back({get_string(json, "sentence1", name), get_string(json, "sentence2", name),
                     get_float(json, "score", name)});
  }
  return pairs;
}

}  // namespace

std::vector<std::string> next_record(const std::string& text, size_t& at, char separator) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  while (at < text.size()) {
    const char c = text[at++];
    if (quoted) {
      if (c != '"') {
        fields.back() += c;
      } else if (at < text.size() && text[at] == '"') {
        fields.back() += text[at++];
      } else {
        quoted = false;
      }
    } else if (c == '"' && fields.back().empty()) {
      quoted = true;
    } else if (c == separator) {
      fields.emplace_back();
    } else if (c == '\n') {
      break;
    } else if (c != '\r' || (at < text.size() && text[at] != '\n')) {
      fields.back() += c;
    }
  }
  return fields;
}

std::vector<ScoredPair> read_scored_pairs(const std::string& file) {
  const std::string text = read_file(file);
  if (text.starts_with('{')) return read_json_lines(text, file);
  const std::string first_line = text.substr(0, text.find('\n'));
  const char separator = first_line.find('\t') != std::string::npos ? '\t' : ',';
  std::vector<ScoredPair> pairs;
  size_t record = 0;
  for (size_t at = 0; at < text.size();) {
    const std::vector<std::string> fields = next_record(text, at, separator);
    ++record;
    if (fields.size() == 1 && fields[0].empty()) continue;
    const auto score = fields.size() == 3 ? number(fields[2]) : std::nullopt;
    if (score) {
      pairs.push_back({fields[0], fields[1], *score});
    } else if (record > 1 || fields.size() != 3) {  // the first one may hold names
      fail(ErrorKind::BadFile, "{}: record {} has {} fields{}; expected two texts and a number",
           file, record, fields.size(), fields.size() == 3 ? " and no number" : "");
    }
  }
  return pairs;
}

}  // namespace fovea

// The vocabularies of translation models that the trainer of their checkpoints has written: lines
// "token: id" of YAML, and SentencePiece models whose pieces have their own ids.

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/error.h"
#include "base/json.h"
#include "tokenizer/formats/sentencepiece.h"
#include "tokenizer/formats/vocab_files.h"
#include "tokenizer/state/file.h"
#include "unicode/utf8.h"

namespace fovea::text {
namespace {

using nlohmann::ordered_json;

[[noreturn]] void refuse_line(const std::string& path, size_t number) {
  fail(ErrorKind::BadFile, "{}: line {} is not \"token: id\"; expected one token per line", path,
       number);
}

// Appends the character of an escape in double quotes (YAML 1.2, 5.7); `at` is after the backslash.
bool unescape(std::string_view text, size_t& at, std::string& out) {
  constexpr std::string_view kNames = "0abtnvfre\"/\\ ", kValues("\0\a\b\t\n\v\f\r\x1b\"/\\ ", 13);
  const char name = text[at++];
  if (const size_t known = kNames.find(name); known != kNames.npos) {
    out += kValues[known];
    return true;
  }
  const size_t digits = name == 'x' ? 2 : name == 'u' ? 4 : name == 'U' ? 8 : 0;
  uint32_t point = 0;
  if (digits == 0 || text.size() - at < digits) return false;
  const char* const end = text.data() + at + digits;
  if (std::from_chars(text.data() + at, end, point, 16).ptr != end || point > 0x10FFFF)
    return false;
  utf8::append(out, static_cast<char32_t>(point));
  at += digits;
  return true;
}

// Reads the token at the beginning of a line, and returns the rest of the line. Returns nothing if
// the quotes do not end.
std::optional<std::string_view> take_token(std::string_view line, std::string& token) {
  const char quote = line.empty() ? '\0' : line[0];
  if (quote != '"' && quote != '\'') {
    const size_t colon = line.rfind(": ");
    if (colon == line.npos || colon == 0) return std::nullopt;
    token = line.substr(0, colon);
    return line.substr(colon);
  }
  for (size_t at = 1; at < line.size();) {
    const char c = line[at++];
    if (quote == '"' && c == '\\') {
      if (at == line.size() || !unescape(line, at, token)) return std::nullopt;
    } else if (c != quote) {
      token += c;
    } else if (quote == '\'' && at < line.size() && line[at] == '\'') {
      token += line[at++];  // two quotes are one
    } else {
      return line.substr(at);
    }
  }
  return std::nullopt;
}

// Adds the token of padding, which such models do not have, with the next id.
std::string with_padding(ordered_json vocabulary) {
  if (!vocabulary.contains("<pad>")) vocabulary["<pad>"] = vocabulary.size();
  return vocabulary.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace

std::string vocabulary_of_yaml(std::string_view yaml, const std::string& path) {
  ordered_json vocabulary = ordered_json::object();
  auto& entries = vocabulary.get_ref<ordered_json::object_t&>();
  for (size_t number = 1; !yaml.empty(); ++number) {
    std::string_view line = yaml.substr(0, yaml.find('\n'));
    yaml.remove_prefix(std::min(yaml.size(), line.size() + 1));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line == "---" || line.starts_with("#")) continue;
    std::string token;
    const auto rest = take_token(line, token);
    const size_t digit = rest ? rest->find_first_of("0123456789") : line.npos;
    if (!rest || !rest->starts_with(':') || digit == rest->npos) refuse_line(path, number);
    int64_t id = 0;
    const char* const end = rest->data() + rest->size();
    if (std::from_chars(rest->data() + digit, end, id).ptr != end) refuse_line(path, number);
    entries.emplace_back(std::move(token), id);
  }
  return with_padding(std::move(vocabulary));
}

std::string vocabulary_of_pieces(std::string_view model, const std::string& path) {
  const SentencePieceFile source = parse_sentencepiece(model, path);
  std::vector<std::string> texts;
  for (const auto& piece : source.pieces) texts.push_back(piece.text);
  return with_padding(vocabulary_object(texts));
}

}  // namespace fovea::text

#include "serve/request/unknown_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace fovea::serve {
namespace {

// A field of another server that restricts what is generated, and that this server cannot apply.
struct Restriction {
  const char* name;
  const char* expected;  // what the client can use instead
  Json neutral = {};     // the value that asks for nothing, beside null, false and empty ones
};

const std::vector<Restriction>& restrictions() {
  static const char* const kNone = "none";
  static const std::vector<Restriction> all = {
      {"structural_tag", "tools or response_format"},
      {"guided_json_object", "response_format"},
      {"guided_whitespace_pattern", "a grammar"},
      {"whitespace_pattern", "a grammar"},
      {"grammar_lazy", "tools"},
      {"grammar_triggers", "tools"},
      {"include_stop_str_in_output", "none; a text ends before its stop string"},
      {"no_stop_trim", "none; a text ends before its stop string"},
      {"trim_stop", "true; a text ends before its stop string", true},
      {"stop_regex", "stop"},
      {"logits_processors", "none; the server runs no code of requests"},
      {"custom_logit_processor", "none; the server runs no code of requests"},
      {"bad_words_ids", "bad_words, or logit_bias"},
      {"banned_tokens", "bad_words, or logit_bias"},
      {"banned_strings", "bad_words"},
      {"force_words", "guided_regex, or a grammar"},
      {"use_beam_search", "none; fovea generate and fovea translate have beams"},
      {"truncate_prompt_tokens", "a prompt that fits"},
      {"t_max_predict_ms", "max_tokens"},
      {"n_indent", kNone},
      {"top_a", "min_p"},
      {"tfs_z", "typical_p", 1}};
  return all;
}

bool asks_for_nothing(const Json& value, const Json& neutral) {
  return is_neutral(value) || value == 0 || value == -1 || value == neutral;
}

// Returns the letters and digits of a name in lower case: topP and top-p are top_p.
std::string plain(std::string_view name) {
  std::string letters;
  for (const char c : name) {
    if (c == '_' || c == '-') continue;
    letters += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return letters;
}

// Returns the number of letters to insert, remove, replace or exchange with their neighbour.
size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

bool is_near(std::string_view given, const std::string& known) {
  constexpr size_t kShort = 4, kLong = 10;  // letters; short names have too many neighbours
  if (plain(given) == plain(known)) return true;
  if (known.size() < kShort || given.size() > known.size() + 2) return false;
  return edits(given, known) <= (known.size() >= kLong ? 2u : 1u);
}

// Fields of other servers that are no misspelt ones.
bool is_of_others(const std::string& name) {
  return name == "models" || name == "mode" || name == "top_a";
}

void check_restrictions(const Json& body) {
  for (const auto& [name, expected, neutral] : restrictions()) {
    const auto found = body.find(name);
    if (found == body.end() || asks_for_nothing(*found, neutral)) continue;
    throw ApiError{400, fmt::format("{}: is not supported; expected {}", name, expected), name,
                   "unsupported_field"};
  }
}

}  // namespace

void check_unknown(const Json& body, const std::vector<FieldInfo>& fields) {
  constexpr size_t kMostKeys = 256, kLongest = 64;  // a hostile body may have millions
  check_restrictions(body);
  if (body.size() > kMostKeys) return;
  for (const std::string& key : unknown_keys(body, fields)) {
    if (key.size() > kLongest || is_of_others(key) || body[key].is_null()) continue;
    for (const FieldInfo& field : fields) {
      if (body.contains(field.name) || !is_near(key, field.name)) continue;
      throw ApiError{400, fmt::format("{}: the field is unknown; expected {}", key, field.name),
                     key, "unknown_field"};
    }
  }
}

}  // namespace fovea::serve

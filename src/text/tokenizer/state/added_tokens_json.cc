#include <algorithm>

#include "tokenizer/state/parts.h"

#include "base/settings.h"
#include "fovea/core/excerpt.h"

namespace fovea::text {
namespace {

using Json = nlohmann::json;

// Returns the id of the token that the config sets for `key`, as a text or as an object with
// "content"; empty if it sets none. Throws BadFile if the token is not in the vocabulary.
std::optional<int32_t> named(const TokenizerState& state, const Json& config,
                             const std::string& path, const char* key) {
  Json value = config.value(key, Json());
  if (value.is_object()) value = value.value("content", Json());
  if (value.is_null()) return {};
  if (!value.is_string())
    fail(ErrorKind::BadFile, "{}: {} is {}; expected the text of a token", path, key, brief(value));
  const int32_t id = state.ids.find(value.get<std::string>());
  if (id != PieceTable::absent) return id;
  fail(ErrorKind::BadFile, "{}: {} is not in the vocabulary ({}); expected one of its tokens", path,
       brief(value), key);
}

// Adds the tokens of added_tokens_decoder, {"32000": {"content": ...}, ...}, that are missing from
// the vocabulary. Their ids must follow those of the vocabulary.
void add_tokens(const Json& config, const std::string& path, TokenizerState& state) {
  const auto found = config.find("added_tokens_decoder");
  if (found == config.end() || !found->is_object()) return;
  std::vector<AddedToken> tokens;
  for (const auto& [key, value] : found->items()) {
    const JsonPart part(value, path, "added_tokens_decoder." + excerpt(key));
    const bool number =
        !key.empty() && key.size() < 10 &&
        std::all_of(key.begin(), key.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!number) part.bad("is not an id", "a number");
    tokens.push_back(parse_added_token(part, std::stoi(key)));
  }
  std::stable_sort(tokens.begin(), tokens.end(),
                   [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
  bool grown = false;
  GrowthLimit limit = GrowthLimit::of_text(0);
  for (const AddedToken& token : tokens) {
    const auto id = static_cast<size_t>(token.id);
    if (id < state.texts.size() && state.texts[id] == token.text) continue;
    const int32_t known = state.ids.find(token.text);
    if (id != state.texts.size() || known != PieceTable::absent) {
      fail(ErrorKind::BadFile,
           "{}: {} has id {}, which the vocabulary contradicts (added_tokens_decoder); expected {}",
           path, brief(token.text), token.id,
           known == PieceTable::absent ? state.texts.size() : static_cast<size_t>(known));
    }
    state.texts.push_back(token.text);
    add_token(token, state, limit);
    grown = true;
  }
  if (grown) state.ids = PieceTable(state.texts);
  state.special.resize(state.texts.size());
}

// If tokenizer.json has no post-processor, adds one for the config's add_bos_token and
// add_eos_token.
void surround(const Json& config, const std::string& path, TokenizerState& state) {
  if (!state.post_processors.empty()) return;
  TemplateProcessing around;
  const auto add = [&](const char* flag, std::optional<int32_t> id, int32_t type_id,
                       std::vector<TemplateProcessing::Part>& parts) {
    if (id && find_bool(config, flag, path).value_or(false))
      parts.push_back({-1, type_id, {{*id, state.texts[static_cast<size_t>(*id)]}}});
  };
  for (const int sequence : {0, 1}) {
    add("add_bos_token", state.bos, sequence, around.pair);
    around.pair.push_back({sequence, sequence, {}});
    add("add_eos_token", state.eos, sequence, around.pair);
    if (sequence == 0) around.single = around.pair;
  }
  if (around.single.size() > 1) state.post_processors.emplace_back(around);
}

// A class of tokenizers that adds the token of the source language, src_lang, to a text: before it,
// with the end token after it, or after the end token.
struct LanguageClass {
  const char *name, *language, *format;  // a language's token is `format` of its code
  bool before;
};
constexpr LanguageClass kLanguageClasses[] = {{"NllbTokenizer", "eng_Latn", "{}", true},
                                              {"MBart50Tokenizer", "en_XX", "{}", true},
                                              {"MBartTokenizer", "en_XX", "{}", false},
                                              {"M2M100Tokenizer", "en", "__{}__", true}};

// If the config names one of these classes, replaces the post-processor by that of the class, as
// transformers does, whatever tokenizer.json has. legacy_behaviour of NLLB moves the language to
// the end.
void add_language(const Json& config, const std::string& path, TokenizerState& state) {
  std::string name = find_string(config, "tokenizer_class", path).value_or("");
  if (name.ends_with("Fast")) name.resize(name.size() - 4);
  for (const LanguageClass& its : kLanguageClasses) {
    if (name != its.name) continue;
    const std::string language = find_string(config, "src_lang", path).value_or(its.language);
    const std::string text = fmt::format(fmt::runtime(its.format), language);
    const int32_t id = state.ids.find(text);
    const int32_t end = state.eos.value_or(state.ids.find("</s>"));
    if (id == PieceTable::absent || end == PieceTable::absent) return;
    const bool before = its.before && !find_bool(config, "legacy_behaviour", path).value_or(false);
    const TemplateProcessing::Part mark{-1, 0, {{id, text}}},
        last{-1, 0, {{end, state.texts[static_cast<size_t>(end)]}}};
    TemplateProcessing around;
    for (const bool pair : {false, true}) {
      auto& parts = pair ? around.pair : around.single;
      if (before) parts.push_back(mark);
      parts.push_back({0, 0, {}});
      if (pair) parts.push_back({1, 0, {}});
      parts.push_back(last);
      if (!before) parts.push_back(mark);
    }
    state.post_processors = {around};
    return;
  }
}

}  // namespace

AddedToken parse_added_token(const JsonPart& part, int32_t id) {
  const bool special = part.flag("special", false);
  AddedToken token = {part.text("content"),
                      id,
                      special,
                      part.flag("single_word", false),
                      part.flag("lstrip", false),
                      part.flag("rstrip", false),
                      part.flag("normalized", !special),
                      part.flag("leading", false)};
  if (token.text.empty() || token.text.size() > AddedTokenFinder::length_limit) {
    part.bad(fmt::format("content has {} bytes", token.text.size()),
             fmt::format("1 to {}", AddedTokenFinder::length_limit));
  }
  return token;
}

void add_token(const AddedToken& token, TokenizerState& state, GrowthLimit& limit) {
  state.special.resize(state.texts.size());
  if (token.special) state.special[static_cast<size_t>(token.id)] = true;
  if (!token.normalized) return state.raw_added.add(token, token.text);
  AlignedText text;
  limit.give(token.text.size());
  text.assign(token.text, 0, false, limit);
  normalize(state.normalizers, text);
  if (text.text().size() > AddedTokenFinder::length_limit) {
    fail(ErrorKind::BadFile,
         "tokenizer: the normalizers produce {} bytes from {} (added_tokens); expected at most {}",
         text.text().size(), excerpt(token.text), AddedTokenFinder::length_limit);
  }
  state.normalized_added.add(token, text.text());
  if (text.text() != token.text) state.normalized_texts.emplace(token.id, text.text());
}

void apply_config(const std::string& text, const std::string& path, TokenizerState& state) {
  const Json config = parse_json(text, path);
  if (!config.is_object())
    fail(ErrorKind::BadFile, "{}: is {}; expected an object", path, brief(config));
  refuse_unknown_settings(config, path, "tokenizer_config.json", {});
  add_tokens(config, path, state);
  state.bos = named(state, config, path, "bos_token");
  state.eos = named(state, config, path, "eos_token");
  surround(config, path, state);
  add_language(config, path, state);
}

}  // namespace fovea::text

#include "embed/multi_vector_settings.h"

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "checkpoint/module_files.h"
#include "fovea/core/excerpt.h"

namespace fovea::infer {
namespace {

using SettingsJson = nlohmann::json;

constexpr int64_t kLongestText = int64_t{1} << 24;
constexpr int64_t kUsualQueryLength = 32;  // of the original implementation
// Python's string.punctuation.
constexpr std::string_view kPunctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";

SettingsJson read_settings_object(const std::string& file) {
  SettingsJson json = read_json(file);
  if (!json.is_object())
    fail(ErrorKind::BadFile, "{}: not an object; expected keys and values in braces", file);
  return json;
}

bool is_set(const SettingsJson& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && !found->is_null();
}

std::vector<std::string> words_in(const SettingsJson& json, const char* key,
                                  const std::string& file) {
  std::vector<std::string> words;
  const SettingsJson& list = json.at(key);
  for (const SettingsJson& word : list.is_array() ? list : SettingsJson::array({list})) {
    if (!word.is_string())
      fail(ErrorKind::BadFile, "{}: {} contains {}; expected strings", file, key, brief(word));
    words.push_back(word.get<std::string>());
  }
  return words;
}

std::vector<std::string> punctuation() {
  std::vector<std::string> words;
  for (const char c : kPunctuation) words.emplace_back(1, c);
  return words;
}

void read_lengths(const SettingsJson& json, const std::string& file,
                  MultiVectorSettings& settings) {
  if (is_set(json, "query_length"))
    settings.query_length = get_int(json, "query_length", file, 1, kLongestText);
  if (is_set(json, "document_length"))
    settings.document_length = get_int(json, "document_length", file, 1, kLongestText);
}

void read_expansion(const SettingsJson& json, const std::string& file,
                    MultiVectorSettings& settings) {
  if (!is_set(json, "query_expansion")) return;
  const SettingsJson& object = json["query_expansion"];
  if (!object.is_object())
    fail(ErrorKind::BadFile, "{}: query_expansion is {}; expected an object", file, brief(object));
  const std::string strategy = get_string(object, "strategy", file);
  if (strategy != "fixed" && strategy != "min")
    fail(ErrorKind::Unsupported, "{}: the strategy of query_expansion is {}; expected fixed or min",
         file, excerpt(strategy, 40));
  QueryExpansion expansion;
  expansion.fixed = strategy == "fixed";
  expansion.length = get_int(object, "length", file, 1, kLongestText);
  expansion.attended = find_bool(object, "attend", file).value_or(false);
  if (is_set(object, "token")) settings.expansion_token = get_string(object, "token", file);
  settings.expansion = expansion;
}

// Prefixes are inserted as one token each, before the prompt of the same name.
void read_prefixes(const SettingsJson& json, const std::string& file,
                   MultiVectorSettings& settings) {
  for (const auto& [key, name] :
       {std::pair{"query_prefix", "query"}, std::pair{"document_prefix", "document"}}) {
    if (!is_set(json, key)) continue;
    settings.inserts = true;
    const std::string prefix = get_string(json, key, file);
    std::string& prompt = settings.prompts.prompts[name];
    if (!prompt.starts_with(prefix)) prompt = prefix + prompt;
  }
}

// PyLate has separate keys for the expansion, which is the default.
void read_pylate(const SettingsJson& json, const std::string& file, MultiVectorSettings& settings) {
  constexpr const char* kPyLateKeys[] = {
      "query_length", "document_length", "do_query_expansion", "attend_to_expansion_tokens",
      "query_prefix", "document_prefix", "skiplist_words"};
  if (std::ranges::none_of(kPyLateKeys, [&](const char* key) { return json.contains(key); }))
    return;
  read_prefixes(json, file, settings);
  read_lengths(json, file, settings);
  if (json.contains("query_expansion")) return read_expansion(json, file, settings);
  if (!find_bool(json, "do_query_expansion", file).value_or(true)) return;
  QueryExpansion expansion;
  expansion.length = settings.query_length.value_or(kUsualQueryLength);
  expansion.attended = find_bool(json, "attend_to_expansion_tokens", file).value_or(false);
  settings.expansion = expansion;
}

// The settings of the original ColBERT, with its defaults.
void read_original(const std::string& folder, MultiVectorSettings& settings) {
  const std::string file = folder + "/artifact.metadata";
  const SettingsJson json = is_file(file) ? read_settings_object(file) : SettingsJson::object();
  const auto marker = [&](const char* key, const char* usual) {
    return find_string(json, key, file).value_or(usual) + " ";
  };
  settings.prompts.prompts = {{"query", marker("query_token_id", "[unused0]")},
                              {"document", marker("doc_token_id", "[unused1]")}};
  settings.inserts = true;
  settings.document_length = find_int(json, "doc_maxlen", file, 1, kLongestText);
  QueryExpansion expansion;
  expansion.length =
      find_int(json, "query_maxlen", file, 1, kLongestText).value_or(kUsualQueryLength);
  expansion.attended = find_bool(json, "attend_to_mask_tokens", file).value_or(false);
  settings.expansion = expansion;
  if (find_bool(json, "mask_punctuation", file).value_or(true))
    settings.skipped_words = punctuation();
}

}  // namespace

void read_mask(const std::string& folder, MultiVectorSettings& settings) {
  const std::string file = folder + "/config.json";
  const SettingsJson json = read_settings_object(file);
  if (is_set(json, "keep_only_token_ids") && !json["keep_only_token_ids"].empty())
    fail(ErrorKind::Unsupported, "{}: keep_only_token_ids is {}; expected null, as for texts", file,
         brief(json["keep_only_token_ids"]));
  if (is_set(json, "skiplist_words"))
    settings.skipped_words = words_in(json, "skiplist_words", file);
  if (!is_set(json, "skiplist_tasks")) return;
  const std::vector<std::string> tasks = words_in(json, "skiplist_tasks", file);
  const auto has = [&](const char* task) { return std::ranges::find(tasks, task) != tasks.end(); };
  settings.skip_in_queries = has("query");
  settings.skip_in_documents = has("document");
}

MultiVectorSettings new_multi_vector_settings(const TextFormat& format) {
  constexpr int64_t kUsualDocumentLength = 180;  // PyLate's
  constexpr const char *kQuery = "[unused0]", *kDocument = "[unused1]";
  const text::Tokenizer& tokenizer = format.tokenizer();
  MultiVectorSettings settings;
  if (tokenizer.id_of(kQuery) && tokenizer.id_of(kDocument)) {
    settings.prompts.prompts = {{"query", kQuery}, {"document", kDocument}};
    settings.inserts = true;
  }
  settings.document_length = kUsualDocumentLength;
  settings.query_length = std::min(kUsualQueryLength, format.most());
  settings.skipped_words = punctuation();
  if (special_token(tokenizer, "mask_token", {"[MASK]", "<mask>"}))
    settings.expansion = QueryExpansion{.length = *settings.query_length};
  return settings;
}

MultiVectorSettings read_multi_vector_settings(const std::string& folder,
                                               const std::string& inner) {
  MultiVectorSettings settings;
  if (!model::has_modules(folder)) {
    read_original(folder, settings);
    return settings;
  }
  settings.prompts = read_prompts(folder);
  const std::string file = folder + "/config_sentence_transformers.json";
  if (is_file(file)) {
    const SettingsJson json = read_settings_object(file);
    settings.from_pylate = find_string(json, "model_type", file) == "ColBERT";
    settings.mean = find_string(json, "similarity_fn_name", file) == "meanmaxsim";
    read_pylate(json, file, settings);
    if (is_set(json, "skiplist_words"))
      settings.skipped_words = words_in(json, "skiplist_words", file);
    else if (settings.from_pylate)
      settings.skipped_words = punctuation();
  }
  for (const std::string& name : list_files(inner)) {
    if (!model::is_settings_file(name)) continue;
    const std::string path = inner + "/" + name;
    const SettingsJson json = read_settings_object(path);
    read_lengths(json, path, settings);
    read_expansion(json, path, settings);
  }
  return settings;
}

}  // namespace fovea::infer

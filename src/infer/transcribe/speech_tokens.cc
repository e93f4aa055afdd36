#include "transcribe/speech_tokens.h"

#include <algorithm>

#include "base/error.h"
#include "fovea/infer/transcribe.h"

namespace fovea::infer {
namespace {

using Json = nlohmann::ordered_json;

// Returns the value of a key of generation_config.json, else of config.json; null if there is none.
const Json* value_of(const model::Origin& origin, const char* key) {
  for (const Json* json : {&origin.generation, &origin.carried})
    if (json->is_object() && json->contains(key) && !json->at(key).is_null()) return &json->at(key);
  return nullptr;
}

std::optional<int32_t> id_under(const Json* object, const std::string& key) {
  if (object == nullptr || !object->is_object() || !object->contains(key)) return std::nullopt;
  const Json& id = object->at(key);
  if (!id.is_number_integer()) return std::nullopt;
  return id.get<int32_t>();
}

// Whether the config declares a model of English only. Older configs have no such key; then the
// token of a task decides.
bool is_english_only(const model::Origin& origin, const text::Tokenizer& tokenizer) {
  const Json* multilingual = value_of(origin, "is_multilingual");
  if (multilingual != nullptr && multilingual->is_boolean()) return !multilingual->get<bool>();
  return value_of(origin, "lang_to_id") == nullptr && !tokenizer.id_of("<|transcribe|>");
}

void read_languages(const model::Origin& origin, const text::Tokenizer& tokenizer,
                    SpeechTokens& tokens) {
  const Json* listed = value_of(origin, "lang_to_id");
  for (const model::SpeechLanguage& language : model::speech_languages()) {
    const std::string name = std::string("<|") + language.code + "|>";
    const auto id = listed != nullptr ? id_under(listed, name) : tokenizer.id_of(name);
    if (id) tokens.languages[language.code] = *id;
  }
  const Json* tasks = value_of(origin, "task_to_id");
  const auto task = [&](const char* name) {
    const auto id = id_under(tasks, name);
    return id ? id : tokenizer.id_of(std::string("<|") + name + "|>");
  };
  tokens.transcribe = task("transcribe").value_or(-1);
  tokens.translate = task("translate").value_or(-1);
}

void read_alignment_heads(const model::Origin& origin, const model::Spec& spec,
                          SpeechTokens& tokens) {
  const model::StackSpec& decoder = *spec.decoder;
  const Json* heads = value_of(origin, "alignment_heads");
  if (heads == nullptr || !heads->is_array()) return;
  for (const Json& pair : *heads) {
    const bool fits = pair.is_array() && pair.size() == 2 && pair[0].is_number_integer() &&
                      pair[1].is_number_integer();
    check(
        fits && pair[0] >= 0 && pair[0] < decoder.layers && pair[1] >= 0 &&
            pair[1] < decoder.attention.heads,
        "generation_config.json: alignment_heads has {}; expected pairs of a layer below {} and a "
        "head below {}",
        pair.dump(), decoder.layers, decoder.attention.heads);
    tokens.alignment_heads.emplace_back(pair[0].get<int64_t>(), pair[1].get<int64_t>());
  }
}

// Throws InvalidArgument if a special token is not in the vocabulary.
void check_ids(const SpeechTokens& tokens, int64_t vocabulary) {
  std::vector<int32_t> ids = {tokens.start, tokens.end, tokens.silence(), tokens.no_timestamps};
  if (tokens.before_start) ids.push_back(*tokens.before_start);
  for (const auto& [code, id] : tokens.languages) ids.push_back(id);
  if (tokens.multilingual()) ids.push_back(std::max(tokens.transcribe, tokens.translate));
  for (const int32_t id : ids)
    check(id >= 0 && id < vocabulary,
          "generation_config.json: has the special token {}; expected ids of 0 to {}", id,
          vocabulary - 1);
}

}  // namespace

std::string SpeechTokens::language_of(int32_t id) const {
  for (const auto& [code, token] : languages)
    if (token == id) return code;
  return "";
}

SpeechTokens speech_tokens(const model::Origin& origin, const model::Spec& spec,
                           const text::Tokenizer& tokenizer, const std::vector<int32_t>& end_ids) {
  check(spec.input.kind == model::InputKind::audio && spec.decoder.has_value(),
        "transcribe: the model does not read audio; expected a speech model");
  SpeechTokens tokens;
  const auto start = model::special_id(origin, "decoder_start_token_id");
  const auto times = model::special_id(origin, "no_timestamps_token_id");
  const auto no_timestamps = times ? times : tokenizer.id_of("<|notimestamps|>");
  check(start && no_timestamps && !end_ids.empty(),
        "transcribe: the model names no token for {}; expected decoder_start_token_id, "
        "eos_token_id and no_timestamps_token_id in generation_config.json",
        !start           ? "the start of a text"
        : !no_timestamps ? "texts without times"
                         : "the end");
  tokens.start = *start;
  tokens.end = end_ids.front();
  tokens.no_timestamps = *no_timestamps;
  tokens.before_start = model::special_id(origin, "prev_sot_token_id");
  if (!tokens.before_start) tokens.before_start = tokenizer.id_of("<|startofprev|>");
  tokens.latest_first_time = model::special_id(origin, "max_initial_timestamp_index");
  if (!is_english_only(origin, tokenizer)) read_languages(origin, tokenizer, tokens);
  check_ids(tokens, spec.vocabulary);
  read_alignment_heads(origin, spec, tokens);
  const Json* width = value_of(origin, "median_filter_width");
  if (width != nullptr && width->is_number_integer() && *width > 0 && *width < 1000)
    tokens.median_width = width->get<int64_t>();
  return tokens;
}

}  // namespace fovea::infer

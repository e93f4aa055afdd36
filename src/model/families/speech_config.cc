#include "families/speech_config.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "base/error.h"
#include "fovea/model/model.h"
#include "tokenizer/pipeline/normalizers.h"

namespace fovea::model {
namespace {

// Texts that are no speech, with and without a space before them, as in the reference
// implementation (github.com/openai/whisper, tokenizer.py). Of notes, whose characters are several
// tokens, the first token.
constexpr const char* kNoSpeech[] = {"\"",  "#",  "(",   ")",  "*",  "+",  "/",   ":",  ";",  "<",
                                     "=",   ">",  "@",   "[",  "\\", "]",  "^",   "_",  "`",  "{",
                                     "|",   "}",  "~",   "「", "」", "『", "』",  "<<", ">>", "<<<",
                                     ">>>", "--", "---", "-(", "-[", "('", "(\"", "((", "))", "(((",
                                     ")))", "[[", "]]",  "{{", "}}", "♪♪", "♪♪♪"};
constexpr const char* kNotes[] = {"♩", "♪", "♫", "♬", "♭", "♮", "♯"};

class TokenIds {
 public:
  explicit TokenIds(const std::vector<std::string>& names) {
    for (size_t id = 0; id < names.size(); ++id) ids_.emplace(names[id], static_cast<int32_t>(id));
  }

  std::optional<int32_t> id_of(const std::string& name) const {
    const auto found = ids_.find(name);
    return found == ids_.end() ? std::nullopt : std::optional(found->second);
  }
  std::optional<int32_t> special(const std::string& name) const {
    return id_of("<|" + name + "|>");
  }
  // Returns the token of the longest beginning of a text, of at least `least` bytes.
  std::optional<int32_t> token(const std::string& text, size_t least) const {
    for (size_t bytes = text.size(); bytes >= least; --bytes) {
      std::string name;
      for (const char byte : text.substr(0, bytes))
        name += text::printable_byte(static_cast<uint8_t>(byte));
      if (const auto id = id_of(name)) return id;
    }
    return std::nullopt;
  }
  std::optional<int32_t> token(const std::string& text) const { return token(text, text.size()); }

 private:
  std::unordered_map<std::string, int32_t> ids_;
};

std::vector<int32_t> usually_suppressed(const TokenIds& names) {
  std::set<int32_t> ids;
  const auto add = [&](const std::optional<int32_t>& id) {
    if (id) ids.insert(*id);
  };
  for (const std::string before : {"", " "}) {
    for (const char* text : kNoSpeech) add(names.token(before + text));
    for (const char* note : kNotes) add(names.token(before + note, before.size() + 1));
  }
  add(names.token(" -"));
  add(names.token(" '"));
  for (const char* name : {"transcribe", "translate", "startoftranscript", "startoflm",
                           "startofprev", "nospeech", "nocaptions"})
    add(names.special(name));
  return {ids.begin(), ids.end()};
}

}  // namespace

nlohmann::ordered_json speech_generation(const std::vector<std::string>& tokens,
                                         const SpeechGeneration& given, const std::string& path) {
  const TokenIds names(tokens);
  const auto needed = [&](const char* name) {
    const auto id = names.special(name);
    if (!id)
      fail(ErrorKind::BadFile,
           "{}: its vocabulary has no token <|{}|>; expected that of a speech "
           "model",
           path, name);
    return *id;
  };
  const int32_t end = needed("endoftext");
  nlohmann::ordered_json json = {{"decoder_start_token_id", needed("startoftranscript")},
                                 {"bos_token_id", end},
                                 {"eos_token_id", end},
                                 {"pad_token_id", end},
                                 {"no_timestamps_token_id", needed("notimestamps")},
                                 {"prev_sot_token_id", needed("startofprev")},
                                 {"max_initial_timestamp_index", 50},
                                 {"is_multilingual", given.multilingual},
                                 {"return_timestamps", false}};
  if (given.multilingual) {
    for (const SpeechLanguage& language : speech_languages())
      if (const auto id = names.special(language.code))
        json["lang_to_id"][fmt::format("<|{}|>", language.code)] = *id;
    json["task_to_id"] = {{"transcribe", needed("transcribe")}, {"translate", needed("translate")}};
  }
  json["suppress_tokens"] = given.suppressed ? *given.suppressed : usually_suppressed(names);
  std::vector<int32_t> first = {end};
  if (const auto space = names.token(" ")) first.insert(first.begin(), *space);
  json["begin_suppress_tokens"] = given.suppressed_first.value_or(first);
  return json;
}

nlohmann::json speech_config(const SpeechSizes& s, const nlohmann::ordered_json& generation) {
  nlohmann::json config = {{"model_type", "whisper"},
                           {"architectures", {"WhisperForConditionalGeneration"}},
                           {"vocab_size", s.vocabulary},
                           {"num_mel_bins", s.bins},
                           {"max_source_positions", s.frames},
                           {"max_target_positions", s.context},
                           {"d_model", s.width},
                           {"encoder_layers", s.encoder_layers},
                           {"encoder_attention_heads", s.encoder_heads},
                           {"encoder_ffn_dim", s.encoder_ffn},
                           {"decoder_layers", s.decoder_layers},
                           {"decoder_attention_heads", s.decoder_heads},
                           {"decoder_ffn_dim", s.decoder_ffn},
                           {"activation_function", "gelu"},
                           {"dropout", 0.0},
                           {"is_encoder_decoder", true},
                           {"tie_word_embeddings", s.tied}};
  for (const char* key : {"decoder_start_token_id", "bos_token_id", "eos_token_id", "pad_token_id"})
    config[key] = generation.at(key);
  return config;
}

}  // namespace fovea::model

#include "tokenizer/formats/gguf_splits.h"

#include <algorithm>

#include "tokenizer/file.h"

namespace fovea {
namespace {

using nlohmann::ordered_json;

ordered_json isolated(const char* regex) {
  return {{"type", "Split"},
          {"pattern", {{"Regex", regex}}},
          {"behavior", "Isolated"},
          {"invert", false}};
}

ordered_json patterns(std::initializer_list<const char*> regexes) {
  ordered_json list = ordered_json::array();
  for (const char* regex : regexes) list.push_back(isolated(regex));
  list.push_back(byte_level(false, true, false));
  return sequence("pretokenizers", std::move(list));
}

ordered_json with_digits(ordered_json next) {
  return sequence("pretokenizers",
                  {{{"type", "Digits"}, {"individual_digits", true}}, std::move(next)});
}

constexpr const char* kThreeDigits =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| "
    "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
constexpr const char* kOneDigit =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| "
    "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
constexpr const char* kByCase =
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+|"
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*|"
    "\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
constexpr const char* kByCaseWithEndings =
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+"
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*"
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    "\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
constexpr const char* kFirst =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)";
constexpr const char* kUntilPunctuation = " ?[^(\\s|.,!?…。，、।۔،)]+";

// Returns a part as a string, without the fields that only affect offsets; a sequence becomes the
// list of its parts.
std::string canonical(nlohmann::json part) {
  if (!part.is_object()) return "";
  part.erase("trim_offsets");
  const nlohmann::json list = part.value("pretokenizers", nlohmann::json());
  if (!list.is_array()) return part.dump();
  std::string all;
  for (const nlohmann::json& each : list) all += canonical(each) + "\n";
  return all;
}

}  // namespace

const std::vector<GgufSplit>& gguf_splits() {
  static const std::vector<GgufSplit> all = {
      {{"gpt-2", "phi-2", "mpt", "olmo", "roberta-bpe", "exaone4", "modern-bert", "jina-v1-en",
        "jina-v2-code", "jina-v2-es", "jina-v2-de", "jina-es", "jina-de", "gigachat", "trillion",
        "mellum", "a.x-4.0"},
       byte_level(false, true, true)},
      {{"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "lfm2"},
       patterns({kThreeDigits}),
       true,
       true},
      {{"dbrx", "smaug-bpe", "chatglm-bpe"}, patterns({kThreeDigits})},
      {{"glm4"}, patterns({kThreeDigits}), true},
      {{"qwen2", "deepseek-r1-qwen", "megrez", "stablelm2", "hunyuan", "kormo"},
       patterns({kOneDigit}),
       false,
       false,
       true},
      {{"tekken"}, patterns({kByCase}), true, true},
      {{"gpt-4o", "llama4"}, patterns({kByCaseWithEndings})},
      {{"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"},
       with_digits(byte_level(false, true, true))},
      {{"bloom", "poro-chat", "gpt3-finnish"}, patterns({kUntilPunctuation})},
      {{"viking"}, patterns({kUntilPunctuation, "\\p{N}"})},
      {{"falcon"}, patterns({"[\\p{P}\\$\\+<=>\\^~\\|`]+", kFirst, "[0-9][0-9][0-9]"})},
      {{"default", ""},
       patterns({"[\\p{P}\\$\\+<=>\\^~\\|]+", kFirst, "\\p{N}+", "[0-9][0-9][0-9]"})},
  };
  return all;
}

const GgufSplit* find_gguf_split(std::string_view name) {
  for (const GgufSplit& split : gguf_splits())
    for (const char* known : split.names)
      if (name == known) return &split;
  return nullptr;
}

const GgufSplit* gguf_split_of(const nlohmann::json& pre_tokenizer, bool whole_words) {
  const std::string wanted = canonical(pre_tokenizer);
  for (const GgufSplit& split : gguf_splits())
    if (split.whole_words == whole_words && canonical(split.pre_tokenizer) == wanted) return &split;
  return nullptr;
}

}  // namespace fovea

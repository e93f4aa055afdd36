#include "tokenizer/formats/gguf_splits.h"

#include <algorithm>

#include "tokenizer/state/file.h"

namespace fovea::text {
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
constexpr const char* kWithMarks =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| "
    "?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
constexpr const char* kOneBreak =
    "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| "
    "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+";
constexpr const char* kNoBreaks =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| "
    "?[^\\s\\p{L}\\p{N}\\r\\n]+|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
constexpr const char* kSpacedLetters =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|"
    "[^\\r\\n\\p{L}\\p{N}]?(?:\\p{L}\\p{M}*(?: \\p{L}\\p{M}*)*)+|\\p{N}| "
    "?[^\\s\\p{L}\\p{N}]+[\\r\\n/]?|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+";
constexpr const char* kNoEndings =
    "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|"
    "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
constexpr const char* kAllDigits =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}+| "
    "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
constexpr const char* kHalvedSpaces =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| "
    "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s{512}(?!\\S)|\\s{256}(?!\\S)|"
    "\\s{128}(?!\\S)|\\s{64}(?!\\S)|\\s{32}(?!\\S)|\\s{16}(?!\\S)|\\s{8}(?!\\S)|"
    "\\s{4}(?!\\S)|\\s{1,2}(?!\\S)|\\s{1}";
// Chinese characters and Japanese syllables; then words that may begin with a sign.
constexpr const char* kChineseAndJapanese =
    "[\\x{4e00}-\\x{9fa5}\\x{3040}-\\x{309f}\\x{30a0}-\\x{30ff}]+";
constexpr const char* kBySigns =
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|"
    "[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|"
    "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
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
        "mellum", "a.x-4.0", "jais", "granite-docling"},
       byte_level(false, true, true)},
      {{"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "lfm2", "midm-2.0",
        "jina-v5-nano"},
       patterns({kThreeDigits}),
       true,
       true},
      {{"dbrx", "smaug-bpe", "chatglm-bpe"}, patterns({kThreeDigits})},
      {{"glm4"}, patterns({kThreeDigits}), true},
      {{"qwen2", "deepseek-r1-qwen", "megrez", "stablelm2", "hunyuan", "kormo", "f2llmv2"},
       patterns({kOneDigit}),
       false,
       false,
       true},
      {{"grok-2", "solar-open"}, patterns({kOneDigit})},
      {{"qwen35"}, patterns({kWithMarks}), false, false, true},
      {{"bailingmoe", "bailingmoe2", "llada-moe"}, patterns({kOneBreak})},
      {{"seed-coder"}, patterns({kNoBreaks})},
      {{"exaone-moe"}, patterns({kSpacedLetters})},
      {{"ufakzeka"}, patterns({kNoEndings})},
      {{"minicpm5"}, patterns({"\\p{N}{1,3}", kAllDigits}), true},
      {{"jais-2"}, patterns({kHalvedSpaces})},
      {{"laguna"}, patterns({"[^\\n]+|[\\n]+", kOneDigit})},
      {{"deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"},
       patterns({"\\p{N}{1,3}", kChineseAndJapanese, kBySigns})},
      {{"deepseek-coder"},
       patterns({"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+",
                 "[\\x{4e00}-\\x{9fa5}\\x{800}-\\x{4e00}\\x{ac00}-\\x{d7ff}]+", "\\p{N}"})},
      {{"tekken"}, patterns({kByCase}), true, true},
      {{"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"}, patterns({kByCaseWithEndings})},
      {{"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b",
        "mellum2"},
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

}  // namespace fovea::text

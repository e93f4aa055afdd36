#include "tokenizer/pipeline/json_part.h"
#include "tokenizer/pipeline/pre_tokenizers.h"

namespace fovea::text {
namespace {

constexpr std::array<std::string_view, 5> behaviors = {"Removed", "Isolated", "MergedWithPrevious",
                                                       "MergedWithNext", "Contiguous"};

template <class Part>
PreTokenizer read_plain(const JsonPart&) {
  return Part{};
}

PreTokenizer read_byte_level(const JsonPart& json) {
  return ByteLevel{json.flag("add_prefix_space"), json.flag("use_regex", true), true};
}

// Older files have add_prefix_space instead of prepend_scheme.
PreTokenizer read_metaspace(const JsonPart& json) {
  constexpr std::array<std::string_view, 3> schemes = {"always", "first", "never"};
  auto scheme = json.flag("add_prefix_space", true) ? PrependScheme::always : PrependScheme::never;
  if (json.json().contains("prepend_scheme"))
    scheme = static_cast<PrependScheme>(json.choice("prepend_scheme", schemes));
  return Metaspace{json.character("replacement"), scheme, json.flag("split", true)};
}

PreTokenizer read_split(const JsonPart& json) {
  return Split{json.pattern("pattern"), static_cast<Behavior>(json.choice("behavior", behaviors)),
               json.flag("invert", false)};
}

PreTokenizer read_punctuation(const JsonPart& json) {
  if (!json.json().contains("behavior")) return Punctuation{Behavior::isolated};
  return Punctuation{static_cast<Behavior>(json.choice("behavior", behaviors))};
}

PreTokenizer read_delimiter(const JsonPart& json) {
  return CharDelimiterSplit{utf8::first(json.character("delimiter")).code_point};
}

PreTokenizer read_fixed_length(const JsonPart& json) {
  constexpr int64_t usual = 5, longest = int64_t{1} << 32;
  return FixedLength{json.json().contains("length") ? json.count("length", 1, longest) : usual};
}

constexpr std::array<PartReader<PreTokenizer>, 11> splitter_readers = {{
    {"ByteLevel", read_byte_level},
    {"Metaspace", read_metaspace},
    {"Whitespace", read_plain<Whitespace>},
    {"WhitespaceSplit", read_plain<WhitespaceSplit>},
    {"BertPreTokenizer", read_plain<BertPreTokenizer>},
    {"Split", read_split},
    {"Digits",
     [](const JsonPart& json) -> PreTokenizer { return Digits{json.flag("individual_digits")}; }},
    {"Punctuation", read_punctuation},
    {"CharDelimiterSplit", read_delimiter},
    {"UnicodeScripts", read_plain<UnicodeScripts>},
    {"FixedLength", read_fixed_length},
}};

}  // namespace

PreTokenizers parse_pre_tokenizers(const nlohmann::json& json, const std::string& path) {
  PreTokenizers parts;
  if (!json.is_null())
    read_parts(JsonPart(json, path, "pre_tokenizer"), splitter_readers, "pretokenizers", parts);
  return parts;
}

}  // namespace fovea::text

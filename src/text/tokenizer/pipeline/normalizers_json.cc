#include "base/base64.h"
#include "tokenizer/pipeline/json_part.h"
#include "tokenizer/pipeline/normalizers.h"

namespace fovea::text {
namespace {

template <NormalForm form>
Normalizer read_form(const JsonPart&) {
  return UnicodeForm{form};
}

template <class Part>
Normalizer read_plain(const JsonPart&) {
  return Part{};
}

Normalizer read_charsmap(const JsonPart& json) {
  const std::string text = json.text("precompiled_charsmap");
  const auto bytes = from_base64(text);
  if (!bytes) json.bad("precompiled_charsmap is not base64", "base64");
  return Charsmap::parse(*bytes, json.name());
}

Normalizer read_bert_normalizer(const JsonPart& json) {
  const bool lowercase = json.flag("lowercase");
  return BertNormalizer{json.flag("clean_text"), json.flag("handle_chinese_chars"),
                        json.flag("strip_accents", lowercase), lowercase};
}

Normalizer read_strip(const JsonPart& json) {
  return Strip{json.flag("strip_left"), json.flag("strip_right")};
}

Normalizer read_replace(const JsonPart& json) {
  return Replace{json.pattern("pattern"), json.text("content")};
}

constexpr std::array<PartReader<Normalizer>, 14> normalizer_readers = {{
    {"NFC", read_form<NormalForm::nfc>},
    {"NFD", read_form<NormalForm::nfd>},
    {"NFKC", read_form<NormalForm::nfkc>},
    {"NFKD", read_form<NormalForm::nfkd>},
    {"Nmt", read_plain<Nmt>},
    {"Precompiled", read_charsmap},
    {"BertNormalizer", read_bert_normalizer},
    {"Lowercase", read_plain<Lowercase>},
    {"Strip", read_strip},
    {"StripAccents", read_plain<StripAccents>},
    {"Replace", read_replace},
    {"Prepend", [](const JsonPart& json) -> Normalizer { return Prepend{json.text("prepend")}; }},
    {"Append", [](const JsonPart& json) -> Normalizer { return Append{json.text("append")}; }},
    {"ByteLevel", read_plain<ByteLevelNormalizer>},
}};

}  // namespace

Normalizers parse_normalizers(const nlohmann::json& json, const std::string& path) {
  Normalizers parts;
  if (!json.is_null())
    read_parts(JsonPart(json, path, "normalizer"), normalizer_readers, "normalizers", parts);
  return parts;
}

}  // namespace fovea::text

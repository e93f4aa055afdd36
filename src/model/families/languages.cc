#include "families/languages.h"

#include <algorithm>
#include <string_view>

#include "fovea/model/model.h"

namespace fovea::model {
namespace {

// Further names of languages.
const std::vector<SpeechLanguage> kOtherNames = {
    {"my", "burmese"},       {"es", "castilian"}, {"nl", "flemish"},   {"ht", "haitian"},
    {"lb", "letzeburgesch"}, {"zh", "mandarin"},  {"ro", "moldavian"}, {"ro", "moldovan"},
    {"pa", "panjabi"},       {"ps", "pushto"},    {"si", "sinhalese"}, {"ca", "valencian"}};

std::string lower_case(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

}  // namespace

const std::vector<SpeechLanguage>& speech_languages() {
  static const std::vector<SpeechLanguage> all = {
      {"af", "afrikaans"},      {"am", "amharic"},     {"ar", "arabic"},
      {"as", "assamese"},       {"az", "azerbaijani"}, {"ba", "bashkir"},
      {"be", "belarusian"},     {"bg", "bulgarian"},   {"bn", "bengali"},
      {"bo", "tibetan"},        {"br", "breton"},      {"bs", "bosnian"},
      {"ca", "catalan"},        {"cs", "czech"},       {"cy", "welsh"},
      {"da", "danish"},         {"de", "german"},      {"el", "greek"},
      {"en", "english"},        {"es", "spanish"},     {"et", "estonian"},
      {"eu", "basque"},         {"fa", "persian"},     {"fi", "finnish"},
      {"fo", "faroese"},        {"fr", "french"},      {"gl", "galician"},
      {"gu", "gujarati"},       {"ha", "hausa"},       {"haw", "hawaiian"},
      {"he", "hebrew"},         {"hi", "hindi"},       {"hr", "croatian"},
      {"ht", "haitian creole"}, {"hu", "hungarian"},   {"hy", "armenian"},
      {"id", "indonesian"},     {"is", "icelandic"},   {"it", "italian"},
      {"ja", "japanese"},       {"jw", "javanese"},    {"ka", "georgian"},
      {"kk", "kazakh"},         {"km", "khmer"},       {"kn", "kannada"},
      {"ko", "korean"},         {"la", "latin"},       {"lb", "luxembourgish"},
      {"ln", "lingala"},        {"lo", "lao"},         {"lt", "lithuanian"},
      {"lv", "latvian"},        {"mg", "malagasy"},    {"mi", "maori"},
      {"mk", "macedonian"},     {"ml", "malayalam"},   {"mn", "mongolian"},
      {"mr", "marathi"},        {"ms", "malay"},       {"mt", "maltese"},
      {"my", "myanmar"},        {"ne", "nepali"},      {"nl", "dutch"},
      {"nn", "nynorsk"},        {"no", "norwegian"},   {"oc", "occitan"},
      {"pa", "punjabi"},        {"pl", "polish"},      {"ps", "pashto"},
      {"pt", "portuguese"},     {"ro", "romanian"},    {"ru", "russian"},
      {"sa", "sanskrit"},       {"sd", "sindhi"},      {"si", "sinhala"},
      {"sk", "slovak"},         {"sl", "slovenian"},   {"sn", "shona"},
      {"so", "somali"},         {"sq", "albanian"},    {"sr", "serbian"},
      {"su", "sundanese"},      {"sv", "swedish"},     {"sw", "swahili"},
      {"ta", "tamil"},          {"te", "telugu"},      {"tg", "tajik"},
      {"th", "thai"},           {"tk", "turkmen"},     {"tl", "tagalog"},
      {"tr", "turkish"},        {"tt", "tatar"},       {"uk", "ukrainian"},
      {"ur", "urdu"},           {"uz", "uzbek"},       {"vi", "vietnamese"},
      {"yi", "yiddish"},        {"yo", "yoruba"},      {"yue", "cantonese"},
      {"zh", "chinese"}};
  return all;
}

std::optional<std::string> language_code(const std::string& language) {
  const std::string wanted = lower_case(language);
  for (const auto* list : {&speech_languages(), &kOtherNames})
    for (const auto& [code, name] : *list)
      if (wanted == code || wanted == name) return code;
  return std::nullopt;
}

std::string language_name(const std::string& code) {
  for (const auto& [known, name] : speech_languages())
    if (code == known) return name;
  return code;
}

std::string translation_prefix(const Family& family, const std::string& source,
                               const std::string& target) {
  // T5 (Raffel et al. 2020, appendix D.4).
  if (family.model_type != std::string_view("t5")) return "";
  return "translate " + source + " to " + target + ": ";
}

}  // namespace fovea::model

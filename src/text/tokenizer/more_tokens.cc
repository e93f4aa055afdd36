#include "tokenizer/more_tokens.h"

#include "base/error.h"
#include "base/float_mode.h"
#include "base/json.h"
#include "tokenizer/state/file.h"
#include "tokenizer/state/state.h"

namespace fovea::text {

Tokenizer with_special_tokens(const Tokenizer& tokenizer, const std::vector<std::string>& texts) {
  const FloatMode mode;
  TokenizerFiles files = tokenizer.state().files;
  check(files.originals.empty(),
        "tokenizer: it has source.spm, which stores no additional tokens; expected a "
        "tokenizer.json");
  nlohmann::json file = parse_json(files.tokenizer, "tokenizer.json");
  nlohmann::json added = file.value("added_tokens", nlohmann::json());
  if (!added.is_array()) added = nlohmann::json::array();
  auto next = static_cast<size_t>(tokenizer.size());
  for (const std::string& text : texts) {
    const auto known = tokenizer.id_of(text);
    const size_t id = known ? static_cast<size_t>(*known) : next++;
    nlohmann::json entry = added_token(text, id);
    bool replaced = false;
    for (nlohmann::json& each : added) {
      if (!each.is_object() || each.value("content", nlohmann::json()) != text) continue;
      each = entry;
      replaced = true;
    }
    if (!replaced) added.push_back(std::move(entry));
  }
  file["added_tokens"] = std::move(added);
  files.tokenizer = file.dump();
  return Tokenizer(parse_tokenizer(std::move(files), "tokenizer.json", "tokenizer_config.json"));
}

}  // namespace fovea::text

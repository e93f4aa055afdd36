#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace fovea::text {

// The settings of tokenizer_config.json that readers of older formats use; all are optional.
class TokenizerConfig {
 public:
  TokenizerConfig(std::string_view text, const std::string& path);

  const std::string& tokenizer_class() const { return class_; }  // without the suffix "Fast"
  bool flag(std::string_view key, bool otherwise) const;
  std::optional<bool> find_flag(std::string_view key) const;
  int64_t integer(std::string_view key, int64_t otherwise, int64_t most) const;  // 0 to `most`
  // Returns the text of a special token, such as "unk_token", which the file gives as a string or
  // as an object with "content"; `otherwise` if it is missing.
  std::string token(const char* key, const std::string& otherwise) const;
  // Returns the entries of added_tokens for the vocabulary `texts`: those of added_tokens_decoder
  // if it exists; otherwise a token for each key of `defaults` (keys and default texts), and
  // additional_special_tokens. Adds tokens that are missing from the vocabulary to `texts`.
  nlohmann::ordered_json added_tokens(
      std::vector<std::string>& texts,
      const std::vector<std::pair<const char*, std::string>>& defaults) const;

  // Throws Unsupported: a tokenizer of this class cannot be created from `file`.
  [[noreturn]] void refuse_class(const std::string& file, std::string_view expected) const;

 private:
  nlohmann::ordered_json from_decoder(std::vector<std::string>& texts,
                                      const nlohmann::json& decoder) const;

  std::string path_;
  nlohmann::json config_ = nlohmann::json::object();
  std::string class_;
};

}  // namespace fovea::text

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace fovea {

// What tokenizer_config.json says to a reader of the older formats; all of it may be missing.
class TokenizerConfig {
 public:
  TokenizerConfig(std::string_view text, const std::string& path);

  const std::string& tokenizer_class() const { return class_; }  // without "Fast" at its end
  bool flag(std::string_view key, bool otherwise) const;
  std::optional<bool> find_flag(std::string_view key) const;
  int64_t integer(std::string_view key, int64_t otherwise, int64_t most) const;
  // Of a special token ("unk_token"): its text, or an object with "content".
  std::string token(const char* key, const std::string& otherwise) const;
  // The entries of added_tokens for the vocabulary: those of added_tokens_decoder where there is
  // one, otherwise the special tokens of which this file or `defaults` (keys and texts) speak.
  // Those that the vocabulary lacks are put at its end.
  nlohmann::ordered_json added_tokens(
      std::vector<std::string>& texts,
      const std::vector<std::pair<const char*, std::string>>& defaults) const;

  // Unsupported: the class needs another file than what is there.
  [[noreturn]] void refuse_class(const std::string& file, std::string_view expected) const;

 private:
  nlohmann::ordered_json from_decoder(std::vector<std::string>& texts,
                                      const nlohmann::json& decoder) const;

  std::string path_;
  nlohmann::json config_ = nlohmann::json::object();
  std::string class_;
};

}  // namespace fovea

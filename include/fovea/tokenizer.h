#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

// Whether "<|endoftext|>" written in a text is just these characters or the special token of that
// name. Text that a user wrote is never parsed; Hugging Face does parse it unless
// split_special_tokens is set.
enum class SpecialTokens { as_text, parsed };

// One token and the bytes of the text that it stands for.
struct Token {
  int32_t id;
  std::string_view text;
};

struct TokenizerState;

// Text to token ids and back, as a Hugging Face tokenizer.json says. A cheap-to-copy handle to
// immutable state: safe to use from any thread. Text is UTF-8; each byte that is not becomes
// U+FFFD.
class Tokenizer {
 public:
  // Reads a tokenizer.json, or the one in a folder, with the tokenizer_config.json beside it if
  // there is one. BadFile if it is damaged; Unsupported, with the JSON path, for a part that fovea
  // does not know.
  static Tokenizer open(const std::filesystem::path& path);

  // Writes tokenizer.json and tokenizer_config.json into an existing folder, for fovea and Hugging
  // Face alike.
  void save(const std::filesystem::path& folder) const;

  // A character that the vocabulary lacks becomes the unknown token; without one it is left out, as
  // Hugging Face does.
  std::vector<int32_t> encode(std::string_view text,
                              SpecialTokens special = SpecialTokens::as_text) const;
  void encode(std::string_view text, std::vector<int32_t>& ids,
              SpecialTokens special = SpecialTokens::as_text) const;  // appends
  std::vector<Token> tokens(std::string_view text,
                            SpecialTokens special = SpecialTokens::as_text) const;

  // Special tokens appear by their names. InvalidArgument for an id outside the vocabulary.
  std::string decode(const std::vector<int32_t>& ids) const;

  // The distinct characters of the text that the vocabulary lacks, in the order of their first
  // appearance.
  std::vector<std::string> unknown(std::string_view text) const;

  int32_t size() const;  // of the vocabulary, special tokens included: ids are [0, size)
  std::string_view text_of(int32_t id) const;
  bool is_special(int32_t id) const;
  std::optional<int32_t> unknown_id() const;
  std::optional<int32_t> bos_id() const;
  std::optional<int32_t> eos_id() const;  // also what separates documents in training data
  uint64_t hash() const;                  // of everything that decides the ids

  explicit Tokenizer(std::shared_ptr<const TokenizerState> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<const TokenizerState> state_;
};

// Decodes ids one by one and hands out text as soon as its characters are complete.
class StreamingDecoder {
 public:
  explicit StreamingDecoder(Tokenizer tokenizer) : tokenizer_(std::move(tokenizer)) {}
  std::string add(int32_t id);  // the text that became complete; empty in the middle of a character
  std::string finish();         // what is left: U+FFFD for a character that never became complete

 private:
  Tokenizer tokenizer_;
  std::string pending_;  // the bytes of a character's beginning, at most 3
};

}  // namespace fovea

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
// split_special_tokens is set. guarded: parsed, but for those that Tokenizer::guarded() marked; for
// ids alone.
enum class SpecialTokens { as_text, parsed, guarded };

// One token and the bytes of the text that it stands for.
struct Token {
  int32_t id;
  std::string_view text;
};

// A stretch [begin, end) of a text.
struct Offsets {
  uint32_t begin, end;
  bool operator==(const Offsets&) const = default;
};

// The texts of tokens, in one block: most are shorter than a std::string.
class TokenTexts {
 public:
  size_t size() const { return ends_.size(); }
  size_t bytes() const { return bytes_.size(); }
  std::string_view operator[](size_t i) const {
    const size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(bytes_).substr(begin, ends_[i] - begin);
  }
  std::vector<std::string> list() const;

  void reserve(size_t tokens) { ends_.reserve(tokens); }
  void push_back(std::string_view text) {
    bytes_ += text;
    ends_.push_back(end());
  }
  // Those [begin, end) of another one.
  void append(const TokenTexts& other, size_t begin, size_t end);

 private:
  uint32_t end() const;  // InvalidArgument beyond 4 GiB

  std::string bytes_;
  std::vector<uint32_t> ends_;
};

// All that a model or a user may want to know of a text's tokens. The lists have one entry a token.
struct Encoding {
  std::vector<int32_t> ids;
  std::vector<int32_t> type_ids;        // which part of a pair; as the post-processor says
  TokenTexts tokens;                    // as the vocabulary writes them
  std::vector<Offsets> offsets;         // in characters; {0, 0} for tokens that were added
  std::vector<Offsets> byte_offsets;    // the same in bytes
  std::vector<uint8_t> special_mask;    // 1 for what the post-processor and padding added
  std::vector<uint8_t> attention_mask;  // 0 for padding
  std::vector<Encoding> overflowing;    // what truncation cut off, in stretches of that length
};

struct EncodingOptions {
  bool add_special_tokens = true;  // what the post-processor adds, such as [CLS] and [SEP]
  SpecialTokens special = SpecialTokens::as_text;
  bool truncate_and_pad = true;  // as tokenizer.json says
};

struct TokenizerState;

// Text to token ids and back, as a Hugging Face tokenizer.json says. A cheap-to-copy handle to
// immutable state: safe to use from any thread. Text is UTF-8; each byte that is not becomes
// U+FFFD.
class Tokenizer {
 public:
  // Reads a tokenizer.json, or the one in a folder, with the tokenizer_config.json beside it if
  // there is one. In a folder without it: vocab.txt, vocab.json with merges.txt, or a SentencePiece
  // model. Of a .gguf file: its vocabulary. BadFile if it is damaged; Unsupported, with the JSON
  // path or the key, for a part that fovea does not know.
  static Tokenizer open(const std::filesystem::path& path);

  // Writes tokenizer.json and tokenizer_config.json into an existing folder, for fovea and Hugging
  // Face alike.
  void save(const std::filesystem::path& folder) const;

  // The text's own tokens: none are added, and none are cut off. A character that the vocabulary
  // lacks becomes the unknown token; without one it is left out, as Hugging Face does.
  std::vector<int32_t> encode(std::string_view text,
                              SpecialTokens special = SpecialTokens::as_text) const;
  void encode(std::string_view text, std::vector<int32_t>& ids,
              SpecialTokens special = SpecialTokens::as_text) const;  // appends
  std::vector<Token> tokens(std::string_view text,
                            SpecialTokens special = SpecialTokens::as_text) const;

  // The text with a mark (U+FDD0, which is no character) in front of each special token that is
  // written in it, so that it stays text within one whose special tokens are parsed: what a user
  // wrote, in a conversation. encode(..., SpecialTokens::guarded) leaves the marks out.
  std::string guarded(std::string_view text) const;

  // What Hugging Face's encode() gives, for a text or a pair of texts. InvalidArgument where
  // truncation must cut more than there is.
  Encoding encoding(std::string_view text, const EncodingOptions& options = {}) const;
  Encoding encoding(std::string_view text, std::string_view pair,
                    const EncodingOptions& options = {}) const;
  // Several texts, padded to the longest one where the tokenizer pads at all.
  std::vector<Encoding> encodings(const std::vector<std::string>& texts,
                                  const EncodingOptions& options = {}) const;

  // Special tokens appear by their names, or are left out. InvalidArgument for an id outside the
  // vocabulary.
  std::string decode(const std::vector<int32_t>& ids, bool skip_special = false) const;

  // The distinct stretches of the text that the vocabulary lacks (characters, for most
  // vocabularies), in the order of their first appearance.
  std::vector<std::string> unknown(std::string_view text) const;

  int32_t size() const;  // of the vocabulary, special tokens included: ids are [0, size)
  std::string_view text_of(int32_t id) const;
  // The bytes that a token stands for in the midst of a text: not always whole characters.
  std::string bytes_of(int32_t id) const;
  std::optional<int32_t> id_of(std::string_view text) const;  // of a token by its text
  bool is_special(int32_t id) const;
  std::optional<int32_t> unknown_id() const;
  std::optional<int32_t> bos_id() const;
  std::optional<int32_t> eos_id() const;  // also what separates documents in training data
  uint64_t hash() const;                  // of everything that decides the ids

  explicit Tokenizer(std::shared_ptr<const TokenizerState> state) : state_(std::move(state)) {}
  const TokenizerState& state() const { return *state_; }  // what is inside, for the library itself

 private:
  friend class StreamingDecoder;
  std::shared_ptr<const TokenizerState> state_;
};

// The tokenizers of a translation model, one for the text that is read and one for the text that is
// written. They are the same but in a folder with source.spm, target.spm and vocab.json (and, if
// the languages have ids of their own, target_vocab.json); there Tokenizer::open gives the
// source's.
struct TranslationTokenizers {
  Tokenizer source, target;

  // The path and the errors are those of Tokenizer::open. save() of either writes the files of
  // both.
  static TranslationTokenizers open(const std::filesystem::path& path);
};

// Decodes ids one by one and hands out text as soon as it is certain: all of it together is what
// decode() makes of all ids.
class StreamingDecoder {
 public:
  explicit StreamingDecoder(Tokenizer tokenizer, bool skip_special = false);
  StreamingDecoder(StreamingDecoder&&) noexcept;
  StreamingDecoder& operator=(StreamingDecoder&&) noexcept;
  ~StreamingDecoder();

  std::string add(int32_t id);  // the text that became certain; often none in mid-character
  std::string finish();         // what is left: U+FFFD for a character that never became complete

 private:
  struct Stream;
  std::unique_ptr<Stream> stream_;
};

}  // namespace fovea

#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::text {

// How special tokens such as "<|endoftext|>" in a text are read. as_text: as plain characters, for
// text that users type. parsed: as special tokens, as in Hugging Face unless split_special_tokens
// is set. guarded: like parsed, except those marked by Tokenizer::guarded(); for encode() and
// tokens() only.
enum class SpecialTokens { as_text, parsed, guarded };

// A token and the bytes of the text that it covers: a view of the text that was tokenised.
struct Token {
  int32_t id;
  std::string_view text;
};

// A half-open range [begin, end) of a text, in bytes or in characters.
struct Offsets {
  uint32_t begin, end;
  bool operator==(const Offsets&) const = default;
};

// The texts of tokens in one buffer, which takes less memory than a std::string for each.
class TokenTexts {
 public:
  size_t size() const { return ends_.size(); }
  size_t bytes() const { return bytes_.size(); }
  // Returns text `i`; valid until the object is changed or destroyed.
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
  // Appends the texts [begin, end) of `other`.
  void append(const TokenTexts& other, size_t begin, size_t end);

 private:
  uint32_t end() const;  // throws InvalidArgument beyond 4 GiB

  std::string bytes_;
  std::vector<uint32_t> ends_;
};

// The complete encoding of a text. Each list except `overflowing` has one entry per token.
struct Encoding {
  std::vector<int32_t> ids;
  std::vector<int32_t> type_ids;      // index of the text in a pair, by the post-processor's rules
  TokenTexts tokens;                  // as written in the vocabulary
  std::vector<Offsets> offsets;       // in characters of the text; {0, 0} if special_mask is 1
  std::vector<Offsets> byte_offsets;  // in bytes of the text; {0, 0} if special_mask is 1
  std::vector<uint8_t> special_mask;  // 1 for tokens added by the post-processor or by padding
  std::vector<uint8_t> attention_mask;  // 0 for padding, else 1
  std::vector<Encoding> overflowing;    // the truncated tokens, in pieces of the maximum length
};

struct EncodingOptions {
  bool add_special_tokens = true;  // those of the post-processor, such as [CLS] and [SEP]
  SpecialTokens special = SpecialTokens::as_text;
  bool truncate_and_pad = true;  // as configured in tokenizer.json
};

struct TokenizerState;

// Converts text to token ids and back as a Hugging Face tokenizer.json specifies. Text is UTF-8;
// invalid bytes become U+FFFD. Immutable and cheap to copy; safe to use from any thread.
class Tokenizer {
 public:
  // Opens a tokenizer.json, a directory with one (and optionally tokenizer_config.json), or the
  // vocabulary of a .gguf file. A directory may also hold vocab.txt, vocab.json with merges.txt, or
  // a SentencePiece model instead. Throws BadFile if a file is damaged; throws Unsupported, with
  // the JSON path or the key, for a component that fovea does not support.
  static Tokenizer open(const std::filesystem::path& path);

  // Writes tokenizer.json and tokenizer_config.json, which Hugging Face also reads, into an
  // existing directory. For the tokenizers of a translation model, see TranslationTokenizers.
  // Throws Failed if a file cannot be written.
  void save(const std::filesystem::path& folder) const;

  // Encodes the text without adding special tokens and without truncation. A character that is not
  // in the vocabulary becomes the unknown token; if there is no unknown token, the character is
  // dropped, as in Hugging Face.
  std::vector<int32_t> encode(std::string_view text,
                              SpecialTokens special = SpecialTokens::as_text) const;
  void encode(std::string_view text, std::vector<int32_t>& ids,
              SpecialTokens special = SpecialTokens::as_text) const;  // appends to `ids`
  std::vector<Token> tokens(std::string_view text,
                            SpecialTokens special = SpecialTokens::as_text) const;

  // Returns the text with a mark (the noncharacter U+FDD0) before each special token in it.
  // encode() and tokens() with SpecialTokens::guarded then read the marked ones as plain text and
  // drop the marks; a token's text may contain marks, but does not begin with one. Use guarded()
  // for the user's part of a text whose other special tokens are parsed.
  std::string guarded(std::string_view text) const;

  // Returns what Hugging Face's encode() returns for a text or a pair of texts. Throws
  // InvalidArgument if truncation leaves no room for the special tokens or cannot remove enough
  // tokens.
  Encoding encoding(std::string_view text, const EncodingOptions& options = {}) const;
  Encoding encoding(std::string_view text, std::string_view pair,
                    const EncodingOptions& options = {}) const;
  // Encodes several texts. If the tokenizer pads, the encodings are padded to its fixed length, or
  // else to that of the longest one.
  std::vector<Encoding> encodings(const std::vector<std::string>& texts,
                                  const EncodingOptions& options = {}) const;

  // Returns the text of ids; special tokens are written by name, or skipped. Throws InvalidArgument
  // if an id is outside the vocabulary.
  std::string decode(const std::vector<int32_t>& ids, bool skip_special = false) const;

  // Returns the distinct parts of the text (usually characters) that the vocabulary lacks, in order
  // of first appearance.
  std::vector<std::string> unknown(std::string_view text) const;

  int32_t size() const;  // number of ids, special tokens included; ids are [0, size)
  // Returns a token as written in the vocabulary; valid as long as a copy of the tokenizer exists.
  // Throws InvalidArgument if `id` is outside the vocabulary.
  std::string_view text_of(int32_t id) const;
  // Returns the bytes that a token represents within a text; not always complete characters. Throws
  // InvalidArgument if `id` is outside the vocabulary.
  std::string bytes_of(int32_t id) const;
  std::optional<int32_t> id_of(std::string_view text) const;  // the id of the token with this text
  bool is_special(int32_t id) const;  // false if `id` is outside the vocabulary
  std::optional<int32_t> unknown_id() const;
  std::optional<int32_t> bos_id() const;
  std::optional<int32_t> eos_id() const;  // also the separator of documents in training data
  uint64_t hash() const;                  // a hash of everything that determines the ids

  explicit Tokenizer(std::shared_ptr<const TokenizerState> state) : state_(std::move(state)) {}
  const TokenizerState& state() const { return *state_; }  // internals, for the library only

 private:
  friend class StreamingDecoder;
  std::shared_ptr<const TokenizerState> state_;
};

// The tokenizers of a translation model, for source and target texts. They differ only in a
// directory with source.spm, target.spm and vocab.json (and target_vocab.json if the languages have
// separate ids). For such a directory, Tokenizer::open() returns the source tokenizer.
struct TranslationTokenizers {
  Tokenizer source, target;

  // Accepts the same paths and throws the same errors as Tokenizer::open(). save() of either
  // tokenizer writes the files of both.
  static TranslationTokenizers open(const std::filesystem::path& path);
};

// Decodes ids one at a time and returns text as soon as it is final. The concatenated pieces equal
// decode() of all ids. Keeps a copy of the tokenizer. For one thread at a time.
class StreamingDecoder {
 public:
  explicit StreamingDecoder(Tokenizer tokenizer, bool skip_special = false);
  StreamingDecoder(StreamingDecoder&&) noexcept;
  StreamingDecoder& operator=(StreamingDecoder&&) noexcept;
  ~StreamingDecoder();

  std::string add(int32_t id);  // returns text that became final; often empty within a character
  std::string finish();         // returns the rest; U+FFFD for an incomplete character

 private:
  struct Stream;
  std::unique_ptr<Stream> stream_;
};

}  // namespace fovea::text

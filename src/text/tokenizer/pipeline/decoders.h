#pragma once

// The decoders of tokenizer.json, which convert tokens to text. Each is a struct with the settings
// of its JSON object. All of them process a stream, so that decoding all tokens at once gives the
// same text as decoding them one by one.

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <variant>
#include <vector>

#include "tokenizer/pipeline/pre_tokenizers.h"
#include "unicode/growth_limit.h"
#include "unicode/pattern.h"

namespace fovea::text {

struct JoinWithSpaces {};  // the behaviour of Hugging Face without a decoder
struct ByteLevelDecoder {};
struct WordPieceDecoder {
  std::string prefix;
  bool cleanup;
};
struct MetaspaceDecoder {
  std::string replacement;
  bool prepended;
};
struct BpeDecoder {
  std::string suffix;
};
struct ByteFallback {};
struct Fuse {};
struct StripDecoder {
  std::string content;  // one character
  size_t start, stop;
};
struct ReplaceDecoder {
  Pattern pattern;
  std::string text;  // the text to find, if the pattern is plain text
  std::string content;
};
struct CtcDecoder {
  std::string pad, delimiter;
  bool cleanup;
};

using Decoder =
    std::variant<JoinWithSpaces, ByteLevelDecoder, WordPieceDecoder, MetaspaceDecoder, BpeDecoder,
                 ByteFallback, Fuse, StripDecoder, ReplaceDecoder, CtcDecoder>;
using Decoders = std::vector<Decoder>;  // applied in order; nested sequences are flattened

void replace_all(std::string& text, std::string_view old, std::string_view by);

// Passes tokens through a chain of decoders. After a decoder that joins its tokens into one text
// (Fuse, ByteLevel), the following decoders receive the parts of a single token.
class DecodingStream {
 public:
  explicit DecodingStream(const Decoders& decoders);
  DecodingStream(DecodingStream&&) noexcept;
  DecodingStream& operator=(DecodingStream&&) noexcept;
  ~DecodingStream();

  void add(std::string_view token, std::string& text);  // appends text that is final
  void finish(std::string& text);                       // appends the rest

  class Step;

 private:
  void push(size_t step, std::string&& token, std::string& text);

  std::unique_ptr<GrowthLimit> limit_;  // at a fixed address, since the steps refer to it
  std::vector<std::unique_ptr<Step>> steps_;
};

// Reads this part of tokenizer.json; null = missing. Throws Unsupported, naming the JSON path, if a
// part is unknown, and BadFile if it is damaged.
Decoders parse_decoders(const nlohmann::json& json, const std::string& path);

}  // namespace fovea::text

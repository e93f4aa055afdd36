#pragma once

// Converts a text, or a pair of texts, to the tokens that a model reads: the text's own tokens,
// truncated to a maximum, and the special tokens that the tokenizer adds. Inference, evaluation and
// training of labels, answers, rewards and vectors all use it, so that a model reads the same
// tokens in each of them: those that transformers makes with truncation=True.

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "embed/message_format.h"
#include "fovea/model/spec.h"
#include "fovea/text/tokenizer.h"

namespace fovea::infer {

struct TokenizedText {
  std::vector<int32_t> ids, types;  // types: empty if all are 0, or if the model has none
  int64_t cut = 0;                  // number of tokens that truncation removed

  // The type of each token.
  std::vector<int32_t> all_types() const {
    return types.empty() ? std::vector<int32_t>(ids.size()) : types;
  }
};
inline int64_t length_of(const TokenizedText& text) { return std::ssize(text.ids); }

// The settings that affect how a text becomes tokens.
struct TextSettings {
  std::optional<int64_t> max_tokens;  // unset: the model's context
  bool lower_case = false;
  bool types = true;       // token types distinguish the two texts of a pair
  bool keeps_end = false;  // truncation removes the beginning of a text
};

// Returns the settings in the tokenizer's own files: model_max_length, truncation_side,
// tokenizer_class and model_input_names. Throws BadFile, naming `file`, if one is malformed.
TextSettings text_settings_of(const text::Tokenizer& tokenizer,
                              const std::string& file = "tokenizer_config.json");

class TextFormat {
 public:
  // `most`: the most tokens, if the settings allow as many. Throws InvalidArgument if they leave no
  // room for text besides the special tokens. Without `special`, texts get no special tokens.
  TextFormat(text::Tokenizer tokenizer, int64_t most, const TextSettings& settings = {},
             bool special = true);
  // The format of a model with this tokenizer. `longest`: the most tokens; 0 = the model's context.
  static TextFormat of(text::Tokenizer tokenizer, const model::Spec& spec, int64_t longest = 0);
  // Opens the tokenizer and the text settings (see read_text_settings()) of `folder`.
  static TextFormat open(const std::string& folder, const model::Spec& spec);

  TokenizedText text(std::string_view text) const { return this->text("", text); }
  // Returns the tokens of a text after a prompt.
  TokenizedText text(const std::string& prompt, std::string_view text) const;
  // Whether texts are messages, which the chat template frames. Their tokens have no offsets, and
  // there are no pairs of them.
  bool reads_messages() const { return messages_.has_value(); }
  // From now on, reads queries and documents as messages.
  void read_messages(MessageFormat format) { messages_ = std::move(format); }
  void refuse_messages(const char* what) const;  // throws Unsupported if reads_messages()
  // Returns the byte range of each token of text(text) in `text`; special tokens have empty ranges.
  std::vector<text::Offsets> offsets(std::string_view text) const;
  // Returns all tokens of a text, without special tokens.
  std::vector<int32_t> own_ids(std::string_view text) const;
  // Returns the tokens of a pair of texts. If these exceed the limit, the longer text is truncated
  // first. The first text is given as its own_ids(), since it may be paired with thousands of
  // second texts.
  TokenizedText pair(std::span<const int32_t> first, std::string_view second) const;
  // Returns the tokens of messages with a query and a document, if it reads_messages().
  TokenizedText pair(const std::string& prompt, std::string_view query,
                     std::string_view document) const;

  // Returns the range of a text's own tokens, [first, second), that is kept of `count` tokens, and
  // the tokens of a text that is given as its own tokens.
  std::pair<size_t, size_t> kept(size_t count) const;
  TokenizedText truncated(std::span<const int32_t> text) const;

  // Return the tokens of texts, given as their own tokens, with special tokens; nothing is
  // truncated.
  TokenizedText framed(std::span<const int32_t> text) const { return framed(single_, {text}); }
  TokenizedText framed(std::span<const int32_t> first, std::span<const int32_t> second) const {
    return framed(pair_, {first, second});
  }

  int64_t most() const { return most_; }
  const text::Tokenizer& tokenizer() const { return tokenizer_; }
  // The numbers of special tokens before and after a text.
  int64_t leading() const { return static_cast<int64_t>(single_.added[0].size()); }
  int64_t trailing() const { return static_cast<int64_t>(single_.added[1].size()); }
  // The number of special tokens of a pair, and of those before its second text.
  int64_t added_to_pair() const { return pair_.size(); }
  int64_t before_second() const {
    return static_cast<int64_t>(pair_.added[0].size() + pair_.added[1].size());
  }

 private:
  struct Special {
    int32_t id, type;
  };
  // The special tokens that the tokenizer adds before, between and after the texts, and the token
  // types of the texts.
  struct Frame {
    std::vector<Special> added[3];
    int32_t types[2] = {0, 0};
    int64_t size() const;
    bool typed() const;
  };
  Frame frame_of(int texts) const;
  TokenizedText framed(const Frame& frame,
                       std::initializer_list<std::span<const int32_t>> texts) const;

  text::Tokenizer tokenizer_;
  TextSettings settings_;
  int64_t most_;
  Frame single_, pair_;
  std::optional<MessageFormat> messages_;
};

// Returns the id of a special token by its key in tokenizer_config.json, or by one of the usual
// names.
std::optional<int32_t> special_token(const text::Tokenizer& tokenizer, const char* key,
                                     std::initializer_list<const char*> names);

}  // namespace fovea::infer

#pragma once

// Models that read messages: a text is the content of a message of the user, or a query and a
// document are those of messages of these roles, and the chat template makes the text that is
// tokenised.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/text/chat.h"
#include "fovea/text/tokenizer.h"

namespace fovea::infer {

struct MessageText {
  const char* role;
  std::string_view text;
};

class MessageFormat {
 public:
  // Opens the chat template of `folder` if its sentence_FAMILY_config.json has the modality
  // "message". Throws Unsupported, naming the key, for settings of messages that are not known.
  static std::optional<MessageFormat> open(const std::string& folder,
                                           const text::Tokenizer& tokenizer);
  // Opens the format of queries and documents of a language model: that of open(), the chat
  // template of `folder`, or that of published rerankers whose files lack one; the first that shows
  // both. Throws Unsupported if none does.
  static MessageFormat open_for_pairs(const std::string& folder, const text::Tokenizer& tokenizer);

  // Returns the tokens of messages, at most `most`, and the number of those that are cut. A prompt
  // is the content of a message of the system before them. Tokens that the template adds after the
  // last content are kept: they replace the last ones of a text that is cut.
  std::vector<int32_t> ids(const text::Tokenizer& tokenizer, const std::string& prompt,
                           std::span<const MessageText> messages, int64_t most, int64_t& cut) const;

 private:
  std::vector<int32_t> rendered(const text::Tokenizer& tokenizer, const std::string& prompt,
                                std::span<const MessageText> messages) const;
  bool shows_pairs(const text::Tokenizer& tokenizer) const;

  std::optional<text::ModelChat> chat_;
  bool structured_ = false;         // whether the content is a list of parts
  bool generation_prompt_ = false;  // whether the beginning of an answer follows
  text::ChatValue variables_;       // of the template: an object
};

}  // namespace fovea::infer

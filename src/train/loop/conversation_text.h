#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "data/conversations.h"
#include "fovea/text/chat.h"
#include "fovea/text/tokenizer.h"
#include "fovea/train/train.h"

namespace fovea::train {

// Returns the template that `name` names: a built-in one or a file; for an empty name that of the
// model in `folder`, which may have none. Throws InvalidArgument if it does not fit the tokenizer.
std::optional<text::ModelChat> open_chat(const std::string& name, const std::string& folder,
                                         const text::Tokenizer& tokenizer);

// A text for training: its tokens, and which of them are trained, that is, predicted from those
// before them.
struct TrainedText {
  std::vector<int32_t> ids;
  std::vector<bool> trained;  // of the same size; empty: a text without marks
};

// How texts show the images of a conversation: `mark` is the token of an image, and text(image)
// takes the place of a mark that the template writes for an image.
struct ShownImages {
  std::string mark;
  std::function<std::string(const ImagePart& image)> text;
};

// Returns the label of each token: the next token if that is trained, else -1.
std::vector<int32_t> labels_of_text(const TrainedText& text);

// Converts conversations to the tokens that a chat template makes of them, as chat and serve do:
// without special tokens other than those of the template; special tokens in the messages are plain
// text.
class ConversationText {
 public:
  // `chat`: unset if the model has no template, which suits records of plain texts only.
  ConversationText(std::optional<text::ModelChat> chat, text::Tokenizer tokenizer,
                   TrainOn train_on);

  // Shows the images of conversations; without a call of it, they have none.
  void show(ShownImages images);

  // Returns the texts of a conversation.
  //   A template with {% generation %} blocks: one text, of which the tokens of the blocks are
  //     trained, as in transformers' apply_chat_template(return_assistant_tokens_mask=True).
  //   Any other template: an answer is what the rendered conversation up to it has in addition to
  //     the prompt before it, without white space after the token that ends it. If the template
  //     changes earlier messages when others follow, there is one text for each trained answer,
  //     which ends with this answer.
  //   No template: the prompt and the completion, surrounded by the tokenizer's special tokens, of
  //     which the completion and the end-of-text token are trained.
  // Throws the errors of the template, with the location of the record, InvalidArgument if the
  // template renders an answer and the prompt before it differently, and BadFile if it does not
  // show each image once.
  std::vector<TrainedText> texts(const Conversation& conversation) const;

  // Returns the prompt of the first trained answer, from which a model generates an answer; empty
  // if there is no such answer.
  std::vector<int32_t> prompt(const Conversation& conversation) const;

  // Returns the tokens between message `answer`, with the token of `ends` that ended it, and the
  // last message, an answer that is not yet written. Without a template they are those of the
  // contents. Throws the errors of texts().
  std::vector<int32_t> tokens_after(const Conversation& conversation, size_t answer,
                                    const std::vector<int32_t>& ends) const;

 private:
  struct Turn;
  std::vector<size_t> answers(const Conversation& conversation) const;
  text::ChatTemplate::Result render(const Conversation& conversation, size_t count,
                                    bool prompt) const;
  void insert_images(const Conversation& conversation, size_t count,
                     text::ChatTemplate::Result& rendered) const;
  TrainedText plain(const Conversation& conversation) const;
  TrainedText by_blocks(const Conversation& conversation, const std::vector<size_t>& answers,
                        const text::ChatTemplate::Result& whole) const;
  std::vector<TrainedText> by_turns(const Conversation& conversation,
                                    const std::vector<size_t>& answers) const;

  std::optional<text::ModelChat> chat_;
  text::Tokenizer tokenizer_;
  TrainOn train_on_;
  std::optional<ShownImages> images_;
  bool as_parts_ = false;  // the template takes contents that are lists of parts
};

}  // namespace fovea::train

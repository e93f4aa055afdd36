#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fovea/infer/image_prompt.h"
#include "fovea/text/chat.h"

namespace fovea::cli {

// The messages of a chat, and the prompt that is rendered from them.
class Conversation {
 public:
  struct Message {
    std::string role, content;
    std::vector<std::string> images = {};  // paths
  };

  // An empty `system` means no system message.
  Conversation(const model::Model& model, text::ChatFormat format, std::string system);

  void say(const char* role, std::string text);
  // Adds an image to the next question. Throws the errors of read_image(), and InvalidArgument if
  // the model reads no images.
  void attach(const std::string& path);
  void clear();  // removes all messages except the system message
  void set_system(std::string text);
  const std::string& system() const;  // empty = none
  int64_t messages() const { return std::ssize(messages_); }
  // Removes the last answer, if any, and with `question` also the last question. Returns false if
  // there is no question.
  bool take_back(bool question);

  struct Prompt {
    infer::ImagePrompt tokens;
    int64_t room = 0;     // maximum tokens of the answer
    int64_t dropped = 0;  // messages removed because the context is full
  };
  // Removes the oldest questions and answers if the context is full. Throws InvalidArgument if the
  // last question alone is too long.
  Prompt prompt();

  std::string as_json() const;  // [{"role": ..., "content": ...}, ...]
  std::string as_file() const { return "{\"messages\":" + as_json() + "}\n"; }
  // Replaces the messages by those of a file that as_file() wrote. Throws BadFile.
  void load(const std::string& path);

 private:
  bool has_system() const { return !messages_.empty() && messages_[0].role == "system"; }
  infer::ImagePrompt encoded() const;
  text::ChatValue values() const;

  const model::Model model_;
  text::ChatFormat format_;
  std::vector<Message> messages_;
  std::vector<std::string> attached_;  // images of the next question
};

}  // namespace fovea::cli

#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "fovea/chat.h"
#include "fovea/model.h"

namespace fovea::cli {

// What was said so far, and how the model reads it.
class Conversation {
 public:
  // `system` may be empty: no such message.
  Conversation(const Model& model, ChatFormat format, std::string system);

  void say(const char* role, std::string text);
  void clear();  // all but the system's message
  void set_system(std::string text);
  // Takes back what was answered last, and with `question` what was asked too; false where nothing
  // was.
  bool take_back(bool question);

  struct Prompt {
    std::vector<int32_t> ids;
    int64_t room = 0;     // tokens that the answer may have
    int64_t dropped = 0;  // messages that the context has no more room for
  };
  // The oldest questions and answers go where the context is full. InvalidArgument where the last
  // question alone is too long.
  Prompt prompt();

  std::string as_json() const;  // [{"role": ..., "content": ...}, ...]

 private:
  bool has_system() const { return !messages_.empty() && messages_[0]["role"] == "system"; }
  std::vector<int32_t> encoded() const;

  const Model model_;
  ChatFormat format_;
  nlohmann::ordered_json messages_ = nlohmann::ordered_json::array();
};

}  // namespace fovea::cli

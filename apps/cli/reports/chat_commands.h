#pragma once

#include <string>

#include "cli/reports/conversation.h"
#include "options/generation_options.h"

namespace fovea::cli {

// What the commands of a conversation, such as /set, read and change.
struct ChatState {
  Conversation conversation;
  GenerationOptions& generation;
  OptionTable& table;
  bool verbose = false;         // print the statistics of each answer
  std::string statistics = {};  // of the latest answer
};

enum class AfterCommand { read, answer, leave };  // what follows a command

// Runs a command, a line that begins with '/'. Prints its result, or what is wrong with it.
AfterCommand run_command(const std::string& typed, ChatState& chat);

}  // namespace fovea::cli

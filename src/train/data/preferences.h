#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/conversations.h"

namespace fovea::train {

// An answer that is preferred to another one, or an answer that is judged alone.
struct Preference {
  // The prompt and the chosen or the judged answer: the messages from first_trained on, or the
  // completion of the plain texts.
  Conversation chosen;
  std::optional<Conversation> rejected;  // the same prompt; unset = a judged answer
  bool desirable = true;                 // of a judged answer
  double margin = 0;                     // of a pair: how much better the chosen answer is
};

struct Preferences {
  std::vector<Conversations::File> files;
  std::vector<Preference> records;  // in the order of the files; `file` of `chosen` is their index
  uint64_t hash = 0;                // hash of the content and of the weights
};

// Reads files of JSON records. Each is one of these objects, recognised by its keys; others are
// ignored:
//   "chosen" and "rejected": two texts, or two lists of messages; with "prompt": the text or the
//     messages before them, else both begin with the prompt: the messages, or the characters, that
//     they have in common. A text "prompt" before lists is ignored if they begin with the prompt's
//     message. Optionally "margin", a number
//   "input", an object with "messages", "preferred_output" and "non_preferred_output", lists of
//     messages (the format of OpenAI's API)
//   "prompt", "completion" and "label", which is true or 1 if the answer is desirable, else false
//     or 0
//   "conversations" or "messages" instead of "prompt"; with "kto_tag", which is a label, their last
//     message is the completion
// and optionally "tools". Messages may be objects with "from" and "value", and an answer may be one
// message instead of a list. A file may be given as "path:weight". Throws BadFile, naming the line
// and the key, if a record has another form or a file has no record, and InvalidArgument if a
// weight is out of range.
Preferences read_preferences(const std::vector<std::string>& files);

enum class PreferenceForm { pairs, judged };
// Returns the form of the first line of the first file; unset if the line has another form or the
// file cannot be read.
std::optional<PreferenceForm> preference_form(const std::vector<std::string>& files);

// Returns the prompt of a conversation with the completion of another.
Conversation with_completion_of(const Conversation& prompt, const Conversation& other);

}  // namespace fovea::train

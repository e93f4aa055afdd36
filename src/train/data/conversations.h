#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "data/image_parts.h"
#include "data/text_pairs.h"
#include "data/weighted_order.h"

namespace fovea::train {

// One record of a file of conversations.
struct Conversation {
  struct Message {
    std::string json;                    // an object in one line; its keys keep their order
    bool answer = false;                 // whether its role is "assistant"
    bool trained = true;                 // false: an answer with "weight" 0, which is only context
    std::vector<ImagePart> images = {};  // of the parts {"type": "image"} of its content
  };
  std::vector<Message> messages;
  std::string tools;         // a JSON array of function schemas; empty = none
  size_t first_trained = 0;  // answers among the messages before this one are not trained
  // The texts of a record with a prompt and a completion, whose messages are a user's and an
  // assistant's.
  struct PlainTexts {
    std::string prompt, completion;
  };
  std::optional<PlainTexts> plain;
  size_t file = 0;       // index in Conversations::files
  std::string location;  // "path:line"
};

struct Conversations {
  struct File {
    std::string path;
    double weight = 1;  // how many times an epoch contains each of its records
  };
  std::vector<File> files;
  std::vector<Conversation> records;
  uint64_t hash = 0;  // hash of the content, without images, and of the weights
};

// Returns the group of each file; `file_of`: the index of the file of each item, in ascending
// order.
std::vector<WeightedGroup> groups_of(const std::vector<Conversations::File>& files,
                                     const std::vector<size_t>& file_of);
// Throws InvalidArgument, naming the field, if a file of validation data has a weight.
void check_unweighted(const std::vector<Conversations::File>& files, const char* field);

// Returns the path and the weight in "path:weight". A file or folder whose name has this form takes
// precedence. Throws InvalidArgument if the weight is out of range.
Conversations::File weighted_file(const std::string& given);

// Reads files of JSON records (see each_json_record()). Each is one of these objects, recognised by
// its keys; others are ignored:
//   "messages": objects with "role" and "content" and optionally "weight", 0 or 1, which is 0 for
//     an answer that is not trained; optionally "tools", a list or its JSON text
//   "prompt" and "completion": two texts, or two lists of messages, of which the answers in
//     "completion" are trained; optionally "tools"
//   "instruction" and "output": texts; optionally "input", which follows the instruction in a new
//     line, "system", and "history", a list of earlier questions with their answers
//   "conversations": objects with "from" (human, gpt, system, tool, or one of their other names, or
//     function_call, whose value is the JSON text of a call) and "value", or messages; optionally
//     "system" and "tools"
// With `images`, contents may have images (see image_part()), or a record has "image" or "images",
// which the marks "<image>" in its texts stand for; without, an image is an error. Paths are
// relative to the file. The images are not read.
// A file may be given as "path:weight", such as "chats.jsonl:0.5". Throws BadFile, naming the line
// and the key, if a line has another form or if there is no record, and InvalidArgument if a weight
// is out of range.
Conversations read_conversations(const std::vector<std::string>& files, bool images = false);

// Returns the messages of a list of objects with "from" and "value", or of messages. Throws
// BadFile, naming `key` of the record at `location`, if an element has another form.
nlohmann::ordered_json messages_of_turns(const nlohmann::ordered_json& list,
                                         const std::string& location, const std::string& key);

// Describes the first messages, for a plan: user "Hello", assistant "Hi" (not trained).
std::string summary_of(const Conversation& conversation);

// Read one record, an object at `location` ("path:line"). Throw BadFile as read_conversations()
// does. The messages under a key, and the tools:
Conversation read_messages(const nlohmann::ordered_json& record, const std::string& location,
                           const char* key);
// The prompt, and the completion that is under this key, as of "prompt" and "completion":
Conversation read_completion(const nlohmann::ordered_json& record, const std::string& location,
                             const char* completion, const char* prompt = "prompt");

// A prompt for reinforcement learning: a conversation whose last message is an answer that is not
// yet written, and the whole record as one line of JSON.
struct Prompt {
  Conversation conversation;
  std::string record;
};
struct Prompts {
  std::vector<Conversations::File> files;
  std::vector<Prompt> all;
  uint64_t hash = 0;  // hash of the records and of the weights
};
// Reads files of JSON lines with "prompt": a text, or a list of messages, or with "messages";
// optionally "tools". Other keys are for rewards. A file may be given as "path:weight". Throws
// BadFile, naming the line and the key, if a line has another form or if there is no record, and
// InvalidArgument if a weight is out of range.
Prompts read_prompts(const std::vector<std::string>& files);

// Reads conversations, as read_conversations() does, of one message of a user and its answer, both
// texts: the sources and targets of an encoder-decoder. Throws BadFile, naming the line, if a
// conversation has another form, and InvalidArgument, naming the field, if a file has a weight.
TextPairs read_pairs_of_messages(const std::vector<std::string>& files, const char* field);

// Returns whether the first line of the first file, which may have a weight, has a key of a
// conversation and no "text". False if the file cannot be read.
bool holds_conversations(const std::vector<std::string>& files);

}  // namespace fovea::train

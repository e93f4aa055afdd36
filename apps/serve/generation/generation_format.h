#pragma once

#include <string>
#include <vector>

#include "fovea/text/calls.h"
#include "serve/request/api_error.h"
#include "serve/routes/response_json.h"

namespace fovea::serve {

// A call of a function. `arguments` is the text of a JSON object; while it is generated, the
// beginning of it.
struct Call {
  std::string id, name, arguments;
};

// A generated message.
struct Message {
  std::string reasoning, content;
  std::vector<Call> calls = {};
};

// A new part of a choice in a stream. `extras` are members for its JSON object: "logprobs" first,
// then those that the request asks for; they belong to the tokens since the piece before.
struct TextPiece {
  size_t choice;
  text::MessagePart::Kind kind;
  std::string text;  // reasoning, content or more of a call's arguments
  size_t call_index = 0;
  const Call* call = nullptr;  // of a part of a call: the call so far
  bool begins_call = false;
  Members extras = {};
};

// The end of a choice, with its whole message. In a stream, the pieces before had all of the
// message, and `extras` belong to the tokens since the last piece.
struct ChoiceEnd {
  size_t choice;
  Message message;
  infer::FinishReason finish;
  std::string stop = {};  // the stop string that ended it
  Members extras = {};
  TokenCounts counts = {};
  Json timings = {};
};

struct GenerationTotals {
  TokenCounts counts;
  Json timings;
};

// How a protocol writes generated texts; a protocol is one implementation. The functions return
// what is sent, and are called on the engine's thread, in the order of the events.
class GenerationFormat {
 public:
  // `content_type` is that of streams.
  GenerationFormat(LogprobStyle logprobs, ErrorShape errors, const char* content_type)
      : logprob_style(logprobs), error_shape(errors), stream_type(content_type) {}
  virtual ~GenerationFormat() = default;
  GenerationFormat(const GenerationFormat&) = delete;
  GenerationFormat& operator=(const GenerationFormat&) = delete;

  // Parts of a stream. `prompt` has the log-probabilities of an echoed prompt.
  virtual std::string begin_choice(size_t choice, LogprobList& prompt) = 0;
  virtual std::string piece(const TextPiece& piece) = 0;
  virtual std::string end_choice(ChoiceEnd end) = 0;
  virtual std::string end_stream(const GenerationTotals& totals) = 0;
  virtual std::string stream_error(const ApiError& error) = 0;

  // A response in one body: its choices, which are kept until all are complete, then the body.
  virtual std::string whole_choice(ChoiceEnd end) = 0;
  virtual std::string whole(std::vector<std::string> choices, const GenerationTotals& totals) = 0;

  const LogprobStyle logprob_style;
  const ErrorShape error_shape;
  const char* const stream_type;
};

}  // namespace fovea::serve

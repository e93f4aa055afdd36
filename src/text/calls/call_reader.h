#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ordered_json.h"
#include "calls/call_formats.h"

namespace fovea::text {

// The marks around a text whose format has CDATA sections.
constexpr std::string_view kCdata = "<![CDATA[", kCdataEnd = "]]>";

// A function that may be called, with what decides how its arguments are read.
struct Signature {
  std::string name;
  nlohmann::ordered_json parameters;  // the JSON Schema of an object

  // Returns whether the argument is a text only, so that it is written without quotes.
  bool takes_text(const std::string& argument) const;
};
// Returns the schema of the arguments; without a type, it is that of an object.
nlohmann::ordered_json parameters_of(const CallableFunction& function);
std::vector<Signature> signatures_of(const std::vector<CallableFunction>& functions);

// Matches a text of a format at a position of a text that may continue.
struct Matched {
  enum Result { yes, no, more } result;  // more: what is there is the beginning of it
  size_t end = 0;                        // after it
};
Matched match(std::string_view text, size_t at, std::string_view part);

// Reads a section of calls in one format while it is generated.
class CallReader {
 public:
  CallReader(const CallFormat& format, const std::vector<Signature>& functions)
      : format_(&format), functions_(&functions) {}

  // Reads on in `text`, the section so far; `ended`: nothing follows. Appends the new parts of
  // calls.
  void read(std::string_view text, bool ended, std::vector<MessagePart>& parts);

  bool failed() const { return phase_ == Phase::failed; }  // the rest is no call
  bool done() const { return phase_ == Phase::done; }
  size_t end() const { return at_; }       // in the text: after what was read
  size_t calls() const { return calls_; }  // the number of complete calls
  bool in_call() const { return phase_ == Phase::arguments; }

 private:
  enum class Phase { begin, call, arguments, call_end, next, done, failed };
  // Reads what the phase expects. Returns false if the text ends before it.
  bool step(std::string_view text, bool ended, std::vector<MessagePart>& parts);
  bool expect(std::string_view text, std::string_view part, Phase next);
  bool skip_members(std::string_view text, bool ended);
  bool name(std::string_view text);
  bool arguments(std::string_view text, bool ended, std::vector<MessagePart>& parts);
  bool json_arguments(std::string_view text, std::vector<MessagePart>& parts);
  bool tagged_argument(std::string_view text, std::vector<MessagePart>& parts);
  bool keyword_arguments(std::string_view text, bool ended, std::vector<MessagePart>& parts);
  bool brace_arguments(std::string_view text, bool ended, std::vector<MessagePart>& parts);
  bool next(std::string_view text, bool ended);
  void add(std::string json, std::vector<MessagePart>& parts);
  void add_argument(const std::string& name, const nlohmann::ordered_json& value,
                    std::vector<MessagePart>& parts);
  void end_arguments(std::vector<MessagePart>& parts);
  bool worth_reading(std::string_view text, bool ended);

  const CallFormat* format_;
  const std::vector<Signature>* functions_;
  Phase phase_ = Phase::begin;
  size_t at_ = 0, calls_ = 0;
  const Signature* function_ = nullptr;  // of the current call
  bool begun_ = false;                   // a part of the current call has been passed on
  bool any_argument_ = false;
  // Of arguments in JSON: the scan of their text.
  size_t scanned_ = 0;
  int depth_ = 0;
  bool in_string_ = false, escaped_ = false;
  size_t worth_ = 0;  // the length from which on it is worth to read the arguments again
};

}  // namespace fovea::text

#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "fovea/core/error.h"

namespace fovea {

// The maximum depth of nesting; it keeps recursive functions from overflowing the stack.
constexpr int kMostDepth = 64;
// The maximum number of keys in all objects of a text; later steps process them one by one.
constexpr size_t kMostKeys = 100'000;

// Reports why a text was rejected, in one line that begins with the name of the text.
class JsonFault : public Error {
 public:
  JsonFault(const std::string& message, const char* code)
      : Error(ErrorKind::InvalidArgument, message), code_(code) {}
  const char* code() const { return code_; }  // invalid_json, too_deep or too_many_keys

 private:
  const char* code_;
};

// Parses JSON from clients, models and files; objects keep the order of their keys. Takes time
// proportional to the length of the text, whatever its keys are. Throws JsonFault for invalid JSON,
// duplicate keys and exceeded limits.
nlohmann::ordered_json parse_ordered_json(std::string_view text, const std::string& name);

// Returns the value in one line, without a newline. Invalid UTF-8, which the tokens of a vocabulary
// may contain, becomes U+FFFD.
std::string json_line(const nlohmann::ordered_json& value);

}  // namespace fovea

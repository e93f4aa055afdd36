#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "fovea/error.h"

namespace fovea::serve {

using Json = nlohmann::ordered_json;

// JSON of at most this depth, so that no later step over it can run out of stack.
constexpr int kMostDepth = 64;
// Keys of all objects of a text together. Later steps go through them one by one.
constexpr size_t kMostKeys = 100'000;

// Why a text was not taken: one line that begins with its name.
class JsonFault : public Error {
 public:
  JsonFault(const std::string& message, const char* code)
      : Error(ErrorKind::InvalidArgument, message), code_(code) {}
  const char* code() const { return code_; }  // invalid_json, too_deep or too_many_keys

 private:
  const char* code_;
};

// The one reader of JSON from outside: from clients, models and files. It takes time in proportion
// to the text, whatever the keys are. Throws JsonFault for what is no JSON, for duplicate keys and
// for what is over the limits.
Json parse_json(std::string_view text, const std::string& name);

}  // namespace fovea::serve

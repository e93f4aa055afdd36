#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "fovea/error.h"

namespace fovea {

// JSON whose objects keep the order of their keys, from clients, models and files: of at most this
// depth, so that no later step over it can run out of stack.
constexpr int kMostDepth = 64;
// Keys of all objects of a text together. Later steps go through them one by one.
constexpr size_t kMostKeys = 100'000;

// Why a text was refused: one line that begins with its name.
class JsonFault : public Error {
 public:
  JsonFault(const std::string& message, const char* code)
      : Error(ErrorKind::InvalidArgument, message), code_(code) {}
  const char* code() const { return code_; }  // invalid_json, too_deep or too_many_keys

 private:
  const char* code_;
};

// Takes time in proportion to the text, whatever the keys are. Throws JsonFault for what is not
// JSON, for duplicate keys and for what is over the limits.
nlohmann::ordered_json parse_ordered_json(std::string_view text, const std::string& name);

// The value in one line, without its end. Bytes that are not UTF-8, as a vocabulary's token may
// have them, become U+FFFD.
std::string json_line(const nlohmann::ordered_json& value);

}  // namespace fovea

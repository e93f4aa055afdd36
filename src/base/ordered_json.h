#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "fovea/error.h"

namespace fovea {

// JSON from clients, models and files whose objects keep the order of their keys. The depth is
// limited, so that later recursive steps cannot overflow the stack.
constexpr int kMostDepth = 64;
// The limit of the keys of all objects of a text together; later steps process them one by one.
constexpr size_t kMostKeys = 100'000;

// Why a text was rejected: one line that begins with its name.
class JsonFault : public Error {
 public:
  JsonFault(const std::string& message, const char* code)
      : Error(ErrorKind::InvalidArgument, message), code_(code) {}
  const char* code() const { return code_; }  // invalid_json, too_deep or too_many_keys

 private:
  const char* code_;
};

// Takes time proportional to the text for any keys. Throws JsonFault for invalid JSON, duplicate
// keys and exceeded limits.
nlohmann::ordered_json parse_ordered_json(std::string_view text, const std::string& name);

// The value in one line, without a newline. Bytes that are not UTF-8, which a vocabulary's token
// may contain, become U+FFFD.
std::string json_line(const nlohmann::ordered_json& value);

}  // namespace fovea

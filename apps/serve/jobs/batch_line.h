#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "http/http.h"

namespace fovea::serve {

// The routes whose requests a file may contain.
const std::vector<std::string>& batch_paths();

// A line of a file of requests in the format of OpenAI's Batch API: {"custom_id", "method", "url",
// "body"}.
struct BatchLine {
  std::string custom_id;
  std::string path;   // the route, such as "/v1/chat/completions"
  std::string body;   // JSON
  std::string error;  // why the line is invalid, with its name; empty = valid
};

// Reads a line. `name` names it in errors: "FILE: line 7". With `bare`, it may also be a body that
// has "messages" or "prompt". A line without an id has its number as id.
BatchLine read_batch_line(std::string_view text, const std::string& name, size_t number, bool bare);

// A line of the output, in the format of OpenAI's Batch API.
struct BatchAnswer {
  std::string json;    // without a line break
  int64_t tokens = 0;  // generated ones
  std::string error;   // in one line; empty = none
};
BatchAnswer batch_answer(const BatchLine& line, const std::string& id,
                         const http::Response& response);
BatchAnswer batch_error(const BatchLine& line, const std::string& id);

}  // namespace fovea::serve

#pragma once

#include <exception>
#include <string>

#include "fovea/core/error.h"
#include "http/http.h"
#include "serve/request/request.h"

namespace fovea::serve {

// The error format of a route.
enum class ErrorShape {
  openai,  // {"error": {"message", "type", "param", "code"}}
  // text-embeddings-inference: {"error", "error_type"}, with 422 for validation errors
  embeddings,
  translate,  // LibreTranslate and Ollama: {"error"}
  anthropic,  // {"type": "error", "error": {"type", "message"}}
};

http::Response error_response(ErrorShape shape, const ApiError& error);
// The format of the server's own errors on routes of this shape.
http::ErrorFormat error_format(ErrorShape shape);
// OpenAI's error object, which also ends a started stream. The status determines the type; an empty
// param or code becomes null.
std::string openai_error(const ApiError& error);
std::string anthropic_error(const ApiError& error);
// Converts an exception of the API or of the library to the client's error.
ApiError api_error(const std::exception_ptr& thrown);
int status_of(ErrorKind kind);
// Returns an error without the path of a folder of the server, which clients must not know.
Error without_folder(const Error& error, const std::string& folder);
// Status 429; error_response adds Retry-After.
ApiError too_busy();
ApiError unknown_model(const std::string& name);

// Throws ApiError 400 for a value of a request.
[[noreturn]] void refuse_value(const std::string& field, const std::string& expected,
                               const char* code = "invalid_value");
// Returns a member of an object, which must be a text. `location`: of the object, for the error.
std::string member_text(const Json& object, const char* key, const std::string& location);

}  // namespace fovea::serve

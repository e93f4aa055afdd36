#include "serve/request/api_error.h"
#include "base/ordered_json.h"

#include <fmt/format.h>

#include <new>

#include "base/stop.h"
#include "fovea/core/excerpt.h"
#include "fovea/core/options.h"
#include "http/request_head.h"

namespace fovea::serve {
namespace {

// Error types and statuses of text-embeddings-inference.
http::Response embeddings_response(const ApiError& error) {
  const auto response = [&](int status, const char* type) {
    return http::Response{status,
                          "application/json",
                          {},
                          json_line({{"error", error.message}, {"error_type", type}})};
  };
  if (error.code == "empty") return response(400, "Empty");
  if (error.code == "wrong_model" || error.status == 500) return response(424, "Backend");
  if (error.status == 429) return response(429, "Overloaded");
  if (error.status == 503) return response(503, "Unhealthy");
  return response(error.status == 400 ? 422 : error.status, "Validation");
}

std::string_view type_of(int status) {
  switch (status) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 404: return "not_found_error";
    case 429: return "rate_limit_error";
    default: return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

}  // namespace

std::string openai_error(const ApiError& error) {
  const Json object = {{"message", error.message},
                       {"type", type_of(error.status)},
                       {"param", text_or_null(error.param)},
                       {"code", text_or_null(error.code)}};
  return json_line(Json{{"error", object}});
}

std::string anthropic_error(const ApiError& error) {
  const char* const type = error.status == 413   ? "request_too_large"
                           : error.status == 503 ? "overloaded_error"
                           : error.status >= 500 ? "api_error"
                                                 : type_of(error.status).data();
  return json_line({{"type", "error"}, {"error", {{"type", type}, {"message", error.message}}}});
}

http::ErrorFormat error_format(ErrorShape shape) {
  return [shape](const http::Refusal& refusal) {
    return error_response(shape, {refusal.status, refusal.message, "", refusal.code});
  };
}

int status_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::InvalidArgument:
    case ErrorKind::Unsupported: return 400;
    case ErrorKind::OutOfMemory: return 503;
    default: return 500;
  }
}

Error without_folder(const Error& error, const std::string& folder) {
  std::string message = error.what();
  const std::string prefix = folder.ends_with('/') ? folder : folder + "/";
  for (size_t at = message.find(prefix); at != message.npos; at = message.find(prefix, at))
    message.erase(at, prefix.size());
  return {error.kind(), message};
}

http::Response error_response(ErrorShape shape, const ApiError& error) {
  http::Response response;
  switch (shape) {
    case ErrorShape::openai:
      response.status = error.status;
      response.body = openai_error(error);
      break;
    case ErrorShape::embeddings: response = embeddings_response(error); break;
    case ErrorShape::anthropic:
      response.status = error.status;
      response.body = anthropic_error(error);
      break;
    case ErrorShape::translate:
      response.status = error.status;
      response.body = json_line({{"error", error.message}});
      break;
  }
  if (response.status == 429) response.headers.emplace_back("Retry-After", "1");
  return response;
}

ApiError api_error(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const ApiError& error) {
    return error;
  } catch (const http::Refusal& refusal) {
    return {refusal.status, refusal.message, "", ""};
  } catch (const Stopped&) {
    return {503, "the request was stopped before its end", "", "stopped"};
  } catch (const FieldError& error) {
    return {status_of(error.kind()), error.what(), error.field(), ""};
  } catch (const Error& error) {
    return {status_of(error.kind()), error.what(), "", ""};
  } catch (const std::bad_alloc&) {
    return {503, "out of memory for this request", "", ""};
  } catch (const std::exception& error) {  // a bug; the server continues
    return {500, error.what(), "", ""};
  }
}

ApiError unknown_model(const std::string& name) {
  constexpr size_t kMostName = 100;
  return {404,
          fmt::format("model: \"{}\" was not found; GET /v1/models lists the models",
                      excerpt(name, kMostName)),
          "model", "model_not_found"};
}

ApiError too_busy() {
  return {429, "too many requests are waiting; try again", "", "rate_limit_exceeded"};
}

void refuse_value(const std::string& field, const std::string& expected, const char* code) {
  throw ApiError{400, field + ": expected " + expected, field, code};
}

std::string member_text(const Json& object, const char* key, const std::string& location) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) refuse_value(location + "." + key, "a text");
  return *found;
}

}  // namespace fovea::serve

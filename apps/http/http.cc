#include "http/http.h"
#include "base/ordered_json.h"

#include <nlohmann/json.hpp>

namespace fovea::http {
namespace {

using Json = nlohmann::ordered_json;

std::string_view type_of(int status) {
  switch (status) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 404: return "not_found_error";
    case 429: return "rate_limit_error";
    default: return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

Json text_or_null(std::string_view text) { return text.empty() ? Json() : Json(text); }

}  // namespace

std::string_view Request::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return {};
}

std::string error_object(int status, std::string_view message, std::string_view param,
                         std::string_view code) {
  const Json error = {{"message", message},
                      {"type", type_of(status)},
                      {"param", text_or_null(param)},
                      {"code", text_or_null(code)}};
  return json_line(Json{{"error", error}});
}

Response error_response(int status, std::string_view message, std::string_view param,
                        std::string_view code) {
  return {status, "application/json", {}, error_object(status, message, param, code)};
}

std::string_view reason_of(int status) {
  switch (status) {
    case 200: return "OK";
    case 204: return "No Content";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 415: return "Unsupported Media Type";
    case 413: return "Content Too Large";
    case 414: return "URI Too Long";
    case 417: return "Expectation Failed";
    case 422: return "Unprocessable Content";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 503: return "Service Unavailable";
    case 505: return "HTTP Version Not Supported";
    default: return "Status";
  }
}

}  // namespace fovea::http

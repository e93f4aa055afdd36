#include "serve/jobs/batch_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "fovea/core/excerpt.h"
#include "serve/request/request.h"
#include "serve/routes/response_json.h"

namespace fovea::serve {
namespace {

constexpr size_t kMostId = 512;  // bytes of a custom_id

// What is wrong with a line: one line of text.
struct Fault {
  std::string message;
};

[[noreturn]] void refuse(const std::string& field, const std::string& expected) {
  throw Fault{field + ": expected " + expected};
}

// Returns the id; null and a missing one leave `number`.
std::string id_of(const Json& line, size_t number) {
  const Json id = line.value("custom_id", Json());
  if (id.is_null()) return std::to_string(number);
  if (!id.is_string() || id.get_ref<const std::string&>().empty() ||
      id.get_ref<const std::string&>().size() > kMostId)
    refuse("custom_id", fmt::format("a text of 1 to {} bytes", kMostId));
  return id;
}

// Returns the route of a line, and its body.
std::pair<std::string, Json> request_of(const Json& line, bool bare) {
  const bool wrapped = line.contains("url") || line.contains("body") || line.contains("method");
  if (bare && !wrapped && line.contains("messages")) return {ChatRequest::kPath, line};
  if (bare && !wrapped && line.contains("prompt")) return {CompletionRequest::kPath, line};
  if (!wrapped)
    throw Fault{bare ? "expected url and body, or a body with messages or prompt"
                     : "expected custom_id, method, url and body"};
  if (!bare && line.value("custom_id", Json()).is_null()) refuse("custom_id", "a text");
  const Json method = line.value("method", Json()), url = line.value("url", Json());
  if (method != "POST" && !(bare && method.is_null())) refuse("method", "POST");
  if (!url.is_string() || std::ranges::count(batch_paths(), url.get<std::string>()) == 0)
    refuse("url", fmt::format("{}", fmt::join(batch_paths(), ", ")));
  const Json body = line.value("body", Json());
  if (!body.is_object()) refuse("body", "an object");
  return {url, body};
}

void read_into(BatchLine& read, std::string_view text, const std::string& name, size_t number,
               bool bare) {
  const Json line = parse_ordered_json(text, name);
  if (!line.is_object()) throw Fault{"expected a JSON object"};
  read.custom_id = id_of(line, number);
  auto [path, body] = request_of(line, bare);
  read.path = std::move(path);
  body.erase("custom_id");  // of a bare body
  if (const auto stream = body.find("stream");
      stream != body.end() && !stream->is_null() && *stream != false)
    refuse("stream", "false: each line has its whole response");
  read.body = json_line(body);
}

// The number of generated tokens in a response of any of the routes.
int64_t tokens_in(const Json& body) {
  const Json usage = body.is_object() ? body.value("usage", Json()) : Json();
  if (!usage.is_object()) return 0;
  for (const char* field : {"completion_tokens", "output_tokens"})
    if (const Json count = usage.value(field, Json()); count.is_number_integer()) return count;
  return 0;
}

std::string message_in(const Json& body) {
  const Json error = body.is_object() ? body.value("error", Json()) : Json();
  const Json message = error.is_object() ? error.value("message", Json()) : error;
  return message.is_string() ? message.get<std::string>() : "the request failed";
}

}  // namespace

const std::vector<std::string>& batch_paths() {
  static const std::vector<std::string> paths = {ChatRequest::kPath, CompletionRequest::kPath,
                                                 ResponsesRequest::kPath, AnthropicRequest::kPath,
                                                 OpenAIEmbedRequest::kPath};
  return paths;
}

BatchLine read_batch_line(std::string_view text, const std::string& name, size_t number,
                          bool bare) {
  BatchLine read;
  read.custom_id = std::to_string(number);
  try {
    read_into(read, text, name, number, bare);
  } catch (const Fault& fault) {
    read.error = name + ": " + fault.message;
  } catch (const JsonFault& fault) {
    read.error = fault.what();
  }
  return read;
}

BatchAnswer batch_answer(const BatchLine& line, const std::string& id,
                         const http::Response& response) {
  BatchAnswer answer;
  std::string_view body = response.body;
  while (body.ends_with('\n')) body.remove_suffix(1);
  const Json json = Json::parse(body, nullptr, false);
  const bool is_json = !json.is_discarded() && body.find('\n') == body.npos;
  const std::string part =
      json_object({{"status_code", response.status}, {"request_id", id}},
                  {{"body", is_json ? std::string(body) : json_line(Json(body))}});
  answer.json = json_object({{"id", id}, {"custom_id", line.custom_id}},
                            {{"response", part}, {"error", "null"}});
  if (response.status == 200)
    answer.tokens = tokens_in(json);
  else
    answer.error = excerpt(message_in(json), 300);
  return answer;
}

BatchAnswer batch_error(const BatchLine& line, const std::string& id) {
  const Json error = {{"code", "invalid_line"}, {"message", line.error}};
  return {json_line(
              {{"id", id}, {"custom_id", line.custom_id}, {"response", nullptr}, {"error", error}}),
          0, line.error};
}

}  // namespace fovea::serve

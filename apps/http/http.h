#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fovea::http {

struct Request {
  std::string method, path;  // the path decoded, without the query
  std::map<std::string, std::string> query;
  std::vector<std::pair<std::string, std::string>> headers;  // names in small letters
  std::string body;
  std::string id;    // X-Request-Id: the client's own if it is harmless, else a new one
  std::string rest;  // what stands for the last part of a route such as /v1/models/{id}
  int minor = 1;     // of HTTP/1.x

  std::string_view header(std::string_view name) const;  // empty where there is none
};

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers;  // beside those of the transport
  std::string body;
};

// {"error": {"message", "type", "param", "code"}}, as OpenAI's clients read it. The type follows
// from the status; empty param and code are null.
Response error_response(int status, std::string_view message, std::string_view param = {},
                        std::string_view code = {});
// The error object alone: what ends a stream that has begun.
std::string error_object(int status, std::string_view message, std::string_view param = {},
                         std::string_view code = {});
std::string_view reason_of(int status);  // "Not Found"

// A handler answers through this, at once or later, from any thread. It answers 500 if it is
// released without an answer. Holders must release it before the server is destroyed.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual void send(Response response) = 0;  // the whole answer

  // Or piece by piece: begin, write, finish. The body of `head` is the first piece.
  virtual void begin(Response head) = 0;
  virtual bool write(std::string_view piece) = 0;  // false: the client has gone
  virtual void finish() = 0;

  // Closes the connection, so that the client sees that the answer is not whole.
  virtual void abort() = 0;

  // The client closed its side, or reads too slowly.
  virtual bool gone() const = 0;
  // Called once, on the server's thread, when the client goes: do little in it.
  virtual void on_gone(std::function<void()> call) = 0;
};

using Handler = std::function<void(Request request, std::shared_ptr<Exchange> exchange)>;

}  // namespace fovea::http

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fovea::http {

struct Request {
  std::string method, path;  // the decoded path, without the query
  std::map<std::string, std::string> query;
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::string body;
  std::string id;         // X-Request-Id: the client's id if it is harmless, otherwise a new one
  std::string rest;       // the value in braces of a route such as /v1/models/{id}
  std::string authority;  // of a target in absolute form; empty: the target is a path
  int minor = 1;          // of HTTP/1.x

  std::string_view header(std::string_view name) const;  // empty if the header is missing
};

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers;  // besides those of the transport
  std::string body;
};

// Why the server itself refuses a request. It can be thrown.
struct Refusal {
  int status = 400;
  std::string message;
  const char* code = "";                                          // names the reason; empty = none
  std::vector<std::pair<std::string, std::string>> headers = {};  // of the response
};

// Formats a refusal as the clients of a protocol expect it.
using ErrorFormat = std::function<Response(const Refusal& refusal)>;
Response plain_error(const Refusal& refusal);  // {"error": {"message"}}

std::string_view reason_of(int status);  // "Not Found"

// A handler responds through an Exchange, immediately or later, from any thread. Releasing it
// without a response sends status 500; releasing it within a response in pieces closes the
// connection. Owners must release it before the server is destroyed.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual void send(Response response) = 0;  // the entire response

  // Alternatively, begin, write and finish send a response in pieces. The body of `head` is the
  // first piece.
  virtual void begin(Response head) = 0;
  virtual bool write(std::string_view piece) = 0;  // returns false if the response was cut short
  virtual void finish() = 0;

  // Closes the connection, so that the client notices that the response is incomplete.
  virtual void abort() = 0;

  // Returns whether the rest of the response is not needed: the client has disconnected or reads
  // too slowly, or the time limit of the response was exceeded.
  virtual bool gone() const = 0;
  // Counts `bytes` as memory that the server holds for this request as long as the Exchange exists.
  // Returns false if the requests of the server hold too much; then refuse this one with 503.
  virtual bool hold(int64_t bytes) = 0;
  // Sets a function that is called once, on the server's thread, when gone() becomes true; if it is
  // already true, the function is called immediately. It must return quickly.
  virtual void on_gone(std::function<void()> call) = 0;
};

using Handler = std::function<void(Request request, std::shared_ptr<Exchange> exchange)>;

}  // namespace fovea::http

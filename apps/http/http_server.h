#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "http/access.h"
#include "http/request_head.h"
#include "http/router.h"

namespace fovea::http {

// Maximum times; the connection is closed if one is exceeded, except `response`.
struct Times {
  // To receive a head: from the start of the connection to its first byte, and from there to its
  // end.
  std::chrono::milliseconds head{10'000};
  std::chrono::milliseconds body{30'000};   // to receive a body
  std::chrono::milliseconds write{30'000};  // for each piece that the client must read
  std::chrono::milliseconds idle{60'000};   // between two requests
  // From the end of a request to the start of its response. If it is exceeded, the response is 503
  // and the work is cancelled. 0 = unlimited.
  std::chrono::milliseconds response{0};
};

// The record of a request in the log. It contains the path, but not the query or the body.
struct AccessRecord {
  std::string method, path, id;
  std::string route;  // the route's path, such as /v1/models/{id}; empty if none matched
  int status = 0;
  size_t bytes = 0;
  double seconds = 0;
  bool whole = true;  // false: the connection was closed before the end of the response
};

struct ServerOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 8080;  // 0 = any free port
  std::string socket;    // path of a Unix socket to listen on instead; empty = none
  Access access;
  Limits limits;
  Times times;
  size_t connections = 512;  // 64 further ones receive 503, the rest wait
  size_t handlers = 2;       // threads that run handlers
  size_t waiting = 256;      // requests that wait for such a thread; further ones receive 503
  // Memory that all requests may hold together: bodies, and responses that are not sent yet.
  // Further requests receive 503.
  int64_t held = int64_t{256} << 20;
  ErrorFormat format_error = plain_error;             // of the server's own errors
  std::function<void(const AccessRecord&)> log = {};  // called on the server's thread
};

// An HTTP/1.1 server for a few routes. One thread, the server's, does all reading and writing and
// runs the handlers of routes with `at_once`. Other handlers run on the threads of a pool. Handlers
// may respond later, from any thread.
class Server {
 public:
  // Binds and listens; throws InvalidArgument if the address, the port or the socket is not
  // available.
  Server(Router router, ServerOptions options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  uint16_t port() const;  // 0 = a Unix socket
  void start();
  // From now on, requests find the routes of `router`; those that run keep theirs. Safe to call
  // from any thread.
  void replace_routes(Router router);
  // Accepts no more connections, waits at most `grace` for running responses, and closes all
  // connections.
  void stop(std::chrono::milliseconds grace);

 private:
  struct Core;
  std::unique_ptr<Core> core_;
};

}  // namespace fovea::http

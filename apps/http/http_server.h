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

struct Times {
  std::chrono::milliseconds head{10'000};  // from the first byte, and for a new connection's first
  std::chrono::milliseconds body{30'000};
  std::chrono::milliseconds write{30'000};  // for each piece that the client has to take
  std::chrono::milliseconds idle{60'000};   // between two requests
  // From the end of a request to the begin of its answer, which is 503 then, and the work is called
  // off; 0 = as long as it likes.
  std::chrono::milliseconds answer{0};
};

// One answered request, for the log: nothing of what was in it but the path.
struct AccessRecord {
  std::string method, path, id;
  std::string route;  // as it was added, such as /v1/models/{id}; empty where none was found
  int status = 0;
  size_t bytes = 0;
  double seconds = 0;
  bool whole = true;  // false: the client went before the end
};

struct ServerOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 8080;  // 0 = one that is free
  Access access;
  Limits limits;
  Times times;
  size_t connections = 512;  // more are answered 503
  size_t handlers = 2;       // threads on which handlers run
  size_t waiting = 256;      // requests that wait for such a thread; more are answered 503
  std::function<void(const AccessRecord&)> log = {};  // called on the server's thread
};

// HTTP/1.1 for a few routes. One thread does all reading and writing; handlers run on threads of
// their own and may answer later, from any thread.
class Server {
 public:
  // Binds and listens: InvalidArgument where the address or the port cannot be had.
  Server(Router router, ServerOptions options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  uint16_t port() const;
  void start();
  // Takes no more connections, lets answers under way finish for `grace`, then cuts them off.
  void stop(std::chrono::milliseconds grace);

 private:
  struct Core;
  std::unique_ptr<Core> core_;
};

}  // namespace fovea::http

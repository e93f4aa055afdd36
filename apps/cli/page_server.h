#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "http/http_server.h"
#include "inspector/routes.h"

namespace fovea::cli {

// The inspector's page on the loopback address, for as long as this lives. The directories need
// not hold a model yet: a training may be about to write it.
class PageServer {
 public:
  // Port 0: one that is free.
  PageServer(std::vector<std::string> folders, int64_t port);
  ~PageServer();
  std::string address() const;

 private:
  inspector::Routes routes_;
  serve::HttpServer server_;
};

}  // namespace fovea::cli

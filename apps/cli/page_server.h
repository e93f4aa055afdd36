#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "http/http_server.h"
#include "inspector/routes.h"

namespace fovea::cli {

// Serves the inspector's page on the loopback address during its lifetime. The directories may
// still be empty: a training run may create the models later.
class PageServer {
 public:
  // Port 0 = any free port. The adapters are those of the first directory's model.
  // `image`: the file of the image with which the page of images begins; empty = none.
  PageServer(std::vector<std::string> folders, int64_t port,
             std::vector<model::AdapterUse> adapters = {}, std::string image = {});
  ~PageServer();
  std::string address() const;

 private:
  inspector::Routes routes_;
  http::Server server_;
};

}  // namespace fovea::cli

#pragma once

// Requests to the Hub, repeated after faults that pass.

#include <functional>
#include <string>

#include "fovea/model/hub.h"
#include "hub/transport.h"

namespace fovea::model {

// "a b/c" -> "a%20b/c" (RFC 3986, 2.1); `slashes` stay, or are encoded too.
std::string url_encoded(const std::string& path, bool slashes = true);

// The address of a repository's part, such as ENDPOINT/api/models/USER/NAME/revision/main.
HttpRequest request_to(const std::string& path, const HubSettings& settings);

// Decides after a failed try whether to repeat a request, and when.
class Patience {
 public:
  // Waits, and returns true for another try. `progress`: the try has received bytes. `tell` gets a
  // message for the user; `tick` is called several times a second, and false ends the wait. Throws
  // Failed, BadFile or Unsupported, naming `what`, if another try is of no use.
  bool wait(const HttpResponse& response, bool progress, const std::string& what,
            const std::function<void(const std::string&)>& tell, const std::function<bool()>& tick);

 private:
  int failures_ = 0;  // since the last progress
};

}  // namespace fovea::model

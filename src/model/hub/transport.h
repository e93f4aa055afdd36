#pragma once

// HTTP and hashes by libcurl and OpenSSL's libcrypto. They are in the module fovea_hub.so, which is
// loaded when it is used: loading these libraries takes longer than most starts of the program.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace fovea::model {

struct HttpRequest {
  std::string url;
  std::string token;     // sent to the host of `url` only, not after a redirect to another
  uint64_t offset = 0;   // first byte to read
  bool only_tls = true;  // also after a redirect
};

struct HttpResponse {
  int status = 0;                              // of the last response; 0 = no connection
  std::map<std::string, std::string> headers;  // of the last response, names in lower case
  std::string error;                           // why no response, or only a part of one, came
  bool final = false;                          // `error` will not go away by another try
};

class Transport {
 public:
  virtual ~Transport() = default;
  // Reads one resource. `receive` gets the bytes of a response with status 200 or 206, in order.
  // `tick` is called several times a second; false ends the transfer. Both may throw; the exception
  // leaves get(). Safe from several threads.
  using Receive = std::function<void(const HttpResponse& head, std::string_view bytes)>;
  virtual HttpResponse get(const HttpRequest& request, const Receive& receive,
                           const std::function<bool()>& tick) = 0;
};

class Digest {
 public:
  virtual ~Digest() = default;
  virtual void add(std::string_view bytes) = 0;
  virtual std::string hexadecimal() = 0;  // call once, after the last add()
};

// What the module exports, under the name kHubModule.
struct HubModule {
  std::unique_ptr<Transport> (*transport)();
  std::unique_ptr<Digest> (*digest)(bool sha256);  // otherwise SHA-1
};
inline constexpr const char* kHubModule = "fovea_hub_module";

// Throws Unsupported if the module is not installed.
const HubModule& hub_module();

}  // namespace fovea::model

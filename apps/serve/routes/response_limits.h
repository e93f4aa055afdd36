#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "serve/request/request.h"

namespace fovea::serve {

// Maximum bytes of one response's JSON. It is checked before a request is accepted, since a request
// of a few hundred bytes could cause gigabytes of output.
constexpr int64_t kMostResponseBytes = int64_t{64} << 20;
// Maximum bytes of all responses that are being assembled.
constexpr int64_t kMostHeldBytes = int64_t{256} << 20;

// Throws ApiError 400, naming `param`, if `bytes` exceeds the limit of one response. `instead` ends
// the message: what the client can send instead.
void check_response_bytes(int64_t bytes, const std::string& param, const std::string& instead);
// Checks the size of a response with `count` vectors of `width` numbers; throws like
// check_response_bytes().
void check_vectors(int64_t count, int64_t width, bool as_base64, const std::string& param);

// Estimated JSON bytes per token of a response.
int64_t bytes_of_token(const GenerationRequest& request, int64_t width, int64_t context);

// Accounts for the JSON of one response, which is held in memory until the response is complete.
class HeldBytes {
 public:
  HeldBytes() = default;
  ~HeldBytes() { all_ -= held_; }
  HeldBytes(const HeldBytes&) = delete;
  HeldBytes& operator=(const HeldBytes&) = delete;

  // Sets the number of bytes held. Throws ApiError 400 if this response exceeds its limit, 503 if
  // all responses together exceed theirs.
  void set(int64_t bytes);

 private:
  static std::atomic<int64_t> all_;
  int64_t held_ = 0;
};

}  // namespace fovea::serve

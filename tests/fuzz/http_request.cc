// The bytes of one connection give the same requests however they are split into pieces. The first
// byte selects the size of the pieces.

#include <optional>
#include <vector>

#include "fuzz.h"
#include "http/body_reader.h"
#include "http/request_head.h"

namespace fovea::http {
namespace {

constexpr Limits kLimits{.header_bytes = 2048, .body = 1024};

struct Heard {
  std::vector<std::string> requests;  // method, path and body
  int refused = 0;                    // status of the refusal; 0 = none
  bool operator==(const Heard&) const = default;
};

// Reads bytes that arrive in pieces of `step` bytes, as a connection does.
class Listener {
 public:
  Heard listen(std::string_view bytes, size_t step) {
    try {
      for (size_t at = 0; at < bytes.size(); at += step) {
        waiting_ += bytes.substr(at, step);
        while (proceed()) {
        }
      }
    } catch (const Refusal& refusal) {
      require(refusal.status >= 400 && refusal.status < 600,
              "a refusal has a client or server error status");
      require(refusal.message.find('\n') == std::string::npos, "a refusal is one line");
      heard_.refused = refusal.status;
    }
    return heard_;
  }

 private:
  // Consumes bytes that arrived, at most one request; returns whether others remain after it.
  bool proceed() {
    if (!head_) {
      head_ = read_head(waiting_, kLimits);
      if (!head_) return false;
      require(head_->bytes <= waiting_.size(), "a head lies within the bytes that arrived");
      waiting_.erase(0, head_->bytes);
      body_.emplace(head_->body_bytes, head_->chunked, kLimits.body);
    }
    const size_t taken = body_->take(waiting_);
    require(taken <= waiting_.size(), "a body takes at most the bytes that arrived");
    waiting_.erase(0, taken);
    if (!body_->done()) return false;
    require(body_->body().size() <= kLimits.body, "a body respects the limit");
    heard_.requests.push_back(head_->request.method + " " + head_->request.path + " " +
                              body_->body());
    head_.reset();
    return !waiting_.empty();
  }

  std::string waiting_;
  std::optional<RequestHead> head_;
  std::optional<BodyReader> body_;
  Heard heard_;
};

}  // namespace
}  // namespace fovea::http

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fovea::http;
  if (size == 0) return 0;
  const std::string_view bytes = fovea::text_of(data + 1, size - 1);
  const Heard whole = Listener().listen(bytes, size);
  const Heard cut = Listener().listen(bytes, 1 + data[0] % 64);
  fovea::require(whole == cut, "the result does not depend on the split");
  return 0;
}

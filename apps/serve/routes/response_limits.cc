#include "serve/routes/response_limits.h"

#include <fmt/format.h>

#include <algorithm>

namespace fovea::serve {
namespace {

// Estimated bytes of JSON, rounded up from measurements with common vocabularies.
constexpr int64_t kText = 16;      // a token's text and id
constexpr int64_t kLogprob = 100;  // {"token", "logprob", "bytes"}
constexpr int64_t kKey = 64;       // {"position", "token", "weight"}
constexpr int64_t kNumber = 14;    // an element of a vector

}  // namespace

void check_response_bytes(int64_t bytes, const std::string& param, const std::string& instead) {
  if (bytes <= kMostResponseBytes) return;
  throw ApiError{400,
                 fmt::format("{}: the response may take {} MiB; expected at most {} MiB, {}", param,
                             bytes >> 20, kMostResponseBytes >> 20, instead),
                 param, "response_too_large"};
}

void check_vectors(int64_t count, int64_t width, bool as_base64, const std::string& param) {
  constexpr int64_t kBase64 = 6;  // per number, rounded up
  check_response_bytes(count * width * (as_base64 ? kBase64 : kNumber), param, "with fewer texts");
}

int64_t bytes_of_token(const GenerationRequest& request, int64_t width, int64_t context) {
  int64_t bytes = kText;
  if (request.options.logprobs >= 0)
    bytes += (1 + request.options.logprobs) * kLogprob * request.logprob_copies;
  if (const auto& attention = request.trace.attention) {
    bytes += kKey * (1 + (context > 0 ? std::min(attention->top_k, context) : attention->top_k));
  }
  if (request.trace.hidden) bytes += kNumber * (1 + width);
  return bytes;
}

std::atomic<int64_t> HeldBytes::all_ = 0;

void HeldBytes::set(int64_t bytes) {
  all_ += bytes - held_;
  held_ = bytes;
  // A vocabulary may have longer tokens than estimated.
  check_response_bytes(bytes, "body", "with a smaller request");
  if (all_ <= kMostHeldBytes) return;
  throw ApiError{503, "too many large responses are in progress; try again", "", "overloaded"};
}

}  // namespace fovea::serve

#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "serve/request.h"

namespace fovea::serve {

// Of one answer's JSON. What a request may cause is counted before it is taken on, since a few
// hundred bytes can ask for gigabytes.
constexpr int64_t kMostAnswerBytes = int64_t{64} << 20;
// Of all answers that are being put together.
constexpr int64_t kMostHeldBytes = int64_t{256} << 20;

// Throws ApiError 400 that names `param` where `bytes` are over the limit.
void check_answer_bytes(int64_t bytes, const std::string& param, const std::string& instead);
void check_vectors(int64_t count, int64_t width, bool as_base64, const std::string& param);

// What the tokens of one answer may take as JSON, each about so many bytes.
int64_t bytes_of_token(const ApiRequest& request, int64_t width, int64_t context);

// The JSON of one answer that is held in memory until it is whole.
class HeldBytes {
 public:
  HeldBytes() = default;
  ~HeldBytes() { all_ -= held_; }
  HeldBytes(const HeldBytes&) = delete;
  HeldBytes& operator=(const HeldBytes&) = delete;

  // That so many are held now. Throws ApiError: 400 where one answer has more than it may, 503
  // where all have together.
  void set(int64_t bytes);

 private:
  static std::atomic<int64_t> all_;
  int64_t held_ = 0;
};

}  // namespace fovea::serve

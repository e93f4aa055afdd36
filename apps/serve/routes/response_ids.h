#pragma once

#include <cstdint>
#include <string>

namespace fovea::serve {

// Makes the ids of a response, and the time in it. With an `identity` (GenerationRequest), they
// depend on it alone; otherwise the ids are random.
class ResponseIds {
 public:
  explicit ResponseIds(const std::string& identity = {});
  uint64_t next();
  int64_t now() const;  // seconds since 1970; 0 with an identity

 private:
  bool random_;
  uint64_t state_;
};

}  // namespace fovea::serve

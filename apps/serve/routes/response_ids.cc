#include "serve/routes/response_ids.h"

#include <ctime>
#include <random>

#include "base/hash.h"

namespace fovea::serve {
namespace {

uint64_t random_state() {
  thread_local std::mt19937_64 generator{std::random_device{}()};
  return generator();
}

}  // namespace

ResponseIds::ResponseIds(const std::string& identity)
    : random_(identity.empty()), state_(random_ ? random_state() : hash_bytes(identity)) {}

// SplitMix64 (Steele et al. 2014).
uint64_t ResponseIds::next() {
  uint64_t bits = state_ += 0x9e3779b97f4a7c15;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  return bits ^ (bits >> 31);
}

int64_t ResponseIds::now() const { return random_ ? std::time(nullptr) : 0; }

}  // namespace fovea::serve

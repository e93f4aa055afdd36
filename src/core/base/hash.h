#pragma once

// XXH3 with 64 bits: detects damage to a file, not deliberate forgery.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

struct XXH3_state_s;

namespace fovea {

class MappedFile;

uint64_t hash_bytes(std::string_view bytes);
std::string hash_text(uint64_t hash);  // 16 lower-case hexadecimal digits

// Hashes bytes that arrive in pieces; the hash equals hash_bytes() of their concatenation.
class Hasher {
 public:
  Hasher();
  void add(std::string_view bytes);
  // Adds all bytes of a file, and releases its memory piece by piece.
  void add(const MappedFile& file);
  uint64_t hash() const;

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> state_;
};

}  // namespace fovea

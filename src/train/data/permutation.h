#pragma once

#include <cstdint>

namespace fovea::train {

// A pseudo-random permutation of [0, count) in constant memory: a Feistel network (Luby and Rackoff
// 1988) over the next power of four, whose round function is Philox. The network is applied
// repeatedly until the value is below count.
class Permutation {
 public:
  Permutation(uint64_t count, uint64_t key);
  uint64_t operator()(uint64_t index) const;  // index < count

 private:
  uint64_t count_, key_;
  int half_bits_;
};

}  // namespace fovea::train

#include "generate/guesses.h"

#include <algorithm>
#include <cstddef>

namespace fovea {

std::vector<int32_t> guess_from(const std::vector<int32_t>& ids, int64_t most) {
  // After a match of only one token, most guesses are wrong.
  constexpr std::ptrdiff_t kLongest = 3, kShortest = 2;
  const std::ptrdiff_t size = std::ssize(ids);
  for (std::ptrdiff_t n = kLongest; n >= kShortest; --n) {
    if (size < n + 1) continue;
    const auto tail = ids.end() - n;
    for (std::ptrdiff_t begin = size - n - 1; begin >= 0; --begin) {
      if (!std::equal(tail, ids.end(), ids.begin() + begin)) continue;
      const std::ptrdiff_t from = begin + n, count = std::min<std::ptrdiff_t>(most, size - from);
      return {ids.begin() + from, ids.begin() + from + count};
    }
  }
  return {};
}

}  // namespace fovea

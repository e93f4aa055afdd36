#include "base/random.h"
#include "kernels/reference/number.h"
#include "kernels/reference/reference.h"

namespace fovea::reference {

void dropout(Out y, In x, const Dropout& dropout, int64_t size) {
  const int64_t unit = size / dropout.units;
  for (int64_t i = 0; i < size; ++i) {
    const auto number =
        static_cast<uint64_t>((dropout.first_unit + i / unit) * ((unit + 3) / 4 * 4) + i % unit);
    const uint64_t counter = (dropout.step << 32) + number / 4;
    const auto words = philox(dropout.seed, Stream::dropout, dropout.substream, counter);
    const bool drop = uniform(words[number % 4]) < dropout.probability;
    put(y, i, drop ? 0 : get(x, i) / (1 - static_cast<double>(dropout.probability)));
  }
}

}  // namespace fovea::reference

// Dropout of elements.

#include "base/philox.h"
#include "kernels/cuda/dialect.h"

namespace fovea::cuda {

KERNEL(dropout)(Out y, In x, Dropout dropout, int64_t size) {
  const int64_t unit = size / dropout.units, counted = (unit + 3) / 4 * 4;
  const float kept = 1 / (1 - dropout.probability), limit = dropout.probability * 0x1p24f;
  for (int64_t e = first_element(); e < size; e += element_stride()) {
    const auto number = static_cast<uint64_t>((dropout.first_unit + e / unit) * counted + e % unit);
    const PhiloxWords words = philox_words(dropout.seed, Stream::dropout, dropout.substream,
                                           (dropout.step << 32) + number / 4);
    const bool drops = static_cast<float>(words.word(number) >> 8) < limit;
    // A dropped element is 0 even where x is infinite or NaN.
    put(y, e, drops ? 0 : get(x, e) * kept);
  }
}

}  // namespace fovea::cuda

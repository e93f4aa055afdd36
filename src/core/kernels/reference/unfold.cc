#include <vector>

#include "kernels/reference/number.h"
#include "kernels/reference/reference.h"

namespace fovea::reference {
namespace {

// Calls visit(index in y, index in x) for each element of each window; the index in x is -1 outside
// x.
template <class Visit>
void each_element(const Windows& w, const Visit& visit) {
  int64_t place = 0;
  for (int64_t row = 0; row < w.batch * w.count; ++row) {
    const int64_t begin = row % w.count * w.stride - w.padding;
    for (int64_t c = 0; c < w.width; ++c) {
      for (int64_t t = begin; t < begin + w.kernel; ++t) {
        const bool inside = t >= 0 && t < w.tokens;
        visit(place++, inside ? (row / w.count * w.tokens + t) * w.width + c : -1);
      }
    }
  }
}

}  // namespace

void unfold(Out y, In x, const Windows& w) {
  each_element(w, [&](int64_t to, int64_t from) { put(y, to, from < 0 ? 0 : get(x, from)); });
}

void unfold_backward(Out dx, In dy, const Windows& w) {
  std::vector<double> sums(static_cast<size_t>(w.batch * w.tokens * w.width));
  each_element(w, [&](int64_t from, int64_t to) {
    if (to >= 0) sums[static_cast<size_t>(to)] += get(dy, from);
  });
  for (size_t i = 0; i < sums.size(); ++i) put(dx, static_cast<int64_t>(i), sums[i]);
}

}  // namespace fovea::reference

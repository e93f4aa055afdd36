// Stores keys and values in pages; see layout/kv_page.cc.

#include "kernels/cuda/rows.cuh"

namespace fovea::cuda {
namespace {

// Stores a row of `stored` numbers, value(d), as To; zeros after the last number.
template <class To, class Value>
DEVICE void store_row(const PagePut& put, To* head, int64_t token, const Value& value) {
  const PageLayout& layout = put.layout;
  const bool keys = put.part == PagePart::keys;
  const int64_t stored = keys ? layout.key_width() : layout.row();
  for (int64_t d = lane(); d < stored; d += kWarp) {
    const To number = d < layout.width ? value(d) : To{};
    head[keys ? layout.key_at(token, d) : layout.value_at(token, d)] = number;
    // The other value of a word.
    if (!keys && layout.pair() == 2 && token % 2 == 0) head[layout.value_at(token + 1, d)] = To{};
  }
}

// A row as integers with one scale.
DEVICE void store_integers(const PagePut& put, char* head, int64_t token, int64_t from) {
  const int64_t width = put.layout.width;
  float largest = 0, bad = 0;
  for (int64_t d = lane(); d < width; d += kWarp) {
    const float value = get(put.x, from + d);
    largest = fmaxf(largest, fabsf(value));
    bad += value * 0.0f;  // becomes NaN, like the scale, if a number is not finite
  }
  const float scale = largest_over<kWarp>(largest) / 127 + sum_over<kWarp>(bad);
  float inverse = 0;
  if (scale > 0 && 1 / scale < INFINITY) inverse = 1 / scale;
  store_row<int8_t>(put, reinterpret_cast<int8_t*>(head), token, [&](int64_t d) {
    const float whole = rintf(get(put.x, from + d) * inverse);
    return static_cast<int8_t>(inverse == 0 ? 0.0f : fminf(fmaxf(whole, -127.0f), 127.0f));
  });
  if (lane() == 0) reinterpret_cast<float*>(head + put.scales_at)[token] = scale;
}

}  // namespace

// One token and head for each warp; a thread of the block does the two values of a word one after
// the other, since storing the first one clears the second.
KERNEL(put_in_pages)(const PagePut* puts) {
  const PagePut put = puts[block_y()];
  for (int64_t h = first_row(); h < put.layout.heads; h += row_stride()) {
    char* const head = static_cast<char*>(put.page) + h * put.head_bytes;
    for (int64_t i = 0; i < put.count; ++i) {
      const int64_t from = (i * put.layout.heads + h) * put.layout.width;
      const auto value = [&](int64_t d) { return get(put.x, from + d); };
      if (put.layout.dtype == DType::i8)
        store_integers(put, head, put.token + i, from);
      else if (put.layout.dtype == DType::bf16)
        store_row<bf16>(put, reinterpret_cast<bf16*>(head), put.token + i,
                        [&](int64_t d) { return narrow(value(d)); });
      else
        store_row<float>(put, reinterpret_cast<float*>(head), put.token + i, value);
    }
  }
}

}  // namespace fovea::cuda

#include "kernels/layout/kv_page.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "base/error.h"

namespace fovea {
namespace {

// Converts a stored number to the working type.
float work(float x) { return x; }
double work(double x) { return x; }
float work(bf16 x) { return widen(x); }

template <class To, class From>
To rounded(From x) {
  if constexpr (std::is_same_v<To, bf16>)
    return narrow(static_cast<float>(work(x)));
  else
    return static_cast<To>(work(x));
}

// Rounds x to integers q with one scale; returns the scale.
template <class From>
float quantize(const From* x, int64_t count, int8_t* q) {
  float largest = 0, bad = 0;
  for (int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<float>(work(x[i]));
    largest = std::max(largest, std::abs(value));
    bad += value * 0.0f;  // becomes NaN, like the scale, if a number is not finite
  }
  const float scale = largest / 127 + bad;
  const float inverse = scale > 0 && std::isfinite(1 / scale) ? 1 / scale : 0;
  for (int64_t i = 0; i < count; ++i) {
    const float whole = std::nearbyint(static_cast<float>(work(x[i])) * inverse);
    q[i] = inverse == 0 ? int8_t{0} : static_cast<int8_t>(std::clamp(whole, -127.0f, 127.0f));
  }
  return scale;
}

// The part of a page that belongs to one head.
template <class To>
struct Head {
  const PageLayout& layout;
  PagePart part;
  To* numbers;
  float* scales;  // i8 only

  void put(int64_t token, const To* row) const {
    constexpr int64_t kPair = std::is_same_v<To, bf16> ? 2 : 1;  // = layout.pair()
    const auto number = [&](int64_t d) { return d < layout.width ? row[d] : To{}; };
    if (part == PagePart::keys) {
      To* to = numbers + layout.key_at(token, kPair - 1);
      for (int64_t d = 0; d < layout.key_width(); ++d)
        to[d / kPair * kPair * kPanelTokens + (kPair - 1 - d % kPair)] = number(d);
      return;
    }
    To* to = numbers + layout.value_at(token, 0);
    for (int64_t d = 0; d < layout.row(); ++d) to[d * kPair] = number(d);
    if (kPair == 1 || token % kPair != 0) return;
    To* next = numbers + layout.value_at(token + 1, 0);
    for (int64_t d = 0; d < layout.row(); ++d) next[d * kPair] = To{};
  }
};

template <class To, class From>
void put_rows(const PageLayout& layout, PagePart part, void* page, int64_t token, const From* x,
              int64_t count) {
  std::vector<To> row(static_cast<size_t>(layout.width));
  for (int64_t h = 0; h < layout.heads; ++h) {
    char* begin = static_cast<char*>(page) + h * layout.head_bytes();
    const Head<To> head{layout, part, reinterpret_cast<To*>(begin),
                        reinterpret_cast<float*>(begin + layout.scales_at())};
    for (int64_t i = 0; i < count; ++i) {
      const From* from = x + (i * layout.heads + h) * layout.width;
      if constexpr (std::is_same_v<To, int8_t>)
        head.scales[token + i] = quantize(from, layout.width, row.data());
      else
        std::transform(from, from + layout.width, row.begin(), rounded<To, From>);
      head.put(token + i, row.data());
    }
  }
}

template <class From>
void put_any(const PageLayout& layout, PagePart part, void* page, int64_t token, const From* x,
             int64_t count) {
  switch (layout.dtype) {
    case DType::f32: return put_rows<float>(layout, part, page, token, x, count);
    case DType::bf16: return put_rows<bf16>(layout, part, page, token, x, count);
    case DType::f64: return put_rows<double>(layout, part, page, token, x, count);
    case DType::i8: return put_rows<int8_t>(layout, part, page, token, x, count);
    default:
      fail(ErrorKind::Internal, "KV page: the dtype is {}; expected fp32, bf16, fp64 or int8",
           name_of(layout.dtype));
  }
}

}  // namespace

void put_in_page(const PageLayout& layout, PagePart part, void* page, int64_t token, In x,
                 int64_t count) {
  switch (x.dtype) {
    case DType::f32:
      return put_any(layout, part, page, token, static_cast<const float*>(x.data), count);
    case DType::bf16:
      return put_any(layout, part, page, token, static_cast<const bf16*>(x.data), count);
    case DType::f64:
      return put_any(layout, part, page, token, static_cast<const double*>(x.data), count);
    default:
      fail(ErrorKind::Internal, "KV page: the rows are {}; expected fp32, bf16 or fp64",
           name_of(x.dtype));
  }
}

void get_from_page(const PageLayout& layout, PagePart part, const void* page, int64_t token,
                   int64_t head, double* row) {
  const char* begin = static_cast<const char*>(page) + head * layout.head_bytes();
  const float* scales = reinterpret_cast<const float*>(begin + layout.scales_at());
  for (int64_t d = 0; d < layout.width; ++d) {
    const int64_t i = part == PagePart::keys ? layout.key_at(token, d) : layout.value_at(token, d);
    switch (layout.dtype) {
      case DType::f32: row[d] = reinterpret_cast<const float*>(begin)[i]; break;
      case DType::bf16: row[d] = widen(reinterpret_cast<const bf16*>(begin)[i]); break;
      case DType::f64: row[d] = reinterpret_cast<const double*>(begin)[i]; break;
      default:
        row[d] = static_cast<double>(reinterpret_cast<const int8_t*>(begin)[i]) * scales[token];
    }
  }
}

}  // namespace fovea

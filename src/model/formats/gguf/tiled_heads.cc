#include "formats/gguf/tiled_heads.h"

#include <algorithm>

#include "spec/mixers.h"

namespace fovea::model {
namespace {

// The rows or elements of each head, by the end of a parameter's name.
struct HeadPart {
  const char* end;
  bool of_values;  // as many as a value is wide, else one
};
constexpr HeadPart kHeadRows[] = {
    {".delta.value.weight", true}, {".delta.value_convolution", true}, {".delta.gate.weight", true},
    {".delta.beta.weight", false}, {".delta.decay.weight", false},     {".delta.decay.bias", false},
    {".delta.rate", false}};
constexpr const char* kHeadColumns = ".delta.output.weight";  // its columns

}  // namespace

std::optional<Spec> with_tiled_heads(const Spec& spec) {
  if (!spec.decoder || spec.decoder->delta.tiled) return std::nullopt;
  const DeltaSpec& delta = spec.decoder->delta;
  if (delta.heads == delta.key_heads || delta.key_heads <= 1) return std::nullopt;
  Spec tiled = spec;
  tiled.decoder->delta.tiled = true;
  return tiled;
}

bool has_delta_heads(const std::string& name) {
  return name.ends_with(kHeadColumns) || std::ranges::any_of(kHeadRows, [&](const HeadPart& part) {
           return name.ends_with(part.end);
         });
}

Tensor with_tiled_heads(const std::string& name, const Tensor& x, const DeltaSpec& delta) {
  if (!has_delta_heads(name)) return x;
  const auto* part = std::ranges::find_if(
      kHeadRows, [&](const HeadPart& each) { return name.ends_with(each.end); });
  // The numbers of a head that lie together, and how often all heads follow one another.
  const bool columns = part == std::end(kHeadRows);
  const int64_t width = columns || part->of_values ? delta.value_width : 1;
  const int64_t together = columns ? width : width * x.size() / x.dim(0);
  const int64_t times = columns ? x.dim(0) : 1;
  const int64_t group = delta.heads / delta.key_heads;
  const Tensor y = empty(x.shape());
  for (int64_t row = 0; row < times; ++row)
    for (int64_t head = 0; head < delta.heads; ++head) {
      const int64_t from = head % delta.key_heads * group + head / delta.key_heads;
      std::copy_n(x.data_as<float>() + (row * delta.heads + from) * together, together,
                  y.data_as<float>() + (row * delta.heads + head) * together);
    }
  return y;
}

}  // namespace fovea::model

#include "generate/alignment.h"

#include <fmt/format.h>

#include <algorithm>

#include "tensor/host_values.h"
#include "tensor/tape.h"

namespace fovea::infer {
namespace {

// Returns, for each byte of a text, the index of the word that contains it. White space separates
// words and belongs to the next word.
std::vector<int64_t> words_of_bytes(std::string_view text) {
  std::vector<int64_t> words;
  int64_t word = -1;
  bool space = true;
  for (const char c : text) {
    const bool is_space = c == ' ' || (c >= '\t' && c <= '\r');
    if (space && !is_space) ++word;
    space = is_space;
    words.push_back(space ? word + 1 : word);
  }
  return words;
}

}  // namespace

std::vector<int64_t> most_seen(const model::Transformer& model, const std::vector<int32_t>& source,
                               int32_t start, const std::vector<int32_t>& generation) {
  const NoGradient off;
  const model::ProbePoint last{model::ProbePoint::What::attention, model.decoder.layers - 1,
                               model::ProbePoint::Stack::cross};
  Tensor weights;  // [1, H, T, S]
  const model::Probe probe{
      .see =
          [&](const model::ProbePoint& point, const Tensor& value) {
            if (point == last) weights = value;
          },
      .wants_weights = [&](const model::ProbePoint& point) { return point == last; }};
  std::vector<int32_t> input{start};
  input.insert(input.end(), generation.begin(), generation.end());
  model::Pass pass;
  pass.memory = model.encode({tensor_of(source, {1, std::ssize(source)}), {}, {}, {}}, pass);
  pass.probe = &probe;
  model.decode({tensor_of(input, {1, std::ssize(input)}), {}, {}, {}}, pass);
  const int64_t H = weights.dim(1), T = weights.dim(2), S = weights.dim(3);
  std::vector<int64_t> seen;
  const HostValues<float> all(weights);
  for (int64_t t = 0; t + 1 < T; ++t) {  // row t predicts generation[t]
    std::vector<float> sums(static_cast<size_t>(S));
    for (int64_t h = 0; h < H; ++h)
      for (int64_t s = 0; s < S; ++s) sums[static_cast<size_t>(s)] += all[(h * T + t) * S + s];
    seen.push_back(std::max_element(sums.begin(), sums.end()) - sums.begin());
  }
  return seen;
}

std::vector<std::pair<int64_t, int64_t>> aligned_words(
    const text::TranslationTokenizers& tokenizers, const std::string& source,
    const std::vector<int32_t>& generation, const std::vector<int64_t>& most_seen) {
  const text::Encoding encoding = tokenizers.source.encoding(source, {.truncate_and_pad = false});
  const std::vector<int64_t> source_words = words_of_bytes(source);
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (size_t t = 0; t < most_seen.size(); ++t) {
    const auto s = static_cast<size_t>(most_seen[t]);
    if (s >= encoding.ids.size() || encoding.special_mask[s] != 0) continue;
    const text::Offsets bytes = encoding.byte_offsets[s];
    // A token belongs to the word of its last byte: many tokens begin with a space.
    const std::vector<int32_t> read(generation.begin(),
                                    generation.begin() + static_cast<std::ptrdiff_t>(t + 1));
    const std::vector<int64_t> words = words_of_bytes(tokenizers.target.decode(read, true));
    if (bytes.end == bytes.begin || bytes.end > source_words.size() || words.empty()) continue;
    pairs.emplace_back(source_words[bytes.end - 1], words.back());
  }
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  return pairs;
}

}  // namespace fovea::infer

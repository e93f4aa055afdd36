#include "generate/repetition.h"

#include <algorithm>
#include <unordered_map>

#include "base/math.h"
#include "fovea/text/tokenizer.h"

namespace fovea::infer {
namespace {

// Returns, for each i, the length of the longest common prefix of x and x[i...]; 0 for i = 0
// (Gusfield 1997, section 1.4). The time is proportional to the size of x.
std::vector<size_t> common_prefixes(const std::vector<int32_t>& x) {
  std::vector<size_t> z(x.size(), 0);
  size_t begin = 0, end = 0;  // the match that ends last
  for (size_t i = 1; i < x.size(); ++i) {
    if (i < end) z[i] = std::min(end - i, z[i - begin]);
    while (i + z[i] < x.size() && x[z[i]] == x[i + z[i]]) ++z[i];
    if (i + z[i] > end) begin = i, end = i + z[i];
  }
  return z;
}

}  // namespace

void find_breakers(Sampling& options, const text::Tokenizer& tokenizer) {
  std::vector<std::string> texts = options.dry_sequence_breakers;
  if (texts.empty()) texts = {"\n", ":", "\"", "*"};  // those of llama.cpp
  if (texts == std::vector<std::string>{"none"}) texts.clear();
  std::vector<int32_t>& ids = options.dry_breaker_ids;
  for (const std::string& text : texts)
    if (const std::vector<int32_t> encoded = tokenizer.encode(text); !encoded.empty())
      ids.push_back(encoded.back());
  for (int32_t id = 0; id < tokenizer.size(); ++id) {
    const std::string bytes = tokenizer.bytes_of(id);
    const bool breaks = std::any_of(texts.begin(), texts.end(), [&](const std::string& text) {
      return bytes.find(text) != bytes.npos;
    });
    if (breaks) ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

// The definition is that of p-e-w 2024 (oobabooga/text-generation-webui#5677).
void penalise_repetition(float* logits, int64_t vocabulary, const std::vector<int32_t>& seen,
                         const Sampling& options) {
  constexpr double kMost = 1e30;  // finite, since a grammar may allow only this token
  const auto& breakers = options.dry_breaker_ids;
  const auto breaks = [&](int32_t id) {
    return std::binary_search(breakers.begin(), breakers.end(), id);
  };
  const int64_t most = options.dry_penalty_last_n;
  const auto count = most < 0 ? seen.size() : std::min(seen.size(), static_cast<size_t>(most));
  const std::vector<int32_t> back(seen.rbegin(),
                                  seen.rbegin() + static_cast<std::ptrdiff_t>(count));
  const auto limit =
      static_cast<size_t>(std::find_if(back.begin(), back.end(), breaks) - back.begin());
  if (limit < static_cast<size_t>(options.dry_allowed_length)) return;
  const std::vector<size_t> prefixes = common_prefixes(back);
  std::unordered_map<int32_t, size_t> longest;  // by the token that followed the earlier occurrence
  for (size_t i = 1; i < back.size(); ++i) {
    const size_t length = std::min(prefixes[i], limit);
    const int32_t next = back[i - 1];
    if (length >= static_cast<size_t>(options.dry_allowed_length) && !breaks(next))
      longest[next] = std::max(longest[next], length);
  }
  for (const auto& [id, length] : longest) {
    const auto beyond =
        static_cast<double>(length) - static_cast<double>(options.dry_allowed_length);
    const double penalty =
        double{options.dry_multiplier} * math::pow(double{options.dry_base}, beyond);
    if (id < vocabulary) logits[id] -= static_cast<float>(std::min(penalty, kMost));
  }
}

}  // namespace fovea::infer

#include "data/min_hash.h"

#include <algorithm>
#include <string>

#include "base/hash.h"
#include "base/math.h"
#include "unicode/unicode.h"
#include "unicode/utf8.h"

namespace fovea::train {
namespace {

constexpr size_t kShingle = 5;  // words
// Of many texts with an equal band, such as a common licence, the first ones are compared.
constexpr int kMostCompared = 64;

// Calls use(hash) for each word.
template <class Use>
void each_word(std::string_view text, Use&& use) {
  std::string word;
  const auto end = [&] {
    if (!word.empty()) use(hash_bytes(word));
    word.clear();
  };
  while (!text.empty()) {
    const text::utf8::Character c = text::utf8::first(text);
    text.remove_prefix(c.bytes);
    if (!text::unicode::is(c.code_point, text::unicode::word)) {
      end();
      continue;
    }
    const bool alone = text::unicode::is_unspaced(c.code_point);
    if (alone) end();
    for (const char32_t lower : text::unicode::lowercase(c.code_point))
      if (lower != 0) text::utf8::append(word, lower);
    if (alone) end();
  }
  end();
}

// SplitMix64 (Steele et al. 2014): the factors and summands of the hash functions.
uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

struct Functions {
  std::array<uint64_t, kMinima> factors, summands;
  Functions() {
    for (uint64_t i = 0; i < kMinima; ++i) {
      factors[i] = mixed(2 * i) | 1;
      summands[i] = mixed(2 * i + 1);
    }
  }
};

}  // namespace

std::optional<MinHash> min_hash(std::string_view text) {
  static const Functions functions;
  std::array<uint32_t, kMinima> least;
  least.fill(UINT32_MAX);
  const auto add = [&](uint64_t shingle) {
    for (size_t i = 0; i < kMinima; ++i)
      least[i] = std::min(
          least[i],
          static_cast<uint32_t>((functions.factors[i] * shingle + functions.summands[i]) >> 32));
  };
  std::array<uint64_t, kShingle> words{};
  const auto hash = [&] {
    return hash_bytes({reinterpret_cast<const char*>(words.data()), sizeof words});
  };
  size_t count = 0;
  each_word(text, [&](uint64_t word) {
    std::rotate(words.begin(), words.begin() + 1, words.end());
    words.back() = word;
    if (++count >= kShingle) add(hash());
  });
  if (count == 0) return std::nullopt;
  if (count < kShingle) add(hash());  // a short text is one shingle
  MinHash bytes;
  for (size_t i = 0; i < kMinima; ++i) bytes[i] = static_cast<uint8_t>(least[i]);
  return bytes;
}

double similarity_of(const MinHash& one, const MinHash& other) {
  int equal = 0;
  for (size_t i = 0; i < kMinima; ++i) equal += one[i] == other[i] ? 1 : 0;
  constexpr double kByChance = 1.0 / 256;
  return std::max(0.0, (equal / static_cast<double>(kMinima) - kByChance) / (1 - kByChance));
}

double comparison_probability(const Banding& banding, double similarity) {
  return 1 - math::pow(1 - math::pow(similarity, banding.rows), banding.bands);
}

Banding banding_for(double similarity) {
  constexpr double kProbability = 0.95;
  Banding found;
  for (int rows = 1; rows <= kMinima; ++rows) {
    const Banding banding{rows, kMinima / rows};
    if (comparison_probability(banding, similarity) >= kProbability) found = banding;
  }
  return found;
}

uint64_t DistinctTexts::slot_of(const MinHash& text, int band) const {
  const auto rows = static_cast<size_t>(banding_.rows);
  return hash_bytes(
      {reinterpret_cast<const char*>(text.data()) + static_cast<size_t>(band) * rows, rows});
}

bool DistinctTexts::equal_in(const MinHash& one, const MinHash& other, int band) const {
  const auto begin = one.begin() + band * banding_.rows;
  return std::equal(begin, begin + banding_.rows, other.begin() + band * banding_.rows);
}

std::optional<DistinctTexts::Match> DistinctTexts::find_or_add(const MinHash& text,
                                                               uint32_t number) {
  if (tables_.empty() || 2 * (texts_.size() + 1) > tables_[0].size()) grow();
  std::optional<Match> best;
  for (int band = 0; band < banding_.bands; ++band) {
    const std::vector<uint32_t>& table = tables_[static_cast<size_t>(band)];
    int compared = 0;
    for (uint64_t at = slot_of(text, band);; ++at) {
      const uint32_t found = table[at & (table.size() - 1)];
      if (found == 0 || compared == kMostCompared) break;
      const auto& [other, its_number] = texts_[found - 1];
      if (!equal_in(text, other, band)) continue;
      ++compared;
      const double similarity = similarity_of(text, other);
      if (similarity >= similarity_ && (!best || similarity > best->similarity))
        best = {its_number, similarity};
    }
  }
  if (best) return best;
  texts_.emplace_back(text, number);
  put(texts_.size() - 1);
  return std::nullopt;
}

// Adds a text to the tables.
void DistinctTexts::put(size_t text) {
  for (int band = 0; band < banding_.bands; ++band) {
    std::vector<uint32_t>& table = tables_[static_cast<size_t>(band)];
    int equal = 0;
    for (uint64_t at = slot_of(texts_[text].first, band); equal < kMostCompared; ++at) {
      uint32_t& slot = table[at & (table.size() - 1)];
      if (slot == 0) {
        slot = static_cast<uint32_t>(text + 1);
        break;
      }
      equal += equal_in(texts_[text].first, texts_[slot - 1].first, band) ? 1 : 0;
    }
  }
}

void DistinctTexts::grow() {
  constexpr size_t kFirst = 1024;
  const size_t size = tables_.empty() ? kFirst : 2 * tables_[0].size();
  tables_.assign(static_cast<size_t>(banding_.bands), std::vector<uint32_t>(size));
  for (size_t text = 0; text < texts_.size(); ++text) put(text);
}

}  // namespace fovea::train

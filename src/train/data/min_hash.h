#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace fovea::train {

// Finds texts that resemble one another (Broder 1997, "On the resemblance and containment of
// documents"). The similarity s of two texts is |A and B| / |A or B| of their sets of shingles:
// five successive words, without case and punctuation; a character of a script without spaces is a
// word. A text has a signature of 128 minima: the least of each of 128 hash functions over its
// shingles. A minimum of two texts is equal with the probability s.
constexpr int kMinima = 128;

// The bytes of the minima; two different ones are equal with the probability 1/256 (Li and König
// 2010, "b-bit minwise hashing").
using MinHash = std::array<uint8_t, kMinima>;

// Returns nothing for a text without words.
std::optional<MinHash> min_hash(std::string_view text);
// Returns the similarity that the equal minima of two texts suggest: its standard error is
// sqrt(s (1 - s) / 128).
double similarity_of(const MinHash& one, const MinHash& other);

// Signatures are divided into bands of several minima (locality-sensitive hashing; Indyk and
// Motwani 1998). Two texts with an equal band are compared: a pair of similarity s with at least
// the probability 1 - (1 - s^rows)^bands.
struct Banding {
  int rows = 1, bands = kMinima;
};
double comparison_probability(const Banding& banding, double similarity);
// Returns the bands of the most rows with which a pair of this similarity is compared with a
// probability of 0.95 or more.
Banding banding_for(double similarity);

// Texts that do not resemble one another, each with a number.
class DistinctTexts {
 public:
  explicit DistinctTexts(double similarity)
      : similarity_(similarity), banding_(banding_for(similarity)) {}

  struct Match {
    uint32_t number;
    double similarity;
  };
  // Returns the text that resembles this one most, if its similarity is large enough; else adds
  // this one. Takes about 130 + 8 bytes for each band, for a text that is added.
  std::optional<Match> find_or_add(const MinHash& text, uint32_t number);

 private:
  uint64_t slot_of(const MinHash& text, int band) const;
  bool equal_in(const MinHash& one, const MinHash& other, int band) const;
  void put(size_t text);
  void grow();

  double similarity_;
  Banding banding_;
  std::vector<std::pair<MinHash, uint32_t>> texts_;
  // Of each band, an open-addressed table of 1 + the index of a text; 0 = free.
  std::vector<std::vector<uint32_t>> tables_;
};

}  // namespace fovea::train

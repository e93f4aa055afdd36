#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace fovea::infer {

// Finds the latest earlier occurrence of the last tokens of a growing text. The tokens that
// followed it are proposed as the next ones (prompt lookup decoding, Saxena 2023; Yang et al.
// 2023). It takes constant time per token and 12 to 48 bytes, independent of the length of the
// text, so a text of 100,000 tokens costs no more per step than a short one.
class NgramIndex {
 public:
  // The lengths of the sequences that are looked up. After a match of only one token, most
  // proposals are wrong.
  static constexpr int64_t kShortest = 2, kLongest = 4;

  struct Match {
    int64_t next;    // index of the token that followed the occurrence
    int64_t length;  // number of equal tokens, kShortest to kLongest
  };

  // Returns an occurrence of the longest sequence that occurs earlier. `ids` must begin with the
  // ids of the previous call, unless clear() was called since.
  std::optional<Match> find(const std::vector<int32_t>& ids);
  void clear() { *this = {}; }

 private:
  static constexpr size_t kLengths = kLongest - kShortest + 1;
  using Slots = std::array<size_t, kLengths>;

  Slots slots_before(const std::vector<int32_t>& ids, int64_t end) const;
  void reserve(int64_t tokens);

  // tables_[n - kShortest][hash of n tokens]: index of the token that followed the latest sequence
  // with this hash; 0 = none. A sequence replaces another with the same hash, which costs at most a
  // missed proposal.
  std::array<std::vector<int32_t>, kLengths> tables_;
  int bits_ = 0;      // logarithm of the size of a table
  int64_t next_ = 1;  // the sequences before the tokens from 1 to next_ - 1 are in the tables
};

// Returns the `count` tokens from ids[next] on. Beyond the end of `ids` they continue with
// themselves: a text that repeats a few tokens is assumed to repeat them again.
std::vector<int32_t> continuation(const std::vector<int32_t>& ids, int64_t next, int64_t count);

}  // namespace fovea::infer

#pragma once

// The original positions of the bytes of a rewritten text. Most of a text is unchanged, so runs are
// stored instead of a position for each byte.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace fovea::text {

// Bytes [begin, end) of a text.
struct Span {
  uint32_t begin, end;
  bool operator==(const Span&) const = default;
};

class Alignment {
 public:
  void clear() { stretches_.clear(); }

  // Appends unchanged characters of `bytes` bytes in total, whose originals begin at `origin`.
  void append_unchanged(size_t bytes, uint32_t origin);
  // Appends complete characters that all come from the span.
  void append(std::string_view characters, Span span);
  // Appends bytes with the origins of [begin, begin + bytes) of another text.
  void append_from(const Alignment& other, size_t begin, size_t bytes, size_t& hint);

  // Returns the origin of the character that contains `byte`. `hint` is the run that the previous
  // call found, or 0; `text` is the rewritten text from byte `offset` on.
  Span origin(size_t byte, std::string_view text, size_t offset, size_t& hint) const;

 private:
  struct Stretch {
    uint32_t end;       // end of the run's bytes, which begin at the end of the previous run
    uint32_t from, to;  // all bytes of the run came from [from, to)
    // The value of `to` if each character has its own origin.
    static constexpr uint32_t unchanged = UINT32_MAX;
  };
  uint32_t size() const { return stretches_.empty() ? 0 : stretches_.back().end; }
  uint32_t begin_of(size_t stretch) const { return stretch == 0 ? 0 : stretches_[stretch - 1].end; }
  void find(size_t byte, size_t& hint) const;
  void append_together(size_t bytes, Span span);

  std::vector<Stretch> stretches_;
};

}  // namespace fovea::text

#pragma once

// Where the bytes of a rewritten text came from. Most of a text stays as it is, so that stretches
// of it are kept instead of a place for each byte.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace fovea {

// Bytes [begin, end) of a text.
struct Span {
  uint32_t begin, end;
  bool operator==(const Span&) const = default;
};

class Alignment {
 public:
  void clear() { stretches_.clear(); }

  // The next bytes came unchanged from those that begin at `origin`: each character of the text
  // came from as many bytes as it has.
  void append_unchanged(size_t bytes, uint32_t origin);
  // The next bytes, whole characters, came from the span, all of them together.
  void append(std::string_view characters, Span span);
  // The next bytes came from where those [begin, begin + bytes) of another text did.
  void append_from(const Alignment& other, size_t begin, size_t bytes, size_t& hint);

  // Where the character came from that has the byte of the text aligned here. `hint` is the stretch
  // found last, or 0; `text` is the text from byte `offset` on.
  Span origin(size_t byte, std::string_view text, size_t offset, size_t& hint) const;

 private:
  struct Stretch {
    uint32_t end;       // of its bytes; they begin where those of the one before it end
    uint32_t from, to;  // all of its bytes came from [from, to)
    static constexpr uint32_t unchanged = UINT32_MAX;  // as `to`: each character from its own
  };
  uint32_t size() const { return stretches_.empty() ? 0 : stretches_.back().end; }
  uint32_t begin_of(size_t stretch) const { return stretch == 0 ? 0 : stretches_[stretch - 1].end; }
  void find(size_t byte, size_t& hint) const;
  void append_together(size_t bytes, Span span);

  std::vector<Stretch> stretches_;
};

}  // namespace fovea

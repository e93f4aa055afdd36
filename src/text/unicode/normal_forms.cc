// Unicode normal forms (Unicode Standard Annex 15). The origin of each character is tracked in the
// same way as in Hugging Face.

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "unicode/normal_forms.h"
#include "unicode/unicode.h"
#include "unicode/utf8.h"

namespace fovea::text {
namespace {

struct Decomposed {
  char32_t c;
  int64_t change;
  uint8_t order;  // canonical combining class
};

// Returns whether the decomposition of a character is newer than Hugging Face's tables.
bool is_young(char32_t c) {
  const auto within = [c](char32_t first, char32_t last) { return c >= first && c <= last; };
  return c == 0x32FF || within(0xA7F1, 0xA7F4) || c == 0xAB69 || within(0x10781, 0x107BA) ||
         c == 0x11938 || c == 0x1F16C || within(0x1E030, 0x1E06D) || within(0x1FBF0, 0x1FBF9) ||
         within(0x105C9, 0x105E4) || within(0x11383, 0x113C9) || within(0x16121, 0x16128) ||
         within(0x16D63, 0x16D6A) || within(0x1CCD6, 0x1CCF9);
}

const utf8proc_property_t& property(char32_t c) {
  return *utf8proc_get_property(static_cast<utf8proc_int32_t>(c));
}

// Returns the canonical combining class; 0 for marks that are newer than Hugging Face's tables.
uint8_t order_of(char32_t c) {
  if (c < 0x300 || !unicode::is(c, unicode::combining)) return 0;
  return static_cast<uint8_t>(property(c).combining_class);
}

// Returns whether a character of class 0 may compose with the previous character.
bool joins(char32_t c) {
  constexpr std::array<char32_t, 24> all = {0x9BE,   0x9D7,   0xB3E,   0xB56,   0xB57,   0xBBE,
                                            0xBD7,   0xCC2,   0xCD5,   0xCD6,   0xD3E,   0xD57,
                                            0xDCF,   0xDDF,   0x102E,  0x1B35,  0x11127, 0x1133E,
                                            0x11357, 0x114B0, 0x114BA, 0x114BD, 0x115AF, 0x11930};
  return std::binary_search(all.begin(), all.end(), c);
}

bool is_hangul(char32_t c) { return c >= 0xAC00 && c < 0xD7A4; }
bool is_jamo(char32_t c) { return c >= 0x1100 && c < 0x1200; }

class Composer {
 public:
  explicit Composer(NormalForm form)
      : compose_(form == NormalForm::nfc || form == NormalForm::nfkc),
        options_(UTF8PROC_DECOMPOSE |
                 (form == NormalForm::nfkc || form == NormalForm::nfkd ? UTF8PROC_COMPAT : 0)),
        plain_below_(form == NormalForm::nfc    ? 0x300
                     : form == NormalForm::nfkc ? 0xA0
                                                : 0xC0) {
    if (form == NormalForm::nfkd) plain_below_ = 0xA0;
  }

  // Returns whether the character stays unchanged and does not affect earlier characters.
  bool is_plain(char32_t c) const {
    if (c < plain_below_) return true;
    if (is_hangul(c)) return compose_;
    if (is_jamo(c)) return !compose_;
    const utf8proc_property_t& p = property(c);
    if (order_of(c) != 0) return false;
    const bool decomposes = p.decomp_seqindex != UINT16_MAX;
    return !decomposes && (!compose_ || !joins(c));
  }

  bool empty() const { return pending_.empty(); }
  void add(char32_t c) {
    std::array<utf8proc_int32_t, 32> parts;  // the longest decomposition has 18
    utf8proc_ssize_t count = -1;
    int last_class = 0;
    if (!is_young(c)) {
      count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts.data(),
                                      static_cast<utf8proc_ssize_t>(parts.size()),
                                      static_cast<utf8proc_option_t>(options_), &last_class);
    }
    if (count < 1 || count > static_cast<utf8proc_ssize_t>(parts.size())) {
      count = 1;
      parts[0] = static_cast<utf8proc_int32_t>(c);
    }
    for (utf8proc_ssize_t i = 0; i < count; ++i) {
      const auto part = static_cast<char32_t>(parts[static_cast<size_t>(i)]);
      const uint8_t order = order_of(part);
      if (order == 0) sort();
      pending_.push_back({part, i == 0 ? 0 : 1, order});
    }
  }

  // Writes all pending characters.
  void flush(Rewriter& rewriter) {
    sort();
    if (compose_) compose();
    for (const Decomposed& change : pending_) rewriter.put(change.c, change.change);
    pending_.clear();
    sorted_ = 0;
  }

 private:
  // Sorts the unsorted characters by class, stably. A text may consist of marks only, so long runs
  // are sorted by counting, in linear time.
  void sort() {
    constexpr std::ptrdiff_t kShort = 64;
    const auto begin = pending_.begin() + static_cast<std::ptrdiff_t>(sorted_);
    if (pending_.end() - begin <= kShort) {
      std::stable_sort(begin, pending_.end(),
                       [](const Decomposed& a, const Decomposed& b) { return a.order < b.order; });
    } else {
      std::array<size_t, 257> offsets{};  // where the next character of each class goes
      std::for_each(begin, pending_.end(), [&](const Decomposed& c) { ++offsets[c.order + 1u]; });
      std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());
      const std::vector<Decomposed> unsorted(begin, pending_.end());
      for (const Decomposed& c : unsorted)
        begin[static_cast<std::ptrdiff_t>(offsets[c.order]++)] = c;
    }
    sorted_ = pending_.size();
  }

  // Returns the composition of two characters, or 0 if there is none.
  static char32_t composed(char32_t first, char32_t second) {
    if (order_of(second) == 0 && !joins(second) && !is_jamo(second)) return 0;
    if (second == 0x11A7) return 0;  // not a final jamo, but utf8proc treats it as one
    std::array<utf8proc_int32_t, 2> pair = {static_cast<utf8proc_int32_t>(first),
                                            static_cast<utf8proc_int32_t>(second)};
    const auto length = utf8proc_normalize_utf32(
        pair.data(), 2, static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
    const auto one = static_cast<char32_t>(pair[0]);
    return length == 1 && !is_young(one) ? one : 0;
  }

  // A starter composes with a following character unless a character of at least the same class
  // lies between them.
  void compose() {
    constexpr size_t none = SIZE_MAX;
    size_t starter = none, kept = 0;
    int last_order = -1;                      // class of the last character kept after the starter
    for (const Decomposed next : pending_) {  // a copy: its slot may be overwritten
      if (starter != none && last_order < static_cast<int>(next.order) + (last_order < 0)) {
        if (const char32_t one = composed(pending_[starter].c, next.c)) {
          pending_[starter].c = one;
          pending_[starter].change += next.change - 1;
          continue;
        }
      }
      if (next.order == 0) {
        starter = kept;
        last_order = -1;
      } else if (starter != none) {
        last_order = next.order;
      }
      pending_[kept++] = next;
    }
    pending_.resize(kept);
  }

  bool compose_;
  int options_;
  char32_t plain_below_;
  std::vector<Decomposed> pending_;
  size_t sorted_ = 0;
};

}  // namespace

void normalize_form(NormalForm form, AlignedText& text) {
  Composer composer(form);
  const std::string_view all = text.text();
  const auto plain_until = [&](size_t at) {
    while (at < all.size()) {
      const utf8::Character c = utf8::first(all.substr(at));
      if (!composer.is_plain(c.code_point)) break;
      at += c.bytes;
    }
    return at;
  };
  size_t done = 0, at = plain_until(0);
  if (at == all.size()) return;
  Rewriter rewriter(text);
  while (true) {
    // The last plain character may compose with the characters that follow it.
    if (at < all.size()) {
      for (bool inside = true; inside && at > done;) {
        --at;
        inside = (static_cast<uint8_t>(all[at]) & 0xC0) == 0x80;
      }
    }
    rewriter.copy(at - done);
    if (at == all.size()) break;
    while (at < all.size()) {
      const utf8::Character c = utf8::first(all.substr(at));
      if (!composer.empty() && composer.is_plain(c.code_point)) break;
      composer.add(c.code_point);
      at += c.bytes;
    }
    composer.flush(rewriter);
    done = at;
    at = plain_until(at);
  }
  rewriter.finish();
}

}  // namespace fovea::text

#include "tokenizer/pipeline/normalizers.h"

#include <array>

#include "unicode/unicode.h"
#include "unicode/utf8.h"

namespace fovea::text {
namespace {

// Calls on(code point, number of bytes) for each character.
template <class On>
void for_each_character(std::string_view text, On&& on) {
  for (size_t i = 0; i < text.size();) {
    const utf8::Character c = utf8::first(text.substr(i));
    on(c.code_point, c.bytes);
    i += c.bytes;
  }
}

// Removes the characters that `keep` rejects; their positions are added to the last kept character
// before them.
template <class Keep>
void filter(AlignedText& text, Keep&& keep) {
  Rewriter rewriter(text);
  bool any = false;
  char32_t last = 0;
  int64_t removed = 0;
  size_t leading = 0;
  for_each_character(text.text(), [&](char32_t c, uint32_t bytes) {
    if (!keep(c)) {
      ++removed;
      if (!any) leading += bytes;
      return;
    }
    if (any) {
      rewriter.put(last, -removed);
    } else {
      rewriter.skip(leading);
    }
    any = true;
    last = c;
    removed = 0;
  });
  if (any) rewriter.put(last, -removed);
  rewriter.finish();
}

template <class Map>
void map(AlignedText& text, Map&& mapped) {
  Rewriter rewriter(text);
  for_each_character(text.text(), [&](char32_t c, uint32_t) { rewriter.put(mapped(c), 0); });
  rewriter.finish();
}

void apply(const UnicodeForm& form, AlignedText& text) { normalize_form(form.form, text); }

void apply(const Nmt&, AlignedText& text) {
  filter(text, [](char32_t c) {
    return !((c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F ||
             c == 0x9F);
  });
  map(text, [](char32_t c) {
    const bool space = c == 9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 ||
                       (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                       c == 0xFEFF || c == utf8::replacement;
    return space ? char32_t{' '} : c;
  });
}

void apply(const Lowercase&, AlignedText& text) {
  Rewriter rewriter(text);
  for_each_character(text.text(), [&](char32_t c, uint32_t) {
    const auto lower = unicode::lowercase(c);
    rewriter.put(lower[0], 0);
    if (lower[1]) rewriter.put(lower[1], 1);
  });
  rewriter.finish();
}

void apply(const StripAccents&, AlignedText& text) {
  filter(text, [](char32_t c) { return !unicode::is(c, unicode::combining); });
}

void apply(const ByteLevelNormalizer&, AlignedText& text) {
  Rewriter rewriter(text);
  print_bytes(rewriter, text.text());
  rewriter.finish();
}

void apply(const Strip& strip, AlignedText& text) {
  size_t begin = 0, end = 0;
  bool any = false;
  size_t at = 0;
  for_each_character(text.text(), [&](char32_t c, uint32_t bytes) {
    if (!unicode::is(c, unicode::space)) {
      if (!any) begin = at;
      any = true;
      end = at + bytes;
    }
    at += bytes;
  });
  if (!any) begin = end = strip.left || strip.right ? 0 : at;
  if (any && !strip.left) begin = 0;
  if (any && !strip.right) end = at;
  if (begin == 0 && end == at) return;
  Rewriter rewriter(text);
  rewriter.skip(begin);
  rewriter.copy(end - begin);
  rewriter.finish();
}

void apply(const Prepend& prepend, AlignedText& text) {
  if (text.text().empty()) return;
  Rewriter rewriter(text);
  const utf8::Character next = utf8::first(text.text());
  bool first = true;
  for_each_character(prepend.text, [&](char32_t c, uint32_t) {
    rewriter.put(c, first ? 0 : 1);
    first = false;
  });
  if (first) {
    rewriter.copy(text.text().size());
  } else {
    rewriter.put(next.code_point, 1);
    rewriter.copy(text.text().size() - next.bytes);
  }
  rewriter.finish();
}

void apply(const Append& append, AlignedText& text) {
  Rewriter rewriter(text);
  rewriter.copy(text.text().size());
  rewriter.insert(append.text);
  rewriter.finish();
}

void apply(const Replace& replace, AlignedText& text) {
  std::vector<Stretch> stretches;
  replace.pattern.find(text.text(), stretches);
  Rewriter rewriter(text);
  for (const Stretch& stretch : stretches) {
    const size_t bytes = stretch.end - stretch.begin;
    if (!stretch.matches) {
      rewriter.copy(bytes);
    } else {
      rewriter.skip(bytes);
      rewriter.insert(replace.content);
    }
  }
  rewriter.finish();
}

void apply(const Charsmap& charsmap, AlignedText& text) { charsmap.normalize(text); }

// Applies BertNormalizer step by step.
void apply_steps(const BertNormalizer& steps, AlignedText& text) {
  if (steps.clean_text) {
    filter(text, [](char32_t c) { return !unicode::is(c, unicode::control); });
    map(text, [](char32_t c) { return unicode::is(c, unicode::space) ? char32_t{' '} : c; });
  }
  if (steps.handle_chinese_chars) {
    Rewriter rewriter(text);
    for_each_character(text.text(), [&](char32_t c, uint32_t) {
      const bool chinese = unicode::is_chinese(c);
      if (chinese) rewriter.put(' ', 0);
      rewriter.put(c, chinese ? 1 : 0);
      if (chinese) rewriter.put(' ', 1);
    });
    rewriter.finish();
  }
  if (steps.strip_accents) {
    normalize_form(NormalForm::nfd, text);
    filter(text, [](char32_t c) { return !unicode::is(c, unicode::accent); });
  }
  if (steps.lowercase) apply(Lowercase{}, text);
}

// Returns the results of the steps for all ASCII characters: a character, or 0 if it is removed.
std::array<char, 128> bert_ascii(const BertNormalizer& steps) {
  std::array<char, 128> table;
  for (char32_t c = 0; c < 128; ++c) {
    char32_t to = steps.lowercase ? unicode::lowercase(c)[0] : c;
    if (steps.clean_text && unicode::is(c, unicode::space)) to = ' ';
    if (steps.clean_text && unicode::is(c, unicode::control)) to = 0;
    table[c] = static_cast<char>(to);
  }
  return table;
}

size_t run_length(std::string_view text, bool ascii) {
  size_t i = 0;
  while (i < text.size() && (static_cast<uint8_t>(text[i]) < 0x80) == ascii) ++i;
  return i;
}

// The result for an ASCII character does not depend on its neighbours, so runs of ASCII use a
// table.
void apply(const BertNormalizer& steps, AlignedText& text) {
  std::string_view rest = text.text();
  if (text.aligned() || (!steps.clean_text && rest.find('\0') != rest.npos))
    return apply_steps(steps, text);
  const std::array<char, 128> table = bert_ascii(steps);
  AlignedText run;
  std::string ascii;
  Rewriter rewriter(text);
  while (!rest.empty()) {
    size_t length = run_length(rest, true);
    ascii.resize(length);
    size_t kept = 0;
    for (size_t i = 0; i < length; ++i) {
      ascii[kept] = table[static_cast<uint8_t>(rest[i])];
      kept += ascii[kept] != 0;
    }
    rewriter.insert({ascii.data(), kept});
    rest.remove_prefix(length);
    length = run_length(rest, false);
    if (length == 0) continue;
    run.assign(rest.substr(0, length), 0, false, text.limit());
    apply_steps(steps, run);
    rewriter.insert(run.text());
    rest.remove_prefix(length);
  }
  rewriter.finish();
}

// Returns whether the character with the value of a byte represents the byte; the characters from
// U+0100 on represent the other bytes.
bool prints_itself(unsigned byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
}

struct PrintableBytes {
  PrintableBytes() {
    char32_t next = 0x100;
    byte_of.fill(-1);
    for (unsigned byte = 0; byte < 256; ++byte) {
      const char32_t c = prints_itself(byte) ? byte : next++;
      utf8::append(texts[byte], c);
      byte_of[c] = static_cast<int16_t>(byte);
    }
  }
  std::array<std::string, 256> texts;
  std::array<int16_t, 0x144> byte_of;  // 0x100, and 68 bytes that are not printable
};
const PrintableBytes printable_bytes;

}  // namespace

std::string_view printable_byte(uint8_t byte) { return printable_bytes.texts[byte]; }

int byte_of_printable(char32_t c) {
  return c < printable_bytes.byte_of.size() ? printable_bytes.byte_of[c] : -1;
}

void print_bytes(Rewriter& rewriter, std::string_view text) {
  std::string printed;
  for (size_t i = 0; i < text.size();) {
    const uint32_t bytes = utf8::first(text.substr(i)).bytes;
    printed.clear();
    for (const char byte : text.substr(i, bytes))
      printed += printable_byte(static_cast<uint8_t>(byte));
    rewriter.put_bytes(printed, bytes);
    i += bytes;
  }
}

void normalize(const Normalizers& normalizers, AlignedText& text) {
  text.limit().enter("normalizer");
  for (const Normalizer& normalizer : normalizers)
    std::visit([&](const auto& part) { apply(part, text); }, normalizer);
}

}  // namespace fovea::text

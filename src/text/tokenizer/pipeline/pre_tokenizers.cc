#include "tokenizer/pipeline/pre_tokenizers.h"

#include <algorithm>

#include "tokenizer/pipeline/normalizers.h"
#include "unicode/unicode.h"
#include "unicode/utf8.h"

namespace fovea::text {
namespace {

using unicode::is;

utf8::Character character(std::string_view text, size_t i) {
  const auto byte = static_cast<uint8_t>(text[i]);
  return byte < 0x80 ? utf8::Character{byte, 1, true} : utf8::first(text.substr(i));
}

// Replaces each piece by the pieces that cut_piece(text, push) passes to push(begin, end). Their
// positions are relative to the replaced piece.
template <class CutPiece>
void cut_each(CutText& cut, CutPiece&& cut_piece) {
  cut.next.clear();
  for (const Span piece : cut.pieces) {
    cut_piece(cut.text.text(piece), [&](size_t begin, size_t end) {
      if (begin < end) {
        cut.next.push_back(
            {piece.begin + static_cast<uint32_t>(begin), piece.begin + static_cast<uint32_t>(end)});
      }
    });
  }
  std::swap(cut.pieces, cut.next);
}

// Pushes the stretches; joins a stretch to the previous one if the behaviour requires it.
template <class Push>
void join(const std::vector<Stretch>& stretches, Behavior behavior, Push&& push) {
  bool open = false;
  Stretch last{};
  for (const Stretch& stretch : stretches) {
    const bool joined =
        open && (behavior == Behavior::contiguous ? stretch.matches == last.matches
                                                  : stretch.matches && !last.matches);
    const uint32_t begin = joined ? last.begin : stretch.begin;
    if (open && !joined) push(last.begin, last.end);
    last = {begin, stretch.end, stretch.matches};
    open = true;
  }
  if (open) push(last.begin, last.end);
}

// Pushes the stretches; joins each match to the following stretch unless that is also a match.
template <class Push>
void join_next(const std::vector<Stretch>& stretches, Push&& push) {
  for (size_t i = 0; i < stretches.size(); ++i) {
    const bool joins =
        stretches[i].matches && i + 1 < stretches.size() && !stretches[i + 1].matches;
    const uint32_t begin = stretches[i].begin;
    if (joins) ++i;
    push(begin, stretches[i].end);
  }
}

template <class Push>
void push_stretches(const std::vector<Stretch>& stretches, Behavior behavior, Push&& push) {
  switch (behavior) {
    case Behavior::removed:
    case Behavior::isolated:
      for (const Stretch& stretch : stretches) {
        if (behavior == Behavior::isolated || !stretch.matches) push(stretch.begin, stretch.end);
      }
      return;
    case Behavior::merged_with_next: return join_next(stretches, push);
    case Behavior::merged_with_previous:
    case Behavior::contiguous: return join(stretches, behavior, push);
  }
}

// Replaces each piece by the stretches that find(text, stretches) appends.
template <class Find>
void isolate(CutText& cut, Find&& find) {
  cut.next.clear();
  for (const Span piece : cut.pieces) {
    cut.stretches.clear();
    find(cut.text.text(piece), cut.stretches);
    size_t kept = cut.next.size();
    cut.next.resize(kept + cut.stretches.size());
    for (const Stretch& stretch : cut.stretches) {
      cut.next[kept] = {piece.begin + stretch.begin, piece.begin + stretch.end};
      kept += stretch.begin < stretch.end;
    }
    cut.next.resize(kept);
  }
  std::swap(cut.pieces, cut.next);
}

// Splits at the characters for which matches(character) is true.
template <class Matches>
void cut_at(CutText& cut, Behavior behavior, Matches&& matches) {
  cut_each(cut, [&](std::string_view text, auto&& push) {
    cut.stretches.clear();
    size_t done = 0;
    const auto stretch = [&](size_t begin, size_t end, bool match) {
      cut.stretches.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(end), match});
    };
    for (size_t i = 0; i < text.size();) {
      const utf8::Character c = character(text, i);
      const size_t end = i + c.bytes;
      if (matches(c.code_point)) {
        if (done < i) stretch(done, i, false);
        stretch(i, end, true);
        done = end;
      }
      i = end;
    }
    if (done < text.size()) stretch(done, text.size(), false);
    push_stretches(cut.stretches, behavior, push);
  });
}

void cut_with(CutText& cut, const Pattern& pattern, Behavior behavior, bool invert) {
  if (behavior == Behavior::isolated) {
    return isolate(cut, [&](std::string_view text, std::vector<Stretch>& stretches) {
      pattern.find(text, stretches);
    });
  }
  cut_each(cut, [&](std::string_view text, auto&& push) {
    cut.stretches.clear();
    pattern.find(text, cut.stretches);
    if (invert) {
      for (Stretch& stretch : cut.stretches) stretch.matches = !stretch.matches;
    }
    push_stretches(cut.stretches, behavior, push);
  });
}

// Rewrites each piece, which remains one piece.
template <class Rewrite>
void rewrite_each(CutText& cut, Rewrite&& rewrite) {
  Rewriter rewriter(cut.text);
  for (Span& piece : cut.pieces) {
    const auto begin = static_cast<uint32_t>(rewriter.size());
    rewriter.enter(piece.begin);
    rewrite(piece, rewriter);
    piece = {begin, static_cast<uint32_t>(rewriter.size())};
  }
  rewriter.finish();
}

void apply(const ByteLevel& byte_level, CutText& cut) {
  const auto lacks_space = [&](Span piece) { return cut.text.text()[piece.begin] != ' '; };
  if (byte_level.add_prefix_space &&
      std::any_of(cut.pieces.begin(), cut.pieces.end(), lacks_space)) {
    rewrite_each(cut, [&](Span piece, Rewriter& rewriter) {
      if (lacks_space(piece)) rewriter.put_bytes(" ", 0);
      rewriter.copy(piece.end - piece.begin);
    });
  }
  if (byte_level.use_regex) isolate(cut, byte_level_scanner().find);
  if (byte_level.print) {
    rewrite_each(
        cut, [&](Span piece, Rewriter& rewriter) { print_bytes(rewriter, cut.text.text(piece)); });
  }
}

void apply(const Metaspace& metaspace, CutText& cut) {
  const std::string& replacement = metaspace.replacement;
  rewrite_each(cut, [&](Span piece, Rewriter& rewriter) {
    std::string_view text = cut.text.text(piece);
    const bool starts = text[0] == ' ' || text.substr(0, replacement.size()) == replacement;
    const bool prepend =
        metaspace.prepend_scheme == PrependScheme::always ||
        (metaspace.prepend_scheme == PrependScheme::first && cut.text.start(piece) == 0);
    if (prepend && !starts) rewriter.put_bytes(replacement, 0);
    while (!text.empty()) {
      const size_t space = std::min(text.find(' '), text.size());
      rewriter.copy(space);
      if (space < text.size()) rewriter.put_bytes(replacement, 1);
      text.remove_prefix(std::min(space + 1, text.size()));
    }
  });
  if (!metaspace.split) return;
  cut_each(cut, [&](std::string_view text, auto&& push) {
    size_t begin = 0;
    while (begin < text.size()) {
      const size_t next = std::min(text.find(replacement, begin + 1), text.size());
      push(begin, next);
      begin = next;
    }
  });
}

void apply(const Whitespace&, CutText& cut) {
  constexpr uint16_t words = unicode::plain_word, spaces = unicode::space;
  cut_each(cut, [&](std::string_view text, auto&& push) {
    size_t begin = 0;
    uint16_t kind = spaces;  // kind of the current piece
    for (size_t i = 0; i < text.size();) {
      const utf8::Character c = character(text, i);
      const uint16_t classes = unicode::classes.of(c.code_point) & (words | spaces);
      const uint16_t next = (classes & words) != 0 ? words : classes;
      if (next != kind) {
        if (kind != spaces) push(begin, i);
        begin = i;
        kind = next;
      }
      i += c.bytes;
    }
    if (kind != spaces) push(begin, text.size());
  });
}

void apply(const WhitespaceSplit&, CutText& cut) {
  cut_at(cut, Behavior::removed, [](char32_t c) { return is(c, unicode::space); });
}

void apply(const BertPreTokenizer&, CutText& cut) {
  constexpr uint16_t cuts = unicode::space | unicode::separator;
  const std::array<uint16_t, 256>& ascii = unicode::classes.pages[0];
  cut_each(cut, [&](std::string_view text, auto&& push) {
    size_t begin = 0;
    for (size_t i = 0; i < text.size();) {
      const auto byte = static_cast<uint8_t>(text[i]);
      if (byte < 0x80 && (ascii[byte] & cuts) == 0) {
        ++i;
        continue;
      }
      const utf8::Character c = character(text, i);
      const uint16_t classes = unicode::classes.of(c.code_point);
      const size_t end = i + c.bytes;
      if ((classes & cuts) != 0) {
        push(begin, i);
        if ((classes & unicode::space) == 0) push(i, end);
        begin = end;
      }
      i = end;
    }
    push(begin, text.size());
  });
}

void apply(const Split& split, CutText& cut) {
  cut_with(cut, split.pattern, split.behavior, split.invert);
}

void apply(const Digits& digits, CutText& cut) {
  cut_at(cut, digits.individual ? Behavior::isolated : Behavior::contiguous,
         [](char32_t c) { return is(c, unicode::digit); });
}

void apply(const Punctuation& punctuation, CutText& cut) {
  cut_at(cut, punctuation.behavior, [](char32_t c) { return is(c, unicode::separator); });
}

void apply(const CharDelimiterSplit& split, CutText& cut) {
  cut_at(cut, Behavior::removed, [&](char32_t c) { return c == split.delimiter; });
}

// As in Hugging Face, characters that fit any script are dropped before the first character with a
// script.
void apply(const UnicodeScripts&, CutText& cut) {
  cut_each(cut, [](std::string_view text, auto&& push) {
    size_t begin = text.size();
    int last = 0;
    for (size_t i = 0; i < text.size();) {
      const utf8::Character c = character(text, i);
      const int script = unicode::script(c.code_point);
      if (script != 0 && script != last) {
        if (last != 0) push(begin, i);
        begin = i;
        last = script;
      }
      i += c.bytes;
    }
    push(begin, text.size());
  });
}

void apply(const FixedLength& fixed, CutText& cut) {
  cut_each(cut, [&](std::string_view text, auto&& push) {
    size_t begin = 0, characters = 0;
    for (size_t i = 0; i < text.size();) {
      i += character(text, i).bytes;
      if (++characters == fixed.length) {
        push(begin, i);
        begin = i;
        characters = 0;
      }
    }
    push(begin, text.size());
  });
}

void apply(const WordStarts& words, CutText& cut) {
  const std::string& mark = words.mark;
  cut_each(cut, [&](std::string_view text, auto&& push) {
    size_t begin = 0;
    for (size_t at = text.find(mark); at != text.npos; at = text.find(mark, at)) {
      push(begin, at);
      begin = at;
      while (text.substr(at, mark.size()) == mark) at += mark.size();
    }
    push(begin, text.size());
  });
}

}  // namespace

void pre_tokenize(const PreTokenizers& pre_tokenizers, CutText& cut) {
  cut.text.limit().enter("pre_tokenizer");
  for (const PreTokenizer& pre_tokenizer : pre_tokenizers)
    std::visit([&](const auto& part) { apply(part, cut); }, pre_tokenizer);
}

}  // namespace fovea::text

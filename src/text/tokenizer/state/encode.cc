#include "tokenizer/state/encode.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"
#include "tokenizer/models/piece_cache.h"
#include "unicode/utf8.h"

namespace fovea::text {
namespace {

// Scratch memory of one thread for encoding, kept between texts.
struct Workspace {
  AlignedText normalized;
  CutText cut;
  std::vector<AddedPart> raw_parts, normalized_parts;
  std::vector<Piece> pieces;
};

// The workspace of a larger text, before or after the normalizer, is not kept.
constexpr size_t kKeptBytes = size_t{16} << 20;

Workspace& workspace() {
  thread_local Workspace space;
  return space;
}

// Frees the workspace after a long text, also if an error is thrown.
struct WorkspaceUse {
  size_t bytes;  // size of the text
  ~WorkspaceUse() {
    Workspace& space = workspace();
    const size_t rewritten = std::max(space.normalized.capacity(), space.cut.text.capacity());
    if (std::max(bytes, rewritten) <= kKeptBytes) return;
    // Assigning an empty string would keep the memory of the old one.
    static_cast<void>(std::exchange(space, {}));
  }
};

PieceCache& piece_cache() {
  thread_local PieceCache cache;
  return cache;
}

struct IdSink {
  static constexpr bool aligned = false;
  std::vector<int32_t>& ids;
  bool parsed;  // whether the model may produce special tokens from the text

  void added(int32_t id, Span, std::string_view) { ids.push_back(id); }

  void stretches(const TokenizerState& state, const CutText& cut) {
    std::visit([&](const auto& model) { append(state, model, cut); }, state.model);
  }

 private:
  void append(const TokenizerState&, const CharacterModel& model, const CutText& cut) {
    for (const Span piece : cut.pieces) model.ids(cut.text.text(piece), ids);
  }
  template <class Model>
  void append(const TokenizerState& state, const Model& model, const CutText& cut) {
    PieceCache& cache = piece_cache();
    for (const Span piece : cut.pieces)
      cache.ids(state.number, model, cut.text.text(piece), ids, parsed);
  }
};

struct SpanSink {
  static constexpr bool aligned = true;
  const OnToken& on_token;
  bool parsed;

  void added(int32_t id, Span span, std::string_view text) { on_token({id, span, text}); }

  void stretches(const TokenizerState& state, const CutText& cut) {
    std::vector<Piece>& pieces = workspace().pieces;
    for (const Span stretch : cut.pieces) {
      pieces.clear();
      const std::string_view text = cut.text.text(stretch);
      std::visit([&](const auto& model) { model.encode(text, pieces, parsed); }, state.model);
      for (const Piece& piece : pieces) {
        const bool as_written = state.unknown_as_written && piece.id == state.unknown;
        on_token(
            {piece.id, cut.text.origin({stretch.begin + piece.begin, stretch.begin + piece.end}),
             as_written ? text.substr(piece.begin, piece.end - piece.begin) : std::string_view(),
             &piece != pieces.data()});
      }
    }
  }
};

// Encodes a part of the text that lies between added tokens found in the raw text. `origin` is its
// position in the text.
template <class Sink>
void encode_part(const TokenizerState& state, std::string_view text, uint32_t origin,
                 SpecialTokens special, GrowthLimit& limit, Sink& sink) {
  Workspace& space = workspace();
  const bool aligned = Sink::aligned || (state.needs_origins && origin == 0);
  space.normalized.assign(text, origin, aligned, limit);
  normalize(state.normalizers, space.normalized);
  space.normalized_parts.clear();
  state.normalized_added.cut(space.normalized.text(), special != SpecialTokens::as_text,
                             space.normalized_parts);
  for (const AddedPart& part : space.normalized_parts) {
    if (part.token >= 0) {
      const Span span = Sink::aligned ? space.normalized.origin(part.span) : part.span;
      sink.added(part.token, span, space.normalized.text(part.span));
      continue;
    }
    space.cut.text.assign(space.normalized, part.span);
    space.cut.pieces.assign(1, {0, part.span.end - part.span.begin});
    pre_tokenize(state.pre_tokenizers, space.cut);
    sink.stretches(state, space.cut);
  }
}

std::string without_guards(std::string_view text) {
  std::string rest;
  for (size_t guard; (guard = text.find(kGuard)) != text.npos;
       text.remove_prefix(guard + kGuard.size()))
    rest += text.substr(0, guard);
  return rest += text;
}

// Converts positions in a text without its guards, both of which begin at `origin`, to positions in
// the text with them. A token does not include the guard before it.
class GuardedOffsets {
 public:
  GuardedOffsets(std::string_view written, uint32_t origin) : origin_(origin) {
    for (size_t at = 0; (at = written.find(kGuard, at)) != written.npos; at += kGuard.size())
      guards_.push_back(static_cast<uint32_t>(at - guards_.size() * kGuard.size()));
  }
  Span written(const Span& span) const {
    const uint32_t end = span.end > span.begin ? span.end - 1 : span.begin;  // the last byte
    return {moved(span.begin), moved(end) + (span.end - end)};
  }

 private:
  uint32_t moved(uint32_t offset) const {
    const auto before = std::upper_bound(guards_.begin(), guards_.end(), offset - origin_);
    return offset + static_cast<uint32_t>((before - guards_.begin()) * std::ssize(kGuard));
  }

  uint32_t origin_;
  std::vector<uint32_t> guards_;  // their positions in the text without guards
};

// Encodes the part `written` of a guarded text, which begins at `begin`.
template <class Sink>
void encode_stretch(const TokenizerState& state, std::string_view written, uint32_t begin,
                    GrowthLimit& limit, Sink& sink) {
  const std::string stretch = without_guards(written);
  if (stretch.empty()) return;
  if (stretch == written)
    return encode_part(state, written, begin, SpecialTokens::parsed, limit, sink);
  if constexpr (Sink::aligned) {
    const GuardedOffsets offsets(written, begin);
    const OnToken on_stretch = [&](const TokenWithSpan& token) {
      sink.on_token({token.id, offsets.written(token.span), token.text, token.inner});
    };
    SpanSink spans{on_stretch, sink.parsed};
    encode_part(state, stretch, begin, SpecialTokens::as_text, limit, spans);
  } else {
    encode_part(state, stretch, begin, SpecialTokens::as_text, limit, sink);
  }
}

// Encodes a text with guards: guarded special tokens are encoded as part of the text around them.
template <class Sink>
void encode_guarded(const TokenizerState& state, std::string_view text, GrowthLimit& limit,
                    Sink& sink) {
  std::vector<AddedPart> parts;
  state.raw_added.cut(text, true, parts);
  size_t begin = 0;  // start of the part that is not encoded yet
  const auto encode_until = [&](size_t end) {
    encode_stretch(state, text.substr(begin, end - begin), static_cast<uint32_t>(begin), limit,
                   sink);
  };
  for (const AddedPart& part : parts) {
    if (part.token < 0) continue;
    const std::string_view before = text.substr(0, part.span.begin);
    if (state.special[static_cast<size_t>(part.token)] && before.ends_with(kGuard)) continue;
    encode_until(part.span.begin);
    sink.added(part.token, part.span,
               text.substr(part.span.begin, part.span.end - part.span.begin));
    begin = part.span.end;
  }
  encode_until(text.size());
}

template <class Sink>
void encode_valid(const TokenizerState& state, std::string_view text, SpecialTokens special,
                  Sink& sink) {
  GrowthLimit limit = GrowthLimit::of_text(text.size());
  const WorkspaceUse use{text.size()};
  if (special == SpecialTokens::guarded) return encode_guarded(state, text, limit, sink);
  Workspace& space = workspace();
  space.raw_parts.clear();
  state.raw_added.cut(text, special == SpecialTokens::parsed, space.raw_parts);
  for (const AddedPart& part : space.raw_parts) {
    const auto [begin, end] = part.span;
    const std::string_view stretch = text.substr(begin, end - begin);
    if (part.token >= 0) {
      sink.added(part.token, part.span, stretch);
    } else {
      encode_part(state, stretch, begin, special, limit, sink);
    }
  }
}

void check_size(size_t bytes) {
  // Positions have 32 bits, and an invalid byte becomes three bytes.
  constexpr size_t most = UINT32_MAX / 4;
  check(bytes <= most, "text: has {} bytes; expected at most {} at once", bytes, most);
}

// Converts positions in a repaired text to positions in the original text.
class RepairedOffsets {
 public:
  explicit RepairedOffsets(std::string_view text) {
    uint32_t repaired = 0;
    for (size_t i = 0; i < text.size();) {
      const utf8::Character c = utf8::first(text.substr(i));
      repaired += c.valid ? c.bytes : 3;
      if (!c.valid) ends_.push_back(repaired);
      i += c.bytes;
    }
  }
  uint32_t original(uint32_t offset) const {
    const auto before = std::upper_bound(ends_.begin(), ends_.end(), offset) - ends_.begin();
    return offset - 2 * static_cast<uint32_t>(before);
  }

 private:
  std::vector<uint32_t> ends_;  // ends of the replacements, in the repaired text
};

}  // namespace

std::string guarded_text(const TokenizerState& state, std::string_view text) {
  check_size(text.size());
  std::set<size_t> offsets;
  std::vector<AddedPart> parts;
  const auto find = [&](const AddedTokenFinder& finder, const AlignedText& in) {
    parts.clear();
    finder.cut(in.text(), true, parts);
    for (const AddedPart& part : parts) {
      if (part.token >= 0 && state.special[static_cast<size_t>(part.token)])
        offsets.insert(in.origin(part.span).begin);
    }
  };
  const std::string valid = utf8::repaired(text);
  GrowthLimit limit = GrowthLimit::of_text(valid.size());
  AlignedText written;
  written.assign(valid, 0, true, limit);
  find(state.raw_added, written);
  normalize(state.normalizers, written);
  find(state.normalized_added, written);
  std::string marked = valid;
  for (auto offset = offsets.rbegin(); offset != offsets.rend(); ++offset)
    marked.insert(*offset, kGuard);
  return marked;
}

void encode_ids(const TokenizerState& state, std::string_view text, SpecialTokens special,
                std::vector<int32_t>& ids) {
  check_size(text.size());
  IdSink sink{ids, special == SpecialTokens::parsed};
  if (utf8::valid_prefix(text) == text.size()) return encode_valid(state, text, special, sink);
  encode_valid(state, utf8::repaired(text), special, sink);
}

void encode_with_spans(const TokenizerState& state, std::string_view text, SpecialTokens special,
                       const OnToken& on_token) {
  check_size(text.size());
  const bool parsed = special == SpecialTokens::parsed;
  if (utf8::valid_prefix(text) == text.size()) {
    SpanSink sink{on_token, parsed};
    return encode_valid(state, text, special, sink);
  }
  const RepairedOffsets offsets(text);
  const OnToken on_repaired = [&](const TokenWithSpan& token) {
    const Span span = {offsets.original(token.span.begin), offsets.original(token.span.end)};
    on_token({token.id, span, token.text});
  };
  SpanSink sink{on_repaired, parsed};
  encode_valid(state, utf8::repaired(text), special, sink);
}

}  // namespace fovea::text

// Entities: labels of tokens, joined to spans as the token-classification pipeline of transformers
// does.

#include <algorithm>

#include "base/fields.h"
#include "base/float_mode.h"
#include "classify/classifier_parts.h"
#include "tensor/host_values.h"
#include "tensor/tape.h"
#include "tokenizer/state/state.h"
#include "unicode/unicode.h"
#include "unicode/utf8.h"

namespace fovea::infer {
namespace {

// A token, or a word of several tokens, with its label.
struct LabelledPart {
  size_t label;
  float score;
  TextSpan span;
  size_t begin = 0, end = 0;  // its tokens
};

// The tokens of a text, the windows that the model reads, and the probabilities [tokens, labels].
struct EntityText {
  TokenSpans tokens;
  std::vector<Interval> windows;
  std::vector<float> probabilities;
};

// Returns the index of the window in which token `token` is farthest from a border.
size_t best_window(const std::vector<Interval>& windows, int64_t token) {
  size_t best = 0;
  while (best + 1 < windows.size()) {
    const int64_t middle = (windows[best + 1].begin + windows[best].end) / 2;
    if (token < middle) break;
    ++best;
  }
  return best;
}

LabelledPart part_of(const float* scores, size_t labels, const TextSpan& span) {
  const auto best = static_cast<size_t>(std::max_element(scores, scores + labels) - scores);
  return {.label = best, .score = scores[best], .span = span};
}

// Returns whether a token continues a word. A vocabulary of word pieces marks such tokens, so that
// their texts are longer than the parts of the text that they cover; in other vocabularies, a token
// after a character that is not a space does.
bool continues_word(const text::Tokenizer& tokenizer, const std::string& text,
                    const TokenSpans& tokens, size_t i) {
  if (tokenizer.unknown_id() == tokens.ids[i]) return false;
  const TextSpan& span = tokens.spans[i];
  if (std::holds_alternative<text::WordPieceModel>(tokenizer.state().model))
    return tokens.characters[i] != span.end - span.begin;
  if (span.begin == 0 || span.first_byte >= text.size()) return false;
  return text[span.first_byte - 1] != ' ' && text[span.first_byte] != ' ';
}

// Returns whether a character is a part of words that are written with spaces between them.
bool is_in_word(char32_t c) {
  return text::unicode::is(c,
                           text::unicode::letter | text::unicode::number | text::unicode::mark) &&
         !text::unicode::is_unspaced(c);
}

// Returns whether a token continues a run of letters and digits.
bool continues_run(const std::string& text, const TokenSpans& tokens, size_t i) {
  const size_t end = tokens.spans[i - 1].end_byte, begin = tokens.spans[i].first_byte;
  if (begin != end) return begin < end;  // below: both are parts of one character
  if (begin == 0 || begin >= text.size()) return false;
  const std::string_view read = text;
  return is_in_word(text::utf8::last(read.substr(0, begin)).code_point) &&
         is_in_word(text::utf8::first(read.substr(begin)).code_point);
}

// Returns the label and the score of a word, whose tokens are [begin, end).
LabelledPart word_of(const EntityText& text, size_t begin, size_t end, size_t labels,
                     EntityJoining joining) {
  const auto row = [&](size_t i) { return text.probabilities.data() + i * labels; };
  TextSpan span = text.tokens.spans[begin];
  span.end = text.tokens.spans[end - 1].end;
  span.end_byte = text.tokens.spans[end - 1].end_byte;
  if (joining == EntityJoining::first || joining == EntityJoining::words)
    return part_of(row(begin), labels, span);
  if (joining == EntityJoining::max) {
    LabelledPart best = part_of(row(begin), labels, span);
    for (size_t i = begin + 1; i < end; ++i)
      if (const LabelledPart part = part_of(row(i), labels, span); part.score > best.score)
        best = part;
    return best;
  }
  std::vector<float> mean(labels);
  for (size_t label = 0; label < labels; ++label) {
    double sum = 0;
    for (size_t i = begin; i < end; ++i) sum += static_cast<double>(row(i)[label]);
    mean[label] = static_cast<float>(sum / static_cast<double>(end - begin));
  }
  return part_of(mean.data(), labels, span);
}

std::vector<LabelledPart> parts_in(const text::Tokenizer& tokenizer, const std::string& source,
                                   const EntityText& text, size_t labels, EntityJoining joining) {
  std::vector<LabelledPart> parts;
  const size_t count = text.tokens.ids.size();
  const bool words = joining != EntityJoining::none && joining != EntityJoining::simple;
  for (size_t begin = 0, end = 0; begin < count; begin = end) {
    end = begin + 1;
    const auto continues = [&] {
      return joining == EntityJoining::words ? continues_run(source, text.tokens, end)
                                             : continues_word(tokenizer, source, text.tokens, end);
    };
    while (words && end < count && continues()) ++end;
    parts.push_back(words ? word_of(text, begin, end, labels, joining)
                          : part_of(text.probabilities.data() + begin * labels, labels,
                                    text.tokens.spans[begin]));
    parts.back().begin = begin;
    parts.back().end = end;
  }
  return parts;
}

// An entity and its tokens.
struct JoinedParts {
  Entity entity;
  size_t begin, end;
};

std::vector<JoinedParts> joined(const std::vector<LabelledPart>& parts,
                                const std::vector<std::string>& labels, const std::string& source,
                                EntityJoining joining) {
  const std::vector<Tag> tags = tags_of(labels);
  std::vector<JoinedParts> entities;
  for (size_t begin = 0, end = 0; begin < parts.size(); begin = end) {
    const Tag& tag = tags[parts[begin].label];
    double sum = static_cast<double>(parts[begin].score);
    bool open = joining != EntityJoining::none && !tag.ends;
    for (end = begin + 1; open && end < parts.size(); ++end) {
      const Tag& next = tags[parts[end].label];
      if (next.begins || next.name != tag.name) break;
      sum += static_cast<double>(parts[end].score);
      open = !next.ends;
    }
    if (labels[parts[begin].label] == "O") continue;
    TextSpan span = parts[begin].span;
    span.end = parts[end - 1].span.end;
    span.end_byte = parts[end - 1].span.end_byte;
    entities.push_back({{span, text_at(source, span),
                         joining == EntityJoining::none ? labels[parts[begin].label] : tag.name,
                         static_cast<float>(sum / static_cast<double>(end - begin))},
                        parts[begin].begin,
                        parts[end - 1].end});
  }
  return entities;
}

// A window of a text among all windows.
struct WindowOfText {
  size_t text, window;
};

// Writes the probabilities of the tokens of all windows to the texts `found`.
void read_probabilities(const Classifier::Parts& parts, const std::vector<TokenizedText>& windows,
                        const std::vector<WindowOfText>& owners, std::vector<EntityText>& found,
                        const ClassifyOptions& options) {
  const auto labels = std::ssize(parts.labels);
  each_batch(windows, options.batch_tokens, [&](const TokenBatch& batch, const auto& chosen) {
    check_not_stopped(options);
    const Tensor scores = softmax(parts.logits(batch));  // [B, T, labels]
    const HostValues<float> values(scores);
    for (size_t b = 0; b < chosen.size(); ++b) {
      const auto [text, window] = owners[chosen[b]];
      EntityText& to = found[text];
      const Interval& range = to.windows[window];
      for (int64_t token = range.begin; token < range.end; ++token) {
        if (best_window(to.windows, token) != window) continue;
        const int64_t span =
            static_cast<int64_t>(b) * scores.dim(1) + parts.format.leading() + token - range.begin;
        std::ranges::copy(values.row(span), to.probabilities.begin() + token * labels);
      }
    }
  });
}

// Returns an entity with its tokens in the window that labels the first of them. `first_window` is
// the number of the text's first window.
ReadResults<Entity>::Found in_window(JoinedParts entity, const EntityText& text,
                                     size_t first_window, int64_t leading) {
  const auto begin = static_cast<int64_t>(entity.begin), end = static_cast<int64_t>(entity.end);
  const size_t window = best_window(text.windows, begin);
  const Interval& range = text.windows[window];
  return {std::move(entity.entity), first_window + window, leading + begin - range.begin,
          leading + std::min(end, range.end) - range.begin};
}

}  // namespace

std::vector<Tag> tags_of(const std::vector<std::string>& labels) {
  std::vector<Tag> tags;
  for (const std::string& label : labels) {
    const bool prefixed = label.size() > 2 && label[1] == '-';
    const std::string name = prefixed ? label.substr(2) : label;
    const char prefix = prefixed ? label[0] : ' ';
    const bool also_b = std::find(labels.begin(), labels.end(), "B-" + name) != labels.end();
    const bool only = also_b && (prefix == 'S' || prefix == 'U');
    const bool last = also_b && (prefix == 'E' || prefix == 'L');
    if (prefix == 'B' || prefix == 'I' || only || last)
      tags.push_back({name, prefix == 'B' || only, only || last});
    else
      tags.push_back({label});
  }
  return tags;
}

ReadResults<Entity> read_entities(const Classifier::Parts& parts,
                                  const std::vector<std::string>& texts,
                                  const ClassifyOptions& options) {
  const TextFormat& format = parts.format;
  const int64_t added = format.leading() + format.trailing();
  const int64_t most = options.window > 0 ? std::min(options.window, format.most()) : format.most();
  check_field(most > added, "window", "{}; expected more than the {} special tokens", most, added);
  const int64_t room = most - added, overlap = std::min(options.overlap, room / 2);
  const size_t labels = parts.labels.size();

  std::vector<EntityText> found(texts.size());
  tokenize_all(texts.size(), [&](size_t i) {
    check_not_stopped(options);
    found[i].tokens = token_spans(format.tokenizer(), texts[i]);
    found[i].windows = windows_over(std::ssize(found[i].tokens.ids), room, overlap);
    found[i].probabilities.resize(found[i].tokens.ids.size() * labels);
    return TokenizedText();
  });
  ReadResults<Entity> result;
  std::vector<TokenizedText>& windows = result.windows;
  std::vector<WindowOfText> owners;
  std::vector<size_t> first_window;
  for (size_t i = 0; i < texts.size(); ++i) {
    first_window.push_back(windows.size());
    if (found[i].tokens.ids.empty()) continue;
    for (size_t w = 0; w < found[i].windows.size(); ++w) {
      const Interval& range = found[i].windows[w];
      windows.push_back(format.framed(std::span(found[i].tokens.ids)
                                          .subspan(static_cast<size_t>(range.begin),
                                                   static_cast<size_t>(range.end - range.begin))));
      owners.push_back({i, w});
    }
  }
  read_probabilities(parts, windows, owners, found, options);
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto& scores = found[i].probabilities;
    check_finite_scores(scores.data(), std::ssize(scores), i, options);
    auto& entities = result.texts.emplace_back();
    for (JoinedParts& entity :
         joined(parts_in(format.tokenizer(), texts[i], found[i], labels, options.joining),
                parts.labels, texts[i], options.joining))
      entities.push_back(in_window(std::move(entity), found[i], first_window[i], format.leading()));
  }
  return result;
}

std::vector<std::vector<Entity>> Classifier::find_entities(const std::vector<std::string>& texts,
                                                           const ClassifyOptions& options) const {
  const FloatMode mode;
  check_fields(options);
  parts_->needs(ClassifierTask::words, "labels of words");
  return read_entities(*parts_, texts, options).results();
}

}  // namespace fovea::infer

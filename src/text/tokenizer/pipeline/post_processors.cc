#include "tokenizer/pipeline/post_processors.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "unicode/unicode.h"
#include "unicode/utf8.h"

namespace fovea::text {
namespace {

// Calls list(a, b) with each list `a` of `first` and the corresponding list `b` of `second`.
template <class First, class Second, class List>
void for_each_list(First& first, Second& second, List&& list) {
  list(first.ids, second.ids);
  list(first.type_ids, second.type_ids);
  list(first.tokens, second.tokens);
  list(first.offsets, second.offsets);
  list(first.byte_offsets, second.byte_offsets);
  list(first.special_mask, second.special_mask);
  list(first.attention_mask, second.attention_mask);
}

template <class T>
void append(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}
void append(TokenTexts& to, const TokenTexts& from) { to.append(from, 0, from.size()); }

void append_lists(Encoding& to, const Encoding& from) {
  for_each_list(to, from, [](auto& list, const auto& more) { append(list, more); });
}
// Frees each list immediately after it is appended, since all lists may take most of the memory.
void append_lists(Encoding& to, Encoding&& from) {
  for_each_list(to, from, [](auto& list, auto& more) {
    append(list, more);
    more = std::decay_t<decltype(more)>();  // `= {}` would keep a vector's memory
  });
}

Encoding part_of(const Encoding& all, size_t begin, size_t end) {
  Encoding part;
  const auto copy = [&](auto& to, const auto& from) {
    to.assign(from.begin() + static_cast<std::ptrdiff_t>(begin),
              from.begin() + static_cast<std::ptrdiff_t>(end));
  };
  copy(part.ids, all.ids);
  copy(part.type_ids, all.type_ids);
  part.tokens.append(all.tokens, begin, end);
  copy(part.offsets, all.offsets);
  copy(part.byte_offsets, all.byte_offsets);
  copy(part.special_mask, all.special_mask);
  copy(part.attention_mask, all.attention_mask);
  return part;
}

size_t cost_of(const Encoding& encoding) {  // without the overflowing parts
  return encoding.tokens.bytes() + kTokenCost * encoding.tokens.size();
}

size_t cost_of_all(const Encoding& encoding) {
  size_t cost = cost_of(encoding);
  for (const Encoding& overflowing : encoding.overflowing) cost += cost_of_all(overflowing);
  return cost;
}

// Appends one encoding to another. The overflowing parts of both become all combinations in which
// at least one side is an overflowing part.
void merge(Encoding& to, Encoding&& next, GrowthLimit& limit) {
  std::vector<Encoding> overflowing;
  const auto joined = [&](const Encoding& first, const Encoding& second) {
    limit.spend(cost_of(first) + cost_of(second));
    Encoding both = part_of(first, 0, first.ids.size());
    append_lists(both, second);
    return both;
  };
  for (const Encoding& mine : to.overflowing) {
    overflowing.push_back(joined(mine, next));
    for (const Encoding& other : next.overflowing) overflowing.push_back(joined(mine, other));
  }
  for (const Encoding& other : next.overflowing) overflowing.push_back(joined(to, other));
  append_lists(to, std::move(next));
  to.overflowing = std::move(overflowing);
}

Encoding special(const std::vector<AddedId>& added, int32_t type_id, GrowthLimit& limit) {
  Encoding encoding;
  for (const AddedId& token : added) {
    limit.spend(kTokenCost + token.text.size());
    encoding.ids.push_back(token.id);
    encoding.tokens.push_back(token.text);
  }
  const size_t count = added.size();
  encoding.type_ids.assign(count, type_id);
  encoding.offsets.assign(count, {0, 0});
  encoding.byte_offsets.assign(count, {0, 0});
  encoding.special_mask.assign(count, 1);
  encoding.attention_mask.assign(count, 1);
  return encoding;
}

template <class Change>
void with_overflowing(Encoding& encoding, Change&& change) {
  change(encoding);
  for (Encoding& overflowing : encoding.overflowing) change(overflowing);
}

void set_type(Encoding& encoding, int32_t type_id) {
  encoding.type_ids.assign(encoding.ids.size(), type_id);
}

// Returns the number of characters at the start and at the end that are spaces or represent spaces.
std::pair<uint32_t, uint32_t> spaces_around(std::string_view token) {
  constexpr char32_t printed_space = 0x120;
  uint32_t leading = 0, trailing = 0;
  bool any = false;
  while (!token.empty()) {
    const utf8::Character c = utf8::first(token);
    if (c.code_point == printed_space || unicode::is(c.code_point, unicode::space)) {
      if (!any) ++leading;
      ++trailing;
    } else {
      any = true;
      trailing = 0;
    }
    token.remove_prefix(c.bytes);
  }
  return {leading, trailing};
}

void trim(Offsets& offsets, bool first, bool add_prefix_space, uint32_t leading,
          uint32_t trailing) {
  if (leading > 0) {
    // A single space at the beginning is the one that was added.
    if ((first || offsets.begin == 0) && add_prefix_space && leading == 1) leading = 0;
    offsets.begin = std::min(offsets.begin + leading, offsets.end);
  }
  if (trailing > 0 && offsets.end >= trailing)
    offsets.end = std::max(offsets.end - trailing, offsets.begin);
}

void trim(const TrimOffsets& processor, Encoding& encoding) {
  if (!processor.trim) return;
  for (size_t i = 0; i < encoding.ids.size(); ++i) {
    const auto [leading, trailing] = spaces_around(encoding.tokens[i]);
    for (Offsets* offsets : {&encoding.offsets[i], &encoding.byte_offsets[i]})
      trim(*offsets, i == 0, processor.add_prefix_space, leading, trailing);
  }
}

// Adds tokens before and after an encoding and each of its overflowing parts.
void surround(Encoding& encoding, const std::vector<AddedId>& before,
              const std::vector<AddedId>& after, int32_t type_id, GrowthLimit& limit) {
  with_overflowing(encoding, [&](Encoding& one) {
    Encoding all = special(before, type_id, limit);
    all.overflowing = std::move(one.overflowing);
    append_lists(all, std::move(one));
    append_lists(all, special(after, type_id, limit));
    one = std::move(all);
  });
}

using Encodings = std::vector<Encoding>;

void process(const TrimOffsets& processor, Encodings& encodings, bool, GrowthLimit&) {
  for (Encoding& encoding : encodings)
    with_overflowing(encoding, [&](Encoding& one) { trim(processor, one); });
}

void process(const BertProcessing& processing, Encodings& encodings, bool add_special_tokens,
             GrowthLimit& limit) {
  if (!add_special_tokens) return;
  for (size_t i = 0; i < encodings.size(); ++i) {
    surround(encodings[i], i == 0 ? std::vector{processing.cls} : std::vector<AddedId>{},
             {processing.sep}, i == 0 ? 0 : 1, limit);
  }
}

void process(const RobertaProcessing& processing, Encodings& encodings, bool add_special_tokens,
             GrowthLimit& limit) {
  process(processing.offsets, encodings, add_special_tokens, limit);
  for (Encoding& encoding : encodings)
    with_overflowing(encoding, [](Encoding& one) { set_type(one, 0); });
  if (!add_special_tokens) return;
  for (size_t i = 0; i < encodings.size(); ++i)
    surround(encodings[i], {i == 0 ? processing.cls : processing.sep}, {processing.sep}, 0, limit);
}

void process(const TemplateProcessing& processor, Encodings& encodings, bool add_special_tokens,
             GrowthLimit& limit) {
  check(encodings.size() <= 2,
        "post_processor: a template follows one that produces {} parts; expected one or two",
        encodings.size());
  const auto& parts = encodings.size() == 2 ? processor.pair : processor.single;
  Encodings made;
  for (const TemplateProcessing::Part& part : parts) {
    if (part.sequence < 0) {
      if (add_special_tokens) made.push_back(special(part.added, part.type_id, limit));
      continue;
    }
    const bool again = std::any_of(&part + 1, parts.data() + parts.size(), [&](const auto& other) {
      return other.sequence == part.sequence;
    });
    Encoding& sequence = encodings[static_cast<size_t>(part.sequence)];
    if (again) {
      limit.spend(cost_of_all(sequence));
      made.push_back(sequence);
    } else {
      made.push_back(std::move(sequence));
    }
    set_type(made.back(), part.type_id);
  }
  encodings = std::move(made);
}

size_t added_by(const TrimOffsets&, bool) { return 0; }
size_t added_by(const BertProcessing&, bool pair) { return pair ? 3 : 2; }
size_t added_by(const RobertaProcessing&, bool pair) { return pair ? 4 : 2; }
size_t added_by(const TemplateProcessing& processor, bool pair) {
  size_t count = 0;
  for (const auto& part : pair ? processor.pair : processor.single) count += part.added.size();
  return count;
}

// Truncates an encoding to `length` tokens; the rest becomes overflowing parts that overlap by
// truncation.stride tokens.
void cut(Encoding& encoding, size_t length, const Truncation& truncation, GrowthLimit& limit) {
  const size_t size = encoding.ids.size();
  if (length >= size) return;
  if (length == 0) {
    Encoding rest = std::exchange(encoding, {});
    encoding.overflowing.push_back(std::move(rest));
    return;
  }
  check(truncation.stride < length,
        "truncation: the stride {} is too large for {} tokens; "
        "expected a smaller one",
        truncation.stride, length);
  const size_t step = length - truncation.stride;
  std::vector<Encoding> parts;
  for (size_t done = 0;; done += step) {
    const size_t begin = truncation.left ? size - std::min(size, done + length) : done;
    const size_t end = truncation.left ? size - done : std::min(size, done + length);
    limit.spend(kTokenCost * (end - begin));
    parts.push_back(part_of(encoding, begin, end));
    limit.spend(parts.back().tokens.bytes());
    if (truncation.left ? begin == 0 : end == size) break;
  }
  Encoding first = std::move(parts.front());
  parts.erase(parts.begin());
  first.overflowing = std::move(parts);
  encoding = std::move(first);
}

void pad(Encoding& encoding, size_t length, const Padding& padding, GrowthLimit& limit) {
  for (Encoding& overflowing : encoding.overflowing) pad(overflowing, length, padding, limit);
  if (encoding.ids.size() >= length) return;
  const size_t count = length - encoding.ids.size();
  const Encoding one = special({{padding.id, padding.token}}, padding.type_id, limit);
  Encoding pads;
  for (size_t i = 0; i < count; ++i) {
    limit.spend(cost_of(one));
    append_lists(pads, one);
  }
  pads.attention_mask.assign(count, 0);
  std::vector<Encoding> overflowing = std::move(encoding.overflowing);
  if (padding.left) {
    append_lists(pads, encoding);
    encoding = std::move(pads);
  } else {
    append_lists(encoding, pads);
  }
  encoding.overflowing = std::move(overflowing);
}

}  // namespace

size_t added_tokens(const PostProcessors& processors, bool pair) {
  size_t count = 0;
  for (const PostProcessor& processor : processors)
    count += std::visit([&](const auto& part) { return added_by(part, pair); }, processor);
  return count;
}

Encoding post_process(const PostProcessors& processors, std::vector<Encoding> encodings,
                      bool add_special_tokens, GrowthLimit& limit) {
  for (size_t i = 0; i < encodings.size(); ++i) set_type(encodings[i], static_cast<int32_t>(i));
  for (const PostProcessor& processor : processors)
    std::visit([&](const auto& part) { process(part, encodings, add_special_tokens, limit); },
               processor);
  if (encodings.empty()) return {};
  Encoding all = std::move(encodings[0]);
  for (size_t i = 1; i < encodings.size(); ++i) merge(all, std::move(encodings[i]), limit);
  return all;
}

std::pair<size_t, size_t> shares(size_t first, size_t second, size_t most) {
  const bool swapped = first > second;
  size_t less = std::min(first, second);
  size_t more = less > most ? less : std::max(less, most - less);
  if (less + more > most) {
    less = most / 2;
    more = less + most % 2;
  }
  return swapped ? std::pair(more, less) : std::pair(less, more);
}

void truncate(std::vector<Encoding>& encodings, const Truncation& truncation, size_t max_length,
              GrowthLimit& limit) {
  const bool pair = encodings.size() == 2;
  const size_t first = encodings[0].ids.size(), second = pair ? encodings[1].ids.size() : 0;
  if (first + second <= max_length) return;
  if (truncation.strategy == TruncationStrategy::longest_first || max_length == 0) {
    const auto kept = pair ? shares(first, second, max_length) : std::pair(max_length, size_t{0});
    cut(encodings[0], kept.first, truncation, limit);
    if (pair) cut(encodings[1], kept.second, truncation, limit);
    return;
  }
  const bool of_second = truncation.strategy == TruncationStrategy::only_second;
  check(pair || !of_second,
        "truncation: cuts only the second text, but there is only one; expected a pair");
  Encoding& target = encodings[of_second ? 1 : 0];
  const size_t excess = first + second - max_length;
  check(target.ids.size() > excess,
        "truncation: cannot remove {} tokens from a text of {}; expected a "
        "longer one",
        excess, target.ids.size());
  cut(target, target.ids.size() - excess, truncation, limit);
}

void pad(std::vector<Encoding>& encodings, const Padding& padding, GrowthLimit& limit) {
  limit.enter("padding");
  size_t length = padding.length.value_or(0);
  if (!padding.length) {
    for (const Encoding& encoding : encodings) length = std::max(length, encoding.ids.size());
  }
  if (padding.multiple_of > 1)
    length = (length + padding.multiple_of - 1) / padding.multiple_of * padding.multiple_of;
  for (Encoding& encoding : encodings) pad(encoding, length, padding, limit);
}

}  // namespace fovea::text

#include "grammar/length_limits.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <unordered_map>

#include "base/error.h"

namespace fovea::text {
namespace {

constexpr int64_t kEndless = std::numeric_limits<int64_t>::max() / 4;
constexpr size_t kMostRules = 2000;
constexpr size_t kMostNodes = 200'000;  // made or measured

// Lengths of texts, or numbers of repetitions; `most` may be kEndless.
struct Interval {
  int64_t least, most;
  auto operator<=>(const Interval&) const = default;
  bool fixed() const { return least == most; }
  bool within(const Interval& other) const { return least >= other.least && most <= other.most; }
  // The rest after `length`.
  Interval after(int64_t length) const {
    return {std::max<int64_t>(0, least - length), most == kEndless ? most : most - length};
  }
};

int64_t product(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  return a >= kEndless / b ? kEndless : a * b;
}

Interval counts_of(const SyntaxNode& node) { return {node.least, node.most.value_or(kEndless)}; }

Syntax joined(Syntax first, Syntax second) {
  Syntax both = syntax_node(SyntaxNode::sequence);
  both->parts.push_back(std::move(first));
  both->parts.push_back(std::move(second));
  return both;
}

class LengthLimits {
 public:
  std::vector<Syntax> rules(const SyntaxNode& text, const Interval& lengths) {
    rules_.emplace_back();
    rules_[0] = within(text, lengths);
    return std::move(rules_);
  }

 private:
  // A text that is limited: a node, or the parts of a sequence from `first`, or `counts`
  // repetitions.
  struct Limited {
    const SyntaxNode* node;
    size_t first;
    Interval counts;
    Interval lengths;
    auto operator<=>(const Limited&) const = default;
  };

  void count(size_t nodes) {
    nodes_ += nodes;
    if (nodes_ > kMostNodes || rules_.size() > kMostRules)
      fail(ErrorKind::Unsupported,
           "pattern: too many ways to reach the length; expected counts in the pattern, such as "
           "{{2,8}}, instead of minLength and maxLength");
  }

  Syntax copy_of(const SyntaxNode& node) {
    count(1 + node.ranges.size());
    Syntax copy = syntax_node(node.kind);
    copy->ranges = node.ranges;
    copy->least = node.least;
    copy->most = node.most;
    for (const Syntax& part : node.parts) copy->parts.push_back(copy_of(*part));
    return copy;
  }

  Interval lengths_of(const SyntaxNode& node) {
    if (node.kind == SyntaxNode::characters) return {1, 1};
    if (const auto known = lengths_.find(&node); known != lengths_.end()) return known->second;
    return lengths_[&node] = measured(node);
  }

  Interval measured(const SyntaxNode& node) {
    count(1 + node.parts.size());
    if (node.kind == SyntaxNode::repetition) {
      const Interval part = lengths_of(*node.parts[0]), counts = counts_of(node);
      return {product(part.least, counts.least), product(part.most, counts.most)};
    }
    const bool choice = node.kind == SyntaxNode::choice;
    Interval all = choice ? Interval{kEndless, 0} : Interval{0, 0};
    for (const Syntax& part : node.parts) {
      const Interval one = lengths_of(*part);
      if (choice)
        all = {std::min(all.least, one.least), std::max(all.most, one.most)};
      else
        all = {std::min(kEndless, all.least + one.least), std::min(kEndless, all.most + one.most)};
    }
    return all;
  }

  Syntax within(const SyntaxNode& node, const Interval& lengths) {
    count(1);
    const Interval own = lengths_of(node);
    if (own.within(lengths)) return copy_of(node);
    if (own.least > lengths.most || own.most < lengths.least)
      return syntax_node(SyntaxNode::choice);
    return call({&node, 0, counts_of(node), lengths});
  }

  Syntax call(const Limited& limited) {
    const auto [known, added] = numbers_.try_emplace(limited, rules_.size());
    if (added) {
      rules_.emplace_back();
      count(1);
      const size_t index = known->second;
      Syntax rule = expand(limited);  // may add rules
      rules_[index] = std::move(rule);
    }
    Syntax made = syntax_node(SyntaxNode::rule);
    made->index = numbers_.at(limited);
    return made;
  }

  Syntax expand(const Limited& limited) {
    const SyntaxNode& node = *limited.node;
    if (node.kind == SyntaxNode::repetition) return repetitions(limited);
    if (node.kind == SyntaxNode::sequence) return sequence(limited);
    Syntax ways = syntax_node(SyntaxNode::choice);
    for (const Syntax& part : node.parts) ways->parts.push_back(within(*part, limited.lengths));
    return ways;
  }

  // Returns `first`, then the rest, whose length is limited accordingly: one way for each length of
  // the first part, unless one of them has a fixed length.
  template <class Rest>
  Syntax split(const SyntaxNode& first, int64_t shortest, const Interval& lengths, Rest&& rest) {
    const Interval own = lengths_of(first);
    Syntax ways = syntax_node(SyntaxNode::choice);
    const bool endless = own.most >= kEndless && lengths.most >= kEndless;
    const int64_t last =
        std::min(own.most, endless ? std::max<int64_t>(lengths.least, shortest) - 1 : lengths.most);
    for (int64_t length = std::max(own.least, shortest); length <= last; ++length)
      ways->parts.push_back(joined(within(first, {length, length}), rest(lengths.after(length))));
    const int64_t enough = std::max(last + 1, shortest);
    if (endless)
      ways->parts.push_back(joined(within(first, {enough, kEndless}), rest(lengths.after(enough))));
    return ways;
  }

  Syntax sequence(const Limited& limited) {
    const std::vector<Syntax>& parts = limited.node->parts;
    if (limited.first + 1 == parts.size()) return within(*parts.back(), limited.lengths);
    return split(*parts[limited.first], 0, limited.lengths, [&](const Interval& lengths) {
      return call({limited.node, limited.first + 1, limited.counts, lengths});
    });
  }

  Syntax repetitions(const Limited& limited) {
    const SyntaxNode& part = *limited.node->parts[0];
    const Interval own = lengths_of(part), lengths = limited.lengths;
    Interval counts = limited.counts;
    if (own.least == 0) counts.least = 0;
    if (own.fixed() && own.least > 0) {
      counts.least = std::max(counts.least, (lengths.least + own.least - 1) / own.least);
      if (lengths.most < kEndless) counts.most = std::min(counts.most, lengths.most / own.least);
      if (counts.least > counts.most) return syntax_node(SyntaxNode::choice);
      return repetition(
          copy_of(part),
          {counts.least, counts.most >= kEndless ? std::nullopt : std::optional(counts.most)});
    }
    Syntax ways = syntax_node(SyntaxNode::choice);
    if (counts.least == 0 && lengths.least == 0)
      ways->parts.push_back(syntax_node(SyntaxNode::sequence));
    if (counts.most > 0 && lengths.most > 0)
      ways->parts.push_back(split(part, 1, lengths, [&](const Interval& rest) {
        return call({limited.node, 0, counts.after(1), rest});
      }));
    return ways;
  }

  std::vector<Syntax> rules_;
  std::map<Limited, size_t> numbers_;
  std::unordered_map<const SyntaxNode*, Interval> lengths_;  // known ones
  size_t nodes_ = 0;                                         // made or measured
};

}  // namespace

std::vector<Syntax> within_lengths(const SyntaxNode& text, const Counts& lengths) {
  return LengthLimits().rules(text, {lengths.least, lengths.most.value_or(kEndless)});
}

}  // namespace fovea::text

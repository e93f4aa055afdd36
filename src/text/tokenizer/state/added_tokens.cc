#include "tokenizer/state/added_tokens.h"

#include <algorithm>
#include <utility>

#include "unicode/unicode.h"
#include "unicode/utf8.h"

namespace fovea::text {
namespace {

size_t last_character(std::string_view text) {
  size_t i = text.size() - 1;
  while (i > 0 && (static_cast<uint8_t>(text[i]) & 0xC0) == 0x80) --i;
  return i;
}

bool is_at(std::string_view text, size_t i, uint16_t any) {
  return unicode::is(utf8::first(text.substr(i)).code_point, any);
}

// Returns whether no word character is directly before or after the bytes [begin, end).
bool stands_alone(std::string_view text, size_t begin, size_t end) {
  if (begin > 0 && is_at(text, last_character(text.substr(0, begin)), unicode::plain_word))
    return false;
  return end == text.size() || !is_at(text, end, unicode::plain_word);
}

}  // namespace

int32_t AddedTokenFinder::child(int32_t node, uint8_t byte) const {
  int32_t at = nodes_[static_cast<size_t>(node)].child;
  while (at >= 0 && nodes_[static_cast<size_t>(at)].byte != byte)
    at = nodes_[static_cast<size_t>(at)].sibling;
  return at;
}

void AddedTokenFinder::add(const AddedToken& token, std::string_view text) {
  if (text.empty()) return;
  int32_t node = 0;
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    int32_t next = child(node, byte);
    if (next < 0) {
      next = static_cast<int32_t>(nodes_.size());
      Node& parent = nodes_[static_cast<size_t>(node)];
      const int32_t sibling = std::exchange(parent.child, next);
      nodes_.push_back({-1, sibling, -1, byte});
      if (node == 0) {
        first_[byte] = next;
        ++starts_;
        only_start_ = c;
      }
    }
    node = next;
  }
  nodes_[static_cast<size_t>(node)].token = static_cast<int32_t>(tokens_.size());
  tokens_.push_back({token.id, token.special, token.single_word, token.strip_left,
                     token.strip_right, token.leading});
}

size_t AddedTokenFinder::next_start(std::string_view text, size_t i) const {
  if (starts_ == 1) return std::min(text.find(only_start_, i), text.size());
  while (i < text.size() && first_[static_cast<uint8_t>(text[i])] == 0) ++i;
  return i;
}

AddedTokenFinder::Found AddedTokenFinder::find_at(std::string_view text, size_t i) const {
  Found found = {nullptr, i};
  int32_t node = first_[static_cast<uint8_t>(text[i])];
  while (node > 0) {
    ++i;
    const int32_t token = nodes_[static_cast<size_t>(node)].token;
    if (token >= 0) found = {&tokens_[static_cast<size_t>(token)], i};
    if (i == text.size()) break;
    node = child(node, static_cast<uint8_t>(text[i]));
  }
  return found;
}

void AddedTokenFinder::cut(std::string_view text, bool special,
                           std::vector<AddedPart>& parts) const {
  const auto push = [&](size_t begin, size_t end, int32_t token) {
    parts.push_back({{static_cast<uint32_t>(begin), static_cast<uint32_t>(end)}, token});
  };
  size_t done = 0, at = 0;
  while (starts_ > 0 && (at = next_start(text, at)) < text.size()) {
    const Found found = find_at(text, at);
    if (!found.token) {
      ++at;
      continue;
    }
    size_t begin = std::exchange(at, found.end), end = found.end;
    if (end <= done || (found.token->special && !special)) continue;
    if (found.token->leading && begin > 0) continue;
    if (found.token->single_word && !stands_alone(text, begin, end)) continue;
    // The token absorbs the spaces around it, except those that belong to the previous token.
    while (found.token->strip_left && begin > done) {
      const size_t before = last_character(text.substr(0, begin));
      if (!is_at(text, before, unicode::space)) break;
      begin = before;
    }
    while (found.token->strip_right && end < text.size() && is_at(text, end, unicode::space))
      end += utf8::first(text.substr(end)).bytes;
    begin = std::max(begin, done);
    if (begin > done) push(done, begin, -1);
    push(begin, end, found.token->id);
    done = end;
  }
  if (done < text.size()) push(done, text.size(), -1);
}

}  // namespace fovea::text

#pragma once

// The post-processors of tokenizer.json: what is added around the tokens of a text or a pair.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "fovea/tokenizer.h"
#include "unicode/growth_limit.h"

namespace fovea {

struct AddedId {
  int32_t id;
  std::string text;
};
struct TrimOffsets {  // leaves the spaces of byte-level tokens out of their offsets
  bool trim, add_prefix_space;
};
// Cls and sep around a text, and another sep behind a second one.
struct BertProcessing {
  AddedId sep, cls;
};
// The same with two seps between the texts; all types are 0.
struct RobertaProcessing {
  AddedId sep, cls;
  TrimOffsets offsets;
};
struct TemplateProcessing {
  struct Part {
    int sequence;  // 0 or 1: that text; -1: the added tokens
    int32_t type_id;
    std::vector<AddedId> added;
  };
  std::vector<Part> single, pair;
};

using PostProcessor =
    std::variant<TrimOffsets, BertProcessing, RobertaProcessing, TemplateProcessing>;
using PostProcessors = std::vector<PostProcessor>;  // one after the other

enum class TruncationStrategy { longest_first, only_first, only_second };
struct Truncation {
  size_t max_length, stride;
  TruncationStrategy strategy;
  bool left;
};
struct Padding {
  std::optional<size_t> length;  // none: the longest of a batch
  size_t multiple_of;            // 0 or 1: of anything
  bool left;
  int32_t id, type_id;
  std::string token;
};

// What a token of an encoding takes beside its text, as a GrowthLimit counts it.
constexpr size_t kTokenCost = 16;

// How many tokens they add.
size_t added_tokens(const PostProcessors& processors, bool pair);

// The encodings of one text or two, together as one. What is added, here and below, is taken from
// the limit before it is made.
Encoding post_process(const PostProcessors& processors, std::vector<Encoding> encodings,
                      bool add_special_tokens, GrowthLimit& limit);

// How many tokens of each of two texts stay so that they have `most` together: the longer is cut
// first.
std::pair<size_t, size_t> shares(size_t first, size_t second, size_t most);
// Cuts the encodings of one text or two down to max_length tokens in all.
void truncate(std::vector<Encoding>& encodings, const Truncation& truncation, size_t max_length,
              GrowthLimit& limit);
void pad(std::vector<Encoding>& encodings, const Padding& padding, GrowthLimit& limit);

}  // namespace fovea

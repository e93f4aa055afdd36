#pragma once

// The post-processors of tokenizer.json, which add tokens before and after the tokens of a text or
// of a pair of texts.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "fovea/text/tokenizer.h"
#include "unicode/growth_limit.h"

namespace fovea::text {

struct AddedId {
  int32_t id;
  std::string text;
};
struct TrimOffsets {  // excludes the spaces of byte-level tokens from their offsets
  bool trim, add_prefix_space;
};
// Adds cls before and sep after a text, and sep again after a second text.
struct BertProcessing {
  AddedId sep, cls;
};
// Like BertProcessing, but with two seps between the texts; all type ids are 0. Also trims offsets.
struct RobertaProcessing {
  AddedId sep, cls;
  TrimOffsets offsets;
};
struct TemplateProcessing {
  struct Part {
    int sequence;  // 0: the first text; 1: the second; -1: the added tokens
    int32_t type_id;
    std::vector<AddedId> added;
  };
  std::vector<Part> single, pair;
};

using PostProcessor =
    std::variant<TrimOffsets, BertProcessing, RobertaProcessing, TemplateProcessing>;
using PostProcessors = std::vector<PostProcessor>;  // applied in order

enum class TruncationStrategy { longest_first, only_first, only_second };
struct Truncation {
  size_t max_length, stride;
  TruncationStrategy strategy;
  bool left;
};
struct Padding {
  std::optional<size_t> length;  // in tokens; unset: the length of the longest encoding
  size_t multiple_of;            // the length is rounded up to a multiple; 0 or 1: no rounding
  bool left;
  int32_t id, type_id;
  std::string token;
};

// The bytes that a token of an encoding costs in a GrowthLimit, in addition to those of its text.
constexpr size_t kTokenCost = 16;

// Returns the number of tokens that the processors add to a text or to a pair of texts.
size_t added_tokens(const PostProcessors& processors, bool pair);

// Combines the encodings of one or two texts. `limit` is charged for the tokens that this and the
// following functions add or copy.
Encoding post_process(const PostProcessors& processors, std::vector<Encoding> encodings,
                      bool add_special_tokens, GrowthLimit& limit);

// Returns how many tokens to keep of each of two texts, so that they have at most `most` in total:
// the longer one is truncated first.
std::pair<size_t, size_t> shares(size_t first, size_t second, size_t most);
// Truncates the encodings of one or two texts to max_length tokens in total. Throws InvalidArgument
// if the text to truncate is missing or too short, or if the stride is too large.
void truncate(std::vector<Encoding>& encodings, const Truncation& truncation, size_t max_length,
              GrowthLimit& limit);
// Pads all encodings to the same length.
void pad(std::vector<Encoding>& encodings, const Padding& padding, GrowthLimit& limit);

// Reads this part of tokenizer.json; null = missing. Throws Unsupported, naming the JSON path, if a
// part is unknown, and BadFile if it is damaged.
// Ids must be below `size`, the number of tokens.
PostProcessors parse_post_processors(const nlohmann::json& json, const std::string& path,
                                     size_t size);

}  // namespace fovea::text

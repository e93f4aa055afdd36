#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "metrics/choices.h"

namespace fovea::infer {

// An entity: words [begin, end) of a text, and its type, such as "PER".
struct LabelledEntity {
  std::string type;
  int64_t begin = 0, end = 0;
  auto operator<=>(const LabelledEntity&) const = default;
};

// Returns whether the labels of words mark entities: each is "O" or has one of the prefixes "B-",
// "I-", "E-" and "S-", or "L-" and "U-", which mean the same as the last two, and some have one.
bool mark_entities(const std::vector<std::string>& labels);

// Returns the entities of a text as seqeval finds them (not strict): an entity begins at B or S, or
// where the type changes; its words are I and E.
std::vector<LabelledEntity> entities_of(const std::vector<std::string>& tags);

// Returns the counts of the entities of each type; an entity is right if its type and its words
// are. `ends`: the number of choices up to the end of each text.
std::map<std::string, ClassCounts> entity_counts(const Choices& choices,
                                                 const std::vector<int64_t>& ends,
                                                 const std::vector<std::string>& names);

}  // namespace fovea::infer

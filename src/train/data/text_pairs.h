#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fovea::train {

// Source texts and their targets, such as translations.
struct TextPairs {
  std::vector<std::string> sources, targets;  // of equal size
  int64_t empty = 0;                          // number of skipped pairs, in which a side is blank
  uint64_t hash = 0;                          // hash of the content
};

// Drops the pairs of which a side is blank, and sets the hash.
void finish(TextPairs& pairs);
void shorten(TextPairs& pairs, int64_t most);  // keeps the first ones

// Reads two files whose lines correspond, or a table (see read_table()) of sources and targets:
// columns named source and target, or two columns without names. Throws InvalidArgument, naming
// `field`, if there are not one or two files. Throws BadFile if the files differ in their number of
// lines, a row does not have two columns, or there is no pair.
TextPairs read_pairs(const std::vector<std::string>& files, const char* field);

// The languages that the names of such files say: train.de and train.en, or corpus.de-en.tsv; empty
// if the names say no two languages.
struct PairLanguages {
  std::string source, target;  // BCP 47 tags
};
PairLanguages languages_in_names(const std::vector<std::string>& files);

}  // namespace fovea::train

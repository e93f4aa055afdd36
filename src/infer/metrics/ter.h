#pragma once

#include <cstdint>
#include <string_view>

namespace fovea::infer {

// Translation edit rate (Snover et al. 2006) with one reference: the number of edits that turn a
// translation into the reference, divided by the words of the reference. An edit inserts, deletes
// or replaces a word, or moves a sequence of words. The texts are compared in lower case, and words
// are separated by spaces: the default of sacrebleu, whose search for moves is that of Tercom.
class Ter {
 public:
  void add(std::string_view hypothesis, std::string_view reference);
  double score() const;  // in percent; may exceed 100
  static const char* signature() { return "nrefs:1|case:lc|tok:tercom|norm:no|punct:yes|asian:no"; }

 private:
  int64_t edits_ = 0, words_ = 0;
};

}  // namespace fovea::infer

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fovea/core/options.h"

namespace fovea::train {

struct DeduplicateOptions {
  std::vector<std::string> data;  // as of TrainOptions, without weights
  std::string out;                // file of JSON lines {"text": ...}
  // Instead of whole documents, leave out lines that occurred before, in any document.
  bool lines = false;
  // Also leave out documents whose similarity to an earlier one is at least this: the part of
  // common runs of five words among all of both, estimated by MinHash (Broder 1997); 0 = equal ones
  // only.
  double near = 0;
};
void visit(DeduplicateOptions& options, OptionVisitor& visitor);

struct Deduplicated {
  struct Amount {
    int64_t number = 0, bytes = 0;  // documents or lines, and bytes of UTF-8 text
  };
  Amount read, kept, equal, near;
  // The first ones that were left out: where they are ("FILE, document 3"), the beginning of their
  // text, and where the text that was kept is.
  struct Example {
    std::string where, text, kept;
    double similarity;  // 1 = equal, apart from white space
  };
  std::vector<Example> examples;
  bool stopped = false;  // a callback stopped the reading; no file was written
};

// Reads the documents of text files, JSON records and folders, in order, and writes those that are
// not equal to an earlier one, except for white space, nor similar. The memory is bounded for each
// document that is kept: 40 bytes, and about 300 bytes with `near`. `reading` receives the fraction
// that has been read; return false to stop. Throws InvalidArgument if an option is out of range,
// BadFile if a file cannot be read or a document is larger than 64 MiB, and Failed if `out` cannot
// be written.
Deduplicated deduplicate(const DeduplicateOptions& options,
                         const std::function<bool(double fraction)>& reading = {});

}  // namespace fovea::train

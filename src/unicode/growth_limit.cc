#include "unicode/growth_limit.h"

#include "base/error.h"

namespace fovea {

void GrowthLimit::refuse() const {
  fail(ErrorKind::BadFile,
       "tokenizer: makes too much of a text of {} bytes ({}); expected at most {} bytes for each, "
       "and {} more",
       given_, part_, times_, constant_);
}

}  // namespace fovea

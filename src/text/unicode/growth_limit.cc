#include "unicode/growth_limit.h"

#include "base/error.h"

namespace fovea::text {

void GrowthLimit::refuse() const {
  fail(ErrorKind::BadFile,
       "tokenizer: expands a text of {} bytes too much ({}); expected at most {} bytes per byte of "
       "the text, plus {}",
       given_, part_, times_, constant_);
}

}  // namespace fovea::text

#pragma once

#include "unicode/aligned_text.h"

namespace fovea::text {

enum class NormalForm { nfc, nfd, nfkc, nfkd };

// Converts the text to a Unicode normal form (Unicode Standard Annex 15).
void normalize_form(NormalForm form, AlignedText& text);

}  // namespace fovea::text

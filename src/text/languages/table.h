#pragma once

#include <span>
#include <utility>

#include "fovea/text/languages.h"

namespace fovea::text {

std::span<const Language> languages();
// Further codes, and those of languages() that they stand for: of macrolanguages, old codes of
// ISO 639-1, the bibliographic codes of ISO 639-2, and "ns" of M2M-100.
std::span<const std::pair<const char*, const char*>> other_codes();

}  // namespace fovea::text

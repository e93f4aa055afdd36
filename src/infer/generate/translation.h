#pragma once

#include "fovea/infer/translate.h"
#include "generate/generate.h"

namespace fovea::infer {

// Like the function in fovea/infer/translate.h. `number`: number of lines before this one, for
// errors. Terms and mark-up are left to translate().
TranslationRequest translation_request(const Generator& generator, const TranslateOptions& options,
                                       const std::string& line, size_t number = 0);

// Like the function in fovea/infer/translate.h; keys and values take at most `cache_bytes`. The
// generator must have both tokenizers.
void translate(const Generator& generator, const TranslateOptions& options, uint64_t cache_bytes,
               const std::function<std::optional<std::string>()>& next,
               const std::function<bool(const Translation&)>& put);

}  // namespace fovea::infer

#pragma once

// The names of CTranslate2's specifications of models of speech and of translation.

#include "checkpoint/family.h"

namespace fovea::model {

extern const Family ct2_speech, ct2_translation;
constexpr uint32_t kCt2SpeechRevision = 3, kCt2TranslationRevision = 7;
constexpr const char *kCt2Table = "decoder/embeddings/weight",
                     *kCt2Head = "decoder/projection/weight",
                     *kCt2HeadBias = "decoder/projection/bias",
                     *kCt2Sources = "encoder/embeddings_0/weight";

}  // namespace fovea::model

#pragma once

#include "data/special_names.h"
#include "families/directory.h"
#include "fovea/tokenizer.h"
#include "train/job.h"

namespace fovea {

// The first of these texts that the vocabulary has.
std::optional<int32_t> first_id(const Tokenizer& tokenizer,
                                std::initializer_list<const char*> texts);
std::optional<int32_t> padding_id(const Tokenizer& tokenizer);
// The end of a text; translation models often leave its usual name unsaid.
std::optional<int32_t> end_id(const Tokenizer& tokenizer);

// Says that names of special tokens in texts to learn from are plain characters, if there are any.
void say_names(const SpecialNames& names, const Say& say);

// The family that a new model with this tokenizer is saved as.
const Family& family_of_new(Spec spec, const Tokenizer& tokenizer);
// Padding teaches a new model's embedding nothing, where the model's family can say so.
void set_padding(Spec& spec, const Tokenizer& tokenizer);

// The tokens that the post-processor adds before and after a text.
struct Around {
  std::vector<int32_t> before, behind;
};
Around around_text(const Tokenizer& tokenizer);

// The start token of a decoder with an encoder: the one in the checkpoint's files, else the padding
// token, else the token that begins or ends a text.
int32_t decoder_start(const Tokenizer& tokenizer, const Origin& origin);

// The files of a new encoder-decoder say what begins, ends and pads its texts.
Origin encoder_decoder_origin(const Spec& spec, const Tokenizer& tokenizer);

}  // namespace fovea

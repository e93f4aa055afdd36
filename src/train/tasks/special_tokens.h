#pragma once

#include "data/special_names.h"
#include "families/directory.h"
#include "fovea/tokenizer.h"
#include "train/job.h"

namespace fovea {

// The first of these texts that is in the vocabulary.
std::optional<int32_t> first_id(const Tokenizer& tokenizer,
                                std::initializer_list<const char*> texts);
std::optional<int32_t> padding_id(const Tokenizer& tokenizer);
// The end of a text; the configs of translation models often do not name it.
std::optional<int32_t> end_id(const Tokenizer& tokenizer);

// Notes that names of special tokens in training texts are plain characters, if there are any.
void say_names(const SpecialNames& names, const Say& say);

// The family as which a new model with this tokenizer is saved.
const Family& family_of_new(Spec spec, const Tokenizer& tokenizer);
// Excludes padding from the training of a new model's embedding, if the model's family can express
// it.
void set_padding(Spec& spec, const Tokenizer& tokenizer);

// The tokens that the post-processor adds before and after a text.
struct Around {
  std::vector<int32_t> before, after;
};
Around around_text(const Tokenizer& tokenizer);

// The start token of a decoder with an encoder: that of the checkpoint's files, otherwise the
// padding token, otherwise the token that begins or ends a text.
int32_t decoder_start(const Tokenizer& tokenizer, const Origin& origin);

// The files of a new encoder-decoder name the start, end and padding tokens.
Origin encoder_decoder_origin(const Spec& spec, const Tokenizer& tokenizer);

}  // namespace fovea

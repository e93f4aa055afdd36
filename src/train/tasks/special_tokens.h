#pragma once

#include "data/special_names.h"
#include "families/directory.h"
#include "fovea/tokenizer.h"
#include "train/job.h"

namespace fovea {

// Returns the id of the first of these texts that is in the vocabulary.
std::optional<int32_t> first_id(const Tokenizer& tokenizer,
                                std::initializer_list<const char*> texts);
std::optional<int32_t> padding_id(const Tokenizer& tokenizer);
// Returns the end token of a text; the configs of translation models often do not name it.
std::optional<int32_t> end_id(const Tokenizer& tokenizer);

// If there are names of special tokens in training texts, reports that they are read as plain
// characters.
void say_names(const SpecialNames& names, const Say& say);

// Returns the family in whose format a new model with this tokenizer is saved.
const Family& family_of_new(Spec spec, const Tokenizer& tokenizer);
// Sets the padding token of a new model, whose embedding is then not trained, if the model's family
// can express it.
void set_padding(Spec& spec, const Tokenizer& tokenizer);

// The tokens that the post-processor adds before and after a text.
struct Around {
  std::vector<int32_t> before, after;
};
Around around_text(const Tokenizer& tokenizer);

// Returns the start token of a decoder with an encoder: the token that the checkpoint's files name,
// otherwise the padding token, otherwise the token that begins or ends a text.
int32_t decoder_start(const Tokenizer& tokenizer, const Origin& origin);

// Returns the origin of a new encoder-decoder, whose files name the start, end and padding tokens.
Origin encoder_decoder_origin(const Spec& spec, const Tokenizer& tokenizer);

}  // namespace fovea

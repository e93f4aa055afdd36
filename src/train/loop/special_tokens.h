#pragma once

#include "data/special_names.h"
#include "fovea/text/tokenizer.h"
#include "loading/loading.h"
#include "loop/job.h"

namespace fovea::train {

// Returns the id of the first of these texts that is in the vocabulary; unset if none is.
std::optional<int32_t> first_id(const text::Tokenizer& tokenizer,
                                std::initializer_list<const char*> texts);
std::optional<int32_t> padding_id(const text::Tokenizer& tokenizer);
// Returns the end-of-text token: that of the tokenizer's config, else "</s>", since the configs of
// translation models often do not name one.
std::optional<int32_t> end_id(const text::Tokenizer& tokenizer);

// Returns the tokens that end a text of a decoder: those of the checkpoint's files, else that of
// the tokenizer.
std::vector<int32_t> end_ids_of(const model::Origin& origin, const text::Tokenizer& tokenizer);

// If there are names of special tokens in training texts, reports that they are read as plain
// characters.
void say_names(const SpecialNames& names, const Say& say);

// Returns the family in whose format a new model with this tokenizer is saved.
const model::Family& family_of_new(model::Spec spec, const text::Tokenizer& tokenizer);
// Sets the padding token of a new model, unless only fovea's own format could then store the model.
// The embedding of a padding token is not trained.
void set_padding(model::Spec& spec, const text::Tokenizer& tokenizer);

// Sets the padding token of a decoder that gets a head for texts, unless it has one: that of the
// checkpoint's files or of the tokenizer, else the token that ends texts, as is usual. transformers
// needs one to find the last token of a text, and the head reads the last token that is not padding
// in training too.
void set_classifier_padding(model::Spec& spec, const text::Tokenizer& tokenizer,
                            const model::Origin& origin);

// The tokens that the post-processor adds before and after a text.
struct Around {
  std::vector<int32_t> before, after;
};
Around around_text(const text::Tokenizer& tokenizer);

// Returns the ids of a text for an encoder-decoder, with the special tokens of the post-processor.
// The last id is the end token of the tokenizer, if it has one, since a decoder stops there.
std::vector<int32_t> translation_ids(const text::Tokenizer& tokenizer, const std::string& text);

// Returns the start token of the decoder of an encoder-decoder: the token that the checkpoint's
// files name, else the padding token, else the token that begins a text, else the one that ends it,
// else 0.
int32_t decoder_start(const text::Tokenizer& tokenizer, const model::Origin& origin);

// Returns the origin of a new encoder-decoder, whose files name the start, end and padding tokens.
model::Origin encoder_decoder_origin(const model::Spec& spec, const text::Tokenizer& tokenizer);

}  // namespace fovea::train

#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/text/tokenizer.h"

namespace fovea::train {

// Calls `use` with each text.
using EachText = std::function<void(const std::function<void(std::string_view)>& use)>;

// The special tokens of a trained tokenizer.
//   translation  "<pad>", "</s>" and "<unk>" are ids 0 to 2; "</s>" ends every text
//   masking      "[PAD]", "[UNK]", "[CLS]", "[SEP]" and "[MASK]" are ids 0 to 4; "[CLS]" begins and
//                "[SEP]" ends every text
//   spans        as translation, followed by 100 sentinel tokens "<extra_id_0>", ...
enum class TokenizerUse { translation, masking, spans };

// Trains or opens a tokenizer for an encoder or an encoder-decoder. `choice` and `context`
// are as for make_tokenizer(): "char", "bpe:8000", "wordpiece:8000" or "unigram:8000" is trained on
// the texts; anything else is a folder or file to open.
text::Tokenizer make_task_tokenizer(TokenizerUse use, const EachText& texts,
                                    const std::string& choice, int64_t context);

// Returns the tokenizer with a config that says that it gives token types, as the generic class of
// transformers needs it for the pairs of a model that has types.
text::Tokenizer with_token_types(const text::Tokenizer& tokenizer);

// Returns the tokenizer with the languages of a translator in its config, where those of the
// Hugging Face Hub have them: source_lang and target_lang.
text::Tokenizer with_languages(const text::Tokenizer& tokenizer, const std::string& source,
                               const std::string& target);

}  // namespace fovea::train

#pragma once

// Directories of CTranslate2 with Whisper and Marian. Errors are those of open_model_files().

#include <string>

#include "fovea/text/tokenizer.h"
#include "loading/loading.h"

namespace fovea::model {

// Returns whether a folder has CTranslate2's model.bin, and no config.json of another format.
bool is_ct2_folder(const std::string& path);
ModelFiles open_ct2_files(const std::string& path, const Loading& loading);

// Writes the files of CTranslate2, except those of the tokenizer, into an existing folder. `type`:
// of matrices; with int8 = true they have integers, and `type` is that of the other variables.
// Throws Unsupported if the format cannot express the model.
void save_ct2(const std::string& folder, Transformer& model, const Origin& origin,
              const text::Tokenizer& tokenizer, DType type, bool int8);

}  // namespace fovea::model

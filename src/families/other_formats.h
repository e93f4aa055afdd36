#pragma once

// Formats of other programs for models of speech and of translation: directories of CTranslate2
// (Whisper and Marian) and ggml files of whisper.cpp. Errors are those of open_model_files().

#include <optional>
#include <string>

#include "checkpoint/family.h"
#include "families/directory.h"
#include "fovea/gguf.h"
#include "fovea/tokenizer.h"

namespace fovea {

// Read or write the config of the families, whose weights these formats have under other names.
void whisper_config(Config& io, Spec& spec);
void marian_config(Config& io, Spec& spec);

// Returns the Spec of a folder or a file in one of these formats, from its sizes.
Spec read_other_spec(const std::string& path);

// Returns whether a folder has CTranslate2's model.bin, and no config.json of another format.
bool is_ct2_folder(const std::string& path);
ModelFiles open_ct2_files(const std::string& path, const Loading& loading);

// Writes the files of CTranslate2, except those of the tokenizer, into an existing folder. `type`:
// of matrices; with int8 = true they have integers, and `type` is that of the other variables.
// Throws Unsupported if the format cannot express the model.
void save_ct2(const std::string& folder, Transformer& model, const Origin& origin,
              const Tokenizer& tokenizer, DType type, bool int8);

ModelFiles open_ggml_files(const std::string& path, const Loading& loading);
// Writes a ggml file whose matrices have the type `dtype`: fp32, fp16, q8_0, q5_1, q5_0, q4_1 or
// q4_0.
std::vector<std::string> save_ggml(const std::string& path, Transformer& model,
                                   const Tokenizer& tokenizer, FileDType dtype);

}  // namespace fovea

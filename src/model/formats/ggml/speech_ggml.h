#pragma once

// ggml files of whisper.cpp. Errors are those of open_model_files().

#include <string>
#include <vector>

#include "fovea/model/gguf.h"
#include "fovea/text/tokenizer.h"
#include "loading/loading.h"

namespace fovea::model {

ModelFiles open_ggml_files(const std::string& path, const Loading& loading);
// Writes a ggml file whose matrices have the type `dtype`: fp32, fp16, q8_0, q5_1, q5_0, q4_1 or
// q4_0.
std::vector<std::string> save_ggml(const std::string& path, Transformer& model,
                                   const text::Tokenizer& tokenizer, FileDType dtype);

}  // namespace fovea::model

#pragma once

// The older files of ggml for speech (github.com/ggml-org/whisper.cpp,
// models/convert-pt-to-ggml.py): a magic number, eleven sizes, the mel filters, a vocabulary, and
// tensors one after another.

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/gguf.h"

namespace fovea {

// Returns whether a path is such a file: it ends with .bin and begins with the magic number.
bool is_ggml(const std::string& path);

struct GgmlSizes {
  int32_t vocabulary = 0, audio_context = 0, audio_width = 0, audio_heads = 0, audio_layers = 0;
  int32_t text_context = 0, text_width = 0, text_heads = 0, text_layers = 0;
  int32_t bins = 0;
  int32_t type = 0;  // of the matrices, a number of ggml_ftype; + 1000 times a version if quantised
};

class GgmlFile {
 public:
  // Throws BadFile if the file is damaged, Unsupported if a tensor has an unknown type.
  explicit GgmlFile(const std::string& path);

  const std::string& path() const { return file_->path(); }
  const std::shared_ptr<const MappedFile>& file() const { return file_; }
  const GgmlSizes& sizes() const { return sizes_; }
  // The bytes of the tokens by id, fewer than sizes().vocabulary if the special ones are left out.
  const std::vector<std::string_view>& tokens() const { return tokens_; }
  const std::vector<GgufTensor>& tensors() const { return tensors_; }  // sorted by name

 private:
  std::shared_ptr<const MappedFile> file_;
  GgmlSizes sizes_;
  std::vector<std::string_view> tokens_;
  std::vector<GgufTensor> tensors_;
};

// Writes a file atomically. filters [bins, frequencies]; `elements` as in write_gguf(). The shapes
// of the tensors are written as they are.
void write_ggml(const std::string& path, const GgmlSizes& sizes, const std::vector<float>& filters,
                const std::vector<std::string>& tokens, const std::vector<GgufTensor>& tensors,
                const std::function<std::string_view(size_t index)>& elements);

}  // namespace fovea

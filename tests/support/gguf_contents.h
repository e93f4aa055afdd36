#pragma once

// A model as the contents of a GGUF file in memory, which a test may change before it writes them.

#include <memory>
#include <string>
#include <vector>

#include "formats/gguf/model.h"

namespace fovea::test {

struct GgufContents {
  GgufMetadata metadata;
  std::vector<GgufTensor> tensors;
  std::vector<std::shared_ptr<const std::string>> elements = {};

  void write(const std::string& path) const {
    write_file_atomically(path, GgufImage(metadata, tensors).pieces());
  }
};

inline GgufContents gguf_contents(model::Transformer& model, const model::Family* family,
                                  model::FileDType dtype = model::FileDType::fp32) {
  model::GgufModel file(model, family, dtype);
  GgufContents contents{file.metadata, file.tensors()};
  std::vector<std::string> warnings;
  const model::GgufValues values = model::values_of(model);
  for (size_t i = 0; i < contents.tensors.size(); ++i) {
    contents.elements.push_back(
        std::make_shared<const std::string>(file.elements(i, values, warnings)));
    contents.tensors[i].data = contents.elements.back()->data();
  }
  return contents;
}

}  // namespace fovea::test

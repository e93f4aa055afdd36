#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/names.h"
#include "safetensors/tensor_source.h"

namespace fovea::model {

// The parameters of a model in its file, read one by one: for conversions, which never need the
// entire model.
class WeightsInFile {
 public:
  explicit WeightsInFile(std::shared_ptr<const TensorSource> file) : file_(std::move(file)) {}

  // Adds the parameters of a tensor of the file, which have these shapes.
  void add(const FileTensor& tensor, const StoredTensor& stored, const std::vector<Shape>& shapes);

  bool has(const std::string& parameter) const { return locations_.contains(parameter); }
  // Returns a parameter in f32. Keeps the parts of one tensor, which are often read in order.
  Tensor read(const std::string& parameter);
  // Releases the pages of the file that were read. Tensors that read() returned stay valid.
  void release();
  // Returns the bytes of a tensor that this file already has in the same layout and type ("Q4_K");
  // unset if it has none.
  std::optional<std::string_view> bytes_of(const FileTensor& tensor, std::string_view type) const;

 private:
  struct Entry {
    FileTensor tensor;
    const StoredTensor* stored;
    std::vector<Shape> shapes;
  };
  struct Location {
    size_t entry, part;
  };

  std::shared_ptr<const TensorSource> file_;
  std::vector<Entry> entries_;
  std::map<std::string, Location> locations_;
  std::vector<size_t> unreleased_;  // entries that were read since the last release()
  std::optional<size_t> open_;      // the entry of parts_
  std::vector<Tensor> parts_;
};

}  // namespace fovea::model

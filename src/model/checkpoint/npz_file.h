#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/files.h"
#include "tensor/tensor.h"

namespace fovea::model {

// An array of an .npz file, which is a ZIP archive of the .npy files of NumPy.
struct NpzArray {
  std::string type;  // NumPy's name without the byte order: "f4", "i1"
  Shape shape;
  std::string_view bytes;  // in the mapping, at any alignment
};

// Throws BadFile if the file is damaged, and Unsupported if an entry is compressed, in another
// order of bytes or of axes, or beyond 4 GB.
class NpzFile {
 public:
  explicit NpzFile(const std::string& path);

  const std::string& path() const { return file_->path(); }
  const std::shared_ptr<const MappedFile>& file() const { return file_; }
  const std::map<std::string, NpzArray>& arrays() const { return arrays_; }
  const NpzArray* find(const std::string& name) const;  // null if there is no such array

 private:
  void read_entry(std::string_view entry, std::string_view name);

  std::shared_ptr<const MappedFile> file_;
  std::map<std::string, NpzArray> arrays_;
};

}  // namespace fovea::model

#pragma once

// The safetensors format (github.com/huggingface/safetensors): eight bytes of little-endian header
// length, a JSON header of names, dtypes, shapes and offsets, then the elements. This reader
// accepts the same files as the reference reader, except that it also rejects duplicate names and
// more tensors or axes than its limits. Throws BadFile, naming the file and the tensor or position,
// and OutOfMemory if the header is too long or has too many tensors.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/half.h"
#include "fovea/core/safetensors.h"
#include "safetensors/tensor_source.h"
#include "tensor/tensor.h"

namespace fovea {

// The tensors of one file, or of all shards of a model.
class SafeTensors : public TensorSource {
 public:
  // Mapped tensors are read-only memory and keep the mapping alive.
  explicit SafeTensors(const std::string& path, Links links = Links::follow);

  // Opens model.safetensors of a folder, the shards that an index file lists (by default,
  // model.safetensors.index.json of the folder), or a single file. The index must name each shard
  // by a plain file name. A shard that is a link (symbolic or hard) is rejected, unless it is a
  // symbolic link of Hugging Face's cache into ../../blobs.
  static SafeTensors open_model(const std::string& path);

  const std::vector<StoredTensor>& stored() const override { return stored_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::vector<std::shared_ptr<const MappedFile>>& files() const { return files_; }

  // Borrows the mapping, or copies if the elements are not aligned. Throws BadFile if the tensor is
  // missing, Unsupported if fovea does not support its type.
  Tensor tensor(std::string_view name) const override;
  std::shared_ptr<const MappedFile> file_of(const StoredTensor& stored) const override {
    return files_[stored.file];
  }

 private:
  SafeTensors() = default;
  static SafeTensors open_shards(const std::string& folder, const std::string& index);

  std::vector<StoredTensor> stored_;
  std::map<std::string, std::string> metadata_;
  std::vector<std::shared_ptr<const MappedFile>> files_;
};

// The contents of a file to write: a header, and the tensors' own memory, which is not copied.
class SafeTensorsImage {
 public:
  using Metadata = std::map<std::string, std::string>;
  using Named = std::vector<std::pair<std::string, Tensor>>;
  // "format" names the framework of the tensors; transformers does not read files without it.
  explicit SafeTensorsImage(Named tensors, const Metadata& metadata = {{"format", "pt"}});
  explicit SafeTensorsImage(const std::map<std::string, Tensor>& tensors,
                            const Metadata& metadata = {{"format", "pt"}})
      : SafeTensorsImage(Named(tensors.begin(), tensors.end()), metadata) {}
  SafeTensorsImage(const SafeTensorsImage&) = delete;
  SafeTensorsImage& operator=(const SafeTensorsImage&) = delete;
  Pieces pieces() const;  // valid during the lifetime of this object

 private:
  Named tensors_;  // wide elements first, so that all are aligned; otherwise in the given order
  std::string header_;
};

// Throws Unsupported if the name is that of a pickle or similar format; does not open the file.
void refuse_pickle(const std::string& path);

Tensor widen_halves(const Tensor& halves);  // f16 -> a new f32 tensor
Tensor narrow_to_halves(const Tensor& floats);
int64_t count_nonfinite(const Tensor& x);  // counts NaN and infinities; 0 for integers
std::string first_names(const std::vector<std::string>& names);  // "a, b, c, d, e and 7 more"

}  // namespace fovea

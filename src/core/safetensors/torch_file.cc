#include "safetensors/torch_file.h"

#include <cstring>

#include "base/checked.h"
#include "base/error.h"
#include "base/files.h"
#include "fovea/core/excerpt.h"
#include "safetensors/state_pickle.h"
#include "safetensors/stored_zip.h"

namespace fovea {
namespace {

constexpr std::string_view kPickle = "/data.pkl";

// Returns the name of the folder of all entries.
std::string folder_in(const std::map<std::string, std::string_view>& entries,
                      const std::string& path) {
  for (const auto& [name, contents] : entries)
    if (name.ends_with(kPickle) && name.find('/') == name.size() - kPickle.size())
      return name.substr(0, name.size() - kPickle.size());
  fail(ErrorKind::BadFile, "{}: has no entry data.pkl; expected a file of torch.save()", path);
}

// Returns the number of elements of a tensor whose axes follow one another in memory.
int64_t elements_in_order(const PickledTensor& tensor, const std::string& what) {
  int64_t count = 1;
  bool in_order = true;
  for (size_t axis = tensor.shape.size(); axis-- > 0;) {
    in_order = in_order && (tensor.shape[axis] <= 1 || tensor.strides[axis] == count);
    count = checked_multiply(count, tensor.shape[axis], what);
  }
  if (!in_order)
    fail(ErrorKind::Unsupported, "{} is not contiguous; expected elements in their order", what);
  return count;
}

}  // namespace

std::map<std::string, Tensor> read_torch_file(const std::string& path) {
  const MappedFile file(path);
  const auto entries = stored_zip_entries(file);
  const std::string folder = folder_in(entries, path);
  const auto order = entries.find(folder + "/byteorder");
  if (order != entries.end() && order->second != "little")
    fail(ErrorKind::Unsupported, "{}: its byte order is {}; expected little", path,
         excerpt(order->second, 20));
  std::map<std::string, Tensor> found;
  uint64_t bytes = 0;
  for (const auto& [name, tensor] : tensors_in_pickle(entries.at(folder + "/data.pkl"), path)) {
    const std::string what = fmt::format("{}: {}", path, excerpt(name, 80));
    const int64_t count = elements_in_order(tensor, what);
    const auto storage = entries.find(folder + "/data/" + tensor.storage);
    const auto size = static_cast<int64_t>(size_of(tensor.dtype));
    if (storage == entries.end() || tensor.elements < 0 ||
        static_cast<uint64_t>(tensor.elements) >
            storage->second.size() / static_cast<uint64_t>(size))
      fail(ErrorKind::BadFile, "{} has no storage of {} elements; expected an entry data/{}", what,
           tensor.elements, excerpt(tensor.storage, 20));
    if (tensor.offset < 0 || tensor.offset > tensor.elements ||
        count > tensor.elements - tensor.offset)
      fail(ErrorKind::BadFile, "{} is {} from element {}; expected a part of its {} elements", what,
           describe(tensor.shape), tensor.offset, tensor.elements);
    bytes += static_cast<uint64_t>(count * size);
    if (bytes > file.size())
      fail(ErrorKind::Unsupported, "{} shares its elements; expected separate tensors", what);
    Tensor value = empty(tensor.shape, tensor.dtype);
    std::memcpy(value.data(), storage->second.data() + tensor.offset * size, value.bytes());
    found.emplace(name, std::move(value));
  }
  return found;
}

}  // namespace fovea

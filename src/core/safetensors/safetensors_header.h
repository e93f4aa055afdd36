#pragma once

// The header of one safetensors file, read from untrusted bytes.

#include <map>
#include <string>
#include <vector>

#include "safetensors/safetensors.h"

namespace fovea {

// A type of the format.
struct StoredType {
  std::string_view name;
  int bits;  // bits of one element
  std::optional<DType> dtype;
};
const StoredType* find_stored_type(std::string_view name);  // null if there is none
std::string_view stored_type_name(DType dtype);

struct SafeTensorsHeader {
  std::vector<StoredTensor> tensors;  // sorted by name
  std::map<std::string, std::string> metadata;
};

// Reads the header and checks everything that does not depend on the elements: the tensors cover
// the file exactly once, and each size fits its shape.
SafeTensorsHeader read_safetensors_header(const MappedFile& file);

}  // namespace fovea

#pragma once

// The header of one safetensors file, read from bytes that nobody vouches for.

#include <map>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"

namespace fovea {

// A type of the format.
struct StoredType {
  std::string_view name;
  int bits;  // of one element
  std::optional<DType> dtype;
};
const StoredType* find_stored_type(std::string_view name);  // null where there is none
std::string_view stored_type_name(DType dtype);

struct SafeTensorsHeader {
  std::vector<StoredTensor> tensors;  // sorted by name
  std::map<std::string, std::string> metadata;
};

// Reads and checks all that can be known without the elements: they cover the file once, each fits
// its shape.
SafeTensorsHeader read_safetensors_header(const MappedFile& file);

}  // namespace fovea

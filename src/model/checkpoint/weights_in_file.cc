#include "checkpoint/weights_in_file.h"

#include "safetensors/safetensors.h"

namespace fovea::model {

void WeightsInFile::add(const FileTensor& tensor, const StoredTensor& stored,
                        const std::vector<Shape>& shapes) {
  for (size_t part = 0; part < tensor.parts.size(); ++part)
    locations_[tensor.parts[part]] = {entries_.size(), part};
  entries_.push_back({tensor, &stored, shapes});
}

Tensor WeightsInFile::read(const std::string& parameter) {
  const Location location = locations_.at(parameter);
  if (open_ != location.entry) {
    const Entry& entry = entries_[location.entry];
    Tensor value = file_->tensor(entry.stored->name);
    if (value.dtype() == DType::f16) value = widen_halves(value);
    parts_ = from_file(entry.tensor, value, entry.shapes);
    open_ = location.entry;
  }
  unreleased_.push_back(location.entry);
  return parts_[location.part];
}

void WeightsInFile::release() {
  for (const size_t entry : unreleased_) file_->release(*entries_[entry].stored);
  unreleased_.clear();
}

std::optional<std::string_view> WeightsInFile::bytes_of(const FileTensor& tensor,
                                                        std::string_view type) const {
  const auto location = locations_.find(tensor.parts[0]);
  if (location == locations_.end()) return std::nullopt;
  const Entry& entry = entries_[location->second.entry];
  const bool same = entry.tensor.parts == tensor.parts && entry.tensor.stored == tensor.stored &&
                    entry.tensor.group == tensor.group && entry.tensor.rotated == tensor.rotated &&
                    entry.stored->type == type;
  if (!same) return std::nullopt;
  return std::string_view(entry.stored->data, entry.stored->bytes);
}

}  // namespace fovea::model

#pragma once

// The file model.bin of CTranslate2, binary version 6 (github.com/OpenNMT/CTranslate2, class
// ModelSpec): the name and the revision of a specification, variables with a type and a shape, and
// aliases, which are further names of variables. A matrix of int8 or int16 has a variable
// NAME_scale: an element is the integer divided by the scale of its row, or by the only scale.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "safetensors/tensor_source.h"

namespace fovea::model {

enum class Ct2Type : uint8_t { f32, i8, i16, i32, f16, bf16 };

struct Ct2Variable {
  Shape shape;  // empty: a number
  Ct2Type type = Ct2Type::f32;
  std::string_view bytes;
};

class Ct2File {
 public:
  // Throws BadFile if the file is damaged, Unsupported if its version is another.
  explicit Ct2File(const std::string& path);

  const std::string& path() const { return file_->path(); }
  const std::shared_ptr<const MappedFile>& file() const { return file_; }
  const std::string& specification() const { return specification_; }
  uint32_t revision() const { return revision_; }
  const std::map<std::string, Ct2Variable, std::less<>>& variables() const { return variables_; }
  // Return a variable, also by an alias, and the name of an alias's variable.
  const std::map<std::string, std::string, std::less<>>& aliases() const { return aliases_; }
  const Ct2Variable* find(std::string_view name) const;
  std::string resolved(const std::string& name) const;
  // Returns a variable that is a number; unset if there is none.
  std::optional<double> number(std::string_view name) const;

 private:
  std::shared_ptr<const MappedFile> file_;
  std::string specification_;
  uint32_t revision_ = 0;
  std::map<std::string, Ct2Variable, std::less<>> variables_;
  std::map<std::string, std::string, std::less<>> aliases_;
};

// The variables with a shape and their aliases, except scales, as tensors. Those of integers are
// f32. `padded`: names of tensors that get a last row, or element, of zeros.
class Ct2Tensors : public TensorSource {
 public:
  Ct2Tensors(std::shared_ptr<const Ct2File> file, const std::vector<std::string>& padded);

  const std::vector<StoredTensor>& stored() const override { return stored_; }
  Tensor tensor(std::string_view name) const override;
  std::shared_ptr<const MappedFile> file_of(const StoredTensor&) const override {
    return file_->file();
  }

 private:
  std::shared_ptr<const Ct2File> file_;
  std::vector<StoredTensor> stored_;
};

// Writes model.bin. `tensors` are f32; each is written as its `type`: i8 with a scale for each row.
struct Ct2Output {
  std::string name;
  Tensor values;  // empty shape [1] with `number`: a number
  Ct2Type type = Ct2Type::f32;
  bool number = false;
};
void write_ct2(const std::string& path, const std::string& specification, uint32_t revision,
               std::vector<Ct2Output> variables,
               const std::vector<std::pair<std::string, std::string>>& aliases);

}  // namespace fovea::model

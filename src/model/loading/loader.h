#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/packing_queue.h"
#include "loading/loading.h"
#include "safetensors/tensor_source.h"

namespace fovea::model {

// Loads a file's tensors into a model, and records everything that does not fit.
//
// Matrices that are packed without rounding are packed late (ops/packed.h); those that are rounded
// or that are not rows of the file are packed at once. If the packed weights would not fit into the
// memory that is available, all rows of the file stay there.
class Loader {
 public:
  Loader(const TensorSource& file, const Family& family, const Loading& loading, ModelFiles& files,
         std::string folder)
      : file_(file),
        family_(family),
        loading_(loading),
        files_(files),
        folder_(std::move(folder)) {}

  void load(Transformer& model);
  // Returns the memory that the weights will take; tensors that do not fit the model count nothing.
  WeightSizes sizes(Transformer& model) const;

  // Sets the name of a tensor that report() ignores: a copy of a tied weight.
  void pass_over(const std::string& name) { passed_over_ = name; }

  // Throws BadFile with a list of all problems, if there are any. Otherwise adds the warnings.
  void report(std::vector<std::string>& warnings) const;

  std::vector<std::string> lacking;  // parameters of a new head that the file lacks

  // Finds a tensor by its name, with or without the family's prefix, or by the old names of norms.
  // Returns null if the file lacks it.
  const StoredTensor* find(const std::string& name) const;

 private:
  // A tensor of the file and its parameters.
  struct Item {
    FileTensor tensor;
    std::vector<Parameter*> parts;
    std::vector<Shape> shapes;
    const StoredTensor* stored = nullptr;  // null if the file lacks it
    Shape expected;                        // in the file
  };
  using Formats = std::vector<std::optional<WeightFormat>>;  // of the parts; unset = not packed

  std::vector<Item> items(Transformer& model) const;
  bool uses_names_in_memory(Transformer& model) const;
  bool is_quantized_in_file(const Item& item) const;
  bool stays_in_blocks(const Spec& spec, const Item& item) const;
  Formats formats_of(const Spec& spec, const Item& item, DType dtype) const;
  bool stays_bf16(const Item& item, DType dtype) const;
  int64_t group_of(WeightFormat format) const;

  void check_floats(const Item& item, DType dtype) const;
  void save_as(const Item& item, DType dtype);

  void leave_in_file(const Item& item);
  void load_quantized(const Item& item);
  void load_blocks(const Spec& spec, const Item& item);
  void load_full(const Spec& spec, const Item& item);
  bool compute_sinusoids(const Spec& spec, const Item& item) const;
  void load_columns(const Item& item, const Tensor& value, const Formats& formats);
  PackedWeight packed_later(const Item& item, const Tensor& value, WeightFormat format);
  void queue(const Item& item, std::vector<PackedWeight> weights, bool mapped, bool counted);
  void run_queue();
  bool predicts_further(const std::string& name) const;
  Tensor checked(const StoredTensor& stored);
  void warn_of_nonfinite(const StoredTensor& stored, int64_t bad, int64_t size);

  const TensorSource& file_;
  const Family& family_;
  const Loading& loading_;
  ModelFiles& files_;
  std::string folder_, passed_over_;
  std::set<std::string> used_, not_finite_;
  PackingQueue queue_;
  size_t copied_ = 0;   // bytes of tensors in the queue that are not in the mapping
  bool fits_ = true;    // the packed weights fit into memory
  int64_t layers_ = 0;  // of the decoder
  std::vector<std::string> missing_, misshapen_;
};

// Returns the name of the tensor of a head that does not share the embedding's matrix; empty if the
// family has none. A file may contain such a tensor although config.json ties the head.
std::string name_of_head(const Spec& spec, const Family& family);

}  // namespace fovea::model

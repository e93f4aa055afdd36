#pragma once

// The model in a GGUF file: metadata and weights.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/gguf.h"
#include "checkpoint/importance.h"
#include "formats/gguf/modules.h"
#include "formats/gguf/types.h"
#include "fovea/model/model.h"
#include "fovea/text/tokenizer.h"
#include "loading/loading.h"

namespace fovea::model {

// Like open_model_files() for a folder. The origin's family is the corresponding family of Hugging
// Face files.
ModelFiles open_gguf_files(const std::string& path, const Loading& loading);

Spec read_gguf_spec(const std::string& path);
// The key of a file's kind, and its value in adapters.
constexpr const char *kGgufType = "general.type", *kGgufAdapter = "adapter";

// Returns a tensor without data, in the block type `wanted` or in its fallback_block().
GgufTensor gguf_tensor(const std::string& name, const Shape& shape, const std::string& wanted);
// Returns the bytes of a tensor whose elements are `values`, f32. `importance`: null = all columns
// matter equally. Throws BadFile if numbers to be quantised are not finite, InvalidArgument if they
// are too large; adds a warning about floats that are not finite.
std::string gguf_elements(const GgufTensor& tensor, const Tensor& values,
                          const ImportanceMatrix* importance, std::vector<std::string>& warnings);

// Where the elements of a GGUF file come from.
struct GgufValues {
  std::function<Tensor(const std::string& parameter)> read;  // returns a parameter in f32
  // Tensors that this file has in the right type are copied; null = none.
  WeightsInFile* file = nullptr;
  const ImportanceMatrix* importance = nullptr;  // null = all columns matter equally
};
// Returns the values of a model, whose parameters are in memory or, if it is not null, in `file`.
// Both must exist as long as the result.
GgufValues values_of(Transformer& model, WeightsInFile* file = nullptr);

// A model as a GGUF file, without its tokenizer. Throws Unsupported if no architecture can express
// the Spec. Fields that only training uses, such as dropout, are omitted.
class GgufModel {
 public:
  // `family` is the family that the model was read from, so that related families keep their names;
  // with `importance`, an importance matrix will be used. Uses only the shapes of the parameters.
  GgufModel(Transformer& model, const Family* family, FileDType dtype, bool importance = false);

  // Adds the names of a classifier's labels, and whether they exclude one another.
  void add_labels(const Origin& origin);
  // Adds the pooling of an embedder and the matrices after it. Throws Unsupported if llama.cpp has
  // no matrices for this architecture.
  void add_modules(const TextVectorModules& modules);

  GgufMetadata metadata;
  const std::vector<GgufTensor>& tensors() const { return tensors_; }  // without data
  std::vector<FileTensor> matrices() const;  // the tensors of more than one dimension
  // Messages about tensors whose type differs from the wanted one because of the length of rows,
  // and about parts of the model that the file does not hold.
  std::vector<std::string> warnings(const GgufValues& values) const;

  // Returns the bytes of a tensor; throws and warns like gguf_elements().
  std::string elements(size_t index, const GgufValues& values, std::vector<std::string>& warnings);

 private:
  struct Source {
    FileTensor tensor;      // without parts if the elements follow from the Spec
    std::string elements;   // that follow from the Spec
    std::string wanted;     // block type before the fallback
    int64_t first_row = 0;  // the rows before this one are left out
    Tensor values = {};     // those of a module
  };
  void add(Source source, const Shape& shape);
  void add_fallbacks(std::vector<std::string>& messages) const;

  std::vector<GgufTensor> tensors_;
  std::vector<Source> sources_;
  std::vector<std::string> zeros_;  // names of parameters that are 0 when the file is read
  std::string architecture_;
  std::string block_;            // of most matrices
  int64_t width_ = 0;            // of the vectors of tokens
  bool words_left_out_ = false;  // whether the model has a head for masked words
  bool groups_by_best_ = false;  // whether it chooses groups of experts by their best one
  int64_t labels_ = 0;           // of a classifier
  // The heads of the model, if the file has them in tiled order.
  std::optional<DeltaSpec> tiled_;
};

// Writes a GGUF file atomically, one tensor after the other. `vocabulary`: the number of tokens of
// the model. Returns warnings(), and floats that are not finite. Throws as elements().
std::vector<std::string> write_gguf_file(const std::string& path, GgufModel& file,
                                         const std::optional<text::Tokenizer>& tokenizer,
                                         int64_t vocabulary, const GgufValues& values);

// Returns the type of a file with the dtype of the origin: fp32, bf16 or fp16.
FileDType file_dtype(const Origin& origin);

}  // namespace fovea::model

#pragma once

// A model's weights between files and memory, whatever the format of the files: a config and named
// tensors become a Transformer, and back.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/quantized.h"
#include "checkpoint/weights_in_file.h"
#include "families/registry.h"
#include "fovea/model/model.h"
#include "fovea/model/spec.h"
#include "safetensors/tensor_source.h"

namespace fovea::model {

// The origin of a model, so that it is saved as the same kind of directory.
struct Origin {
  const Family* family = nullptr;
  nlohmann::ordered_json carried;     // keys of config.json that do not affect the arithmetic
  nlohmann::ordered_json generation;  // generation_config.json, if there was one
  // The dtype for saving tensors that are not quantised; `dtypes` has exceptions by the tensor's
  // name in the file. A model that was read for training is saved as f32.
  DType dtype = DType::f32;
  std::map<std::string, DType> dtypes;
  std::optional<Quantization> quantization;      // unset: no tensor is saved quantised
  std::vector<std::string> labels;               // names of the outputs of a head; empty = unknown
  ProblemType problem = ProblemType::automatic;  // what they predict; automatic = unknown
  // The bytes of a file of weights at most, unless one tensor has more: by default as transformers.
  uint64_t shard_bytes = 50'000'000'000;

  void save_all_as(DType kind) {
    dtype = kind;
    dtypes.clear();
  }
};

// Return the token id under a key of the checkpoint's config files. special_id(), for generation,
// prefers generation_config.json to config.json; configured_id(), for shifting and padding labels,
// prefers config.json, as in transformers.
std::optional<int32_t> special_id(const Origin& origin, const char* key);
std::optional<int32_t> configured_id(const Origin& origin, const char* key);

// The memory of a model's weights, in bytes.
struct WeightSizes {
  std::map<std::string, int64_t> formats;  // of all weights in each format
  int64_t in_file = 0;  // of those of a table, of which few rows are read from the file
  uint64_t in_memory() const {
    int64_t bytes = -in_file;
    for (const auto& [format, size] : formats) bytes += size;
    return static_cast<uint64_t>(bytes);
  }
};

struct ModelFiles {
  Transformer model;
  Origin origin;
  std::vector<int32_t> end_ids;       // generation stops at any of these
  std::vector<std::string> warnings;  // suspicious contents of the files
  std::vector<std::string> missing;   // parameters of a new head that the file lacks; their values
                                      // are empty
  WeightSizes sizes;                  // if only these were requested
  std::string base;  // where the weights were read: differs from the path of an adapter
  std::shared_ptr<WeightsInFile> in_file;  // of Weights::in_file
};

// How the elements are stored in memory. `mapped` leaves them in the file if they are f32 in the
// layout of fovea; `owned` copies them, for training; `packed` packs the parameters that
// packed_format() selects, for inference. Weights that config.json declares as quantised are always
// packed; `owned` throws Unsupported for them. `in_file` leaves all others without values, for
// ModelFiles::in_file to read one by one.
enum class Weights { mapped, owned, packed, in_file };

struct Packing {
  // Unset: blocks of GGUF files stay as stored (Q8_0 is int8 and Q4_0 is int4, with groups of 32),
  // bf16 stays bf16, and the rest becomes f32.
  std::optional<WeightFormat> format;
  int64_t group = 32;
};

// How to turn the tensors of a file into parameters; `quantization` is that of the file.
struct Loading {
  Weights weights = Weights::mapped;
  Packing packing = {};
  std::optional<Quantization> quantization = {};
  const HeadSpec* new_head = nullptr;  // replaces config.json's head; its tensors are read if the
                                       // file has them
  // The copies of tensors that wait to be packed may take this number of bytes.
  size_t most_copied = size_t{128} << 20;
  bool only_sizes = false;  // read no weights
  bool final_norm = true;   // false: an encoder's output has no norm, whose tensors are not read
};

// Returns the token ids under a key of a config, which holds one id or a list; other values are
// left out.
std::vector<int32_t> ids_under(const nlohmann::json& json, const char* key);

// Returns the labels of id2label, ordered by id; empty if an id is missing or a value is not a
// string.
std::vector<std::string> labels_of(const nlohmann::json& config);

// Returns the problem_type; automatic if it is missing or null. Throws Unsupported, naming the
// file, if transformers does not know it.
ProblemType problem_type_of(const nlohmann::json& config, const std::string& file);

// Return the arguments of load_model() for a precision.
Weights weights_of(WeightPrecision precision);
Packing packing_of(WeightPrecision precision);
// Like packing_of(); int8 weights have one scale for each output. For models of vectors and scores,
// whose speed is that of their products and whose results hardly change (docs/performance.md).
Packing packing_by_output(WeightPrecision precision);
// Returns formats and their bytes, those with most bytes first.
std::vector<FormatBytes> largest_first(const std::map<std::string, int64_t>& formats);

// Makes a model from its config and tensors. Errors name the config `name` and the model `path`.
ModelFiles load_model(const Family& family, const nlohmann::json& config, const std::string& name,
                      const std::shared_ptr<const TensorSource>& file, const Loading& loading,
                      const std::string& path);

// Returns the value of a parameter, packed or not, in f32 (f64 for f64).
Tensor floats_of(const Parameter& parameter);

// Return the contents of the model's files, except the tokenizer, with adapters merged. Quantised
// weights keep their format, or become f32 like all others if `keep_quantized` is false.
std::map<std::string, Tensor> checkpoint_tensors(Transformer& model, const Family& family,
                                                 bool keep_quantized = true);
std::string config_json(const Transformer& model, const Origin& origin,
                        std::optional<int32_t> end_id);
std::string generation_config_json(const Spec& spec, const Origin& origin,
                                   std::optional<int32_t> end_id);

// Returns the origin's family if it can express the Spec, else the first family that can.
const Family& family_to_save(const Spec& spec, const Origin& origin);

// Writes the model's files, except the tokenizer, into an existing folder: the weights (see
// loading/shards.h) and the other files, each atomically.
void save_model_files(const std::string& folder, Transformer& model, std::optional<int32_t> end_id,
                      const Origin& origin = {});

}  // namespace fovea::model

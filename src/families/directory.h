#pragma once

// A model's part of a Hugging Face directory: config.json, generation_config.json and the weights.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/quantized.h"
#include "checkpoint/tensor_source.h"
#include "families/registry.h"

namespace fovea {

// Where a model came from, so that it is saved as the same kind of directory.
struct Origin {
  const Family* family = nullptr;
  nlohmann::ordered_json carried;     // keys of config.json that change no arithmetic
  nlohmann::ordered_json generation;  // generation_config.json, if there was one
  // In which tensors that are not quantised are saved, and which of them, by the file's name, have
  // one of their own. What was read to be trained is saved as f32.
  DType dtype = DType::f32;
  std::map<std::string, DType> dtypes;
  std::optional<Quantization> quantization;  // of the others; absent: all are saved in full
  std::vector<std::string> labels;  // what the outputs of a head stand for; empty = not told

  void save_all_as(DType kind) {
    dtype = kind;
    dtypes.clear();
  }
};

// A token id that generation_config.json or config.json names: writing goes by the first of the two
// where both do, and what labels are shifted and padded with by config.json, as in transformers.
std::optional<int32_t> special_id(const Origin& origin, const char* key);
std::optional<int32_t> configured_id(const Origin& origin, const char* key);

struct ModelFiles {
  Transformer model;
  Origin origin;
  std::vector<int32_t> end_ids;       // generation stops at any of these
  std::vector<std::string> warnings;  // odd but harmless
  std::vector<std::string> missing;   // parameters of a new head that the file lacks: no elements
};

// What to do with the elements: `mapped` leaves them in the file where they are f32 and as we keep
// them; `owned` copies, so that they can be trained; `packed` packs all that linear() multiplies,
// for inference. What a file holds quantised is packed in any case, and refused by `owned`.
enum class Weights { mapped, owned, packed };

struct Packing {
  std::optional<WeightFormat> format;  // absent: bf16 where the file has it, else f32
  int64_t group = 32;
};

// Of a directory or a .gguf file. BadFile or Unsupported, naming file and key or tensor, where it
// does not hold together: all missing, unknown and misshapen tensors in one message.
ModelFiles open_model_files(const std::string& path, Weights weights, const Packing& packing = {});

// The same with another head than config.json says, as far as the file has it.
ModelFiles open_with_head(const std::string& path, Weights weights, const HeadSpec& head);

// How the tensors of a file become parameters; `quantization` is that of the file.
struct Loading {
  Weights weights = Weights::mapped;
  Packing packing = {};
  std::optional<Quantization> quantization = {};
  const HeadSpec* new_head = nullptr;  // instead of config.json's, as far as the file has it
};

// The model of a config and its tensors; `name` is the config's in errors, `path` that of it all.
ModelFiles load_model(const Family& family, const nlohmann::json& config, const std::string& name,
                      const TensorSource& file, const Loading& loading, const std::string& path);

// The files that make the model's directory, by name; everything but the tokenizer. Quantised
// weights as they are, or else in f32 as all others.
std::map<std::string, Tensor> checkpoint_tensors(Transformer& model, const Family& family,
                                                 bool keep_quantized = true);
std::string config_json(const Transformer& model, const Origin& origin,
                        std::optional<int32_t> end_id);
std::string generation_config_json(const Spec& spec, const Origin& origin,
                                   std::optional<int32_t> end_id);

// The origin's family if it can still express the Spec, else the first that can.
const Family& family_to_save(const Spec& spec, const Origin& origin);

// Writes all of these into an existing folder, each file atomically.
void save_model_files(const std::string& folder, Transformer& model, std::optional<int32_t> end_id,
                      const Origin& origin = {});

}  // namespace fovea

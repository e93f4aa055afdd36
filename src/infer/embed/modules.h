#pragma once

// A sentence-transformers directory: modules.json lists the Transformer and the modules after it,
// each with its own folder. The files of all releases are supported. The last component of a
// module's type identifies the kind of module.

#include <map>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "checkpoint/module_files.h"
#include "embed/pooling.h"
#include "embed/text_format.h"
#include "nn/linear.h"
#include "nn/norm.h"

namespace fovea::infer {

// Replaces the hidden states of the last layer by the weighted mean of the hidden states of the
// layers from `first` (0 = the embeddings) to the last. Precedes the pooling.
struct LayerMean {
  int64_t first = 0;
  std::vector<float> weights;
  // In training, instead of `weights`: their softmax (Peters et al. 2018, eq. 1) is the weights.
  Tensor scores = {};
};

// Pools the tokens into one vector for each mode; these vectors are concatenated.
struct PoolingModule {
  std::vector<TokenPooling> modes;
  bool include_prompt = true;
  Tensor attention = {};  // the vector of attention_pooling(), f32 [C]
};

// y = f(x weight^T + bias). If `residual` is true, x is added, or projection(x) if the widths
// differ.
struct DenseModule {
  model::Linear linear, projection;
  std::optional<Activation> activation;  // unset = the identity
  bool residual = false;
};

struct NormalizeModule {};

// Keeps the first elements of the vector: truncate_dim of config_sentence_transformers.json, which
// applies to the results of a model, not to its training.
struct TruncateModule {
  int64_t width, before;
};

using VectorModule = std::variant<DenseModule, NormalizeModule, model::Norm, TruncateModule>;
void move_modules(const Device& device, std::vector<VectorModule>& modules);

enum class Similarity { cosine, dot, euclidean, manhattan };
const std::string& name_of(Similarity similarity);
std::optional<Similarity> similarity_named(const std::string& name);

// The texts that a model prepends, by their names.
struct NamedPrompts {
  std::map<std::string, std::string> prompts;
  std::string default_prompt;  // the name of a prompt; empty = none
};

struct SentenceModules : NamedPrompts {
  bool static_vectors = false;  // StaticEmbedding takes the place of the Transformer
  std::optional<LayerMean> layers;
  PoolingModule pooling;
  std::vector<VectorModule> after;  // modules for the pooled vector, in order
  int64_t width = 0;                // width of the final vector
  Similarity similarity = Similarity::cosine;
  uint64_t hash = 0;  // hash of the modules after the Transformer: their kinds and files
};

// Removes the TruncateModule, if there is one.
void keep_all_elements(SentenceModules& modules);

// Returns whether the path is a .gguf file that names its pooling (ARCHITECTURE.pooling_type).
bool names_pooling(const std::string& path);

// Reads the modules after the Transformer, whose width is `width`. Without modules.json, the only
// module is mean pooling. A .gguf file with a pooling has that one, its matrices, and vectors of
// unit length, as llama.cpp computes them. Throws BadFile or Unsupported, naming the file and the
// key, if something is missing, unknown or inconsistent.
SentenceModules read_modules(const std::string& folder, int64_t width);

// Reads config_sentence_transformers.json of the folder, if it exists.
NamedPrompts read_prompts(const std::string& folder);
// Returns a string of that file; unset if there is none.
std::optional<std::string> find_setting(const std::string& folder, const char* key);

// Reads a Dense module, whose input has the width `width`, and sets `width` to that of its output.
// `input` is the name of its input in the file: sentence_embedding or token_embeddings.
DenseModule read_dense(const std::string& folder, const char* input, int64_t& width);

// Returns a hash of the kinds and the files of modules.
uint64_t hash_of(std::span<const model::ListedModule> modules);

// Returns the settings of the tokenizer in a folder (see text_settings_of()), and those of
// sentence-transformers in this folder, which contains config.json.
TextSettings read_text_settings(const std::string& folder, const text::Tokenizer& tokenizer);

// Returns the activation for the full name of a class of torch.nn; unset = the identity. Throws
// Unsupported, naming the file, if the class is not known.
std::optional<Activation> activation_named(const std::string& type, const std::string& file);

// Describes how the vectors of tokens become one vector: "mean of the tokens; layers 0 to 2 with
// weights 0.100 0.300 0.600".
std::string describe_pooling(const SentenceModules& modules);

// Applies a module: x [B, C] -> [B, C']; differentiable
Tensor apply_module(const VectorModule& module, const Tensor& x);

}  // namespace fovea::infer

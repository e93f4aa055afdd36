#pragma once

// A sentence-transformers directory: modules.json lists what follows the Transformer, each with a
// folder of its own. Directories of all releases are read; modules are known by the last name of
// their type.

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "embed/pooling.h"
#include "nn/linear.h"
#include "nn/norm.h"

namespace fovea {

// The hidden states become the weighted mean of those of the layers from `first` on (0 = the
// embeddings). Stands before the pooling.
struct LayerMean {
  int64_t first = 0;
  std::vector<float> weights;
};

// One vector for each mode, side by side.
struct PoolingModule {
  std::vector<TokenPooling> modes;
  bool include_prompt = true;
};

// y = f(x weight^T + bias), plus x (or its projection) where it is residual.
struct DenseModule {
  Linear linear, projection;
  std::optional<Activation> activation;  // absent = the identity
  bool residual = false;
};

struct NormalizeModule {};

using VectorModule = std::variant<DenseModule, NormalizeModule, Norm>;

enum class Similarity { cosine, dot, euclidean, manhattan };
const std::string& name_of(Similarity similarity);
std::optional<Similarity> similarity_named(const std::string& name);

// What beside the weights decides how a text is read.
struct TextSettings {
  std::optional<int64_t> max_tokens;  // absent: the model's context
  bool lower_case = false;
  bool types = true;  // the input says to which of two texts a token belongs
};

struct SentenceModules {
  std::optional<LayerMean> layers;
  PoolingModule pooling;
  std::vector<VectorModule> after;  // of the pooled vector, in order
  int64_t width = 0;                // of the final vector
  std::map<std::string, std::string> prompts;
  std::string default_prompt;  // a name; empty = none
  Similarity similarity = Similarity::cosine;
  uint64_t hash = 0;  // of all files that were read
};

// `width` is the Transformer's. BadFile or Unsupported name the file and the key, where something
// is missing, unknown or does not fit.
SentenceModules read_modules(const std::string& folder, int64_t width);

// Of the folder that holds config.json and the tokenizer.
TextSettings read_text_settings(const std::string& folder);

// Writes what makes a directory one of sentence-transformers besides its Transformer: copies of
// the files of `from`, or where that has none those that say what was done without them.
void copy_modules(const std::string& from, const std::string& to, int64_t width);

// The folder that holds config.json and the tokenizer: the first module's.
std::string transformer_folder(const std::string& folder);

bool has_modules(const std::string& folder);

// Of a class of torch.nn by its full name; absent = the identity. Unsupported for others.
std::optional<Activation> activation_named(const std::string& type, const std::string& file);

// x [B, C] -> [B, C']; differentiable
Tensor through(const VectorModule& module, const Tensor& x);

}  // namespace fovea

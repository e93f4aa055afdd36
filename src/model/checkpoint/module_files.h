#pragma once

// The files of a sentence-transformers directory: modules.json lists the Transformer and the
// modules after it, each with its own folder. The last component of a module's type identifies its
// kind.

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "tensor/tensor.h"

namespace fovea::model {

struct ListedModule {
  std::string kind;  // the last component of its type
  std::string folder;
};

// The module of a model of embeddings only, in place of a Transformer.
constexpr const char* kStaticEmbedding = "StaticEmbedding";

bool has_modules(const std::string& folder);
// Returns whether the folder has modules, of which the first one is StaticEmbedding.
bool is_static(const std::string& folder);

// Whether the module is a Transformer; older releases have another name for one with a head.
bool is_transformer(const ListedModule& module);

// Returns the modules in modules.json. Throws BadFile if it is not a list of modules in the folder.
std::vector<ListedModule> list_modules(const std::string& folder);

// The modules of each route of a Router, which selects a route by the purpose of a text.
using Router = std::map<std::string, std::vector<ListedModule>>;
// Reads the folder of a Router. Throws BadFile if its file is malformed.
Router read_router(const std::string& folder);

// Returns the folder that contains config.json and the tokenizer: that of the first module in
// modules.json, or `folder` if there is no modules.json. Throws the errors of list_modules(), and
// Unsupported if the first module is neither a Transformer nor a StaticEmbedding.
std::string transformer_folder(const std::string& folder);

// Returns whether the directory is one of the original ColBERT: a Transformer whose weights include
// a projection of the tokens' vectors, with settings in artifact.metadata.
bool is_original_colbert(const std::string& folder);

// Returns whether the name is sentence_FAMILY_config.json, where FAMILY is any family of models.
bool is_settings_file(const std::string& name);

// Older directories have a key for each mode of a Pooling module; the vectors of the modes are
// concatenated in this order. The keys with the modes' names in newer directories.
constexpr std::array<std::pair<const char*, const char*>, 6> kPoolingModeKeys = {
    {{"pooling_mode_cls_token", "cls"},
     {"pooling_mode_max_tokens", "max"},
     {"pooling_mode_mean_tokens", "mean"},
     {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens"},
     {"pooling_mode_weightedmean_tokens", "weightedmean"},
     {"pooling_mode_lasttoken", "lasttoken"}}};
// Returns the names in the config.json of a Pooling module; mean if it has none. Throws BadFile,
// naming the file, if pooling_mode is neither a name nor a list of names.
std::vector<std::string> pooling_modes(const nlohmann::json& config, const std::string& file);

// Writes modules.json for modules of these kinds, of which the first has no folder of its own and
// the others N_KIND.
void write_module_list(const std::string& folder, const std::vector<std::string>& kinds);
// Writes 1_Pooling/config.json, for vectors of tokens of this width.
void write_pooling(const std::string& folder, const std::string& mode, int64_t width);

// The linear layers of BGE-M3 (Chen et al. 2024, arXiv:2402.03216), which read the states of tokens
// beside the pooling of dense vectors: each is a file of torch.save() beside the model,
// sparse_linear.pt or colbert_linear.pt, or has the same name with .safetensors.
inline constexpr const char *kSparseHead = "sparse_linear", *kTokensHead = "colbert_linear";

struct TokenHead {
  Tensor weight, bias;  // f32 [N, width], [N]
  uint64_t hash = 0;    // of its file
};

// Whether the folder has the head of this name.
bool has_token_head(const std::string& folder, const std::string& name);
// Reads it. `outputs`: N; 0 = any. Throws BadFile if it does not fit, and the errors of
// read_torch_file().
TokenHead read_token_head(const std::string& folder, const std::string& name, int64_t width,
                          int64_t outputs = 0);
// Copies the files of both heads, if there are any, after they were read.
void copy_token_heads(const std::string& from, const std::string& to, int64_t width);

// Writes the files of a sentence-transformers directory, except the model and the tokenizer of its
// Transformer: copies of the files in `from`, or, if `from` has no modules.json, files that
// describe mean pooling. Heads for tokens are copied too. `width` is the width of the
// Transformer.
void copy_modules(const std::string& from, const std::string& to, int64_t width);

}  // namespace fovea::model

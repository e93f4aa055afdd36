#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fovea/core/options.h"
#include "fovea/model/gguf.h"
#include "fovea/model/model.h"

namespace fovea::model {

enum class Quantize { automatic, none, int8, int4 };

// With `quantize` = automatic, a directory gets unquantised weights, since no other program reads
// quantised weights in fovea's format. A .gguf file keeps the precision of the source if both
// options are automatic.
struct ConvertOptions {
  // Type of the matrices in a .gguf file; in a directory, the dtype of unquantised tensors.
  // automatic: as in the source.
  FileDType dtype = FileDType::automatic;
  // int8 and int4 are q8_0 and q4_0 in a .gguf file; cannot be combined with a quantised `dtype`.
  Quantize quantize = Quantize::automatic;
  // Number of weights that share a scale: 32 or, in a directory, 64; 0 = a whole row (int8).
  int64_t group = 32;
  // For a .gguf file of quantised weights, at most one of these: a text file on which the model
  // runs, or an importance matrix of llama.cpp (.gguf or .dat). The errors of quantised weights
  // count more for inputs with large activations. Empty = all inputs count equally.
  std::string calibrate = {};
  std::string imatrix = {};
  // Path of a new .gguf file for the importance matrix; empty = it is not saved.
  std::string save_imatrix = {};
  // Converts an adapter itself, instead of merging it into the weights of its base: to a .gguf file
  // for llama.cpp, or to a directory of PEFT in fp32.
  bool adapter_only = false;
  // Writes only the embeddings of the tokens and the tokenizer: a sentence-transformers directory
  // in which the vector of a text is the mean of those of its tokens (StaticEmbedding).
  bool static_vectors = false;
  // In a directory: bytes of a file of weights at most, unless one tensor has more. A larger model
  // gets several files and their index.
  uint64_t shard_size = 50'000'000'000;
  // Writes a directory of CTranslate2: a model of speech or of translation.
  bool ctranslate2 = false;
};
void visit(ConvertOptions& options, OptionVisitor& visitor);  // fovea/core/options.h

struct Conversion {
  int64_t parameters = 0;
  int64_t bytes_before = 0, bytes_after = 0;  // of *.safetensors, model.bin or the file
  // Precision of the written matrices: "fp32", "int8 in groups of 32", "q8_0", ...
  std::string weights;
  // About the source, see Model::warnings(), and matrices whose rows do not consist of the blocks
  // of the type, so that they have another type.
  std::vector<std::string> warnings = {};
  std::string mmproj = {};  // the file of the encoder of images, if one was written
};

// Converts a model with its tokenizer and chat templates. `from` and `to` are each a directory,
// also of CTranslate2, a .gguf file, or, for speech, a .bin file of whisper.cpp; between
// directories, the modules of a sentence-transformers directory are copied. Changes the dtype, or
// quantises the matrices of the layers and the head. Quantised source weights are dequantised
// first; in fp32 this is lossless. Tensors of a .gguf file that keep their type are copied. A .gguf
// file is written tensor by tensor, except with adapters, so that a model may be larger than the
// memory. Beside the .gguf file of a model of texts and images, its encoder of images is written
// as mmproj-NAME.gguf, as llama.cpp reads it. Throws InvalidArgument if `to` already is or contains
// a model, or if a quantised directory would be quantised in a different format, the errors of
// Model::open() for `from`, and Failed if `to` cannot be written. After a failure, `to` contains
// nothing new. The weighted sum of `adapters`, and the adapter of a `from` that holds one, are
// merged into the weights. With options.adapter_only there must be one adapter, of weight 1; throws
// Unsupported if the format cannot express it.
Conversion convert_model(const std::string& from, const std::string& to,
                         const ConvertOptions& options,
                         const std::vector<AdapterUse>& adapters = {});

}  // namespace fovea::model

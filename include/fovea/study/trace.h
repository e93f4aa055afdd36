#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "fovea/core/options.h"
#include "fovea/core/tensor.h"
#include "fovea/infer/image_model.h"
#include "fovea/model/model.h"

namespace fovea::study {

struct TraceOptions {
  // The input; set one of `text`, `ids` and `input`. `input` is a .safetensors file with input_ids
  // [B, T] and optionally attention_mask, token_type_ids and labels; or with pixel_values [B,
  // channels, size, size], input_features [B, bins, 2 * frames], or a waveform [samples] at 16 kHz.
  std::string text;
  std::vector<int32_t> ids;
  std::string input;
  // The file of an image: the input of an encoder of images; or, for a model of texts and
  // images, the one that the mark in `text` stands for, or the tokens of an image in `ids`. A
  // text without a mark begins with the image. Empty = none.
  std::string image;

  // The values to write: names with the wildcards *, ? and [...], such as "*query*" or "mlp_*.3",
  // also several separated by commas. Empty: hidden.*, attention.* and logits. docs/inspect.md
  // lists the names; those of TransformerLens, such as "blocks.3.attn.hook_q", are aliases.
  std::vector<std::string> what;
  std::string layers;  // write only values of these layers: "3" or "0-5"; empty = all
  // A .safetensors file: each of its tensors replaces the value of that name during the run. Its
  // input_ids, decoder_input_ids, loss and grad.* are ignored, so that it may be a trace.
  std::string patch;
  // Also write the loss and grad.<tensor>. Without labels, the targets are the input ids.
  bool gradients = false;
  // Path of the file to write: an archive of NumPy if it ends in .npz, else in the format of
  // safetensors; empty = none.
  std::string out;
};
void visit(TraceOptions& options, OptionVisitor& visitor);  // fovea/core/options.h

struct TracedTensor {
  std::string name;
  std::vector<int64_t> shape;  // slowest axis first
};

// Runs the model once and writes its intermediate results: by default logits [B, T, V], hidden.{i}
// [B, T, C] (0 = the input of layer 0; last = after the final norm, or before it in families for
// which transformers reports that state) and attention.{i} [B, H, T, T]; further values by `what`;
// also input_ids, loss [1] with labels or gradients, and grad.* under the checkpoint's tensor
// names. In an encoder-decoder, the names of values begin with "encoder_", "decoder_" or "cross_".
// The metadata of a .safetensors file contains the texts of the tokens: "tokens", a JSON list for
// each batch row. Returns the names and shapes of the tensors, in the order of the names. Throws
// InvalidArgument if a name matches nothing, there are no tokens, or the name of `out` ends like
// that of a file of another format, BadFile if a file cannot be read, or if a patch has another
// shape than its value or an unknown name, and Failed if `out` cannot be written.
std::vector<TracedTensor> trace(const model::Model& model, const TraceOptions& options);
// Does the same for an encoder of images and options.image, without gradients.
std::vector<TracedTensor> trace(const infer::ImageModel& model, const TraceOptions& options);

// Receives each selected value, under its name, as soon as it is computed, and may replace it by
// another tensor of the same shape and type, which the rest of the run reads.
using TraceHook = std::function<void(const std::string& name, Tensor& value)>;
// Do the same, and return the tensors, in the order of the names. Throw the
// errors of trace(), and InvalidArgument if `hook` returns a tensor of another shape or type.
using TracedValues = std::vector<std::pair<std::string, Tensor>>;
TracedValues traced_values(const model::Model& model, const TraceOptions& options,
                           const TraceHook& hook = {});
TracedValues traced_values(const infer::ImageModel& model, const TraceOptions& options,
                           const TraceHook& hook = {});

}  // namespace fovea::study

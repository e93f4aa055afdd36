#include "fovea/convert.h"

#include <filesystem>

#include "api/parts.h"
#include "base/error.h"
#include "base/files.h"
#include "base/float_mode.h"
#include "base/gguf.h"
#include "fovea/gguf.h"

namespace fovea {
namespace {

int64_t weight_files(const std::string& folder) {
  int64_t bytes = 0;
  if (is_gguf(folder)) return static_cast<int64_t>(std::filesystem::file_size(folder));
  for (const std::string& name : list_files(folder)) {
    if (name.ends_with(".safetensors"))
      bytes += static_cast<int64_t>(std::filesystem::file_size(folder + "/" + name));
  }
  return bytes;
}

// Quantised straight from the file's bf16 where it has that: the model is never there in fp32.
Packing packing_of(const ConvertOptions& options) {
  Packing packing;
  packing.group = options.group;
  if (options.quantize == Quantize::int8) packing.format = WeightFormat::int8;
  if (options.quantize == Quantize::int4) packing.format = WeightFormat::int4;
  return packing;
}

bool is_quantized_already(const ModelFiles& files, const Packing& packing) {
  const auto& stored = files.origin.quantization;
  return stored && (stored->format != packing.format || stored->group != packing.group);
}

// What is asked for, or else what the weights were read as.
GgufDtype gguf_dtype(const ConvertOptions& options, const Origin& origin) {
  if (options.quantize == Quantize::int8) return GgufDtype::q8_0;
  if (options.quantize == Quantize::int4) return GgufDtype::q4_0;
  switch (options.dtype) {
    case FileDType::automatic: break;
    case FileDType::fp32: return GgufDtype::f32;
    case FileDType::bf16: return GgufDtype::bf16;
    case FileDType::fp16: return GgufDtype::f16;
  }
  if (origin.quantization)
    return origin.quantization->format == WeightFormat::int4 ? GgufDtype::q4_0 : GgufDtype::q8_0;
  if (origin.dtype == DType::bf16) return GgufDtype::bf16;
  return origin.dtype == DType::f16 ? GgufDtype::f16 : GgufDtype::f32;
}

Conversion to_gguf(const std::string& from, const std::string& to, const ConvertOptions& options,
                   std::vector<std::string>* warnings) {
  check(options.group == 32, "--group: {}; expected 32, that of GGUF's blocks", options.group);
  check(!is_file(to), "{}: is there already; expected a new file", to);
  const Model model = Model::open(from, warnings, WeightPrecision::stored);
  save_gguf(model, to, gguf_dtype(options, model.parts().origin));
  return {model.parameters(), weight_files(from), weight_files(to)};
}

}  // namespace

Conversion convert_model(const std::string& from, const std::string& to,
                         const ConvertOptions& options, std::vector<std::string>* warnings) {
  const FloatMode mode;
  if (is_gguf(to)) return to_gguf(from, to, options, warnings);
  check(options.group == 32 || options.group == 64, "--group: {}; expected 32 or 64",
        options.group);
  check(!is_file(to + "/config.json"), "{}: holds a model already; expected a new folder", to);
  const Packing packing = packing_of(options);
  ModelFiles files = open_model_files(from, Weights::packed, packing);
  if (warnings != nullptr) *warnings = files.warnings;
  check(options.quantize == Quantize::none || !is_quantized_already(files, packing),
        "{}: the weights are quantised already; expected full ones", from);
  if (options.dtype == FileDType::fp32) files.origin.save_all_as(DType::f32);
  if (options.dtype == FileDType::bf16) files.origin.save_all_as(DType::bf16);
  if (options.dtype == FileDType::fp16) files.origin.save_all_as(DType::f16);

  make_directories(to);
  const auto end = files.end_ids.empty() ? std::nullopt : std::optional(files.end_ids[0]);
  save_model_files(to, files.model, end, files.origin);
  if (comes_with_tokenizer(from)) Tokenizer::open(from).save(to);

  return {parameter_count(files.model), weight_files(from), weight_files(to)};
}

}  // namespace fovea

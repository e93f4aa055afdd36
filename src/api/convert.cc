#include "fovea/convert.h"

#include <filesystem>

#include "api/parts.h"
#include "base/error.h"
#include "base/files.h"

namespace fovea {
namespace {

int64_t weight_files(const std::string& folder) {
  int64_t bytes = 0;
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

}  // namespace

Conversion convert_model(const std::string& from, const std::string& to,
                         const ConvertOptions& options, std::vector<std::string>* warnings) {
  check(options.group == 32 || options.group == 64, "--group: {}; expected 32 or 64",
        options.group);
  check(!is_file(to + "/config.json"), "{}: holds a model already; expected a new folder", to);
  const Packing packing = packing_of(options);
  ModelFiles files = open_model_files(from, Weights::packed, packing);
  if (warnings != nullptr) *warnings = files.warnings;
  check(options.quantize == Quantize::none || !is_quantized_already(files, packing),
        "{}: the weights are quantised already; expected full ones", from);
  if (options.dtype == FileDType::fp32) files.origin.dtype = DType::f32;
  if (options.dtype == FileDType::bf16) files.origin.dtype = DType::bf16;
  if (options.dtype == FileDType::fp16) files.origin.dtype = DType::f16;

  make_directories(to);
  const auto end = files.end_ids.empty() ? std::nullopt : std::optional(files.end_ids[0]);
  save_model_files(to, files.model, end, files.origin);
  if (is_file(from + "/tokenizer.json")) Tokenizer::open(from).save(to);

  return {parameter_count(files.model), weight_files(from), weight_files(to)};
}

}  // namespace fovea

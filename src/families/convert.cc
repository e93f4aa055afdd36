#include "fovea/convert.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <set>

#include "base/fields.h"
#include "base/files.h"
#include "base/float_mode.h"
#include "base/gguf.h"
#include "families/gguf_adapter.h"
#include "families/model_parts.h"
#include "families/open_adapters.h"
#include "families/peft_config.h"
#include "families/save_adapter.h"
#include "fovea/gguf.h"
#include "model/adapters.h"
#include "model/pack.h"

namespace fovea {
namespace {

int64_t weight_files(const std::string& folder) {
  int64_t bytes = 0;
  if (is_gguf(folder)) {
    const Gguf gguf(folder);
    for (const auto& file : gguf.files()) bytes += std::ssize(file->bytes());
    return bytes;
  }
  for (const std::string& name : list_files(folder)) {
    if (name.ends_with(".safetensors"))
      bytes += static_cast<int64_t>(std::filesystem::file_size(folder + "/" + name));
  }
  return bytes;
}

// Returns the packing that the options request. A bf16 file is quantised directly, so that the
// complete model never exists in fp32.
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

bool is_adapted(const std::string& from, const std::vector<AdapterUse>& adapters) {
  return !adapters.empty() || holds_adapter(from);
}

// Merges the adapters, and then packs the weights, which were opened in fp32, as the options
// request.
void merge_and_pack(ModelFiles& files, const Packing& packing) {
  merge_adapters(files.model);
  if (!packing.format) return;
  pack(files.model, *packing.format, packing.group);
  files.origin.quantization = Quantization{*packing.format, packing.group};
}

bool quantizes(const ConvertOptions& options) {
  return options.quantize == Quantize::int8 || options.quantize == Quantize::int4;
}

// Returns the block format that stores most bytes of the layers' matrices in a .gguf file.
std::string main_block(const std::string& path) {
  std::map<std::string, size_t> bytes;
  const Gguf file(path);
  for (const GgufTensor& tensor : file.tensors())
    if (tensor.shape.size() > 1 && tensor.name.starts_with("blk."))
      bytes[tensor.block->name] += tensor.bytes;
  const auto most = std::max_element(bytes.begin(), bytes.end(),
                                     [](auto& a, auto& b) { return a.second < b.second; });
  return most == bytes.end() ? "F32" : most->first;
}

struct NamedDtype {
  GgufDtype dtype;
  const char *block, *name;
};
constexpr std::array kGgufDtypes = {
    NamedDtype{GgufDtype::f32, "F32", "fp32"}, NamedDtype{GgufDtype::f16, "F16", "fp16"},
    NamedDtype{GgufDtype::bf16, "BF16", "bf16"}, NamedDtype{GgufDtype::q8_0, "Q8_0", "q8_0"},
    NamedDtype{GgufDtype::q4_0, "Q4_0", "q4_0"}};

GgufDtype same_block(const std::string& path) {
  const std::string block = main_block(path);
  for (const NamedDtype& each : kGgufDtypes)
    if (block == each.block) return each.dtype;
  fail(ErrorKind::Unsupported,
       "{}: its matrices are {}, which cannot be written; expected `quantize` int8 or int4, or a "
       "`dtype`",
       path, block);
}

GgufDtype same_dtype(const Origin& origin) {
  if (origin.dtype == DType::bf16) return GgufDtype::bf16;
  return origin.dtype == DType::f16 ? GgufDtype::f16 : GgufDtype::f32;
}

// Returns the requested format or, if none is requested, the format in which the model is stored.
GgufDtype gguf_dtype(const std::string& from, const ConvertOptions& options, const Origin& origin) {
  if (options.quantize == Quantize::int8) return GgufDtype::q8_0;
  if (options.quantize == Quantize::int4) return GgufDtype::q4_0;
  switch (options.dtype) {
    case FileDType::automatic: break;
    case FileDType::fp32: return GgufDtype::f32;
    case FileDType::bf16: return GgufDtype::bf16;
    case FileDType::fp16: return GgufDtype::f16;
  }
  if (options.quantize == Quantize::none) return same_dtype(origin);
  if (is_gguf(from)) return same_block(from);
  if (!origin.quantization) return same_dtype(origin);
  return origin.quantization->format == WeightFormat::int4 ? GgufDtype::q4_0 : GgufDtype::q8_0;
}

const LowRankAdapter& first_adapter(Transformer& model) {
  for (const auto& [name, layer] : linears_of(model))
    if (layer->adapter.present()) return layer->adapter;
  fail(ErrorKind::Internal, "the model has no adapter");
}

// Converts an adapter without its base, which defines the names of its tensors.
Conversion convert_adapter(const std::string& from, const std::string& to,
                           const ConvertOptions& options, const std::vector<AdapterUse>& uses) {
  const AdaptedModel adapted = adapted_model(from, uses);
  check(adapted.adapters.size() == 1 && adapted.adapters[0].weight == 1,
        "{}: has {} adapters; expected one, of weight 1", from, adapted.adapters.size());
  ModelFiles files = open_model_files(from, Weights::mapped, {}, uses);
  Conversion result{.bytes_before = weight_files(adapted.adapters[0].folder), .weights = "fp32"};
  for (const auto& [name, parameter] : parameters_of(files.model))
    if (parameter->trainable) result.parameters += elements(parameter->shape);
  if (is_gguf(to)) {
    check(!is_file(to), "{}: exists already; expected a new file", to);
    const GgufDtype dtype = gguf_dtype(adapted.adapters[0].folder, options, {});
    save_gguf_adapter(to, files.model, files.origin.family,
                      kGgufDtypes[static_cast<size_t>(dtype)].block);
    result.weights = kGgufDtypes[static_cast<size_t>(dtype)].name;
  } else {
    check_field(options.dtype == FileDType::automatic && options.quantize == Quantize::automatic,
                "adapter_only", "writes a directory in fp32; expected no `dtype` or `quantize`");
    check(!is_file(to + "/" + kAdapterConfig), "{}: contains an adapter; expected a new folder",
          to);
    StagedFolder folder(to);
    const LowRankAdapter& first = first_adapter(files.model);
    const int64_t rank = first.down.shape[0];
    const AdapterFacts facts{
        .base = adapted.base, .rank = rank, .alpha = alpha_of(first.scale, rank, false)};
    save_adapter(folder.path(), files.model, files.origin, facts);
    folder.commit(kAdapterConfig);
  }
  result.bytes_after = weight_files(to);
  return result;
}

Conversion to_gguf(const std::string& from, const std::string& to, const ConvertOptions& options,
                   const std::vector<AdapterUse>& adapters) {
  check_field(options.group == 32, "group", "{}; expected 32, the size of GGUF's blocks",
              options.group);
  check(!is_file(to), "{}: exists already; expected a new file", to);
  // The packed bf16 weights of a directory take half the memory of fp32; GGUF blocks are decoded to
  // fp32 exactly.
  const bool dense = is_gguf(from) || is_adapted(from, adapters);
  const Model model = Model::open(from, dense ? WeightPrecision::full : WeightPrecision::stored,
                                  CachePrecision::automatic, adapters);
  const GgufDtype dtype = gguf_dtype(from, options, model.parts().origin);
  save_gguf(model, to, dtype);
  return {model.parameters(), weight_files(from), weight_files(to),
          kGgufDtypes[static_cast<size_t>(dtype)].name, model.warnings()};
}

// Returns the precision of the weights, such as "bf16", "fp16 and fp32" (if tensors differ), or
// "int8 in groups of 32".
std::string weights_of(const Origin& origin) {
  if (origin.quantization) {
    const int64_t group = origin.quantization->group;
    const int bits = bits_of(origin.quantization->format);
    return group == 0 ? fmt::format("int{} in rows", bits)
                      : fmt::format("int{} in groups of {}", bits, group);
  }
  std::set<std::string_view> names;
  for (const auto& [tensor, dtype] : origin.dtypes) names.insert(name_of(dtype));
  if (names.empty()) names.insert(name_of(origin.dtype));
  return fmt::format("{}", fmt::join(names, " and "));
}

}  // namespace

void visit(ConvertOptions& o, OptionVisitor& v) {
  v.choice(
      {"dtype",
       "dtype of unquantised tensors; automatic = as in the source, fp32 for dequantised ones"},
      o.dtype, {"automatic", "fp32", "bf16", "fp16"});
  v.choice({"quantize",
            "integer weights with scales for layers and head; in a .gguf file int8 is Q8_0 and "
            "int4 is Q4_0; none = dequantise all"},
           o.quantize, {"automatic", "none", "int8", "int4"});
  v.integer({"group",
             "number of weights that share a scale: 32 or, in a directory, 64; 0 = a whole row, "
             "with int8, which is faster and less exact"},
            o.group, 0, 64);
  v.boolean({"adapter_only",
             "convert an adapter itself instead of merging it: to a .gguf file for llama.cpp, or "
             "to a directory of PEFT"},
            o.adapter_only);
}

Conversion convert_model(const std::string& from, const std::string& to,
                         const ConvertOptions& options, const std::vector<AdapterUse>& adapters) {
  const FloatMode mode;
  check_fields(options);
  if (options.adapter_only) return convert_adapter(from, to, options, adapters);
  if (is_gguf(to)) return to_gguf(from, to, options, adapters);
  const bool rows = options.group == 0 && options.quantize == Quantize::int8;
  check_field(options.group == 32 || options.group == 64 || rows, "group",
              "{}; expected 32, 64 or, with int8, 0", options.group);
  check(!is_file(to + "/config.json"), "{}: contains a model already; expected a new folder", to);
  const Packing packing = packing_of(options);
  const bool adapted = is_adapted(from, adapters);
  const bool dense = adapted || (is_gguf(from) && !quantizes(options));
  ModelFiles files =
      open_model_files(from, dense ? Weights::mapped : Weights::packed, packing, adapters);
  check(!quantizes(options) || !is_quantized_already(files, packing),
        "{}: the weights are quantised already; expected unquantised weights, or the same format",
        from);
  if (adapted) merge_and_pack(files, packing);
  if (!quantizes(options)) files.origin.quantization.reset();
  if (options.dtype == FileDType::fp32) files.origin.save_all_as(DType::f32);
  if (options.dtype == FileDType::bf16) files.origin.save_all_as(DType::bf16);
  if (options.dtype == FileDType::fp16) files.origin.save_all_as(DType::f16);

  StagedFolder folder(to);
  const auto end = files.end_ids.empty() ? std::nullopt : std::optional(files.end_ids[0]);
  save_model_files(folder.path(), files.model, end, files.origin);
  const std::string& tokenizer = comes_with_tokenizer(from) ? from : files.base;
  if (comes_with_tokenizer(tokenizer)) Tokenizer::open(tokenizer).save(folder.path());
  folder.commit("config.json");

  return {parameter_count(files.model), weight_files(from), weight_files(to),
          weights_of(files.origin), std::move(files.warnings)};
}

}  // namespace fovea

#include "fovea/model/convert.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "base/fields.h"
#include "base/files.h"
#include "base/float_mode.h"
#include "base/ggml_file.h"
#include "base/gguf.h"
#include "checkpoint/gguf_blocks.h"
#include "checkpoint/module_files.h"
#include "families/static_embedding.h"
#include "formats/ct2/ct2.h"
#include "formats/ggml/speech_ggml.h"
#include "formats/gguf/adapter.h"
#include "formats/gguf/mmproj.h"
#include "formats/gguf/model.h"
#include "formats/gguf/modules.h"
#include "formats/peft/config.h"
#include "formats/peft/save.h"
#include "fovea/model/model_path.h"
#include "open/calibrate.h"
#include "open/directory.h"
#include "open/image_text.h"
#include "open/model_parts.h"
#include "open/open_adapters.h"
#include "safetensors/safetensors.h"
#include "transformer/adapters.h"
#include "transformer/pack.h"

namespace fovea::model {
namespace {

int64_t weight_files(const std::string& folder) {
  if (is_ggml(folder)) return static_cast<int64_t>(std::filesystem::file_size(folder));
  int64_t bytes = 0;
  if (is_gguf(folder)) {
    const Gguf gguf(folder);
    for (const auto& file : gguf.files()) bytes += std::ssize(file->bytes());
    return bytes;
  }
  for (const std::string& name : list_files(folder)) {
    if (name.ends_with(".safetensors") || name == "model.bin")
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

// Returns the type of a .gguf file: that of general.file_type, if it fits the matrices of the
// layers, or else one for the block format that stores most of their bytes.
FileDType same_type(const std::string& path) {
  std::map<std::string, size_t> bytes;
  const Gguf file(path);
  for (const GgufTensor& tensor : file.tensors()) {
    if (tensor.shape.size() < 2 || tensor.name.find("blk.") == std::string::npos) continue;
    const std::string block = tensor.block->name;
    // No type of files has MXFP4 for other matrices than experts.
    bytes[block == "MXFP4" && tensor.shape.size() == 2 ? "MXFP4 outside of experts" : block] +=
        tensor.bytes;
  }
  const auto* type = find_gguf_file_type(file.integer("general.file_type").value_or(-1));
  if (type != nullptr && bytes.contains(type->block)) return type->dtype;
  const auto most = std::max_element(bytes.begin(), bytes.end(),
                                     [](auto& a, auto& b) { return a.second < b.second; });
  const std::string block = most == bytes.end() ? "F32" : most->first;
  if (const auto* other = find_gguf_file_type(block)) return other->dtype;
  fail(ErrorKind::Unsupported,
       "{}: its matrices are {}, which cannot be written; expected `quantize` int8 or int4, or a "
       "`dtype`",
       path, block);
}

// Returns the requested type or, if none is requested, the type in which the model is stored.
FileDType gguf_dtype(const std::string& from, const ConvertOptions& options, const Origin& origin) {
  if (options.quantize == Quantize::int8) return FileDType::q8_0;
  if (options.quantize == Quantize::int4) return FileDType::q4_0;
  if (options.dtype != FileDType::automatic) return options.dtype;
  if (options.quantize == Quantize::none) return file_dtype(origin);
  if (is_gguf(from)) return same_type(from);
  if (!origin.quantization) return file_dtype(origin);
  return origin.quantization->format == WeightFormat::int4 ? FileDType::q4_0 : FileDType::q8_0;
}

// Returns the tokenizer of a model, or of the base of an adapter.
std::optional<text::Tokenizer> tokenizer_of(const std::string& from, const ModelFiles& files) {
  const std::string& path = comes_with_tokenizer(from) ? from : files.base;
  if (!comes_with_tokenizer(path)) return std::nullopt;
  return text::Tokenizer::open(path);
}

// Reads or computes the importance matrix that the options request, and saves it if they do.
std::optional<ImportanceMatrix> importance_for(const std::string& from,
                                               const ConvertOptions& options,
                                               const std::vector<AdapterUse>& adapters,
                                               const std::vector<FileTensor>& tensors) {
  std::optional<ImportanceMatrix> matrix;
  if (!options.imatrix.empty()) matrix = read_importance(options.imatrix);
  if (!options.calibrate.empty()) {
    const Model model = Model::open(from, WeightPrecision::stored, {}, adapters);
    matrix = calibrate(model, tensors, options.calibrate);
  }
  if (!options.save_imatrix.empty()) write_importance(options.save_imatrix, *matrix);
  return matrix;
}

void describe_importance(const ImportanceMatrix& matrix, const ConvertOptions& options,
                         GgufMetadata& metadata) {
  if (!options.imatrix.empty()) metadata.text("quantize.imatrix.file", options.imatrix);
  if (!matrix.texts.empty()) metadata.text("quantize.imatrix.dataset", matrix.texts[0]);
  metadata.integer("quantize.imatrix.entries_count", static_cast<uint32_t>(matrix.tensors.size()));
  metadata.integer("quantize.imatrix.chunks_count", static_cast<uint32_t>(matrix.chunks));
}

// Warns of matrices of the layers that will be quantised and are not in the importance matrix,
// which may belong to a different model.
void warn_of_missing(const ImportanceMatrix& matrix, const GgufModel& file,
                     std::vector<std::string>& warnings) {
  std::vector<std::string> missing;
  for (const GgufTensor& tensor : file.tensors()) {
    const bool quantized = find_gguf_format(tensor.block->name) != nullptr;
    if (quantized && tensor.name.starts_with("blk.") && !matrix.tensors.contains(tensor.name))
      missing.push_back(tensor.name);
  }
  if (missing.empty()) return;
  warnings.push_back(fmt::format(
      "the importance matrix lacks {}: all of their inputs count equally", first_names(missing)));
}

const LowRankAdapter& first_adapter(Transformer& model) {
  for (const auto& [name, layer] : linears_of(model))
    if (layer->adapter.present()) return layer->adapter;
  fail(ErrorKind::InvalidArgument,
       "adapter: it adapts no layer of the stacks, and other changes cannot be stored as low-rank "
       "matrices; expected to merge it, without `adapter_only`");
}

// Converts an adapter without its base, which defines the names of its tensors.
Conversion convert_adapter(const std::string& from, const std::string& to,
                           const ConvertOptions& options, const std::vector<AdapterUse>& uses) {
  check_field(options.calibrate.empty() && options.imatrix.empty(), "adapter_only",
              "cannot be combined with an importance matrix");
  const AdaptedModel adapted = adapted_model(from, uses);
  check(adapted.adapters.size() == 1 && adapted.adapters[0].weight == 1,
        "{}: has {} adapters; expected one, of weight 1", from, adapted.adapters.size());
  ModelFiles files = open_model_files(from, Weights::mapped, {}, uses);
  Conversion result{.bytes_before = weight_files(adapted.adapters[0].folder), .weights = "fp32"};
  for (const auto& [name, parameter] : parameters_of(files.model))
    if (parameter->trainable) result.parameters += elements(parameter->shape);
  if (to.ends_with(".gguf")) {
    check(!is_file(to), "{}: exists already; expected a new file", to);
    const GgufFileType& type = gguf_file_type(gguf_dtype(adapted.adapters[0].folder, options, {}));
    result.warnings = save_gguf_adapter(to, files.model, files.origin.family, type.block);
    result.weights = type.name;
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

// Writes the encoder of images of a model of texts and images beside the .gguf file of its text
// model. Returns the encoder's path, or nothing; then a warning says why.
std::string write_mmproj(const std::string& folder, const std::string& to, const ModelFiles& files,
                         FileDType dtype, std::vector<std::string>& warnings) {
  if (is_gguf(folder) || !reads_images(folder)) return "";
  const std::string path = mmproj_beside(to);
  check(!is_file(path), "{}: exists already; expected a new file", path);
  try {
    save_mmproj(folder, files.model.spec, path, dtype);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Unsupported) throw;
    warnings.push_back(std::string(error.what()) + "; only the model of texts is written");
    return "";
  }
  return path;
}

Conversion to_gguf(const std::string& from, const std::string& to, const ConvertOptions& options,
                   const std::vector<AdapterUse>& adapters) {
  check_field(options.group == 32, "group", "{}; expected 32, the size of GGUF's blocks",
              options.group);
  check_field(!is_quantized(options.dtype) || !quantizes(options), "quantize",
              "cannot be combined with a quantised `dtype`");
  check(!is_file(to), "{}: exists already; expected a new file", to);
  const bool adapted = is_adapted(from, adapters);
  ModelFiles files =
      open_model_files(from, adapted ? Weights::mapped : Weights::in_file, {}, adapters);
  if (adapted) merge_adapters(files.model);
  const FileDType dtype = gguf_dtype(from, options, files.origin);
  const bool weighs = !options.imatrix.empty() || !options.calibrate.empty();
  GgufModel file(files.model, files.origin.family, dtype, weighs);
  file.add_labels(files.origin);
  if (files.model.spec.head.kind != HeadKind::sequence) {
    const TextVectorModules modules = modules_at(from);
    file.add_modules(modules);
    if (modules.pooling != GgufPooling::none && !modules.unit_length)
      files.warnings.push_back(from +
                               ": its vectors keep their lengths, but those of a GGUF file have "
                               "length 1");
  }
  const auto importance = importance_for(from, options, adapters, file.matrices());
  GgufValues values = values_of(files.model, files.in_file.get());
  if (importance) {
    describe_importance(*importance, options, file.metadata);
    warn_of_missing(*importance, file, files.warnings);
    values.importance = &*importance;
  }
  const std::string encoder =
      write_mmproj(files.base.empty() ? from : files.base, to, files, dtype, files.warnings);
  try {
    for (std::string& warning :
         write_gguf_file(to, file, tokenizer_of(from, files), files.model.spec.vocabulary, values))
      files.warnings.push_back(from + ": " + warning);
  } catch (...) {
    if (!encoder.empty()) std::filesystem::remove(encoder);
    throw;
  }
  return {parameter_count(files.model), weight_files(from),        weight_files(to),
          gguf_file_type(dtype).name,   std::move(files.warnings), encoder};
}

// Opens a model in fp32 with its tokenizer, for a format of another program.
std::pair<ModelFiles, text::Tokenizer> open_merged(const std::string& from,
                                                   const std::vector<AdapterUse>& adapters) {
  ModelFiles files = open_model_files(from, Weights::mapped, {}, adapters);
  if (is_adapted(from, adapters)) merge_adapters(files.model);
  const auto tokenizer = tokenizer_of(from, files);
  check(tokenizer.has_value(), "{}: has no tokenizer; expected one", from);
  return {std::move(files), *tokenizer};
}

// Returns the type of the matrices of a ggml file of another format.
FileDType ggml_dtype(const ConvertOptions& options, const Origin& origin) {
  if (options.quantize == Quantize::int8) return FileDType::q8_0;
  if (options.quantize == Quantize::int4) return FileDType::q4_0;
  if (options.dtype != FileDType::automatic) return options.dtype;
  return file_dtype(origin) == FileDType::fp32 ? FileDType::fp32 : FileDType::fp16;
}

// Writes a file of whisper.cpp.
Conversion to_ggml(const std::string& from, const std::string& to, const ConvertOptions& options,
                   const std::vector<AdapterUse>& adapters) {
  check_field(options.group == 32, "group", "{}; expected 32, the size of ggml's blocks",
              options.group);
  check_field(!is_quantized(options.dtype) || !quantizes(options), "quantize",
              "cannot be combined with a quantised `dtype`");
  check(!is_file(to), "{}: exists already; expected a new file", to);
  auto [files, tokenizer] = open_merged(from, adapters);
  const FileDType dtype = ggml_dtype(options, files.origin);
  for (std::string& warning : save_ggml(to, files.model, tokenizer, dtype))
    files.warnings.push_back(from + ": " + warning);
  return {parameter_count(files.model), weight_files(from), weight_files(to),
          gguf_file_type(dtype).name, std::move(files.warnings)};
}

// Writes a directory of CTranslate2.
Conversion to_ct2(const std::string& from, const std::string& to, const ConvertOptions& options,
                  const std::vector<AdapterUse>& adapters) {
  if (is_quantized(options.dtype))
    fail_field(ErrorKind::InvalidArgument, "dtype",
               "{}; expected automatic, fp32, bf16 or fp16, with `quantize` int8 for integers",
               gguf_file_type(options.dtype).name);
  check_field(options.quantize != Quantize::int4, "quantize", "int4; expected int8");
  check(!is_file(to + "/model.bin") && !is_file(to + "/config.json"),
        "{}: contains a model already; expected a new folder", to);
  auto [files, tokenizer] = open_merged(from, adapters);
  const FileDType chosen =
      options.dtype == FileDType::automatic ? file_dtype(files.origin) : options.dtype;
  const DType type = chosen == FileDType::bf16   ? DType::bf16
                     : chosen == FileDType::fp16 ? DType::f16
                                                 : DType::f32;
  const bool int8 = options.quantize == Quantize::int8;
  StagedFolder folder(to);
  tokenizer.save(folder.path());
  save_ct2(folder.path(), files.model, files.origin, tokenizer, type, int8);
  folder.commit("config.json");
  return {parameter_count(files.model), weight_files(from), weight_files(to),
          int8 ? "int8 in rows" : std::string(name_of(type)), std::move(files.warnings)};
}

// Writes the table of the tokens and the tokenizer.
Conversion to_static(const std::string& from, const std::string& to, const ConvertOptions& options,
                     const std::vector<AdapterUse>& adapters) {
  check_field(options.dtype == FileDType::automatic && options.quantize == Quantize::automatic &&
                  !options.adapter_only,
              "static_vectors", "writes fp32; expected no `dtype`, `quantize` or `adapter_only`");
  check(!has_modules(to), "{}: contains a model already; expected a new folder", to);
  ModelFiles files = open_model_files(transformer_folder(from), Weights::mapped, {}, adapters);
  const auto tokenizer = tokenizer_of(transformer_folder(from), files);
  check(tokenizer.has_value(), "{}: has no tokenizer; expected one", from);
  check(files.model.token_embedding.present(),
        "{}: has no embeddings of tokens; expected a text model", from);
  StagedFolder folder(to);
  const Tensor& table = files.model.token_embedding.value;
  write_static_model(folder.path(), table, *tokenizer);
  folder.commit("modules.json");
  return {table.size(), weight_files(transformer_folder(from)),
          weight_files(transformer_folder(to)), "fp32", std::move(files.warnings)};
}

void check_importance(const ConvertOptions& options, bool gguf) {
  check_field(options.calibrate.empty() || options.imatrix.empty(), "calibrate",
              "cannot be combined with `imatrix`");
  const bool weighs = !options.calibrate.empty() || !options.imatrix.empty();
  check_field(!weighs || gguf, options.calibrate.empty() ? "imatrix" : "calibrate",
              "the output is a directory; expected a .gguf file");
  check_field(weighs || options.save_imatrix.empty(), "save_imatrix",
              "there is no importance matrix; expected `calibrate` or `imatrix`");
  check(options.save_imatrix.empty() || !is_file(options.save_imatrix),
        "{}: exists already; expected a new file", options.save_imatrix);
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
       "type of the matrices in a .gguf file, with the names and mixtures of llama-quantize; in "
       "a directory, dtype of unquantised tensors; automatic = as in the source, fp32 for "
       "dequantised ones"},
      o.dtype, {"automatic", "fp32",   "bf16",   "fp16",   "q8_0",   "q6_k",     "q5_k_m", "q5_k_s",
                "q5_1",      "q5_0",   "q4_k_m", "q4_k_s", "q4_1",   "q4_0",     "iq4_nl", "iq4_xs",
                "q3_k_l",    "q3_k_m", "q3_k_s", "q2_k",   "q2_k_s", "mxfp4_moe"});
  v.choice({"quantize",
            "integer weights with scales for layers and head; in a .gguf file int8 is Q8_0 and "
            "int4 is Q4_0; none = dequantise all"},
           o.quantize, {"automatic", "none", "int8", "int4"});
  v.integer({"group",
             "number of weights that share a scale: 32 or, in a directory, 64; 0 = a whole row, "
             "with int8, which is faster and less exact"},
            o.group, 0, 64);
  v.text({"calibrate",
          "text file; quantised weights become more exact where the model, run on this text, has "
          "large activations (.gguf)"},
         o.calibrate);
  v.text({"imatrix", "instead of a text: importance matrix of llama-imatrix, .gguf or .dat"},
         o.imatrix);
  v.text({"save_imatrix", "write the importance matrix to this .gguf file"}, o.save_imatrix);
  v.bytes({"shard_size",
           "size of a file of weights in a directory, beyond which there are several and an index"},
          o.shard_size);
  v.boolean({"static_vectors",
             "write only the embeddings of the tokens, for mean word vectors: a directory of "
             "sentence-transformers with StaticEmbedding"},
            o.static_vectors);
  v.boolean({"ctranslate2",
             "write a directory of CTranslate2, such as faster-whisper reads: Whisper or Marian, "
             "fp32, bf16, fp16 or, with `quantize`, int8"},
            o.ctranslate2);
  v.boolean({"adapter_only", "convert an adapter itself, to .gguf or PEFT, instead of merging it"},
            o.adapter_only);
}

Conversion convert_model(const std::string& from, const std::string& to,
                         const ConvertOptions& options, const std::vector<AdapterUse>& adapters) {
  const FloatMode mode;
  check_fields(options);
  check_importance(options, to.ends_with(".gguf"));
  if (options.static_vectors) return to_static(from, to, options, adapters);
  check_field(!options.ctranslate2 || !options.adapter_only, "ctranslate2",
              "cannot be combined with `adapter_only`");
  if (options.adapter_only) return convert_adapter(from, to, options, adapters);
  if (options.ctranslate2) return to_ct2(from, to, options, adapters);
  if (to.ends_with(".bin")) return to_ggml(from, to, options, adapters);
  if (is_original_colbert(from))
    fail(ErrorKind::Unsupported,
         "{}: the projection of the original ColBERT cannot be converted; expected a directory of "
         "sentence-transformers",
         from);
  if (to.ends_with(".gguf")) return to_gguf(from, to, options, adapters);
  if (is_quantized(options.dtype)) {
    fail_field(ErrorKind::InvalidArgument, "dtype",
               "{}; expected automatic, fp32, bf16 or fp16 in a directory",
               gguf_file_type(options.dtype).name);
  }
  const bool rows = options.group == 0 && options.quantize == Quantize::int8;
  check_field(options.group == 32 || options.group == 64 || rows, "group",
              "{}; expected 32, 64 or, with int8, 0", options.group);
  check(!is_file(to + "/config.json"), "{}: contains a model already; expected a new folder", to);
  const Packing packing = packing_of(options);
  const bool adapted = is_adapted(from, adapters);
  const bool blocks = is_gguf(from) || is_ggml(from) || is_ct2_folder(from);
  const bool dense = adapted || (blocks && !quantizes(options));
  ModelFiles files =
      open_model_files(from, dense ? Weights::mapped : Weights::packed, packing, adapters);
  check(!quantizes(options) || !is_quantized_already(files, packing),
        "{}: the weights are quantised already; expected unquantised weights, or the same format",
        from);
  if (adapted) merge_and_pack(files, packing);
  if (!quantizes(options)) files.origin.quantization.reset();
  files.origin.shard_bytes = options.shard_size;
  if (options.dtype == FileDType::fp32) files.origin.save_all_as(DType::f32);
  if (options.dtype == FileDType::bf16) files.origin.save_all_as(DType::bf16);
  if (options.dtype == FileDType::fp16) files.origin.save_all_as(DType::f16);

  StagedFolder folder(to);
  const auto end = files.end_ids.empty() ? std::nullopt : std::optional(files.end_ids[0]);
  save_model_files(folder.path(), files.model, end, files.origin);
  if (const auto tokenizer = tokenizer_of(from, files)) tokenizer->save(folder.path());
  if (has_modules(from))
    copy_modules(from, folder.path(), files.model.spec.width);
  else
    copy_token_heads(from, folder.path(), files.model.spec.width);
  if (is_gguf(from)) write_modules(folder.path(), modules_of_gguf(from), files.model.spec.width);
  folder.commit("config.json");

  return {parameter_count(files.model), weight_files(from), weight_files(to),
          weights_of(files.origin), std::move(files.warnings)};
}

}  // namespace fovea::model

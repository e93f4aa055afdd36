#include <algorithm>
#include <map>

#include "audio/log_mel.h"
#include "base/error.h"
#include "base/fields.h"
#include "base/ggml_file.h"
#include "checkpoint/gguf_tensors.h"
#include "families/registry.h"
#include "families/shared.h"
#include "families/speech_config.h"
#include "formats/ggml/speech_ggml.h"
#include "formats/gguf/model.h"
#include "tokenizer/formats/ranked_tokens.h"
#include "tokenizer/pipeline/normalizers.h"
#include "transformer/adapters.h"
#include "unicode/utf8.h"

namespace fovea::model {
namespace {

Names ggml_stack_names(const std::string& stack) {
  const std::string block = stack + ".blocks.{i}.", ours = stack + ".{i}.";
  return {{block + "attn.{query,key,value,out}.{weight,bias}",
           ours + "attention.{query,key,value,output}.{weight,bias}"},
          {block + "cross_attn.{query,key,value,out}.{weight,bias}",
           ours + "cross.{query,key,value,output}.{weight,bias}"},
          {block + "{attn_ln,cross_attn_ln,mlp_ln}.{weight,bias}",
           ours + "norm.{attention,cross,ffn}.input.{weight,bias}"},
          {block + "mlp.{0,2}.{weight,bias}", ours + "ffn.{up,down}.{weight,bias}"},
          {stack + ".positional_embedding", stack + ".position"}};
}

// The names of the reference implementation, which the files keep.
const Family ggml_speech = {
    "ggml",
    {{"WhisperForConditionalGeneration", {}}},
    whisper_config,
    ggml_stack_names("encoder") + ggml_stack_names("decoder") +
        Names{{"encoder.ln_post.{weight,bias}", "encoder.norm.final.{weight,bias}"},
              {"decoder.ln.{weight,bias}", "decoder.norm.final.{weight,bias}"},
              {"encoder.conv{1,2}.weight", "input.convolution.{0,1}.weight", Stored::convolution},
              {"encoder.conv{1,2}.bias", "input.convolution.{0,1}.bias", Stored::column},
              {"decoder.token_embedding.weight", "embedding.token"}}};

int64_t ffn_width(const GgmlFile& file, const std::string& stack) {
  const std::string name = stack + ".blocks.0.mlp.0.weight";
  for (const GgufTensor& tensor : file.tensors())
    if (tensor.name == name) return tensor.shape[0];
  fail(ErrorKind::BadFile, "{}: {} is missing; expected the tensors of a speech model", file.path(),
       name);
}

SpeechSizes sizes_of(const GgmlFile& file) {
  const GgmlSizes& s = file.sizes();
  if (s.audio_width != s.text_width)
    fail(ErrorKind::BadFile,
         "{}: its encoder has the width {}, its decoder {}; expected equal ones", file.path(),
         s.audio_width, s.text_width);
  const auto layers = int64_t{s.audio_layers} + s.text_layers;
  if (layers > std::ssize(file.tensors()))
    fail(ErrorKind::BadFile, "{}: has {} layers and {} tensors; expected tensors of all layers",
         file.path(), layers, file.tensors().size());
  return {.vocabulary = s.vocabulary,
          .bins = s.bins,
          .frames = s.audio_context,
          .context = s.text_context,
          .width = s.text_width,
          .encoder_layers = s.audio_layers,
          .encoder_heads = s.audio_heads,
          .encoder_ffn = ffn_width(file, "encoder"),
          .decoder_layers = s.text_layers,
          .decoder_heads = s.text_heads,
          .decoder_ffn = ffn_width(file, "decoder")};
}

// The block of a tensor in a file of this type: whisper.cpp expects the vectors and the positions
// as F32, and the convolutions as F16 unless the matrices are F32.
const char* block_of(const FileTensor& tensor, const Shape& shape, const char* matrices) {
  if (shape.size() < 2 || tensor.stored == Stored::column ||
      tensor.name.ends_with("positional_embedding"))
    return "F32";
  const bool convolution = tensor.stored == Stored::convolution;
  return convolution && matrices != std::string_view("F32") ? "F16" : matrices;
}

// whisper.cpp's number of a type, with the version 2 of quantised blocks.
int32_t type_number(FileDType dtype, const char*& block) {
  constexpr int32_t kQuantized = 2000;
  block = gguf_file_type(dtype).block;
  switch (dtype) {
    case FileDType::fp32: return 0;
    case FileDType::fp16: return 1;
    case FileDType::q4_0: return kQuantized + 2;
    case FileDType::q4_1: return kQuantized + 3;
    case FileDType::q8_0: return kQuantized + 7;
    case FileDType::q5_0: return kQuantized + 8;
    case FileDType::q5_1: return kQuantized + 9;
    default: break;
  }
  fail_field(ErrorKind::InvalidArgument, "dtype",
             "{}; expected fp32, fp16, q8_0, q5_1, q5_0, q4_1 or q4_0 in a .bin file",
             gguf_file_type(dtype).name);
}

GgmlSizes header_of(const Spec& spec, int32_t type) {
  const auto size = [](int64_t x) { return static_cast<int32_t>(x); };
  return {.vocabulary = size(spec.vocabulary),
          .audio_context = size(spec.input.frames),
          .audio_width = size(spec.width),
          .audio_heads = size(spec.encoder->attention.heads),
          .audio_layers = size(spec.encoder->layers),
          .text_context = size(spec.context),
          .text_width = size(spec.width),
          .text_heads = size(spec.decoder->attention.heads),
          .text_layers = size(spec.decoder->layers),
          .bins = size(spec.input.bins),
          .type = type};
}

// The bytes of the tokens. Special ones are left out where they follow from the vocabulary's size.
std::vector<std::string> bytes_of_tokens(const text::Tokenizer& tokenizer, int64_t vocabulary) {
  const size_t plain = text::plain_ggml_tokens(static_cast<size_t>(vocabulary));
  const int64_t count = plain > 0 ? static_cast<int64_t>(plain) : vocabulary;
  std::vector<std::string> tokens;
  for (int32_t id = 0; id < count; ++id) {
    const std::string text = id < tokenizer.size()
                                 ? std::string(tokenizer.text_of(id))
                                 : fmt::format("<|{:.2f}|>", 0.02 * (id - tokenizer.size()));
    std::string& bytes = tokens.emplace_back();
    if (text::is_special_name(text)) {
      bytes = text;
      continue;
    }
    for (size_t i = 0; i < text.size();) {
      const auto character = text::utf8::first(std::string_view(text).substr(i));
      const int byte = text::byte_of_printable(character.code_point);
      check(byte >= 0, "tokenizer: its token {} is no text of bytes; expected byte-level BPE", id);
      bytes += static_cast<char>(byte);
      i += character.bytes;
    }
  }
  return tokens;
}

}  // namespace

ModelFiles open_ggml_files(const std::string& path, const Loading& loading) {
  const GgmlFile file(path);
  const std::vector<std::string> names = text::ggml_tokens(file);
  constexpr size_t kEnglishOnly = 51864;
  const nlohmann::ordered_json generation =
      speech_generation(names, {.multilingual = names.size() != kEnglishOnly}, path);
  ModelFiles files = load_model(ggml_speech, speech_config(sizes_of(file), generation), path,
                                std::make_shared<GgufTensors>(file), loading, path);
  files.origin.family = &whisper;
  files.origin.generation = generation;
  files.end_ids = ids_under(generation, "eos_token_id");
  return files;
}

std::vector<std::string> save_ggml(const std::string& path, Transformer& model,
                                   const text::Tokenizer& tokenizer, FileDType dtype) {
  if (has_adapters(model)) {
    Transformer merged = model;
    merge_adapters(merged);
    return save_ggml(path, merged, tokenizer, dtype);
  }
  const Spec& spec = model.spec;
  if (!can_express(whisper, spec) || !spec.head.tied)
    fail(ErrorKind::Unsupported,
         "model: is no Whisper model, the only ones that are written to a "
         ".bin file; expected one whose head is tied to the embedding");
  const char* matrices = nullptr;
  const int32_t type = type_number(dtype, matrices);
  std::map<std::string, const Parameter*> parameters;
  model.each([&](const std::string& name, Parameter& p) { parameters[name] = &p; });
  const std::vector<FileTensor> sources = file_tensors(ggml_speech, model);
  std::vector<GgufTensor> tensors;
  std::vector<std::string> warnings;
  for (const FileTensor& source : sources) {
    const Shape shape = shape_in_file(source, {parameters.at(source.parts[0])->shape});
    const char* wanted = block_of(source, shape, matrices);
    tensors.push_back(gguf_tensor(source.name, shape, wanted));
    if (tensors.back().block->name != std::string_view(wanted))
      fail_field(ErrorKind::InvalidArgument, "dtype",
                 "{} needs rows of whole blocks, and {} has rows of {}; expected fp16 or q8_0",
                 wanted, source.name, shape.back());
  }
  const std::vector<double> filters = media::mel_filters(spec.input.bins);
  std::string elements;
  write_ggml(
      path, header_of(spec, type), {filters.begin(), filters.end()},
      bytes_of_tokens(tokenizer, spec.vocabulary), tensors, [&](size_t i) -> std::string_view {
        const Tensor values = to_file(sources[i], {floats_of(*parameters.at(sources[i].parts[0]))});
        return elements = gguf_elements(tensors[i], values, nullptr, warnings);
      });
  return warnings;
}

}  // namespace fovea::model

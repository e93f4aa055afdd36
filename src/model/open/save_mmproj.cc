#include <filesystem>

#include "base/error.h"
#include "base/gguf.h"
#include "checkpoint/gguf_blocks.h"
#include "formats/gguf/mmproj.h"
#include "formats/gguf/model.h"
#include "formats/gguf/types.h"
#include "open/image_text.h"

namespace fovea::model {
namespace {

// Throws Unsupported for encoders whose files would be read in another way.
void check_mmproj(const ImageEncoder& encoder, const std::string& folder) {
  const Spec& spec = encoder.model.spec;
  const bool keeps_class = spec.input.class_tokens > encoder.connector.skipped;
  const bool tiles = encoder.names_tiles;
  const char* problem = nullptr;
  if (keeps_class) problem = "the class token is an input of the decoder";
  if (spec.encoder->ffn.activation == Activation::gelu)
    problem = "its activation is GELU without an approximation";
  if (!tiles && !encoder.connector.first.bias.present())
    problem = "the layers of its connector have no biases";
  if (!tiles && encoder.connector.activation != Activation::gelu)
    problem = "the activation of its connector is not GELU";
  if (tiles && !encoder.processor.divides) problem = "its images are not divided into tiles";
  if (problem != nullptr)
    fail(ErrorKind::Unsupported, "{}: {}, which files of llama.cpp cannot express", folder,
         problem);
}

GgufMetadata metadata_of(const ImageEncoder& encoder, const Spec& text, FileDType dtype) {
  const Spec& spec = encoder.model.spec;
  const StackSpec& stack = *spec.encoder;
  const auto size = [](int64_t n) { return static_cast<uint32_t>(n); };
  const auto key = [](const char* name) { return "clip.vision." + std::string(name); };
  GgufMetadata m;
  m.text("general.architecture", "clip");
  m.text("general.type", "mmproj");
  m.integer("general.file_type", gguf_file_type(dtype).number);
  m.boolean("clip.has_vision_encoder", true);
  m.text("clip.projector_type", encoder.names_tiles ? "idefics3" : "mlp");
  m.boolean("clip.use_gelu", stack.ffn.activation == Activation::gelu_tanh);
  m.boolean("clip.use_silu", stack.ffn.activation == Activation::silu);
  m.integer(key("image_size"), size(spec.input.size));
  m.integer(key("patch_size"), size(spec.input.patch));
  m.integer(key("embedding_length"), size(spec.width));
  m.integer(key("feed_forward_length"), size(stack.ffn.width));
  m.integer(key("projection_dim"), size(text.width));
  m.integer(key("block_count"), size(stack.layers));
  m.integer(key("attention.head_count"), size(stack.attention.heads));
  m.number(key("attention.layer_norm_epsilon"), stack.norm.epsilon);
  const media::ImageProcessor& p = encoder.processor;
  m.numbers(key("image_mean"), {p.mean.begin(), p.mean.end()});
  m.numbers(key("image_std"), {p.deviation.begin(), p.deviation.end()});
  if (encoder.names_tiles) {
    m.integer(key("projector.scale_factor"), size(encoder.connector.square));
    m.integer(key("preproc_image_size"), size(p.longest));
  } else {  // llama.cpp computes all layers but the last if no layer is named
    m.integers(key("feature_layer"), {static_cast<int32_t>(stack.layers)});
  }
  return m;
}

// The tensors of a file and their elements, in f32.
struct MmprojTensors {
  std::vector<std::string> names;
  std::vector<Tensor> values;

  void add(const std::string& name, Tensor value) {
    names.push_back(name);
    values.push_back(std::move(value));
  }
  void add(const std::string& name, const Linear& layer) {
    add(name + ".weight", layer.weight.value);
    if (layer.bias.present()) add(name + ".bias", layer.bias.value);
  }
};

MmprojTensors tensors_of(const ImageEncoder& encoder) {
  Transformer model = encoder.model;
  std::map<std::string, Tensor> parameters;
  model.each([&](const std::string& name, Parameter& p) { parameters[name] = p.value; });
  const Family& family =
      model.spec.input.class_tokens > 0 ? clip_vision_model : siglip_vision_model;
  const std::vector<Renaming> renamings = mmproj_names(model.spec.encoder->layers, false);
  MmprojTensors tensors;
  for (const FileTensor& tensor : file_tensors(family, model)) {
    std::vector<Tensor> parts;
    for (const std::string& part : tensor.parts) parts.push_back(parameters.at(part));
    const std::string prefix = family.prefix;  // which a model without a head leaves out
    const std::string name = tensor.name.starts_with(prefix) ? tensor.name : prefix + tensor.name;
    for (const auto& [theirs, ours] : renamings)
      if (name.starts_with(ours))
        tensors.add(theirs + name.substr(ours.size()), to_file(tensor, parts));
  }
  tensors.add(encoder.names_tiles ? "mm.model.fc" : "mm.0", encoder.connector.first);
  if (encoder.connector.second.weight.present()) tensors.add("mm.2", encoder.connector.second);
  return tensors;
}

}  // namespace

std::string mmproj_beside(const std::string& path) {
  const std::filesystem::path file(path);
  return file.parent_path() / ("mmproj-" + file.filename().string());
}

void save_mmproj(const std::string& folder, const Spec& text, const std::string& path,
                 FileDType dtype) {
  const auto encoder = open_image_encoder(folder, text, Weights::mapped, {});
  check_mmproj(*encoder, folder);
  const GgufFileType& type = gguf_file_type(is_quantized(dtype) ? FileDType::fp16 : dtype);
  const MmprojTensors found = tensors_of(*encoder);
  std::vector<GgufTensor> tensors;
  for (size_t i = 0; i < found.names.size(); ++i) {
    const Shape& shape = found.values[i].shape();
    const bool matrix = shape.size() == 2 && !found.names[i].starts_with("v.position_embd");
    tensors.push_back(gguf_tensor(found.names[i], shape, matrix ? type.block : "F32"));
  }
  std::string elements;
  write_gguf(path, metadata_of(*encoder, text, type.dtype), tensors, [&](size_t i) {
    return std::string_view(elements = encode_gguf(tensors[i].block->name, found.values[i]));
  });
}

}  // namespace fovea::model

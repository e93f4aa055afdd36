#include "formats/gguf/mmproj.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/error.h"
#include "base/gguf.h"
#include "checkpoint/gguf_tensors.h"
#include "fovea/core/excerpt.h"

namespace fovea::model {
namespace {

const std::string kMmprojKeys = "clip.vision.", kMmprojModel = "vision_model.";
constexpr int64_t kMostMmprojSize = 1 << 20;  // of a size in the metadata
constexpr int64_t kMostMmprojLayers = 4096;   // as in any Spec

// The metadata that the encoder needs.
class MmprojMetadata {
 public:
  explicit MmprojMetadata(const Gguf& file) : file_(file) {}

  std::string text(const std::string& key) const {
    const auto value = file_.text(key);
    return value ? std::string(*value) : std::string();
  }
  int64_t size(const std::string& key, std::optional<int64_t> absent = {},
               int64_t most = kMostMmprojSize) const {
    const auto value = file_.integer(kMmprojKeys + key);
    if (!value && absent) return *absent;
    if (!value || *value < 1 || *value > most)
      fail(ErrorKind::BadFile, "{}: {}{} is {}; expected 1 to {}", file_.path(), kMmprojKeys, key,
           value ? std::to_string(*value) : "missing", most);
    return *value;
  }
  bool is_set(const std::string& key) const { return file_.boolean(key).value_or(false); }
  double epsilon() const {
    return file_.number(kMmprojKeys + "attention.layer_norm_epsilon").value_or(1e-5);
  }
  std::array<float, 3> channels(const std::string& key, float least) const {
    const auto values = file_.numbers(kMmprojKeys + key);
    std::array<float, 3> three;
    const bool valid = values && values->size() == 3 &&
                       std::all_of(values->begin(), values->end(),
                                   [&](float x) { return x >= least && x <= 1e6f; });
    if (!valid)
      fail(ErrorKind::BadFile, "{}: {}{} is not valid; expected 3 numbers", file_.path(),
           kMmprojKeys, key);
    std::copy(values->begin(), values->end(), three.begin());
    return three;
  }
  // The deepest layer whose output is used: all that the file has, unless it names one.
  int64_t layers() const {
    const auto named = file_.integers(kMmprojKeys + "feature_layer");
    const int64_t all = size("block_count", {}, kMostMmprojLayers);
    if (!named || named->empty()) return all;
    if (named->size() > 1 || named->front() < 0 || named->front() > all)
      fail(ErrorKind::Unsupported, "{}: {}feature_layer has {} values; expected one of 0 to {}",
           file_.path(), kMmprojKeys, named->size(), all);
    return named->front();
  }

 private:
  const Gguf& file_;
};

nlohmann::json config_of(const MmprojMetadata& metadata, const Family& family) {
  const char* const activation = metadata.is_set("clip.use_gelu")   ? "gelu_pytorch_tanh"
                                 : metadata.is_set("clip.use_silu") ? "silu"
                                                                    : "quick_gelu";
  return {{"model_type", family.model_type},
          {"architectures", nlohmann::json::array({family.architectures[0].name})},
          {"hidden_size", metadata.size("embedding_length")},
          {"intermediate_size", metadata.size("feed_forward_length")},
          {"num_hidden_layers", metadata.layers()},
          {"num_attention_heads", metadata.size("attention.head_count")},
          {"image_size", metadata.size("image_size")},
          {"patch_size", metadata.size("patch_size")},
          {"layer_norm_eps", metadata.epsilon()},
          {"hidden_act", activation}};
}

bool has_swapped_names(const GgufTensors& tensors, int64_t width) {
  const StoredTensor* down = tensors.find("v.blk.0.ffn_down.weight");
  return down != nullptr && down->shape.size() == 2 && down->shape[1] == width &&
         down->shape[0] != width;
}

// As llama.cpp's: a square padded with the mean colour, or tiles.
media::ImageProcessor processor_of(const MmprojMetadata& metadata, bool makes_tiles) {
  const int64_t side = metadata.size("image_size");
  media::ImageProcessor p;
  p.resize = {side, side, 0};
  p.mean = metadata.channels("image_mean", -1e6f);
  p.deviation = metadata.channels("image_std", 1e-6f);
  p.pads = !makes_tiles;
  p.divides = makes_tiles;
  p.resampling = makes_tiles ? media::Resampling::lanczos : media::Resampling::bicubic;
  if (makes_tiles) p.longest = metadata.size("preproc_image_size", 4 * side);
  return p;
}

}  // namespace

std::vector<Renaming> mmproj_names(int64_t layers, bool swapped) {
  std::vector<Renaming> names = {
      {"v.class_embd", kMmprojModel + "embeddings.class_embedding"},
      {"v.patch_embd.", kMmprojModel + "embeddings.patch_embedding."},
      {"v.position_embd.", kMmprojModel + "embeddings.position_embedding."},
      {"v.pre_ln.", kMmprojModel + "pre_layrnorm."},
      {"v.post_ln.", kMmprojModel + "post_layernorm."}};
  for (int64_t i = 0; i < layers; ++i)
    for (const auto& [theirs, ours] : {std::pair("attn_q.", "self_attn.q_proj."),
                                       {"attn_k.", "self_attn.k_proj."},
                                       {"attn_v.", "self_attn.v_proj."},
                                       {"attn_out.", "self_attn.out_proj."},
                                       {"ln1.", "layer_norm1."},
                                       {"ln2.", "layer_norm2."},
                                       {"ffn_up.", swapped ? "mlp.fc2." : "mlp.fc1."},
                                       {"ffn_down.", swapped ? "mlp.fc1." : "mlp.fc2."}})
      names.push_back({fmt::format("v.blk.{}.{}", i, theirs),
                       fmt::format("{}encoder.layers.{}.{}", kMmprojModel, i, ours)});
  return names;
}

std::shared_ptr<ImageEncoder> open_mmproj(const std::string& path, const Spec& text,
                                          Weights weights, const Packing& packing) {
  const auto file = std::make_shared<const Gguf>(path);
  const MmprojMetadata metadata(*file);
  const std::string architecture = metadata.text("general.architecture");
  std::string projector = metadata.text("clip.projector_type");
  if (projector.empty()) projector = metadata.text(kMmprojKeys + "projector_type");
  const bool makes_tiles = projector == "idefics3";
  if (architecture != "clip" || (projector != "mlp" && !makes_tiles))
    fail(
        ErrorKind::Unsupported,
        "{}: general.architecture is \"{}\" and clip.projector_type \"{}\"; expected clip, and mlp "
        "or idefics3",
        path, excerpt(architecture), excerpt(projector));
  const auto tensors = std::make_shared<GgufTensors>(file);
  const Family& family =
      tensors->find("v.class_embd") != nullptr ? clip_vision_model : siglip_vision_model;
  const nlohmann::json config = config_of(metadata, family);
  const HeadSpec no_head = {.kind = HeadKind::pooled};
  const Loading loading{
      .weights = weights, .packing = packing, .new_head = &no_head, .final_norm = makes_tiles};
  auto encoder = std::make_shared<ImageEncoder>();
  const int64_t width = config["hidden_size"], layers = config["num_hidden_layers"];
  encoder->model =
      load_model(family, config, path,
                 part_of(tensors, mmproj_names(layers, has_swapped_names(*tensors, width))),
                 loading, path)
          .model;
  encoder->names_tiles = makes_tiles;
  Connector& connector = encoder->connector;
  connector.skipped = encoder->model.spec.input.class_tokens;
  connector.square = makes_tiles ? metadata.size("projector.scale_factor", 2) : 1;
  if (makes_tiles) {
    connector.first = read_linear(*tensors, "mm.model.fc", text.width,
                                  width * connector.square * connector.square, false, path);
  } else {
    connector.first = read_linear(*tensors, "mm.0", text.width, width, true, path);
    connector.second = read_linear(*tensors, "mm.2", text.width, text.width, true, path);
  }
  encoder->processor = processor_of(metadata, makes_tiles);
  check_fit(*encoder, path);
  return encoder;
}

}  // namespace fovea::model

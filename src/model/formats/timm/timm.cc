#include "formats/timm/timm.h"

#include <cmath>

#include "base/error.h"
#include "base/json.h"
#include "fovea/core/excerpt.h"

namespace fovea::model {
namespace {

Names timm_names() {
  const std::string block = "blocks.{i}.";
  return {
      {"{cls,dist}_token", "input.{class,distillation}", Stored::batched},
      {"pos_embed", "encoder.position", Stored::batched},
      {"patch_embed.proj.{weight,bias}", "input.patch.{weight,bias}", Stored::image_convolution},
      {block + "norm{1,2}.{weight,bias}", "encoder.{i}.norm.{attention,ffn}.input.{weight,bias}"},
      {block + "attn.qkv.{weight,bias}", "encoder.{i}.attention.{query+key+value}.{weight,bias}"},
      {block + "attn.proj.{weight,bias}", "encoder.{i}.attention.output.{weight,bias}"},
      {block + "mlp.fc{1,2}.{weight,bias}", "encoder.{i}.ffn.{up,down}.{weight,bias}"},
      {"norm.{weight,bias}", "encoder.norm.final.{weight,bias}"},
      {"pooler.dense.{weight,bias}", "pooler.transform.{weight,bias}"},
      {"head.{weight,bias}", "sequence.output.{weight,bias}"},
      {"head_dist.{weight,bias}", "sequence.distilled.{weight,bias}"}};
}

const Family& with_timm_names(const Family& family) {
  static const Family vits = {vit.model_type, vit.architectures, vit.config, timm_names()};
  static const Family deits = {deit.model_type, deit.architectures, deit.config, timm_names()};
  return &family == &deit ? deits : vits;
}

// Returns a number of model_args.
std::optional<int64_t> argument(const nlohmann::json& config, const char* name,
                                const std::string& file) {
  const nlohmann::json arguments = config.value("model_args", nlohmann::json::object());
  if (!arguments.is_object()) return std::nullopt;
  return find_int(arguments, name, file, 1, 1 << 20);
}

// timm's models have heads of 64 elements, but the huge one has 16 heads (Dosovitskiy et al. 2021,
// table 1).
int64_t heads_of(const nlohmann::json& config, const std::string& architecture, int64_t width,
                 const std::string& file) {
  if (const auto heads = argument(config, "num_heads", file)) return *heads;
  return architecture.starts_with("vit_huge") ? 16 : std::max<int64_t>(1, width / 64);
}

std::vector<std::string> names_of_labels(const nlohmann::json& config) {
  const nlohmann::json pretrained = config.value("pretrained_cfg", nlohmann::json::object());
  const nlohmann::json* names = nullptr;
  for (const nlohmann::json* where : {&config, &pretrained})
    if (where->is_object() && where->contains("label_names")) names = &(*where)["label_names"];
  std::vector<std::string> all;
  if (names != nullptr && names->is_array())
    for (const nlohmann::json& name : *names) all.push_back(name.is_string() ? name : "");
  return all;
}

}  // namespace

bool is_timm_config(const nlohmann::json& config) {
  return config.is_object() && config.contains("architecture") && !config.contains("model_type");
}

TimmModel timm_model(const nlohmann::json& config, const TensorSource& tensors,
                     const std::string& file) {
  const std::string architecture = get_string(config, "architecture", file);
  const auto shape_of = [&](const std::string& name, size_t rank) -> Shape {
    const StoredTensor* stored = tensors.find(name);
    if (stored == nullptr || stored->shape.size() != rank)
      fail(ErrorKind::Unsupported,
           "{}: architecture {} has no tensor {} with {} axes; expected a ViT or DeiT with a class "
           "token",
           file, excerpt(architecture), name, rank);
    return stored->shape;
  };
  const std::string pooling = find_string(config, "global_pool", file).value_or("token");
  if (pooling != "token" && !pooling.empty())
    fail(ErrorKind::Unsupported, "{}: global_pool is {}; expected token", file, excerpt(pooling));
  const bool distilled = tensors.find("dist_token") != nullptr;
  const Shape patch = shape_of("patch_embed.proj.weight", 4), table = shape_of("pos_embed", 3);
  const int64_t patches = table[1] - (distilled ? 2 : 1);
  const auto side = static_cast<int64_t>(std::llround(std::sqrt(static_cast<double>(patches))));
  if (side < 1 || side * side != patches)
    fail(ErrorKind::Unsupported, "{}: pos_embed has {} positions; expected a square and the tokens",
         file, table[1]);
  int64_t layers = 0;
  while (tensors.find(fmt::format("blocks.{}.norm1.weight", layers)) != nullptr) ++layers;
  const Family& family = distilled ? deit : vit;
  const StoredTensor* head = tensors.find("head.weight");
  nlohmann::json json = {{"model_type", family.model_type},
                         {"image_size", side * patch[2]},
                         {"patch_size", patch[2]},
                         {"num_channels", patch[1]},
                         {"hidden_size", patch[0]},
                         {"num_hidden_layers", layers},
                         {"num_attention_heads", heads_of(config, architecture, patch[0], file)},
                         {"intermediate_size", shape_of("blocks.0.mlp.fc1.weight", 2)[0]},
                         {"layer_norm_eps", 1e-6},
                         {"hidden_act", "gelu"},
                         {"qkv_bias", tensors.find("blocks.0.attn.qkv.bias") != nullptr}};
  const char* const kinds[] = {
      distilled ? "DeiTModel" : "ViTModel",
      distilled ? "DeiTForImageClassificationWithTeacher" : "ViTForImageClassification"};
  json["architectures"] = {kinds[head != nullptr ? 1 : 0]};
  if (head != nullptr && !head->shape.empty()) {
    std::vector<std::string> labels = names_of_labels(config);
    const auto count = static_cast<size_t>(head->shape[0]);
    for (size_t i = 0; i < count; ++i)
      json["id2label"][std::to_string(i)] =
          labels.size() == count && !labels[i].empty() ? labels[i] : fmt::format("LABEL_{}", i);
  }
  return {&with_timm_names(family), &family, std::move(json)};
}

}  // namespace fovea::model

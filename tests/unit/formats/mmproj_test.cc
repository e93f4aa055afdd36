// Encoders of images in files of llama.cpp: those of tests/goldens/image_text, written as such
// files, give the same vectors.

#include "formats/gguf/mmproj.h"
#include "open/directory.h"

#include <gtest/gtest.h>

#include <map>

#include "base/gguf.h"
#include "base/json.h"
#include "formats/gguf/model.h"
#include "open/image_text.h"
#include "safetensors/safetensors.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea::model {
namespace {

const std::string kGoldens = "tests/goldens/image_text/";

// llama.cpp's name of a tensor; empty: not in the file.
std::string name_in_mmproj(std::string name) {
  const std::vector<std::pair<std::string, std::string>> replaced = {
      {"model.vision_model.", "v."},
      {"vision_tower.", "v."},
      {"model.connector.modality_projection.proj", "mm.model.fc"},
      {"multi_modal_projector.linear_1", "mm.0"},
      {"multi_modal_projector.linear_2", "mm.2"},
      {"encoder.layers.", "blk."},
      {"embeddings.class_embedding", "class_embd"},
      {"embeddings.patch_embedding", "patch_embd"},
      {"embeddings.position_embedding", "position_embd"},
      {"pre_layrnorm", "pre_ln"},
      {"post_layernorm", "post_ln"},
      {"self_attn.q_proj", "attn_q"},
      {"self_attn.k_proj", "attn_k"},
      {"self_attn.v_proj", "attn_v"},
      {"self_attn.out_proj", "attn_out"},
      {"layer_norm1", "ln1"},
      {"layer_norm2", "ln2"},
      {"mlp.fc1", "ffn_up"},
      {"mlp.fc2", "ffn_down"}};
  for (const auto& [from, to] : replaced)
    if (const size_t at = name.find(from); at != name.npos) name.replace(at, from.size(), to);
  return name.starts_with("v.") || name.starts_with("mm.") ? name : "";
}

struct MmprojVariant {
  bool swapped = false;                       // old names of the feed-forward layers
  std::string without = {};                   // a tensor that is left out
  std::string projector = {};                 // instead of the right one
  std::map<std::string, int64_t> sizes = {};  // other values of the metadata
};

std::string with_swapped_names(std::string name) {
  for (const auto& [from, to] :
       {std::pair<std::string, std::string>("ffn_up", "ffn_down"), {"ffn_down", "ffn_up"}})
    if (const size_t at = name.find(from); at != name.npos)
      return name.replace(at, from.size(), to);
  return name;
}

void write_mmproj(const std::string& folder, const std::string& path,
                  const MmprojVariant& variant) {
  const nlohmann::json config = read_json(folder + "/config.json");
  const nlohmann::json& vision = config["vision_config"];
  const bool llava = config["model_type"] == "llava";
  const SafeTensors file = SafeTensors::open_model(folder);
  std::vector<GgufTensor> tensors;
  std::vector<std::string> elements;
  for (const StoredTensor& stored : file.stored()) {
    std::string name = name_in_mmproj(stored.name);
    if (variant.swapped) name = with_swapped_names(name);
    // llama.cpp's files have only the layers that LLaVA uses, and no norm after them.
    if (llava && (name.starts_with("v.blk.2.") || name.starts_with("v.post_ln"))) continue;
    if (name.empty() || name == variant.without) continue;
    tensors.push_back(gguf_tensor(name, stored.shape, "F32"));
    elements.emplace_back(stored.data, stored.bytes);
  }
  GgufMetadata metadata;
  metadata.text("general.architecture", "clip");
  const std::string right = llava ? "mlp" : "idefics3";
  metadata.text("clip.projector_type", variant.projector.empty() ? right : variant.projector);
  metadata.boolean("clip.has_vision_encoder", true);
  metadata.boolean("clip.use_gelu", !llava);
  std::map<std::string, int64_t> sizes = {
      {"image_size", vision["image_size"]},
      {"patch_size", vision["patch_size"]},
      {"embedding_length", vision["hidden_size"]},
      {"feed_forward_length", vision["intermediate_size"]},
      {"block_count", vision["num_hidden_layers"].get<int64_t>() - llava},
      {"attention.head_count", vision["num_attention_heads"]},
      {"preproc_image_size", 60},
      {"projector.scale_factor", 2}};
  for (const auto& [key, value] : variant.sizes) sizes[key] = value;
  for (const auto& [key, value] : sizes)
    metadata.integer("clip.vision." + key, static_cast<uint32_t>(value));
  metadata.number("clip.vision.attention.layer_norm_epsilon", vision["layer_norm_eps"]);
  metadata.numbers("clip.vision.image_mean", {0.5f, 0.5f, 0.5f});
  metadata.numbers("clip.vision.image_std", {0.5f, 0.5f, 0.5f});
  write_gguf(path, metadata, tensors, [&](size_t i) -> std::string_view { return elements[i]; });
}

media::Image gradient(int64_t side) {
  media::Image image{side, side, {}};
  for (int64_t i = 0; i < 3 * side * side; ++i)
    image.pixels.push_back(static_cast<uint8_t>(i * 37 % 251));
  return image;
}

class Mmproj : public testing::TestWithParam<const char*> {
 protected:
  TemporaryFolder folder_;
  std::string golden_ = kGoldens + GetParam();
  std::string path_ = folder_ / "mmproj.gguf";
  ModelFiles text_ = open_model_files(golden_, Weights::mapped);

  std::shared_ptr<ImageEncoder> open(const MmprojVariant& variant) {
    write_mmproj(golden_, path_, variant);
    return open_mmproj(path_, text_.model.spec, Weights::mapped, {});
  }
};

TEST_P(Mmproj, GivesTheVectorsOfTheFolder) {
  const auto expected = open_image_encoder(golden_, text_.model.spec, Weights::mapped, {});
  for (const bool swapped : {false, true}) {
    const auto found = open({.swapped = swapped});
    EXPECT_EQ(found->tokens(), expected->tokens());
    EXPECT_EQ(found->names_tiles, expected->names_tiles);
    found->processor.mean = expected->processor.mean;
    found->processor.deviation = expected->processor.deviation;
    const media::Image image = gradient(found->side());
    const Tensor a = (*found)(image), b = (*expected)(image);
    ASSERT_EQ(a.shape(), b.shape());
    for (int64_t i = 0; i < a.size(); ++i)
      EXPECT_EQ(a.data_as<float>()[i], b.data_as<float>()[i]) << i;
  }
}

TEST_P(Mmproj, RefusesFilesThatDoNotFit) {
  const auto refuse = [&](ErrorKind kind, const MmprojVariant& variant, const std::string& text) {
    expect_error(kind, {path_, text}, [&] { open(variant); });
  };
  refuse(ErrorKind::Unsupported, {.projector = "ldp"},
         "clip.projector_type \"ldp\"; expected clip, and mlp or idefics3");
  refuse(ErrorKind::BadFile, {.without = "v.blk.1.ln1.weight"}, "1 missing");
  refuse(ErrorKind::BadFile, {.sizes = {{"image_size", 24}}}, "position_embedding");
  refuse(ErrorKind::BadFile, {.sizes = {{"block_count", 1 << 20}}},
         "block_count is 1048576; expected 1 to 4096");
  refuse(ErrorKind::BadFile, {.sizes = {{"attention.head_count", 0}}},
         "attention.head_count is 0; expected 1 to");
}

INSTANTIATE_TEST_SUITE_P(All, Mmproj, testing::Values("llava", "idefics3"));

TEST(SaveMmproj, WrittenFilesGiveTheVectorsOfTheFolder) {
  const TemporaryFolder folder;
  const std::string path = folder / "mmproj.gguf";
  for (const std::string name : {"llava", "llava_siglip", "idefics3"}) {
    const std::string golden = kGoldens + name;
    const Spec text = open_model_files(golden, Weights::mapped).model.spec;
    const auto expected = open_image_encoder(golden, text, Weights::mapped, {});
    save_mmproj(golden, text, path, FileDType::fp32);
    const auto found = open_mmproj(path, text, Weights::mapped, {});
    EXPECT_EQ(found->names_tiles, expected->names_tiles) << name;
    EXPECT_EQ(found->processor.mean, expected->processor.mean) << name;
    EXPECT_EQ(found->processor.deviation, expected->processor.deviation) << name;
    EXPECT_EQ(found->processor.longest, expected->processor.longest) << name;
    const media::Image image = gradient(found->side());
    EXPECT_EQ(to_floats((*found)(image)), to_floats((*expected)(image))) << name;
    const Gguf file(path);
    EXPECT_EQ(file.text("general.type"), "mmproj");
    EXPECT_EQ(file.integer("clip.vision.projection_dim"), text.width);
    EXPECT_EQ(file.integers("clip.vision.feature_layer").has_value(), name != "idefics3");
    // LLaVA does not use the last layer of CLIP.
    EXPECT_EQ(file.find_tensor("v.blk.2.ln1.weight") == nullptr, name == "llava");

    save_mmproj(golden, text, path, FileDType::q4_k_m);
    const Gguf half(path);
    for (const GgufTensor& tensor : half.tensors()) {
      const bool matrix = tensor.shape.size() == 2 && tensor.name != "v.position_embd.weight";
      EXPECT_STREQ(tensor.block->name, matrix ? "F16" : "F32") << tensor.name;
    }
  }
  EXPECT_EQ(mmproj_beside("a/text.gguf"), "a/mmproj-text.gguf");
}

TEST(SaveMmproj, RefusesWhatTheFormatCannotExpress) {
  const TemporaryFolder folder;
  const std::string golden = kGoldens + "smolvlm";
  const ModelFiles text = open_model_files(golden, Weights::mapped);
  expect_error(ErrorKind::Unsupported, {golden, "not divided into tiles"},
               [&] { save_mmproj(golden, text.model.spec, folder / "x.gguf", FileDType::fp32); });
}

}  // namespace
}  // namespace fovea::model

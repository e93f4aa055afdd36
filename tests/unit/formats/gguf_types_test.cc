// Which type each tensor of a quantised GGUF file has, and conversions from one file to another.

#include "formats/gguf/types.h"

#include <cmath>
#include <limits>

#include "base/files.h"
#include "checkpoint/gguf_tensors.h"
#include "formats/gguf/model.h"
#include "fovea/model/convert.h"
#include "open/model_parts.h"
#include "support/expect_error.h"
#include "support/gguf_contents.h"
#include "support/small_spec.h"
#include "support/temporary_folder.h"

namespace fovea::model {
namespace {

using enum FileDType;

class GgufMixes : public testing::Test {
 protected:
  std::string block(FileDType dtype, const std::string& tensor, bool importance = false) const {
    return block_in_mix({gguf_file_type(dtype), spec, true, importance}, tensor);
  }
  // The layers in which `tensor` has this block type.
  std::vector<int> layers(FileDType dtype, const std::string& tensor, const std::string& wanted,
                          bool importance = false) const {
    std::vector<int> found;
    for (int i = 0; i < spec.decoder->layers; ++i)
      if (block(dtype, fmt::format("blk.{}.{}.weight", i, tensor), importance) == wanted)
        found.push_back(i);
    return found;
  }

  Spec spec = test::small_llama({.context = 6, .width = 64, .layers = 16, .heads = 4}, 96);
};

using Layers = std::vector<int>;
const Layers kMore = {0, 1, 4, 7, 10, 13, 14, 15};  // of 16 layers

TEST_F(GgufMixes, ValuesAndDownProjectionsHaveMoreBits) {
  EXPECT_EQ(layers(q4_k_m, "attn_v", "Q6_K"), kMore);
  EXPECT_EQ(layers(q4_k_m, "ffn_down", "Q6_K"), kMore);
  EXPECT_EQ(layers(q4_k_m, "ffn_down_exps", "Q6_K"), kMore);
  EXPECT_EQ(layers(q4_k_m, "attn_qkv", "Q6_K"), kMore);
  EXPECT_EQ(layers(q4_k_m, "attn_q", "Q4_K").size(), 16u);
  EXPECT_EQ(layers(q5_k_m, "ffn_down", "Q6_K"), kMore);
  EXPECT_EQ(layers(q5_k_s, "ffn_down", "Q5_K").size(), 16u);
  EXPECT_EQ(layers(q4_k_s, "attn_v", "Q5_K"), (Layers{0, 1, 2, 3}));
  EXPECT_EQ(layers(q4_k_s, "ffn_down", "Q5_K"), (Layers{0, 1}));
  EXPECT_EQ(layers(q3_k_m, "attn_v", "Q5_K"), (Layers{0, 1}));
  EXPECT_EQ(layers(q3_k_m, "ffn_down", "Q5_K"), (Layers{0}));
  EXPECT_EQ(layers(q3_k_m, "attn_output", "Q4_K").size(), 16u);
  EXPECT_EQ(layers(q2_k, "attn_output", "Q3_K").size(), 16u);
  EXPECT_EQ(layers(q2_k_s, "attn_output", "Q2_K").size(), 16u);
  EXPECT_EQ(layers(q2_k_s, "ffn_down", "Q4_K"), (Layers{0, 1}));
  EXPECT_EQ(layers(q6_k, "attn_v", "Q6_K").size(), 16u);
  EXPECT_EQ(layers(q4_0, "ffn_down", "Q4_1"), (Layers{}));
  EXPECT_EQ(layers(q4_0, "ffn_down", "Q4_1", true), (Layers{0, 1}));
  EXPECT_EQ(layers(iq4_xs, "ffn_down", "Q5_K"), (Layers{0, 1}));
  EXPECT_EQ(layers(iq4_xs, "ffn_down", "Q5_K", true), (Layers{}));
  for (const auto& [kv_heads, wanted] : {std::pair(4, "Q2_K"), {1, "Q4_K"}}) {
    spec.decoder->attention.kv_heads = kv_heads;
    EXPECT_EQ(layers(q2_k_s, "attn_v", wanted).size(), 16u);
  }
}

TEST_F(GgufMixes, TheHeadHasSixBits) {
  spec.head.tied = false;
  for (const FileDType dtype : {q4_0, q4_k_m, q5_k_s, q2_k}) {
    EXPECT_EQ(block(dtype, "output.weight"), "Q6_K");
    EXPECT_EQ(block(dtype, "token_embd.weight"), gguf_file_type(dtype).block);
  }
  EXPECT_EQ(block(q8_0, "output.weight"), "Q8_0");
  spec.head.tied = true;
  EXPECT_EQ(block(q4_k_m, "token_embd.weight"), "Q6_K");
  EXPECT_EQ(block(bf16, "token_embd.weight"), "BF16");
}

TEST_F(GgufMixes, ModelsOfEightExpertsAndOfSeventyBillionParameters) {
  spec.decoder->ffn.experts.count = 8;
  EXPECT_EQ(block(q4_k_m, "blk.2.attn_v.weight"), "Q8_0");
  EXPECT_EQ(block(q4_k_m, "blk.2.attn_k.weight"), "Q8_0");
  EXPECT_EQ(block(q4_k_m, "blk.2.attn_output.weight"), "Q5_K");
  EXPECT_EQ(block(q5_k_m, "blk.2.attn_output.weight"), "Q5_K");
  spec.decoder->ffn.experts.count = 0;
  spec.decoder->layers = 80;
  spec.decoder->attention.kv_heads = 1;
  EXPECT_EQ(block(q4_k_m, "blk.11.attn_v.weight"), "Q5_K");
  EXPECT_EQ(block(q2_k, "blk.11.attn_v.weight"), "Q5_K");
  EXPECT_EQ(block(q2_k_s, "blk.11.attn_v.weight"), "Q5_K");
}

TEST_F(GgufMixes, OnlyExpertsAreMxfp4) {
  EXPECT_EQ(block(mxfp4_moe, "blk.3.ffn_down_exps.weight"), "MXFP4");
  for (const char* name : {"blk.3.ffn_down.weight", "blk.3.attn_v.weight", "output.weight"})
    EXPECT_EQ(block(mxfp4_moe, name), "Q8_0") << name;
}

TEST(GgufFallback, DependsOnTheLengthOfRows) {
  EXPECT_EQ(fallback_block("Q4_K", 512), "Q4_K");
  for (const auto& [wanted, instead] : {std::pair("Q4_K", "Q5_0"),
                                        {"Q5_K", "Q5_1"},
                                        {"Q6_K", "Q8_0"},
                                        {"Q2_K", "Q4_0"},
                                        {"Q3_K", "Q4_0"},
                                        {"IQ4_XS", "IQ4_NL"},
                                        {"Q4_0", "Q4_0"},
                                        {"F32", "F32"}})
    EXPECT_EQ(fallback_block(wanted, 96), instead);
  for (const char* block : {"Q4_K", "Q6_K", "Q8_0", "IQ4_NL"})
    EXPECT_EQ(fallback_block(block, 100), "F16");
}

TEST(GgufFileTypes, AreFoundByBlockAndNumber) {
  EXPECT_EQ(find_gguf_file_type(14)->dtype, q4_k_s);
  EXPECT_EQ(find_gguf_file_type("Q4_K")->dtype, q4_k_m);
  EXPECT_EQ(find_gguf_file_type(38)->dtype, mxfp4_moe);
  EXPECT_EQ(find_gguf_file_type(39), nullptr);
  EXPECT_EQ(find_gguf_file_type("Q2_K")->dtype, q2_k);
  for (int i = static_cast<int>(fp32); i <= static_cast<int>(mxfp4_moe); ++i)
    EXPECT_EQ(gguf_file_type(static_cast<FileDType>(i)).dtype, static_cast<FileDType>(i));
}

// A model in a directory, and its conversions.
class GgufConversion : public testing::Test {
 protected:
  GgufConversion() {
    write_file_atomically(text, "the quick brown fox jumps over the lazy dog, again and again");
    write_file_atomically(folder / "tokenizer.json",
                          R"({"added_tokens":[],"model":{"type":"BPE","vocab":{" ":0,"a":1,"e":2,
                             "g":3,"o":4,"t":5,"h":6},"merges":[]}})");
    const text::Tokenizer tokenizer = text::Tokenizer::open(folder / "tokenizer.json");
    Spec spec = test::small_llama({.context = 16, .width = 256, .heads = 4}, 512);
    spec.vocabulary = tokenizer.size();
    model = std::make_unique<Model>(Model::create(spec, tokenizer, 1));
    model->save(source);
  }
  std::string tensor_bytes(const std::string& path, const std::string& name) const {
    const Gguf file(path);
    const GgufTensor& tensor = *file.find_tensor(name);
    return std::string(tensor.data, tensor.bytes);
  }
  std::string type_of(const std::string& path, const std::string& name) const {
    return Gguf(path).find_tensor(name)->block->name;
  }

  TemporaryFolder folder;
  std::string source = folder / "source", text = folder / "text.txt", out = folder / "q4.gguf",
              again = folder / "again.gguf";
  std::unique_ptr<Model> model;
};

TEST_F(GgufConversion, WritesEveryType) {
  for (int i = static_cast<int>(fp32); i <= static_cast<int>(q2_k_s); ++i) {
    const auto dtype = static_cast<FileDType>(i);
    const GgufFileType& type = gguf_file_type(dtype);
    const std::string path = folder / (std::string(type.name) + ".gguf");
    const Conversion done = convert_model(source, path, {.dtype = dtype});
    EXPECT_EQ(done.weights, type.name);
    EXPECT_TRUE(done.warnings.empty());
    EXPECT_EQ(Gguf(path).integer("general.file_type"), type.number);
    EXPECT_EQ(type_of(path, "blk.0.attn_q.weight"), type.block);
    EXPECT_EQ(type_of(path, "blk.0.attn_norm.weight"), "F32");
    // The same type again copies the blocks.
    const std::string copy = folder / (std::string(type.name) + "-copy.gguf");
    EXPECT_EQ(convert_model(path, copy, {}).weights, type.name);
    EXPECT_EQ(read_file(copy), read_file(path)) << type.name;
  }
}

// Other matrices than experts in MXFP4, as no type of files has them, are converted only on
// request.
TEST_F(GgufConversion, WritesExpertsAsMxfp4) {
  Spec spec = test::small_llama({.context = 16, .width = 64, .heads = 4}, 96);
  spec.decoder->ffn.experts.count = 3;
  spec.decoder->ffn.experts.chosen = 2;
  spec.vocabulary = 0;  // that of the tokenizer
  const std::string experts = folder / "experts";
  Model::create(spec, model->tokenizer(), 1).save(experts);
  EXPECT_EQ(convert_model(experts, out, {.dtype = mxfp4_moe}).weights, "mxfp4_moe");
  EXPECT_EQ(type_of(out, "blk.0.ffn_up_exps.weight"), "MXFP4");
  EXPECT_EQ(type_of(out, "blk.0.attn_q.weight"), "Q8_0");
  EXPECT_EQ(type_of(out, "blk.0.ffn_gate_inp.weight"), "F32");
  EXPECT_EQ(convert_model(out, again, {}).weights, "mxfp4_moe");
  EXPECT_EQ(read_file(again), read_file(out));
  EXPECT_EQ(Model::open(out, WeightPrecision::stored).weight_formats().size(), 3u);

  Transformer dense(parts_of(*model).transformer);
  test::GgufContents contents = test::gguf_contents(dense, nullptr);
  std::vector<std::string> blocks;
  for (GgufTensor& tensor : contents.tensors) {
    if (tensor.shape.size() < 2) continue;
    tensor.block = find_gguf_block(39);
    tensor.bytes = tensor.bytes / 128 * 17;
    blocks.emplace_back(tensor.bytes, 'x');
  }
  size_t next = 0;
  for (GgufTensor& tensor : contents.tensors)
    if (tensor.shape.size() >= 2) tensor.data = blocks[next++].data();
  const std::string mxfp4 = folder / "dense.gguf";
  contents.write(mxfp4);
  expect_error(ErrorKind::Unsupported, {"its matrices are MXFP4 outside of experts", "`dtype`"},
               [&] { convert_model(mxfp4, folder / "x.gguf", {}); });
  EXPECT_EQ(convert_model(mxfp4, folder / "y.gguf", {.dtype = q4_0}).weights, "q4_0");
}

TEST_F(GgufConversion, ReadsQuantisedAndFloatFiles) {
  convert_model(source, out, {.dtype = q6_k});
  convert_model(out, again, {.dtype = q4_k_s});
  EXPECT_EQ(type_of(again, "blk.0.attn_q.weight"), "Q4_K");
  const std::string half = folder / "half.gguf", from_half = folder / "from_half.gguf";
  convert_model(source, half, {.dtype = bf16});
  convert_model(half, from_half, {.dtype = q4_k_m});
  EXPECT_EQ(type_of(from_half, "token_embd.weight"), "Q6_K");
  EXPECT_EQ(type_of(from_half, "blk.0.attn_q.weight"), "Q4_K");
}

TEST_F(GgufConversion, SaveGgufWritesTheSameFile) {
  convert_model(source, out, {.dtype = q4_k_m});
  save_gguf(*model, again, q4_k_m);
  EXPECT_EQ(read_file(again), read_file(out));
}

TEST_F(GgufConversion, ImportanceChangesTheBlocksOfItsColumns) {
  const std::string matrix = folder / "imatrix.gguf", calibrated = folder / "calibrated.gguf";
  convert_model(source, out, {.dtype = q4_k_s});
  convert_model(source, calibrated, {.dtype = q4_k_s, .calibrate = text, .save_imatrix = matrix});
  convert_model(source, again, {.dtype = q4_k_s, .imatrix = matrix});
  const std::string name = "blk.0.ffn_down.weight";
  EXPECT_EQ(tensor_bytes(calibrated, name), tensor_bytes(again, name));
  EXPECT_NE(tensor_bytes(calibrated, name), tensor_bytes(out, name));
  EXPECT_EQ(Gguf(again).text("quantize.imatrix.file"), matrix);

  const ImportanceMatrix read = read_importance(matrix);
  EXPECT_EQ(read.tensors.size(), 2 * 7 + 1u);
  const auto& query = read.tensors.at("blk.1.attn_q.weight");
  EXPECT_EQ(query.sums, read.tensors.at("blk.1.attn_v.weight").sums);
  EXPECT_EQ(query.counts[0], static_cast<float>(read.chunks * read.chunk_length));
  // RMSNorm with gains of 1: the mean square of its outputs is 1.
  double sum = 0;
  for (const float value : query.sums) sum += value;
  EXPECT_NEAR(sum / (256.0 * query.counts[0]), 1, 0.01);
}

TEST_F(GgufConversion, MatricesWithoutImportanceAreNamed) {
  ImportanceMatrix matrix;
  matrix.tensors["blk.0.attn_q.weight"] = {std::vector<float>(256, 1), {1}};
  const std::string path = folder / "imatrix.gguf";
  write_importance(path, matrix);
  const Conversion done = convert_model(source, out, {.dtype = q4_k_s, .imatrix = path});
  ASSERT_EQ(done.warnings.size(), 1u);
  EXPECT_TRUE(done.warnings[0].starts_with("the importance matrix lacks blk.0.attn_"))
      << done.warnings[0];
  // Each quantised value of blk.0.attn_q.weight is the same as without weights.
  const std::string plain = folder / "plain.gguf";
  convert_model(source, plain, {.dtype = q4_k_s});
  EXPECT_EQ(tensor_bytes(out, "blk.0.attn_q.weight"), tensor_bytes(plain, "blk.0.attn_q.weight"));
  matrix.tensors["blk.0.attn_q.weight"].sums.pop_back();
  matrix.tensors["blk.0.attn_q.weight"].sums.pop_back();
  write_importance(path, matrix);
  expect_error(ErrorKind::InvalidArgument, {"blk.0.attn_q.weight has 254 sums; expected 1 x 256"},
               [&] { convert_model(source, again, {.dtype = q4_k_s, .imatrix = path}); });
}

TEST_F(GgufConversion, RowsThatAreNotWholeBlocksAreNamed) {
  Spec spec = test::small_llama({.context = 16, .width = 96, .heads = 4}, 512);
  spec.vocabulary = 0;  // that of the tokenizer
  const std::string narrow = folder / "narrow";
  Model::create(spec, model->tokenizer(), 1).save(narrow);
  const Conversion done = convert_model(narrow, out, {.dtype = q4_k_s});
  ASSERT_FALSE(done.warnings.empty());
  EXPECT_NE(done.warnings[0].find("rows of 96 weights are not a multiple of 256: Q5_0 instead of "
                                  "Q4_K for blk.0.attn_"),
            std::string::npos)
      << done.warnings[0];
  EXPECT_EQ(type_of(out, "blk.0.attn_q.weight"), "Q5_0");
  EXPECT_EQ(type_of(out, "blk.0.ffn_down.weight"), "Q4_K");  // rows of 512
}

TEST_F(GgufConversion, NumbersThatBlocksCannotStoreAreRefused) {
  Transformer& transformer = parts_of(*model).transformer;
  float* weight = nullptr;
  transformer.each([&](const std::string& name, Parameter& p) {
    if (name == "decoder.1.ffn.up.weight") weight = p.value.data_as<float>();
  });
  for (const float bad : {NAN, std::numeric_limits<float>::infinity()}) {
    weight[3] = bad;
    expect_error(ErrorKind::BadFile, {"1 of", "elements of blk.1.ffn_up.weight are not finite"},
                 [&] { save_gguf(*model, out, q4_k_m); });
  }
  weight[3] = 1e6f;
  expect_error(ErrorKind::InvalidArgument,
               {"blk.1.ffn_up.weight has numbers above 65504, the largest of Q4_K"},
               [&] { save_gguf(*model, out, q4_k_m); });
  EXPECT_FALSE(is_file(out));
}

TEST_F(GgufConversion, ContradictoryOptionsAreRefused) {
  const auto refused = [&](const std::string& to, const ConvertOptions& options,
                           const std::string& part) {
    expect_error(ErrorKind::InvalidArgument, {part}, [&] { convert_model(source, to, options); });
  };
  const std::string other = folder / "other";
  refused(other, {.dtype = q4_k_m}, "dtype: q4_k_m; expected automatic, fp32, bf16 or fp16");
  refused(out, {.dtype = q4_k_m, .quantize = Quantize::int8}, "quantize: cannot be combined");
  refused(other, {.calibrate = text}, "calibrate: the output is a directory");
  refused(out, {.calibrate = text, .imatrix = text}, "calibrate: cannot be combined");
  refused(out, {.dtype = q4_k_m, .save_imatrix = again}, "save_imatrix: there is no importance");
}

}  // namespace
}  // namespace fovea::model

#include "hub/selection.h"

#include <gtest/gtest.h>

#include <utility>

#include "fovea/core/error.h"

namespace fovea::model {
namespace {

constexpr uint64_t kGigabyte = 1'000'000'000;

std::vector<HubFile> files_of(const std::vector<std::pair<std::string, uint64_t>>& names) {
  std::vector<HubFile> files;
  for (const auto& [path, bytes] : names) files.push_back({.path = path, .bytes = bytes});
  return files;
}

std::vector<std::string> paths_of(const Selection& selection) {
  std::vector<std::string> paths;
  for (const HubFile& file : selection.files) paths.push_back(file.path);
  return paths;
}

Selection select(const std::vector<std::pair<std::string, uint64_t>>& names,
                 const HubName& name = {.repository = "user/name"}, uint64_t memory = 0,
                 double bandwidth = 0) {
  HubSettings settings = {.memory = memory};
  if (bandwidth > 0) settings.bandwidth = [=] { return bandwidth; };
  return select_files(files_of(names), name, settings);
}

using Paths = std::vector<std::string>;

TEST(HubSelection, TakesSafetensorsAndWhatIsReadWithThem) {
  const Selection selection = select({{".gitattributes", 1},
                                      {"README.md", 1},
                                      {"config.json", 1},
                                      {"flax_model.msgpack", 9},
                                      {"model.safetensors", 9},
                                      {"model.fp16.safetensors", 9},
                                      {"onnx/model.onnx", 9},
                                      {"onnx/config.json", 1},
                                      {"pytorch_model.bin", 9},
                                      {"pytorch_model.bin.index.json", 1},
                                      {"tokenizer.json", 1},
                                      {"1_Pooling/config.json", 1},
                                      {"2_Dense/model.safetensors", 2},
                                      {"chat_template.jinja", 1},
                                      {"spiece.model", 1},
                                      {"vocab.txt", 1},
                                      {"training_args.bin", 1}});
  EXPECT_EQ(paths_of(selection),
            (Paths{"config.json", "tokenizer.json", "1_Pooling/config.json", "chat_template.jinja",
                   "spiece.model", "vocab.txt", "model.safetensors", "2_Dense/model.safetensors"}));
  EXPECT_EQ(selection.model, "");
}

TEST(HubSelection, TakesAllPartsWithTheirIndex) {
  const Paths all = {"config.json", "model.safetensors.index.json",
                     "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"};
  EXPECT_EQ(paths_of(select({{"config.json", 1},
                             {"model-00002-of-00002.safetensors", 9},
                             {"model-00001-of-00002.safetensors", 9},
                             {"model.safetensors.index.json", 1}})),
            all);
  EXPECT_THROW(select({{"config.json", 1}, {"model-00002-of-00002.safetensors", 9}}), Error);
  EXPECT_THROW(select({{"config.json", 1},
                       {"model-00001-of-00002.safetensors", 9},
                       {"model-00002-of-00002.safetensors", 9}}),
               Error);  // without the index
}

TEST(HubSelection, TakesCTranslate2AndAdaptersButNoPickles) {
  EXPECT_EQ(paths_of(select({{"config.json", 1}, {"model.bin", 9}, {"vocabulary.txt", 1}})),
            (Paths{"config.json", "vocabulary.txt", "model.bin"}));
  EXPECT_EQ(paths_of(select({{"adapter_config.json", 1}, {"adapter_model.safetensors", 9}})),
            (Paths{"adapter_config.json", "adapter_model.safetensors"}));
  EXPECT_THROW(select({{"config.json", 1}, {"model.bin", 9}}), Error);
  EXPECT_THROW(select({{"config.json", 1}, {"pytorch_model.bin", 9}}), Error);
  EXPECT_THROW(select({}), Error);
}

const std::vector<std::pair<std::string, uint64_t>> kQuantised = {
    {"README.md", 1},
    {"imatrix.gguf", 1},
    {"mmproj-model-f16.gguf", 1},
    {"model-BF16.gguf", 16 * kGigabyte},
    {"model-Q8_0.gguf", 8 * kGigabyte},
    {"model-Q6_K.gguf", 6 * kGigabyte},
    {"model-Q4_K_M.gguf", 4 * kGigabyte},
    {"model-Q2_K.gguf", 2 * kGigabyte}};

std::string chosen(uint64_t memory, double bandwidth) {
  const Selection selection = select(kQuantised, {.repository = "user/name"}, memory, bandwidth);
  EXPECT_NE(selection.choice, "");
  EXPECT_EQ(paths_of(selection), Paths{selection.model});
  return selection.model;
}

TEST(HubSelection, ChoosesTheBestQuantisationThatFits) {
  EXPECT_EQ(chosen(0, 1000.0 * kGigabyte), "model-Q8_0.gguf");  // 16 bits are no choice
  EXPECT_EQ(select(kQuantised).model, "model-Q8_0.gguf");
  EXPECT_EQ(chosen(7 * kGigabyte, 1000.0 * kGigabyte), "model-Q6_K.gguf");
  EXPECT_EQ(chosen(32 * kGigabyte, 45.0 * kGigabyte), "model-Q4_K_M.gguf");  // 11 tokens/s
  EXPECT_EQ(chosen(32 * kGigabyte, 5.0 * kGigabyte), "model-Q4_K_M.gguf");   // all are slow
  EXPECT_EQ(chosen(3 * kGigabyte, 5.0 * kGigabyte), "model-Q2_K.gguf");
  EXPECT_EQ(chosen(1 * kGigabyte, 5.0 * kGigabyte), "model-Q2_K.gguf");  // none fits
}

TEST(HubSelection, TakesTheQuantisationOrFileThatIsAskedFor) {
  EXPECT_EQ(select(kQuantised, {.repository = "u/n", .quantisation = "q2_k"}).model,
            "model-Q2_K.gguf");
  EXPECT_EQ(select(kQuantised, {.repository = "u/n", .quantisation = "bf16"}).model,
            "model-BF16.gguf");
  EXPECT_EQ(select(kQuantised, {.repository = "u/n", .file = "model-Q6_K.gguf"}).model,
            "model-Q6_K.gguf");
  EXPECT_THROW(select(kQuantised, {.repository = "u/n", .quantisation = "Q5_K_M"}), Error);
  EXPECT_THROW(select(kQuantised, {.repository = "u/n", .file = "x.gguf"}), Error);
  // An address may name any file, such as one of whisper.cpp.
  const Selection one = select({{"ggml-base.bin", 9}, {"ggml-tiny.bin", 9}},
                               {.repository = "u/n", .file = "ggml-tiny.bin"});
  EXPECT_EQ(one.model, "ggml-tiny.bin");
}

TEST(HubSelection, TakesAllPartsOfAGgufFile) {
  const Selection selection = select({{"Q4_K_M/m-Q4_K_M-00002-of-00002.gguf", 9},
                                      {"Q4_K_M/m-Q4_K_M-00001-of-00002.gguf", 9},
                                      {"Q8_0/m-Q8_0.gguf", 30}},
                                     {.repository = "u/n", .quantisation = "Q4_K_M"});
  EXPECT_EQ(selection.model, "Q4_K_M/m-Q4_K_M-00001-of-00002.gguf");
  EXPECT_EQ(selection.files.size(), 2);
}

TEST(HubSelection, TakesTextsAndTablesOfADataSet) {
  const HubName name{.repository = "user/data", .dataset = true};
  EXPECT_EQ(paths_of(select({{"README.md", 1}, {"a/train.jsonl", 1}, {"b.csv", 1}}, name)),
            (Paths{"a/train.jsonl", "b.csv"}));
  EXPECT_EQ(paths_of(select({{"data/train.parquet", 1}}, name)), Paths{"data/train.parquet"});
  EXPECT_THROW(select({{"data/train.arrow", 1}}, name), Error);
}

TEST(HubSelection, FindsTheQuantisationInAName) {
  EXPECT_EQ(quantisation_in("tinyllama-1.1b-chat-v1.0.Q4_K_M.gguf"), "Q4_K_M");
  EXPECT_EQ(quantisation_in("qwen2.5-0.5b-instruct-q5_k_m.gguf"), "Q5_K_M");
  EXPECT_EQ(quantisation_in("Qwen3-0.6B-Q8_0.gguf"), "Q8_0");
  EXPECT_EQ(quantisation_in("M-UD-Q4_K_XL.gguf"), "UD-Q4_K_XL");
  EXPECT_EQ(quantisation_in("M-IQ3_XXS-00001-of-00003.gguf"), "IQ3_XXS");
  EXPECT_EQ(quantisation_in("ggml-model-f16.gguf"), "F16");
  EXPECT_EQ(quantisation_in("gpt-oss-20b-mxfp4.gguf"), "MXFP4");
  EXPECT_EQ(quantisation_in("model.gguf"), "");
}

}  // namespace
}  // namespace fovea::model

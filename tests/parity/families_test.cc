// Compares with checkpoints and results of transformers: fovea reads the same weights, computes the
// same results, and writes the same checkpoint.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <numeric>
#include <set>

#include "base/error.h"
#include "fovea/model/model.h"
#include "fovea/study/trace.h"
#include "generate/generate.h"
#include "open/directory.h"
#include "safetensors/safetensors.h"
#include "support/shared_folder.h"
#include "support/temporary_folder.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

// Tolerances relative to a tensor's largest absolute value. Adding in a different order changes
// results by about 1e-6.
constexpr double kTolerance = 1e-4, kGradientTolerance = 1e-3;
// Some gradients are only rounding errors: a bias of keys shifts all scores of a row, which does
// not change the softmax, so its gradient is 0. The error of a tensor is therefore relative to at
// least this fraction of the largest gradient.
constexpr double kLeastShare = 1e-4;

constexpr const char* kFixtures[] = {
    "bart",     "bert",  "bloom",       "distilbert", "gemma2",  "gemma3_text", "gpt2",
    "gpt_neox", "llama", "llama3_rope", "marian",     "mistral", "mixtral",     "modernbert",
    "mpnet",    "olmo2", "opt",         "phi3",       "qwen2",   "qwen3",       "qwen3_moe",
    "roberta",  "t5",    "t5_gated",    "vit",        "whisper"};
constexpr const char* kMoreFixtures[] = {"models2/albert",
                                         "models2/camembert",
                                         "models2/electra",
                                         "models2/eurobert",
                                         "models2/nomic_bert",
                                         "models2/xlm_roberta",
                                         "models3/rembert",
                                         "models3/data2vec-text",
                                         "models3/jina_embeddings_v3",
                                         "models3/roformer",
                                         "models3/roberta-prelayernorm",
                                         "models2/deberta_v2",
                                         "models3/deberta",
                                         "models2/gemma",
                                         "models2/phi",
                                         "models3/cohere",
                                         "models2/cohere2",
                                         "models2/granite",
                                         "models3/granitemoe",
                                         "models3/granitemoeshared",
                                         "models3/glm",
                                         "models2/glm4",
                                         "models2/smollm3",
                                         "models3/olmo3",
                                         "models2/olmoe",
                                         "models3/qwen2_moe",
                                         "models2/gpt_oss",
                                         "models2/lfm2",
                                         "models3/lfm2_moe",
                                         "models2/qwen3_next",
                                         "models3/qwen3_5_text",
                                         "models3/qwen3_5_moe_text",
                                         "models2/mamba2",
                                         "models3/bamba",
                                         "models2/granitemoehybrid",
                                         "models2/ernie4_5",
                                         "models3/ernie4_5_moe",
                                         "models2/exaone4",
                                         "models2/stablelm",
                                         "models2/falcon",
                                         "models3/gpt_bigcode",
                                         "models3/gptj",
                                         "models3/gpt_neo",
                                         "models2/mpt",
                                         "models2/starcoder2",
                                         "models3/seed_oss",
                                         "models3/arcee",
                                         "models3/helium",
                                         "models3/nemotron",
                                         "models3/ministral",
                                         "models3/ministral3",
                                         "models3/hunyuan_v1_dense",
                                         "models3/nanochat",
                                         "models3/dots1",
                                         "models2/deepseek_v2",
                                         "models2/deepseek_v3",
                                         "models3/glm4_moe_lite",
                                         "models3/modernbert-decoder",
                                         "models2/mt5",
                                         "models3/umt5",
                                         "models2/mbart",
                                         "models2/m2m_100",
                                         "models2/pegasus",
                                         "models2/blenderbot",
                                         "models2/glm4_moe",
                                         "models3/minimax_m2",
                                         "models3/flex_olmo",
                                         "models3/apertus",
                                         "models3/bitnet",
                                         "models3/phimoe"};

// Returns whether a fixture has the outputs of a pass (some have sentence vectors or other
// results).
bool has_pass_outputs(const fs::path& folder) {
  const fs::path expected = folder / "expected.safetensors";
  if (!fs::exists(expected)) return !fs::exists(folder / "texts.json");
  const SafeTensors file(expected.string());
  return file.find("input_ids") != nullptr || file.find("pixel_values") != nullptr;
}

// Returns the fixtures, even missing ones, followed by the golden models with outputs of a pass.
std::vector<std::string> checkpoints() {
  std::vector<std::string> folders;
  for (const char* name : kFixtures)
    folders.push_back(shared(std::string("fixtures/models/") + name));
  for (const char* name : kMoreFixtures) folders.push_back(shared(std::string("fixtures/") + name));
  if (fs::is_directory("tests/goldens"))
    for (const auto& entry : fs::directory_iterator("tests/goldens"))
      if (fs::exists(entry.path() / "config.json") && has_pass_outputs(entry.path()))
        folders.push_back(entry.path().string());
  std::sort(folders.begin() + std::size(kFixtures) + std::size(kMoreFixtures), folders.end());
  return folders;
}

double largest(const Tensor& x) {
  double most = 0;
  for (int64_t i = 0; i < x.size(); ++i)
    most = std::max(most, std::abs(double{x.data_as<float>()[i]}));
  return most;
}

// Returns whether a row of a tensor is compared: rows of padding are not.
using Counts = std::function<bool(int64_t row)>;

void expect_close(const Tensor& found, const Tensor& expected, const std::string& name,
                  double tolerance = kTolerance, double least_scale = 0,
                  const Counts& counts = nullptr) {
  ASSERT_EQ(found.dtype(), DType::f32) << name;
  ASSERT_EQ(found.shape(), expected.shape()) << name;
  double worst = 0;
  const int64_t width = expected.shape().back();
  for (int64_t i = 0; i < found.size(); ++i) {
    if (counts && !counts(i / width)) continue;
    const double difference =
        std::abs(double{found.data_as<float>()[i]} - expected.data_as<float>()[i]);
    worst = std::isnan(difference) ? INFINITY : std::max(worst, difference);
  }
  const double scale = std::max({largest(expected), least_scale, 1e-30});
  EXPECT_LE(worst / scale, tolerance) << name << ": " << worst << " of " << scale;
  if (std::getenv("FOVEA_PARITY_PRINT") != nullptr)
    std::printf("%-50s %.2e\n", name.c_str(), worst / scale);
}

// Returns the logits of the last sequence, without those of the padding on its left.
Tensor without_left_padding(const Tensor& logits, int64_t kept) {
  const int64_t vocabulary = logits.shape().back();
  Tensor rows = empty({1, kept, vocabulary}, DType::f32);
  const float* end = logits.data_as<float>() + logits.size();
  std::copy(end - kept * vocabulary, end, rows.data_as<float>());
  return rows;
}

class Parity : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    folder_ = GetParam();
    if (!fs::is_directory(folder_)) GTEST_SKIP() << "needs " << folder_;
  }

  SafeTensors traced(const std::string& input, bool gradients) {
    study::TraceOptions options;
    options.input = input;
    options.gradients = gradients;
    options.out = out_ / "found.safetensors";
    study::trace(model::Model::open(folder_), options);
    return SafeTensors(options.out);
  }

  std::string folder_;
  const TemporaryFolder temporary_;
  const fs::path out_ = temporary_.path();
};

bool is_computed(const std::string& name) {
  return name == "logits" || name == "loss" || name.starts_with("grad.") ||
         name.find("hidden.") != name.npos || name.find("attention.") != name.npos;
}

// Returns which rows are compared, for tensors with one row per token of the encoder or of the only
// stack.
Counts rows_that_count(const SafeTensors& file, const std::string& name, const Shape& shape) {
  const bool across = file.find("cross_attention.0") != nullptr;
  const bool of_tokens = name.find("hidden.") != name.npos ||
                         name.find("attention.") != name.npos ||
                         (name == "logits" && shape.size() == 3);
  if (file.find("attention_mask") == nullptr || !of_tokens || name.starts_with("decoder_") ||
      name.starts_with("cross_") || (across && name == "logits"))
    return nullptr;
  const Tensor mask = file.tensor("attention_mask");
  const int64_t T = mask.shape()[1], copies = shape.size() == 4 ? shape[1] : 1;
  return
      [=](int64_t row) { return mask.data_as<int64_t>()[row / (copies * T) * T + row % T] != 0; };
}

// Returns the name of the weights of a layer: transformers numbers those layers that have weights.
std::string name_of_attention(const std::string& name, const SafeTensors& found) {
  const std::string kPrefix = "attention.";
  const int number = std::stoi(name.substr(kPrefix.size()));
  for (int layer = 0, attending = 0; layer < 1000; ++layer)
    if (found.find(kPrefix + std::to_string(layer)) != nullptr && attending++ == number)
      return kPrefix + std::to_string(layer);
  return name;
}

// Returns fovea's name of a hidden state of Mamba-2. Those of transformers lack the embeddings, and
// have the last layer's output twice: first without the final norm, which fovea does not report.
std::string name_of_mamba_state(const std::string& name, int64_t layers) {
  const int64_t number = std::stoll(name.substr(std::string("hidden.").size()));
  if (number + 1 == layers) return "";
  return "hidden." + std::to_string(number < layers ? number + 1 : number);
}

// In memory, XLM-RoBERTa names the embedding that it ties to its head after the head.
std::string name_in_file(const std::string& name, const SafeTensors& found) {
  constexpr const char *kHead = "grad.lm_head.decoder.weight",
                       *kEmbedding = "grad.roberta.embeddings.word_embeddings.weight";
  if (name.starts_with("attention.")) return name_of_attention(name, found);
  return name == kHead && found.find(kHead) == nullptr ? kEmbedding : name;
}

// Returns the names of tensors that are not trained, such as tables of sines and cosines.
std::set<std::string> constants_of(const std::string& folder) {
  model::ModelFiles files = model::open_model_files(folder, model::Weights::mapped);
  std::set<std::string> constants, names;
  files.model.each([&](const std::string& name, const model::Parameter& p) {
    if (!p.trainable) constants.insert(name);
  });
  for (const model::FileTensor& tensor : model::file_tensors(*files.origin.family, files.model))
    if (constants.contains(tensor.parts[0])) names.insert("grad." + tensor.name);
  return names;
}

TEST_P(Parity, PassMatchesTransformers) {
  const std::set<std::string> constants = constants_of(folder_);
  const model::ModelFiles files = model::open_model_files(folder_, model::Weights::mapped);
  const bool of_mamba = files.origin.family->model_type == std::string("mamba2");
  const int64_t layers = of_mamba ? files.model.spec.decoder->layers : 0;
  const std::string path = folder_ + "/expected.safetensors";
  const SafeTensors expected(path), found = traced(path, true);
  double largest_gradient = 0;
  for (const StoredTensor& tensor : expected.stored())
    if (tensor.name.starts_with("grad."))
      largest_gradient = std::max(largest_gradient, largest(expected.tensor(tensor.name)));
  int compared = 0;
  for (const StoredTensor& tensor : expected.stored()) {
    if (!is_computed(tensor.name) || constants.contains(tensor.name)) continue;
    const bool renamed = of_mamba && tensor.name.starts_with("hidden.");
    const std::string name =
        renamed ? name_of_mamba_state(tensor.name, layers) : name_in_file(tensor.name, found);
    if (name.empty()) continue;
    ASSERT_NE(found.find(name), nullptr) << name;
    const bool gradient = tensor.name.starts_with("grad.");
    const Tensor value = expected.tensor(tensor.name);
    expect_close(found.tensor(name), value, tensor.name, gradient ? kGradientTolerance : kTolerance,
                 gradient ? kLeastShare * largest_gradient : 0,
                 rows_that_count(expected, tensor.name, value.shape()));
    ++compared;
  }
  EXPECT_GT(compared, 20);
}

TEST_P(Parity, LeftPaddingDoesNotChangeTheResult) {
  const SafeTensors expected(folder_ + "/expected.safetensors");
  if (expected.find("padded.input_ids") == nullptr) return;  // only decoders have padded inputs
  const std::string input = out_ / "padded.safetensors";
  write_safetensors(input, {{"input_ids", expected.tensor("padded.input_ids")},
                            {"attention_mask", expected.tensor("padded.attention_mask")}});
  const Tensor logits = expected.tensor("padded.logits");
  const SafeTensors found = traced(input, false);
  expect_close(without_left_padding(found.tensor("logits"), logits.shape()[1]), logits,
               "padded.logits");
}

std::vector<int32_t> row_of(const Tensor& ids, int64_t row, int64_t begin, int64_t end) {
  std::vector<int32_t> result;
  for (int64_t i = begin; i < end; ++i)
    result.push_back(static_cast<int32_t>(ids.data_as<int64_t>()[row * ids.dim(1) + i]));
  return result;
}

// Compares generated tokens with those of transformers. Decoders generate after the prompt and past
// end tokens; encoder-decoders after the start token, up to the end token.
void expect_answer(const std::string& folder, const char* name, infer::GenerateOptions options) {
  const SafeTensors file(folder + "/expected.safetensors");
  if (file.find(name) == nullptr) return;
  const model::ModelFiles files = model::open_model_files(folder, model::Weights::mapped);
  const bool translates = files.model.spec.encoder.has_value();
  const Tensor prompts = file.tensor("input_ids"), mask = file.tensor("attention_mask");
  const Tensor expected = file.tensor(name);
  const int64_t begin = translates ? 1 : prompts.dim(1);
  options.sampling.temperature = 0;
  options.max_tokens = expected.dim(1) - begin;
  options.ignore_end = !translates;
  const infer::Generator generator{files.model, nullptr,
                                   infer::rules_of(files.origin, files.end_ids)};
  for (int64_t b = 0; b < prompts.dim(0); ++b) {
    const std::vector<int32_t> valid = row_of(mask, b, 0, prompts.dim(1));
    const auto length = std::accumulate(valid.begin(), valid.end(), int64_t{0});
    std::vector<int32_t> answer = row_of(expected, b, begin, expected.dim(1));
    if (translates) {
      answer.erase(std::find_first_of(answer.begin(), answer.end(), files.end_ids.begin(),
                                      files.end_ids.end()),
                   answer.end());
    }
    EXPECT_EQ(
        infer::generate(generator, row_of(prompts, b, 0, length), options, {}, 1 << 30)[0].ids,
        answer)
        << name << ", row " << b;
  }
}

TEST_P(Parity, GreedyDecodingMatchesTransformers) { expect_answer(folder_, "greedy", {}); }

TEST_P(Parity, BeamSearchMatchesTransformers) {
  infer::GenerateOptions options;
  options.beams = 4;
  expect_answer(folder_, "beam4", options);
}

TEST_P(Parity, SavingPreservesTheCheckpoint) {
  const std::string copy = out_ / "copy";
  model::Model::open(folder_).save(copy);
  const SafeTensors before = SafeTensors::open_model(folder_),
                    after = SafeTensors::open_model(copy);
  size_t compared = 0;
  for (const StoredTensor& was : before.stored()) {
    const auto& buffers =
        model::open_model_files(folder_, model::Weights::mapped).origin.family->buffers;
    const bool buffer = std::any_of(buffers.begin(), buffers.end(),
                                    [&](auto& end) { return was.name.ends_with(end); });
    const StoredTensor* is = after.find(was.name);
    if (is == nullptr) is = after.find("transformer." + was.name);
    if (is == nullptr && buffer) continue;
    ASSERT_NE(is, nullptr) << was.name;
    EXPECT_EQ(is->type, was.type) << was.name;
    EXPECT_EQ(is->shape, was.shape) << was.name;
    ASSERT_EQ(is->bytes, was.bytes) << was.name;
    EXPECT_EQ(std::memcmp(is->data, was.data, was.bytes), 0) << was.name;
    ++compared;
  }
  EXPECT_EQ(after.stored().size(), compared);
}

INSTANTIATE_TEST_SUITE_P(Families, Parity, ::testing::ValuesIn(checkpoints()), [](const auto& it) {
  auto name = fs::path(it.param).filename().string();
  std::replace(name.begin(), name.end(), '-', '_');
  return it.index < std::size(kFixtures) + std::size(kMoreFixtures) ? "fixture_" + name : name;
});

}  // namespace
}  // namespace fovea

// Checkpoints that transformers wrote and what it computed from them: fovea reads the same weights
// and must find the same numbers, and write the same checkpoint back.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "checkpoint/safetensors.h"
#include "fovea/generate.h"
#include "fovea/model.h"
#include "fovea/trace.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

// Of a tensor's largest absolute value. Sums in another order differ by about 1e-6.
constexpr double kTolerance = 1e-4;
// Keys that shift all scores of a row change nothing after the softmax: the gradient of their bias
// is rounding, so that a tensor below this has nothing to be compared with.
constexpr double kLeastScale = 1e-6;

std::string shared() {
  const char* folder = std::getenv("FOVEA_SHARED");
  return folder != nullptr ? folder : "../shared";
}

// The fixture first, then every golden of the project.
std::vector<std::string> checkpoints() {
  std::vector<std::string> folders = {shared() + "/fixtures/models/gpt2"};
  if (fs::is_directory("tests/goldens"))
    for (const auto& entry : fs::directory_iterator("tests/goldens"))
      if (entry.is_directory()) folders.push_back(entry.path().string());
  std::sort(folders.begin() + 1, folders.end());
  return folders;
}

double largest(const Tensor& x) {
  double most = 0;
  for (int64_t i = 0; i < x.size(); ++i)
    most = std::max(most, std::abs(double{x.data_as<float>()[i]}));
  return most;
}

void expect_close(const Tensor& found, const Tensor& expected, const std::string& name) {
  ASSERT_EQ(found.dtype(), DType::f32) << name;
  ASSERT_EQ(found.shape(), expected.shape()) << name;
  double worst = 0;
  for (int64_t i = 0; i < found.size(); ++i) {
    const double difference =
        std::abs(double{found.data_as<float>()[i]} - expected.data_as<float>()[i]);
    worst = std::isnan(difference) ? INFINITY : std::max(worst, difference);
  }
  const double scale = std::max(largest(expected), kLeastScale);
  EXPECT_LE(worst / scale, kTolerance) << name << ": " << worst << " of " << scale;
  ::testing::Test::RecordProperty("error " + name, std::to_string(worst / scale));
  if (std::getenv("FOVEA_PARITY_PRINT") != nullptr)
    std::printf("%-50s %.2e\n", name.c_str(), worst / scale);
}

std::vector<int32_t> ids_of(const Tensor& x) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < x.size(); ++i)
    ids.push_back(static_cast<int32_t>(x.data_as<int64_t>()[i]));
  return ids;
}

// Where the values of a batch's last row begin that are not padding on the left.
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
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    std::string name = std::string("fovea_parity_") + test->name();
    std::replace(name.begin(), name.end(), '/', '_');
    out_ = fs::temp_directory_path() / name;
    fs::remove_all(out_);
    fs::create_directories(out_);
  }
  void TearDown() override {
    if (!out_.empty()) fs::remove_all(out_);
  }

  SafeTensors traced(const std::string& input, bool gradients) {
    TraceOptions options;
    options.input = input;
    options.gradients = gradients;
    options.out = out_ / "found.safetensors";
    trace(Model::open(folder_), options);
    return SafeTensors(options.out);
  }

  std::string folder_;
  fs::path out_;
};

bool is_computed(const std::string& name) {
  return name == "logits" || name == "loss" || name.starts_with("hidden.") ||
         name.starts_with("attention.") || name.starts_with("grad.");
}

TEST_P(Parity, EveryNumberOfAPass) {
  const std::string path = folder_ + "/expected.safetensors";
  const SafeTensors expected(path), found = traced(path, true);
  int compared = 0;
  for (const StoredTensor& tensor : expected.stored()) {
    if (!is_computed(tensor.name)) continue;
    ASSERT_NE(found.find(tensor.name), nullptr) << tensor.name;
    expect_close(found.tensor(tensor.name), expected.tensor(tensor.name), tensor.name);
    ++compared;
  }
  EXPECT_GT(compared, 30);
}

TEST_P(Parity, PaddingOnTheLeftChangesNothing) {
  const SafeTensors expected(folder_ + "/expected.safetensors");
  const std::string input = out_ / "padded.safetensors";
  write_safetensors(input, {{"input_ids", expected.tensor("padded.input_ids")},
                            {"attention_mask", expected.tensor("padded.attention_mask")}});
  const Tensor logits = expected.tensor("padded.logits");
  const SafeTensors found = traced(input, false);
  expect_close(without_left_padding(found.tensor("logits"), logits.shape()[1]), logits,
               "padded.logits");
}

TEST_P(Parity, GreedyContinuation) {
  const SafeTensors file(folder_ + "/expected.safetensors");
  const auto prompt = ids_of(file.tensor("input_ids"));
  const auto expected = ids_of(file.tensor("greedy"));
  GenerateOptions options;
  options.sampling.temperature = 0;
  options.ignore_end = true;
  options.max_tokens = static_cast<int64_t>(expected.size() - prompt.size());
  auto found = prompt;
  const auto generated = generate(Model::open(folder_), prompt, options).ids;
  found.insert(found.end(), generated.begin(), generated.end());
  EXPECT_EQ(found, expected);
}

// Halves may be written as f32: then the values are the same.
void expect_same(const StoredTensor& was, const StoredTensor& is, const Tensor& read,
                 const Tensor& written) {
  EXPECT_EQ(is.shape, was.shape) << was.name;
  if (was.type == is.type) {
    ASSERT_EQ(is.bytes, was.bytes) << was.name;
    EXPECT_EQ(std::memcmp(is.data, was.data, was.bytes), 0) << was.name;
    return;
  }
  ASSERT_EQ(is.type, "F32") << was.name;
  ASSERT_EQ(was.bytes * 2, is.bytes) << was.name;
  const Tensor wide = read.dtype() == DType::f16 ? widen_halves(read) : convert(read, DType::f32);
  EXPECT_EQ(std::memcmp(wide.data(), written.data(), wide.bytes()), 0) << was.name;
}

TEST_P(Parity, SavedAgainItIsTheSame) {
  const std::string copy = out_ / "copy";
  Model::open(folder_).save(copy);
  const SafeTensors before = SafeTensors::open_model(folder_),
                    after = SafeTensors::open_model(copy);
  size_t compared = 0;
  for (const StoredTensor& was : before.stored()) {
    if (was.name.ends_with(".attn.bias") || was.name.ends_with(".attn.masked_bias")) continue;
    const StoredTensor* is = after.find(was.name);
    if (is == nullptr) is = after.find("transformer." + was.name);
    ASSERT_NE(is, nullptr) << was.name;
    expect_same(was, *is, before.tensor(was.name), after.tensor(is->name));
    ++compared;
  }
  EXPECT_EQ(after.stored().size(), compared);
}

INSTANTIATE_TEST_SUITE_P(Gpt2, Parity, ::testing::ValuesIn(checkpoints()), [](const auto& chosen) {
  const auto name = fs::path(chosen.param).filename().string();
  return chosen.index == 0 ? "fixture" : name;
});

}  // namespace
}  // namespace fovea

// Models of GGUF files whose weights are packed as they are stored.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "base/error.h"
#include "base/half.h"
#include "base/threads.h"
#include "checkpoint/gguf_blocks.h"
#include "formats/gguf/model.h"
#include "open/directory.h"
#include "open/model_parts.h"
#include "support/gguf_contents.h"
#include "support/small_spec.h"
#include "support/temporary_folder.h"
#include "tensor/tape.h"

namespace fovea::model {
namespace {

// The places of the f16 numbers in a block and their values: weights become about 0.05.
struct BlockType {
  const char* name;
  std::vector<std::pair<size_t, float>> halves;
};
const std::vector<BlockType>& block_types() {
  static const std::vector<BlockType> types = {{"Q4_K", {{0, 2e-4f}, {2, 1.5e-3f}}},
                                               {"Q6_K", {{208, 3e-5f}}},
                                               {"Q5_K", {{0, 1e-4f}, {2, 1.5e-3f}}},
                                               {"Q8_0", {{0, 7e-4f}}},
                                               {"Q4_0", {{0, 1e-2f}}},
                                               {"Q4_1", {{0, 1e-2f}, {2, -0.075f}}},
                                               {"Q5_0", {{0, 5e-3f}}},
                                               {"Q5_1", {{0, 5e-3f}, {2, -0.075f}}},
                                               {"Q2_K", {{80, 5e-3f}, {82, 7e-3f}}},
                                               {"Q3_K", {{108, 1e-3f}}},
                                               {"IQ4_NL", {{0, 7e-4f}}},
                                               {"IQ4_XS", {{0, 4e-5f}}},
                                               {"MXFP4", {}}};
  return types;
}

const GgufBlock& block_of(const std::string& name) {
  for (uint32_t number = 0;; ++number)
    if (const auto* block = find_gguf_block(number); block != nullptr && block->name == name)
      return *block;
}

std::string random_blocks(const BlockType& type, int64_t elements, unsigned seed) {
  const GgufBlock& block = block_of(type.name);
  std::mt19937 random(seed);
  std::string bytes(static_cast<size_t>(elements / block.elements * block.bytes), '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  for (size_t at = 0; at < bytes.size(); at += block.bytes) {
    for (const auto& [place, value] : type.halves) {
      const uint16_t half = narrow_to_half(value);
      std::memcpy(&bytes[at + place], &half, sizeof half);
    }
    if (type.halves.empty()) bytes[at] = static_cast<char>(121 + random() % 3);  // 2^-7 to 2^-5
  }
  return bytes;
}

Spec wide_spec() {
  return test::small_llama({.vocabulary = 77, .context = 16, .width = 256, .heads = 4}, 512);
}

class GgufWeights : public testing::Test {
 protected:
  // Writes a model whose matrices have random blocks: of each of `types` in turn.
  void write(const Spec& spec, const Family* family, const std::vector<BlockType>& types) {
    Transformer model(validated(spec));
    initialise(model, 1);
    test::GgufContents file = test::gguf_contents(model, family);
    blocks_.clear();
    for (GgufTensor& tensor : file.tensors) {
      if (tensor.shape.size() < 2 || tensor.name.ends_with("ffn_gate_inp.weight") ||
          tensor.name == "position_embd.weight")
        continue;
      const BlockType& type = types[blocks_.size() % types.size()];
      int64_t elements = 1;
      for (const int64_t extent : tensor.shape) elements *= extent;
      blocks_.push_back(std::make_unique<std::string>(
          random_blocks(type, elements, static_cast<unsigned>(blocks_.size()))));
      tensor.block = &block_of(type.name);
      tensor.data = blocks_.back()->data();
      tensor.bytes = blocks_.back()->size();
    }
    file.write(path_);
  }

  std::vector<float> logits(const Transformer& model) const {
    const NoGradient off;
    const Tensor ids = empty({2, 5}, DType::i32);
    for (int32_t i = 0; i < 10; ++i) ids.data_as<int32_t>()[i] = (i * 31 + 7) % 77;
    return to_floats(model.logits(model.hidden(ids, {})));
  }

  // Checks that the weights equal the decoded ones, and the logits nearly so.
  void check_equals_decoded(const std::string& name, double tolerance = 0.03) {
    ModelFiles full = open_model_files(path_, Weights::mapped),
               packed = open_model_files(path_, Weights::packed);
    EXPECT_TRUE(packed.warnings.empty());
    std::map<std::string, Tensor> values;
    full.model.each([&](const std::string& key, Parameter& p) { values[key] = p.value; });
    int matrices = 0;
    packed.model.each([&](const std::string& key, Parameter& p) {
      if (!p.packed || p.packed.matrix().format == WeightFormat::f32) return;
      ++matrices;
      const Tensor floats = p.packed.floats();
      ASSERT_EQ(floats.bytes(), values.at(key).bytes());
      EXPECT_EQ(std::memcmp(floats.data(), values.at(key).data(), floats.bytes()), 0)
          << name << " " << key;
    });
    EXPECT_GE(matrices, 9) << name;
    const auto got = logits(packed.model), expected = logits(full.model);
    double difference = 0, size = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      difference += std::pow(double{got[i]} - expected[i], 2);
      size += std::pow(double{expected[i]}, 2);
    }
    EXPECT_LT(std::sqrt(difference / size), tolerance) << name;
    EXPECT_GT(size, 1e-6) << name;
  }

  TemporaryFolder folder_;
  std::string path_ = folder_ / "model.gguf";
  std::vector<std::unique_ptr<std::string>> blocks_;
};

TEST_F(GgufWeights, EveryTypeRunsAsStored) {
  for (const BlockType& type : block_types()) {
    write(wide_spec(), nullptr, {type});
    check_equals_decoded(type.name);
    ModelFiles files = open_model_files(path_, Weights::packed);
    files.model.each([&](const std::string& name, Parameter& p) {
      if (p.shape.size() != 2) return;
      ASSERT_TRUE(p.packed) << name;
      EXPECT_STREQ(block_format(p.packed.matrix().format).name, type.name) << name;
    });
  }
}

TEST_F(GgufWeights, TypesAreMixedInEveryArchitecture) {
  const auto& types = block_types();
  Spec untied = wide_spec();
  untied.head.tied = false;
  untied.decoder->attention.kv_heads = 2;
  write(untied, nullptr, types);
  check_equals_decoded("llama");
  write(wide_spec(), &phi3, {types[0]});  // fused matrices
  check_equals_decoded("phi3");
  Spec experts = wide_spec();
  experts.decoder->attention.norm = QueryKeyNorm::head;
  experts.decoder->ffn.experts.count = 3;
  experts.decoder->ffn.experts.width = 256;
  write(experts, &qwen3_moe, types);
  check_equals_decoded("qwen3moe", 0.2);  // the choice of experts may differ
  Spec gpt = wide_spec();
  gpt.decoder = StackSpec();
  gpt.decoder->layers = 2;
  gpt.decoder->attention.heads = 4;
  write(gpt, &gpt2, types);
  check_equals_decoded("gpt2");
}

TEST_F(GgufWeights, ARequestedFormatIsUsed) {
  write(wide_spec(), nullptr, {block_types()[0]});
  ModelFiles files = open_model_files(path_, Weights::packed, {WeightFormat::bf16, 32});
  files.model.each([&](const std::string& name, Parameter& p) {
    if (!p.packed) return;
    EXPECT_EQ(p.packed.matrix().format, WeightFormat::bf16) << name;
  });
}

TEST_F(GgufWeights, LogitsHaveTheSameBitsOnAnyThreads) {
  write(wide_spec(), nullptr, block_types());
  const ModelFiles files = open_model_files(path_, Weights::packed);
  const int threads = thread_count();
  std::vector<uint32_t> first;
  for (const int count : {1, 2, 3}) {
    set_threads(count);
    std::vector<uint32_t> bits;
    for (const float logit : logits(files.model)) bits.push_back(std::bit_cast<uint32_t>(logit));
    if (first.empty()) first = bits;
    EXPECT_EQ(bits, first) << count;
  }
  set_threads(threads);
}

TEST_F(GgufWeights, FormatsAreKnownFromTheHeader) {
  Spec untied = wide_spec();
  untied.head.tied = false;
  write(untied, nullptr, block_types());
  const WeightSizes sizes = weight_sizes(path_);
  const auto planned = largest_first(sizes.formats);
  const auto opened = Model::open(path_, WeightPrecision::stored).weight_formats();
  ASSERT_EQ(planned.size(), opened.size());
  ASSERT_EQ(opened.size(), block_types().size() + 1);  // and fp32
  for (size_t i = 0; i < opened.size(); ++i) {
    EXPECT_EQ(planned[i].format, opened[i].format);
    EXPECT_EQ(planned[i].bytes, opened[i].bytes) << opened[i].format;
  }
  ModelFiles files = open_model_files(path_, Weights::packed);
  files.model.each([&](const std::string& name, const Parameter& p) {
    if (name != "embedding.token") return;
    EXPECT_EQ(sizes.in_file, static_cast<int64_t>(p.packed.bytes()));
  });
}

// Q8_0 and Q4_0 are saved as int8 and int4, all other types as fp32.
TEST_F(GgufWeights, ASavedModelHasTheSameWeights) {
  Spec untied = wide_spec();
  untied.head.tied = false;
  for (const std::vector<BlockType>& types :
       {block_types(), std::vector<BlockType>{block_types()[0], block_types()[1]}}) {
    write(untied, nullptr, types);
    ModelFiles packed = open_model_files(path_, Weights::packed);
    EXPECT_EQ(packed.origin.quantization.has_value(), types.size() > 2);
    const TemporaryFolder saved;
    save_model_files(saved.path(), packed.model, 3, packed.origin);
    ModelFiles again = open_model_files(saved.path(), Weights::mapped),
               full = open_model_files(path_, Weights::mapped);
    std::map<std::string, std::vector<float>> values;
    full.model.each(
        [&](const std::string& name, Parameter& p) { values[name] = to_floats(p.value); });
    again.model.each([&](const std::string& name, Parameter& p) {
      EXPECT_EQ(to_floats(p.packed ? p.packed.floats() : p.value), values.at(name)) << name;
    });
  }
}

TEST_F(GgufWeights, ScalesThatAreNotFiniteGiveAWarning) {
  for (const BlockType& type : block_types()) {
    for (size_t i = 0; i < type.halves.size(); ++i) {
      BlockType hostile = type;
      hostile.halves[i].second = NAN;
      write(wide_spec(), nullptr, {hostile});
      const ModelFiles packed = open_model_files(path_, Weights::packed);
      EXPECT_EQ(packed.warnings, open_model_files(path_, Weights::mapped).warnings);
      ASSERT_FALSE(packed.warnings.empty()) << type.name;
      EXPECT_NE(packed.warnings[0].find("131072 of 131072 elements"), std::string::npos)
          << packed.warnings[0];
    }
  }
}

// MXFP4 has no NaN, but the largest of its scales times more than 1 is infinite.
TEST_F(GgufWeights, InfiniteNumbersOfMxfp4GiveAWarning) {
  write(wide_spec(), nullptr, {block_types().back()});
  std::string bytes = read_file(path_);
  int64_t infinite = 0;
  {
    const Gguf file(path_);
    const GgufTensor& tensor = *file.find_tensor("blk.0.ffn_up.weight");
    const auto at = static_cast<size_t>(tensor.data - file.file()->data());
    bytes[at] = '\xff';
    for (size_t i = 1; i < 17; ++i)
      for (const int number : {bytes[at + i] & 7, bytes[at + i] >> 4 & 7}) infinite += number > 1;
  }
  write_file_atomically(path_, bytes);
  const std::string expected =
      fmt::format("{} of 131072 elements of blk.0.ffn_up.weight are not finite", infinite);
  for (const Weights how : {Weights::packed, Weights::mapped}) {
    const ModelFiles files = open_model_files(path_, how);
    ASSERT_EQ(files.warnings.size(), 1u);
    EXPECT_NE(files.warnings[0].find(expected), std::string::npos) << files.warnings[0];
  }
}

}  // namespace
}  // namespace fovea::model

// The results and the directories of models with packed or quantised weights.

#include <cmath>
#include <optional>

#include "base/json.h"
#include "open/directory.h"
#include "ops/ops.h"
#include "safetensors/safetensors.h"
#include "support/expect_error.h"
#include "support/small_spec.h"
#include "support/temporary_folder.h"
#include "tensor/tape.h"
#include "transformer/pack.h"

namespace fovea::model {
namespace {

Spec gpt2(void (*change)(Spec&) = [](Spec&) {}) {
  // The width is not a multiple of a quantisation group.
  Spec s = test::small_decoder({.vocabulary = 77, .context = 16, .width = 72, .heads = 3});
  change(s);
  return validated(s);
}

// The files of GPT-2 contain transposed and fused matrices; a mixture of experts is saved in
// fovea's own format.
std::vector<Spec> specs() {
  return {gpt2(), gpt2([](Spec& s) { s.head.tied = false; }), gpt2([](Spec& s) {
            s.decoder->ffn.experts.count = 3;
            s.decoder->ffn.experts.chosen = 2;
            s.decoder->ffn.gated = true;
            s.decoder->norm.kind = NormKind::rms;
          })};
}

Tensor logits_of(const Transformer& model) {
  const NoGradient off;
  const Tensor ids = empty({2, 5}, DType::i32);
  for (int32_t i = 0; i < 10; ++i) ids.data_as<int32_t>()[i] = (i * 31 + 7) % 77;
  return model.logits(model.hidden(ids, {}));
}

// Returns the root mean square of a - b, relative to that of b.
double distance(const Tensor& a, const Tensor& b) {
  const auto x = to_floats(a), y = to_floats(b);
  double difference = 0, size = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    difference += std::pow(double{x[i]} - y[i], 2);
    size += std::pow(double{y[i]}, 2);
  }
  return std::sqrt(difference / size);
}

class Quantized : public testing::Test {
 protected:
  void save(const Spec& spec) {
    full_ = Transformer(spec);
    initialise(full_, 1);
    save_model_files(folder_.path(), full_, 3);
  }
  ModelFiles open(std::optional<WeightFormat> format, const TemporaryFolder& folder,
                  int64_t group = 32) {
    return open_model_files(folder.path(), Weights::packed, {format, group});
  }
  // Writes the quantised directory, which tests then modify.
  void save_quantized(WeightFormat format, int64_t group = 32) {
    save(gpt2());
    ModelFiles files = open(format, folder_, group);
    save_model_files(quantized_.path(), files.model, 3, files.origin);
  }
  std::map<std::string, Tensor> tensors() const {
    const SafeTensors file(quantized_ / "model.safetensors");
    std::map<std::string, Tensor> all;
    for (const StoredTensor& stored : file.stored())
      all[stored.name] = copy(file.tensor(stored.name));
    return all;
  }
  void refused(ErrorKind kind, std::initializer_list<std::string> words) {
    expect_error(kind, words, [&] { open_model_files(quantized_.path(), Weights::packed); });
  }

  TemporaryFolder folder_, quantized_;
  Transformer full_;
};

TEST_F(Quantized, PackedFloatsGiveTheSameBits) {
  for (const Spec& spec : specs()) {
    save(spec);
    const ModelFiles files = open(std::nullopt, folder_);
    EXPECT_EQ(to_floats(logits_of(files.model)), to_floats(logits_of(full_)));
  }
}

TEST_F(Quantized, RoundedWeightsGiveCloseResults) {
  for (const Spec& spec : specs()) {
    save(spec);
    const Tensor expected = logits_of(full_);
    EXPECT_LT(distance(logits_of(open(WeightFormat::bf16, folder_).model), expected), 0.01);
    EXPECT_LT(distance(logits_of(open(WeightFormat::int8, folder_).model), expected), 0.02);
    EXPECT_LT(distance(logits_of(open(WeightFormat::int4, folder_).model), expected), 0.2);
    EXPECT_GT(distance(logits_of(open(WeightFormat::int4, folder_).model), expected), 0);
  }
}

TEST_F(Quantized, DirectoriesPreserveEveryBit) {
  for (const Spec& spec : specs()) {
    for (const WeightFormat format : {WeightFormat::int8, WeightFormat::int4}) {
      for (const int64_t group : {32, 64, 0}) {
        if (group == 0 && format == WeightFormat::int4) continue;
        save(spec);
        ModelFiles files = open(format, folder_, group);
        save_model_files(quantized_.path(), files.model, 3, files.origin);
        const std::string weights = read_file(quantized_ / "model.safetensors"),
                          config = read_file(quantized_ / "config.json");
        EXPECT_EQ(read_json(quantized_ / "config.json")["quantization_config"]["group_size"],
                  group);

        // Quantised weights stay quantised, even if they are opened as mapped.
        for (const Weights how : {Weights::packed, Weights::mapped}) {
          ModelFiles again = open_model_files(quantized_.path(), how);
          EXPECT_EQ(to_floats(logits_of(again.model)), to_floats(logits_of(files.model)));
          const TemporaryFolder third;
          save_model_files(third.path(), again.model, 3, again.origin);
          EXPECT_EQ(read_file(third / "model.safetensors"), weights);
          EXPECT_EQ(read_file(third / "config.json"), config);
        }
      }
    }
  }
}

// Quantised, transposed and fp16 matrices are packed late, with the bits of packing at once.
TEST_F(Quantized, MatricesOfAnyFormArePackedLate) {
  const auto late = [](Transformer& model) {
    int count = 0;
    model.each(
        [&](const std::string&, const Parameter& p) { count += p.packed.rows() != nullptr; });
    return count;
  };
  save(gpt2());
  const auto check = [&](const std::string& folder, WeightFormat format) {
    ModelFiles files = open_model_files(folder, Weights::packed),
               whole = open_model_files(folder, Weights::packed);
    ModelFiles stays = open_model_files(folder, Weights::packed);
    EXPECT_GE(late(files.model), 9) << folder;
    whole.model.each([&](const std::string&, const Parameter& p) {
      if (!p.packed) return;
      EXPECT_EQ(p.packed.matrix().format, format);
      p.packed.packed();
    });
    stays.model.each([](const std::string&, Parameter& p) { p.packed.stay_in_rows(); });
    EXPECT_EQ(late(whole.model), 0);
    const auto expected = to_floats(logits_of(whole.model));
    for (int turn = 0; turn < 3; ++turn) {
      EXPECT_EQ(to_floats(logits_of(files.model)), expected) << turn;
      EXPECT_EQ(to_floats(logits_of(stays.model)), expected) << turn;
    }
    EXPECT_EQ(late(files.model), 0);
    EXPECT_GE(late(stays.model), 9);
  };
  check(folder_.path(), WeightFormat::f32);  // transposed
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const TemporaryFolder halves;
    ModelFiles files = open_model_files(folder_.path(), Weights::mapped);
    files.origin.save_all_as(dtype);
    save_model_files(halves.path(), files.model, 3, files.origin);
    check(halves.path(), dtype == DType::f16 ? WeightFormat::f32 : WeightFormat::bf16);
  }
  for (const int64_t group : {32, 0}) {
    save_quantized(WeightFormat::int8, group);
    check(quantized_.path(), WeightFormat::int8);
  }
}

TEST_F(Quantized, Fp16MatricesArePackedLate) {
  Spec spec = test::small_llama({.context = 16, .width = 64, .heads = 4}, 96);
  spec.vocabulary = 77;
  save(validated(spec));
  ModelFiles files = open_model_files(folder_.path(), Weights::mapped);
  files.origin.save_all_as(DType::f16);
  save_model_files(quantized_.path(), files.model, 3, files.origin);
  const ModelFiles mapped = open_model_files(quantized_.path(), Weights::mapped);
  ModelFiles packed = open_model_files(quantized_.path(), Weights::packed);
  packed.model.each([](const std::string& name, const Parameter& p) {
    EXPECT_TRUE(!p.packed || p.packed.rows() != nullptr) << name;
  });
  for (int turn = 0; turn < 3; ++turn)
    EXPECT_EQ(to_floats(logits_of(packed.model)), to_floats(logits_of(mapped.model)));
}

TEST_F(Quantized, OtherTensorsKeepTheirDtype) {
  save(gpt2());
  ModelFiles files = open_model_files(folder_.path(), Weights::packed);
  files.origin.save_all_as(DType::bf16);
  save_model_files(quantized_.path(), files.model, 3, files.origin);
  ModelFiles halves = open(WeightFormat::int8, quantized_);
  EXPECT_EQ(halves.origin.dtype, DType::bf16);
  const TemporaryFolder third;
  save_model_files(third.path(), halves.model, 3, halves.origin);
  const SafeTensors file(third / "model.safetensors");
  EXPECT_EQ(file.find("transformer.ln_f.weight")->type, "BF16");
  EXPECT_EQ(file.find("transformer.h.0.attn.c_attn.weight")->type, "I8");
  EXPECT_EQ(file.find("transformer.h.0.attn.c_attn.weight")->shape, (Shape{216, 72}));
  EXPECT_EQ(file.find("transformer.h.0.attn.c_attn.weight_scale")->shape, (Shape{216, 3}));
}

// Rounding to bf16 twice is the same as rounding once: packing the bf16 weights of a file loses
// nothing, and saving them again gives the same file.
TEST_F(Quantized, Bf16FilesAreReadWithoutLoss) {
  for (const Spec& spec : specs()) {
    save(spec);
    ModelFiles files = open_model_files(folder_.path(), Weights::packed);
    files.origin.save_all_as(DType::bf16);
    save_model_files(quantized_.path(), files.model, 3, files.origin);
    const ModelFiles mapped = open_model_files(quantized_.path(), Weights::mapped);
    ModelFiles packed = open_model_files(quantized_.path(), Weights::packed);
    // Products with packed bf16 weights also round the activations to bf16.
    EXPECT_LT(distance(logits_of(packed.model), logits_of(mapped.model)), 0.01);
    const TemporaryFolder third;
    save_model_files(third.path(), packed.model, 3, packed.origin);
    EXPECT_EQ(read_file(third / "model.safetensors"), read_file(quantized_ / "model.safetensors"));
  }
}

TEST_F(Quantized, IsNotTrainedButPassesGradients) {
  save_quantized(WeightFormat::int8);
  expect_error(ErrorKind::Unsupported, {"config.json", "quantization_config", "to train"},
               [&] { open_model_files(quantized_.path(), Weights::owned); });
  ModelFiles files = open_model_files(quantized_.path(), Weights::mapped);
  files.model.head.norm = {};
  Tensor x = full({1, 72}, 1);
  x.want_gradient();
  backward(sum(files.model.decoder.blocks[0].ffn->up(x)));
  EXPECT_EQ(x.gradient().shape(), (Shape{1, 72}));
}

TEST_F(Quantized, RefusesMismatchedTensors) {
  save_quantized(WeightFormat::int4);
  const std::string weight = "transformer.h.1.mlp.c_fc.weight", scale = weight + "_scale";
  const auto good = tensors();
  const auto tampered = [&](auto&& change) {
    auto all = good;
    change(all);
    write_safetensors(quantized_ / "model.safetensors", all);
  };
  tampered([&](auto& all) { all.erase(scale); });
  refused(ErrorKind::BadFile, {quantized_.path(), weight, "has no", scale});
  tampered([&](auto& all) { all[scale] = zeros({288, 2}, DType::f16); });
  refused(ErrorKind::BadFile, {quantized_.path(), scale, "[288, 2]", "[288, 3]", "group_size"});
  tampered([&](auto& all) { all[scale] = zeros({288, 3}); });
  refused(ErrorKind::BadFile, {quantized_.path(), scale, "F32", "F16"});
  tampered([&](auto& all) { all[weight] = zeros({288, 72}, DType::u8); });
  refused(ErrorKind::BadFile, {quantized_.path(), weight, "[288, 72]", "[288, 36]"});
  tampered([&](auto& all) { all["more"] = zeros({1}, DType::u8); });
  refused(ErrorKind::BadFile, {quantized_.path(), "1 unknown: more"});
}

TEST_F(Quantized, RefusesAnInvalidConfig) {
  save_quantized(WeightFormat::int8);
  const auto with = [&](const char* key, const nlohmann::json& value) {
    nlohmann::json config = read_json(quantized_ / "config.json");
    config["quantization_config"][key] = value;
    const std::string before = read_file(quantized_ / "config.json");
    write_file_atomically(quantized_ / "config.json", config.dump());
    return before;
  };
  for (const auto& [key, value] : std::vector<std::pair<const char*, nlohmann::json>>{
           {"bits", 3}, {"bits", "8"}, {"group_size", 48}, {"group_size", -1}, {"bits", nullptr}}) {
    const std::string before = with(key, value);
    refused(ErrorKind::BadFile, {"config.json", "quantization_config", key, "expected"});
    write_file_atomically(quantized_ / "config.json", before);
  }
  const std::string before = with("group_size", 64);
  refused(ErrorKind::BadFile, {quantized_.path(), "_scale", "group_size"});
  write_file_atomically(quantized_ / "config.json", before);
  with("quant_method", "gptq");
  refused(ErrorKind::Unsupported, {"config.json", "quant_method", "gptq", "expected fovea"});
}

}  // namespace
}  // namespace fovea::model

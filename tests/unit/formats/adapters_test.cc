#include "open/open_adapters.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "base/files.h"
#include "base/json.h"
#include "formats/gguf/adapter.h"
#include "formats/gguf/model.h"
#include "formats/peft/experts.h"
#include "formats/peft/save.h"
#include "fovea/core/random.h"
#include "fovea/model/convert.h"
#include "open/directory.h"
#include "open/model_parts.h"
#include "safetensors/safetensors.h"
#include "support/expect_error.h"
#include "support/small_spec.h"
#include "support/temporary_folder.h"
#include "transformer/adapters.h"

namespace fovea::model {
namespace {

constexpr int64_t kRank = 3;
constexpr float kScale = 0.5f;

struct Checkpoint {
  const char* name;
  const Family* family;
  Spec (*spec)();
};

Spec rotary(Spec spec) {
  spec.decoder->position.kind = PositionKind::rotary;
  return spec;
}
Spec with_alibi(Spec spec) {
  spec.decoder->position = {.kind = PositionKind::none, .bias = DistanceBias::alibi};
  spec.decoder->embedding_norm = true;
  return spec;
}
Spec with_experts(Spec spec) {
  spec.decoder->ffn.experts = {.count = 3, .chosen = 2, .width = spec.decoder->ffn.width};
  return spec;
}

constexpr test::SmallSize kSize = {.width = 16, .heads = 2};

const Checkpoint kCheckpoints[] = {
    {"gpt2", &gpt2, [] { return test::small_decoder(kSize); }},
    {"llama", &llama, [] { return test::small_llama(kSize, 7); }},
    {"phi3", &phi3, [] { return test::small_llama(kSize, 7); }},
    {"gpt_neox", &gpt_neox, [] { return rotary(test::small_decoder(kSize)); }},
    {"bloom", &bloom, [] { return with_alibi(test::small_decoder(kSize)); }},
    {"mixtral", &mixtral, [] { return with_experts(test::small_llama(kSize, 7)); }},
    {"fovea", &fovea_format, [] { return test::small_encoder_decoder(kSize); }}};

// Adds adapters with random values to all modules.
void adapt(Transformer& model, const Family& family, bool dora) {
  for (const AdapterModule& module : adapter_modules(family, model)) {
    for (Linear* layer : module.layers)
      add_adapter(*layer, {.rank = kRank, .scale = kScale, .dora = dora});
  }
  uint32_t index = 0;
  for (const auto& [name, parameter] : parameters_of(model)) {
    parameter->trainable = is_of_adapter(parameter->role);
    if (!parameter->trainable) continue;
    Random random(7, Stream::init, index++);
    parameter->value = zeros(parameter->shape);
    for (int64_t i = 0; i < parameter->value.size(); ++i)
      parameter->value.data_as<float>()[i] = random.normal();
  }
}

// B A [out, in], or its transpose
std::vector<float> product(const Tensor& up, const Tensor& down, bool transposed) {
  const int64_t out = up.dim(0), rank = up.dim(1), in = down.dim(1);
  std::vector<float> y(static_cast<size_t>(out * in));
  for (int64_t i = 0; i < out; ++i)
    for (int64_t j = 0; j < in; ++j)
      for (int64_t r = 0; r < rank; ++r)
        y[static_cast<size_t>(transposed ? j * out + i : i * in + j)] +=
            up.data_as<float>()[i * rank + r] * down.data_as<float>()[r * in + j];
  return y;
}

void expect_near(const std::vector<float>& found, const std::vector<float>& expected,
                 const std::string& name) {
  ASSERT_EQ(found.size(), expected.size()) << name;
  for (size_t i = 0; i < found.size(); ++i)
    ASSERT_NEAR(found[i], expected[i], 1e-5) << name << " " << i;
}

class StoredAdapters : public testing::TestWithParam<Checkpoint> {
 protected:
  StoredAdapters() : model_(validated(GetParam().spec())) {
    initialise(model_, 1);
    origin_.family = GetParam().family;
  }
  const Family& family() const { return *GetParam().family; }

  Transformer model_;
  Origin origin_;
  const TemporaryFolder folder_;
};

// The change of a tensor of the checkpoint is the product of the adapter's tensors, as PEFT
// computes it, whatever layers the tensor holds.
TEST_P(StoredAdapters, ChangeTheTensorsOfTheCheckpoint) {
  const auto before = checkpoint_tensors(model_, family());
  adapt(model_, family(), false);
  const auto tensors = adapter_tensors(model_, family()),
             after = checkpoint_tensors(model_, family());
  const std::set<const Linear*> parameters = adapted_in_parameters(family(), model_);
  std::set<std::string> of_parameters;
  size_t changed = 0;
  for (const AdapterModule& module : adapter_modules(family(), model_)) {
    if (parameters.contains(module.layers[0])) {
      of_parameters.insert(module.name + ".weight");
      continue;
    }
    const std::string name = kPeftPrefix + module.name, weight = module.name + ".weight";
    std::vector<float> expected = to_floats(before.at(weight));
    const auto change = product(tensors.at(name + ".lora_B.weight"),
                                tensors.at(name + ".lora_A.weight"), module.transposed);
    ASSERT_EQ(change.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) expected[i] += kScale * change[i];
    expect_near(to_floats(after.at(weight)), expected, weight);
    ++changed;
  }
  EXPECT_EQ(tensors.size(), 2 * (changed + stored_parameters(family(), model_).size()));
  if (family().names_in_memory.empty()) {
    EXPECT_TRUE(of_parameters.empty());
  }
  for (const auto& [name, tensor] : before) {
    if (of_parameters.contains(name) ||
        tensors.contains(kPeftPrefix + name.substr(0, name.rfind('.')) + ".lora_A.weight"))
      continue;
    EXPECT_EQ(to_floats(after.at(name)), to_floats(tensor)) << name;
  }
}

// B_e A_e of expert e, as PEFT computes it (ParamWrapper.get_delta_weight).
std::vector<float> change_of_expert(const StoredAdapter& one, int64_t e) {
  const int64_t experts = one.down.dim(0) / one.rank, out = one.up.dim(0), in = one.down.dim(1);
  std::vector<float> y(static_cast<size_t>(out * in));
  for (int64_t i = 0; i < out; ++i)
    for (int64_t j = 0; j < in; ++j)
      for (int64_t r = 0; r < one.rank; ++r)
        y[static_cast<size_t>(i * in + j)] +=
            one.up.data_as<float>()[(i * one.rank + r) * experts + e] *
            one.down.data_as<float>()[(e * one.rank + r) * in + j];
  return y;
}

// Experts are parameters in transformers; gate and up have different A here.
TEST(StoredParameters, ChangeTheLayersOfEachExpert) {
  for (const bool up_alone : {false, true}) {
    Transformer model(validated(with_experts(test::small_llama(kSize, 7))));
    initialise(model, 1);
    adapt(model, mixtral, false);
    std::map<std::string, Linear*> layers;
    for (const auto& [name, layer] : linears_of(model)) {
      layers[name] = layer;
      if (up_alone && name.ends_with(".gate")) layer->adapter = {};
    }
    std::map<std::string, StoredAdapter> found;
    for (StoredAdapter& one : stored_parameters(mixtral, model)) {
      const std::string name = one.parameter;
      EXPECT_TRUE(found.emplace(name, std::move(one)).second);
    }
    const std::string theirs = "model.layers.0.mlp.", ours = "decoder.0.ffn.";
    const auto expect_change = [&](const std::string& parameter, int64_t e,
                                   const std::vector<std::string>& parts) {
      std::vector<float> expected;
      for (const std::string& part : parts) {
        const Linear& layer = *layers.at(ours + part);
        const std::vector<float> change =
            layer.adapter.present()
                ? product(layer.adapter.up.value, layer.adapter.down.value, false)
                : std::vector<float>(static_cast<size_t>(layer.weight.value.size()));
        expected.insert(expected.end(), change.begin(), change.end());
      }
      expect_near(change_of_expert(found.at(theirs + parameter), e), expected, parameter);
    };
    for (int64_t e = 0; e < 3; ++e) {
      const std::string expert = "experts." + std::to_string(e) + ".";
      expect_change("experts.gate_up_proj", e, {expert + "gate", expert + "up"});
      expect_change("experts.down_proj", e, {expert + "down"});
    }
    EXPECT_EQ(found.at(theirs + "experts.gate_up_proj").rank, up_alone ? kRank : 2 * kRank);
    EXPECT_EQ(found.at(theirs + "experts.gate_up_proj").module, theirs + "experts.base_layer");
    EXPECT_EQ(found.at(theirs + "experts.down_proj").module, theirs + "experts");
  }
}

TEST_P(StoredAdapters, AreReadAsTheyWereWritten) {
  for (const bool dora : {false, true}) {
    if (dora && model_.spec.decoder->ffn.experts.count > 0) continue;
    Transformer adapted = model_, again = model_;
    adapt(adapted, family(), dora);
    save_adapter(folder_.path(), adapted, origin_,
                 {.base = "base", .rank = kRank, .alpha = kRank * kScale});
    add_stored_adapter(again, read_adapter(folder_.path(), family(), again));
    for (const auto& [name, layer] : linears_of(again))  // DoRA's lengths are computed once
      EXPECT_EQ(static_cast<bool>(layer->adapter.inverse_lengths),
                layer->adapter.magnitude.present())
          << name;
    const auto expected = checkpoint_tensors(adapted, family()),
               found = checkpoint_tensors(again, family());
    for (const auto& [name, tensor] : expected)
      expect_near(to_floats(found.at(name)), to_floats(tensor), name);
    // Adapters with one A for all layers of a tensor are written as they were read.
    const std::string written = read_file(folder_ / kAdapterTensors);
    save_adapter(folder_.path(), again, origin_,
                 {.base = "base", .rank = kRank, .alpha = kRank * kScale});
    EXPECT_EQ(read_file(folder_ / kAdapterTensors), written);
  }
}

TEST_P(StoredAdapters, AreReadFromGgufAsTheyWereWritten) {
  Transformer adapted = model_, again = model_;
  adapt(adapted, family(), false);
  const std::string path = folder_ / "adapter.gguf";
  const char* const obstacle = model_.spec.encoder ? "encoder" : nullptr;
  if (obstacle != nullptr) {
    expect_error(ErrorKind::Unsupported, {obstacle},
                 [&] { save_gguf_adapter(path, adapted, &family(), "F32"); });
    return;
  }
  save_gguf_adapter(path, adapted, &family(), "F32");
  add_stored_adapter(again, read_adapter(path, family(), again));
  const auto expected = checkpoint_tensors(adapted, family()),
             found = checkpoint_tensors(again, family());
  for (const auto& [name, tensor] : expected)
    expect_near(to_floats(found.at(name)), to_floats(tensor), name);
}

INSTANTIATE_TEST_SUITE_P(Families, StoredAdapters, testing::ValuesIn(kCheckpoints),
                         [](const auto& test) { return std::string(test.param.name); });

// A small model in one folder, and an adapter of it in another one.
class AdapterFiles : public testing::Test {
 protected:
  AdapterFiles() : model_(validated(test::small_llama(kSize, 7))) {
    initialise(model_, 1);
    origin_.family = &llama;
    make_directories(base_);
    make_directories(adapter_);
    save_model_files(base_, model_, 3, origin_);
    adapt(model_, llama, false);
    write();
  }

  void write() {
    save_adapter(adapter_, model_, origin_, {.base = "../base", .rank = kRank, .alpha = 1.5});
  }
  nlohmann::json config() const { return read_json(adapter_ + "/" + kAdapterConfig); }
  void set(const std::string& key, const nlohmann::json& value) const {
    nlohmann::json json = config();
    json[key] = value;
    write_file_atomically(adapter_ + "/" + kAdapterConfig, json.dump());
  }
  std::map<std::string, Tensor> tensors() const {
    const SafeTensors file(adapter_ + "/" + kAdapterTensors);
    std::map<std::string, Tensor> all;
    for (const StoredTensor& stored : file.stored())
      all[stored.name] = copy(file.tensor(stored.name));
    return all;
  }
  void put(const std::map<std::string, Tensor>& all) const {
    write_safetensors(adapter_ + "/" + kAdapterTensors, all);
  }
  void refused(ErrorKind kind, std::initializer_list<std::string> parts) const {
    expect_error(kind, parts, [&] { open_model_files(adapter_, Weights::mapped); });
  }
  static Tensor logits(const Transformer& model) {
    const Tensor ids = zeros({1, 4}, DType::i32);
    for (int32_t i = 0; i < 4; ++i) ids.data_as<int32_t>()[i] = 2 * i;
    return model.logits(model.hidden(ids, {}));
  }

  Transformer model_;
  Origin origin_;
  const TemporaryFolder folder_;
  const std::string base_ = folder_ / "base", adapter_ = folder_ / "adapter";
  const std::string first_ = std::string(kPeftPrefix) + "model.layers.0.self_attn.q_proj";
};

TEST_F(AdapterFiles, OpenWithTheirBase) {
  const std::vector<float> expected = to_floats(logits(model_));
  expect_near(to_floats(logits(open_model_files(adapter_, Weights::mapped).model)), expected, "");
  expect_near(to_floats(logits(open_model_files(adapter_, Weights::packed).model)), expected, "");
  const ModelFiles added = open_model_files(base_, Weights::mapped, {}, {{adapter_}});
  expect_near(to_floats(logits(added.model)), expected, "");
}

TEST_F(AdapterFiles, AreSummedWithTheirWeights) {
  const auto with = [&](const std::vector<AdapterUse>& uses) {
    return to_floats(logits(open_model_files(base_, Weights::packed, {}, uses).model));
  };
  expect_near(with({{adapter_, 0.25}, {adapter_, 0.75}}), with({{adapter_, 1}}), "sum");
  expect_near(with({{adapter_, 1}, {adapter_, -1}}), with({}), "difference");
}

TEST_F(AdapterFiles, AreMergedByConversion) {
  const std::string merged = folder_ / "merged", again = folder_ / "again";
  convert_model(adapter_, merged, {});
  expect_near(to_floats(logits(open_model_files(merged, Weights::mapped).model)),
              to_floats(logits(model_)), "merged");
  convert_model(merged, again, {}, {{adapter_, -1}});
  expect_near(to_floats(logits(open_model_files(again, Weights::mapped).model)),
              to_floats(logits(open_model_files(base_, Weights::mapped).model)), "subtracted");
}

// llama.cpp's file of an adapter has the same bits as PEFT's, over a directory and over a GGUF
// file.
TEST_F(AdapterFiles, AreConvertedToGgufAndBack) {
  const std::string gguf = folder_ / "adapter.gguf", back = folder_ / "back",
                    model = folder_ / "model.gguf";
  const Conversion there = convert_model(adapter_, gguf, {.adapter_only = true});
  EXPECT_EQ(there.weights, "fp32");
  const ModelFiles opened = open_model_files(base_, Weights::mapped, {}, {{gguf}});
  EXPECT_EQ(to_floats(logits(opened.model)), to_floats(logits(model_)));
  convert_model(base_, back, {.adapter_only = true}, {{gguf}});
  for (const auto& [name, tensor] : tensors()) {
    const SafeTensors file(back + "/" + kAdapterTensors);
    EXPECT_EQ(to_floats(file.tensor(name)), to_floats(tensor)) << name;
  }
  EXPECT_EQ(PeftConfig(back).base(), base_);
  convert_model(base_, model, {});
  const auto with = [&](const std::string& adapter) {
    return to_floats(logits(open_model_files(model, Weights::packed, {}, {{adapter}}).model));
  };
  EXPECT_EQ(with(gguf), with(adapter_));
  convert_model(adapter_, folder_ / "half.gguf", {.dtype = FileDType::fp16, .adapter_only = true});
  EXPECT_EQ(with(folder_ / "half.gguf").size(), with(gguf).size());
}

TEST_F(AdapterFiles, HaveOneAlphaInGguf) {
  const std::string gguf = folder_ / "adapter.gguf";
  set("alpha_pattern", {{"q_proj", 9}, {"layers.1.*v_proj", 0}});
  const auto with = [&](const std::string& adapter) {
    return to_floats(logits(open_model_files(base_, Weights::mapped, {}, {{adapter}}).model));
  };
  convert_model(adapter_, gguf, {.adapter_only = true});
  expect_near(with(gguf), with(adapter_), "alphas");
}

TEST_F(AdapterFiles, AreRefusedAsGgufIfTheyDoNotFit) {
  const std::string path = folder_ / "adapter.gguf";
  const Tensor down = zeros({kRank, 16}), up = zeros({16, kRank}), wide = zeros({17, kRank});
  using Tensors = std::map<std::string, Tensor>;
  const auto refused = [&](ErrorKind kind, std::initializer_list<std::string> parts,
                           const std::string& architecture, const std::string& type,
                           const Tensors& given) {
    GgufMetadata metadata;
    metadata.text("general.architecture", architecture);
    metadata.text("general.type", type);
    metadata.text("adapter.type", "lora");
    std::vector<GgufTensor> tensors;
    for (const auto& [name, tensor] : given) {
      tensors.push_back(gguf_tensor(name, tensor.shape(), "F32"));
      tensors.back().data = static_cast<const char*>(tensor.data());
    }
    write_file_atomically(path, GgufImage(metadata, tensors).pieces());
    expect_error(kind, parts, [&] { open_model_files(base_, Weights::mapped, {}, {{path}}); });
  };
  const std::string q = "blk.0.attn_q.weight";
  const Tensors good = {{q + ".lora_a", down}, {q + ".lora_b", up}};
  refused(ErrorKind::BadFile, {path, "general.type", "model"}, "llama", "model", good);
  refused(ErrorKind::BadFile, {path, "general.architecture", "gpt2", "another base"}, "gpt2",
          "adapter", good);
  refused(ErrorKind::BadFile, {path, "no adapters"}, "llama", "adapter", {});
  refused(ErrorKind::BadFile, {path, "blk.0.attn_q", "incomplete"}, "llama", "adapter",
          {{q + ".lora_a", down}});
  refused(ErrorKind::BadFile, {path, q + ".lora_b", "[17, 3]", "[16, 3]", "another base"}, "llama",
          "adapter", {{q + ".lora_a", down}, {q + ".lora_b", wide}});
  refused(ErrorKind::BadFile, {path, "adapts blk.9.attn_q"}, "llama", "adapter",
          {{"blk.9.attn_q.weight.lora_a", down}, {"blk.9.attn_q.weight.lora_b", up}});
  refused(ErrorKind::Unsupported, {path, "blk.0.attn_norm.weight"}, "llama", "adapter",
          {{"blk.0.attn_norm.weight", zeros({16})}});
  expect_error(ErrorKind::BadFile, {path, "is an adapter"},
               [&] { open_model_files(path, Weights::mapped); });
}

TEST_F(AdapterFiles, WithDoraAreRefusedAsGguf) {
  adapt(model_, llama, true);
  write();
  expect_error(ErrorKind::Unsupported, {"DoRA", "llama.cpp"},
               [&] { convert_model(adapter_, folder_ / "adapter.gguf", {.adapter_only = true}); });
}

TEST_F(AdapterFiles, ShareTheWeightsOfTheirBase) {
  const Model base = Model::open(base_, WeightPrecision::stored);
  const Model adapted = base.with_adapters({{adapter_, 0.5}});
  Transformer ours = parts_of(adapted).transformer, others = parts_of(base).transformer;
  EXPECT_EQ(ours.token_embedding.value.data(), others.token_embedding.value.data());
  EXPECT_TRUE(has_adapters(ours));
  EXPECT_FALSE(has_adapters(others));
  const Model same = Model::open(base_, WeightPrecision::stored, {}, {{adapter_, 0.5}});
  EXPECT_EQ(to_floats(logits(ours)), to_floats(logits(parts_of(same).transformer)));
  expect_error(ErrorKind::InvalidArgument, {"has adapters already"},
               [&] { adapted.with_adapters({{adapter_}}); });
}

TEST_F(AdapterFiles, SelectModulesAsTheirConfigDoes) {
  const std::string module = "model.layers.0.self_attn.q_proj";
  const auto targets = [&] { return PeftConfig(adapter_).targets(module); };
  set("target_modules", "model\\.layers\\.\\d+\\.self_attn\\.(q|v)_proj");
  EXPECT_TRUE(targets());
  set("target_modules", "q_proj");  // an expression for the complete name
  EXPECT_FALSE(targets());
  set("target_modules", "all-linear");
  EXPECT_TRUE(targets());
  set("target_modules", {"proj"});
  EXPECT_FALSE(targets());
  set("target_modules", {"self_attn.q_proj"});
  EXPECT_TRUE(targets());
  set("layers_to_transform", {1, 2});
  EXPECT_FALSE(targets());
  set("layers_to_transform", 0);
  EXPECT_TRUE(targets());
  set("layers_pattern", "h");
  EXPECT_FALSE(targets());
  set("layers_pattern", {"h", "layers"});
  EXPECT_TRUE(targets());
  set("exclude_modules", {"q_proj"});
  EXPECT_FALSE(targets());
}

TEST_F(AdapterFiles, HaveRanksAndAlphasByPattern) {
  set("rank_pattern", {{"layers.0.*q_proj", 8}});
  set("alpha_pattern", {{"q_proj", 16}});
  const PeftConfig config(adapter_);
  EXPECT_EQ(config.rank_of("model.layers.0.self_attn.q_proj"), 8);
  EXPECT_EQ(config.rank_of("model.layers.1.self_attn.q_proj"), kRank);
  EXPECT_EQ(config.scale_of("model.layers.0.self_attn.q_proj"), 2);
  EXPECT_EQ(config.scale_of("model.layers.0.self_attn.v_proj"), 0.5f);
  set("use_rslora", true);
  EXPECT_FLOAT_EQ(PeftConfig(adapter_).scale_of("model.layers.0.self_attn.v_proj"),
                  1.5f / std::sqrt(3.0f));
  set("rank_pattern", {{"q_proj", 8}, {"[qk]_proj", 4}});
  expect_error(ErrorKind::Unsupported, {"rank_pattern", "several patterns", "q_proj"},
               [&] { PeftConfig(adapter_).rank_of("model.layers.0.self_attn.q_proj"); });
}

// Each of 20,000 patterns was tried on each module.
TEST_F(AdapterFiles, MayNameManyModulesButFewPatterns) {
  nlohmann::json ranks;
  for (int i = 0; i < 20'000; ++i) ranks["layers." + std::to_string(i) + ".mlp"] = 1 + i % 7;
  set("rank_pattern", ranks);
  EXPECT_EQ(PeftConfig(adapter_).rank_of("model.layers.15.mlp"), 2);
  EXPECT_EQ(PeftConfig(adapter_).rank_of("model.layers.15.mlp.up"), kRank);
  ranks = {};
  for (int i = 0; i < 300; ++i) ranks["layers." + std::to_string(i) + ".*mlp"] = 1;
  set("rank_pattern", ranks);
  refused(ErrorKind::BadFile, {"rank_pattern has more than 256 regular expressions"});
}

TEST_F(AdapterFiles, OfOtherMethodsAreRefusedByName) {
  const std::pair<const char*, nlohmann::json> others[] = {
      {"peft_type", "LOHA"},           {"bias", "all"},      {"lora_bias", true},
      {"layer_replication", {{0, 1}}}, {"use_qalora", true}, {"init_lora_weights", "pissa"},
      {"some_new_method", 3}};
  const nlohmann::json good = config();
  for (const auto& [key, value] : others) {
    set(key, value);
    refused(ErrorKind::Unsupported, {"adapter_config.json", key});
    write_file_atomically(adapter_ + "/" + kAdapterConfig, good.dump());
  }
}

TEST_F(AdapterFiles, WithMalformedConfigsAreRefused) {
  const nlohmann::json good = config();
  const std::pair<const char*, nlohmann::json> wrong[] = {{"r", 0},
                                                          {"r", "3"},
                                                          {"lora_alpha", "x"},
                                                          {"rank_pattern", {"q_proj"}},
                                                          {"rank_pattern", {{"q_proj", 1.5}}},
                                                          {"rank_pattern", {{"q_proj", 0}}},
                                                          {"alpha_pattern", {{"q_proj", 1e308}}},
                                                          {"target_modules", {1}},
                                                          {"layers_to_transform", {-1}}};
  for (const auto& [key, value] : wrong) {
    set(key, value);
    refused(ErrorKind::BadFile, {"adapter_config.json", key});
    write_file_atomically(adapter_ + "/" + kAdapterConfig, good.dump());
  }
}

TEST_F(AdapterFiles, OfAnotherBaseAreRefused) {
  auto all = tensors();
  all[first_ + ".lora_A.weight"] = zeros({kRank, 15});
  put(all);
  refused(ErrorKind::BadFile, {"q_proj.lora_A", "[3, 15]", "[3, 16]", "another base"});
  all[first_ + ".lora_A.weight"] = zeros({2, 16});
  put(all);
  refused(ErrorKind::BadFile, {"q_proj.lora_A", "[2, 16]", "[3, 16]"});
  all[first_ + ".lora_A.weight"] = zeros({kRank, 16}, DType::i64);
  put(all);
  refused(ErrorKind::BadFile, {"adapter_model.safetensors", "q_proj.lora_A", "of type I64"});
}

TEST_F(AdapterFiles, WithOtherTensorsAreRefused) {
  const auto all = tensors();
  const auto with = [&](const std::string& name, std::initializer_list<std::string> parts) {
    auto more = all;
    more[name] = zeros({2, 2});
    put(more);
    refused(ErrorKind::BadFile, parts);
  };
  with("q_proj.lora_A.weight", {"unknown tensor q_proj", kPeftPrefix});
  with(std::string(kPeftPrefix) + "model.layers.7.mlp.up_proj.lora_A.weight",
       {"model.layers.7.mlp.up_proj", "does not have"});
  with(std::string(kPeftPrefix) + "model.norm.weight", {"model.norm.weight", "modules_to_save"});
  auto embedding = all;
  embedding[std::string(kPeftPrefix) + "model.embed_tokens.lora_embedding_A"] = zeros({2, 2});
  put(embedding);
  refused(ErrorKind::BadFile, {"adapts model.embed_tokens, but", "does not"});
  auto fewer = all;
  fewer.erase(first_ + ".lora_B.weight");
  put(fewer);
  refused(ErrorKind::BadFile, {"q_proj", "incomplete", "lora_B"});
  put(all);
  set("modules_to_save", {"norm"});
  refused(ErrorKind::BadFile, {"has no tensor of norm", "modules_to_save"});
  set("modules_to_save", nullptr);
  set("target_modules", {"v_proj"});
  refused(ErrorKind::BadFile, {"adapts model.layers", "does not"});
}

TEST_F(AdapterFiles, WithoutAllFilesAreRefused) {
  set("base_model_name_or_path", "owner/name");
  refused(ErrorKind::BadFile, {"base_model_name_or_path", "owner/name", "not a model's directory"});
  expect_error(ErrorKind::BadFile, {base_, "is not an adapter", "adapter_config.json"},
               [&] { open_model_files(base_, Weights::mapped, {}, {{base_}}); });
  put({});
  expect_error(ErrorKind::BadFile, {"has no adapters"},
               [&] { open_model_files(base_, Weights::mapped, {}, {{adapter_}}); });
}

TEST_F(AdapterFiles, CannotBeTrainedAsModels) {
  expect_error(ErrorKind::Unsupported, {"is an adapter"},
               [&] { open_model_files(adapter_, Weights::owned); });
}

TEST_F(AdapterFiles, ReplaceModules) {
  auto all = tensors();
  const std::string norm = std::string(kPeftPrefix) + "model.norm.weight";
  all[norm] = full({16}, 2);
  put(all);
  set("modules_to_save", {"norm"});
  ModelFiles files = open_model_files(adapter_, Weights::mapped);
  EXPECT_EQ(to_floats(files.model.decoder.norm.weight.value), std::vector<float>(16, 2.0f));
  EXPECT_EQ(adapter_tensors(files.model, llama).count(norm), 1);
  const auto refused_with = [&](const std::vector<AdapterUse>& uses,
                                std::initializer_list<std::string> parts) {
    expect_error(ErrorKind::InvalidArgument, parts,
                 [&] { open_model_files(base_, Weights::mapped, {}, uses); });
  };
  refused_with({{adapter_, 0.5}}, {"modules_to_save", "0.5"});
  refused_with({{adapter_}, {adapter_}}, {"decoder.norm.final.weight", "one adapter"});
  expect_error(ErrorKind::Unsupported,
               {adapter_, "decoder.norm.final.weight", "modules_to_save", "shared"},
               [&] { Model::open(base_).with_adapters({{adapter_}}); });
  expect_error(ErrorKind::Unsupported, {"decoder.norm.final.weight", "modules_to_save"},
               [&] { convert_model(adapter_, folder_ / "adapter.gguf", {.adapter_only = true}); });
}

TEST(AdaptersOfExperts, AreEqualAndWithoutDora) {
  Transformer model(validated(with_experts(test::small_llama(kSize, 7))));
  initialise(model, 1);
  for (const auto& [name, layer] : linears_of(model))
    if (name.find(".experts.1.up") != name.npos) add_adapter(*layer, {.rank = 2});
  expect_error(ErrorKind::Unsupported, {".experts.", "differs"},
               [&] { check_adapters_of_experts(model); });
  for (const auto& [name, layer] : linears_of(model))
    if (name.ends_with(".up")) add_adapter(*layer, {.rank = 2});
  check_adapters_of_experts(model);
  for (const auto& [name, layer] : linears_of(model))
    if (name.ends_with(".up")) add_adapter(*layer, {.rank = 2, .dora = true});
  expect_error(ErrorKind::Unsupported, {".experts.", "DoRA"},
               [&] { check_adapters_of_experts(model); });
}

}  // namespace
}  // namespace fovea::model

// Models in GGUF files: each architecture is written and read, and inconsistent files are refused.

#include "formats/gguf/model.h"
#include "open/directory.h"

#include <filesystem>
#include <limits>
#include <random>

#include "checkpoint/gguf_tensors.h"
#include "support/expect_error.h"
#include "support/gguf_contents.h"
#include "support/small_spec.h"
#include "support/temporary_folder.h"

namespace fovea::model {
namespace {

struct GgufVariant {
  const char* name;
  const char* architecture;  // general.architecture
  const Family* family;      // family of the Hugging Face files; null = no origin
  void (*change)(Spec&);
};

Spec small_spec() { return test::small_llama({.context = 6, .width = 64, .heads = 4}, 96); }

void gpt(Spec& s) {
  StackSpec& d = *s.decoder;
  d = StackSpec();
  d.layers = 2;
  d.attention.heads = 4;
}

void experts(Spec& s) {
  s.decoder->ffn.experts.count = 3;
  s.decoder->ffn.experts.balance = 0.01f;
  s.decoder->init_scale = 0.5f;
}

void norms_of_heads(Spec& s) {
  s.decoder->attention.norm = QueryKeyNorm::head;
  s.decoder->zero_outputs = true;
}

void norms_around(Spec& s) {
  StackSpec& d = *s.decoder;
  d.norm.unit_offset = true;
  d.placement = {true, true, false};
  s.scaled_embedding = true;
  d.ffn.activation = Activation::gelu_tanh;
  d.attention.scale = 0.25f;
}

void write(const std::string& path, Transformer& model, const Family* family,
           FileDType dtype = FileDType::fp32) {
  test::gguf_contents(model, family, dtype).write(path);
}

class GgufRoundTrip : public testing::TestWithParam<GgufVariant> {};

TEST_P(GgufRoundTrip, PreservesSpecAndWeights) {
  Spec spec = small_spec();
  GetParam().change(spec);
  Transformer model(validated(spec));
  initialise(model, 1);
  const TemporaryFolder folder;
  const std::string path = folder / "model.gguf", again = folder / "again.gguf";
  write(path, model, GetParam().family);
  EXPECT_EQ(Gguf(path).text("general.architecture"), GetParam().architecture);

  ModelFiles files = open_model_files(path, Weights::mapped);
  EXPECT_TRUE(files.warnings.empty());
  if (GetParam().family != nullptr) {
    EXPECT_EQ(files.origin.family, GetParam().family);
  }
  Spec expected = model.spec;
  // Training options, which GGUF does not store.
  expected.decoder->zero_outputs = false;
  expected.decoder->ffn.experts.balance = expected.decoder->init_scale = 0;
  EXPECT_EQ(write_spec(files.model.spec), write_spec(expected));
  EXPECT_EQ(write_spec(read_gguf_spec(path)), write_spec(expected));
  std::map<std::string, Tensor> values;
  model.each([&](const std::string& name, Parameter& p) { values[name] = p.value; });
  files.model.each([&](const std::string& name, Parameter& p) {
    const std::vector<float> read = to_floats(p.value), written = to_floats(values.at(name));
    ASSERT_EQ(read.size(), written.size()) << name;
    // With unit_offset, a gain w is stored as 1 + w, which may lose the last bit of w.
    for (size_t i = 0; i < read.size(); ++i) ASSERT_NEAR(read[i], written[i], 1e-7f) << name;
  });

  write(again, files.model, files.origin.family);
  EXPECT_EQ(read_file(again), read_file(path));
}

void llama3(Spec& s) {
  RotarySpec& r = s.decoder->position.rotary;
  r.scaling = RotaryScaling::llama3;
  r.factor = 8;
  r.original_context = 64;
}

void yarn(Spec& s) {
  RotarySpec& r = s.decoder->position.rotary;
  r.scaling = RotaryScaling::yarn;
  r.factor = 4;
  r.original_context = 16;
  r.fast = 24;
}

void longrope(Spec& s) {
  RotarySpec& r = s.decoder->position.rotary;
  s.context = 32;
  r.scaling = RotaryScaling::longrope;
  r.factor = 2;
  r.original_context = 16;
  r.short_factors = {1, 1, 1.5f, 2, 2, 2, 2, 2};
  r.long_factors = {1, 2, 3, 4, 4, 4, 4, 4};
}

INSTANTIATE_TEST_SUITE_P(
    Spec, GgufRoundTrip,
    ::testing::ValuesIn(std::vector<GgufVariant>{
        {"llama", "llama", &llama, [](Spec&) {}},
        {"no_origin", "llama", nullptr, [](Spec&) {}},
        {"untied", "llama", &llama, [](Spec& s) { s.head.tied = false; }},
        {"grouped", "llama", &llama, [](Spec& s) { s.decoder->attention.kv_heads = 2; }},
        {"wide_heads", "llama", &llama, [](Spec& s) { s.decoder->attention.head_width = 24; }},
        {"biases", "llama", nullptr,
         [](Spec& s) {
           AttentionSpec& a = s.decoder->attention;
           a.bias = a.output_bias = s.decoder->ffn.bias = true;
         }},
        {"linear", "llama", &llama,
         [](Spec& s) {
           s.decoder->position.rotary.scaling = RotaryScaling::linear;
           s.decoder->position.rotary.factor = 2;
         }},
        {"llama3", "llama", &llama, llama3},
        {"yarn", "llama", &llama, yarn},
        {"mistral", "llama", nullptr, [](Spec& s) { s.decoder->attention.windows = {4}; }},
        {"mixtral", "llama", nullptr, experts},
        {"qwen2", "qwen2", &qwen2, [](Spec& s) { s.decoder->attention.bias = true; }},
        {"qwen3", "qwen3", &qwen3, norms_of_heads},
        {"qwen3_moe", "qwen3moe", &qwen3_moe,
         [](Spec& s) {
           norms_of_heads(s);
           experts(s);
           s.decoder->init_scale = 0;  // zero_outputs replaces it
           s.decoder->ffn.experts.width = 32;
         }},
        {"phi3", "phi3", &phi3, [](Spec&) {}},
        {"phi3_longrope", "phi3", &phi3, longrope},
        {"olmo2", "olmo2", &olmo2,
         [](Spec& s) {
           s.decoder->placement = {false, true, false};
           s.decoder->attention.norm = QueryKeyNorm::all;
         }},
        {"gemma2", "gemma2", &gemma2,
         [](Spec& s) {
           norms_around(s);
           s.decoder->attention.softcap = 50;
           s.head.softcap = 30;
           s.decoder->attention.windows = {4, 0};
         }},
        {"gemma3", "gemma3", &gemma3,
         [](Spec& s) {
           norms_around(s);
           norms_of_heads(s);
           s.decoder->position.rotary.local_theta = 5000;
           s.decoder->attention.windows = {4, 4};
         }},
        {"gemma3_pattern", "gemma3", &gemma3,
         [](Spec& s) {
           norms_around(s);
           norms_of_heads(s);
           s.decoder->position.rotary.local_theta = 10000;
           s.decoder->attention.windows = {0, 4};
         }},
        {"gpt2", "gpt2", &gpt2, gpt},
        {"bloom", "bloom", &bloom,
         [](Spec& s) {
           gpt(s);
           s.decoder->position = {.kind = PositionKind::none, .bias = DistanceBias::alibi};
           s.decoder->embedding_norm = true;
         }},
        {"gpt_neox", "gptneox", &gpt_neox,
         [](Spec& s) {
           gpt(s);
           s.head.tied = false;
           s.decoder->position.kind = PositionKind::rotary;
           s.decoder->position.rotary.share = 0.25f;
           s.decoder->ffn.activation = Activation::gelu;
           s.decoder->parallel = true;
         }},
    }),
    [](const auto& named) { return std::string(named.param.name); });

class GgufModelFiles : public testing::Test {
 protected:
  GgufModelFiles() : model(validated(small_spec())) { initialise(model, 1); }

  // Writes the model's file with metadata modified by `more`.
  void write_with(const std::function<void(GgufMetadata&)>& more) {
    test::GgufContents file = test::gguf_contents(model, nullptr);
    more(file.metadata);
    file.write(path);
  }
  void refused(const std::function<void(GgufMetadata&)>& more,
               std::initializer_list<std::string> parts, ErrorKind kind = ErrorKind::BadFile) {
    write_with(more);
    expect_error(kind, parts, [&] { open_model_files(path, Weights::mapped); });
  }

  Transformer model;
  TemporaryFolder folder;
  std::string path = folder / "model.gguf";
};

TEST_F(GgufModelFiles, RotaryPairsAreNeighbours) {
  Tensor query;
  model.each([&](const std::string& name, Parameter& p) {
    if (name == "decoder.0.attention.query.weight") query = p.value;
  });
  write(path, model, nullptr);
  const Tensor stored =
      GgufTensors(std::make_shared<const Gguf>(path)).tensor("blk.0.attn_q.weight");
  // A head has 16 rows. fovea pairs row i with row i + 8 for RoPE; the file stores the two rows
  // next to each other.
  for (const auto& [row, ours] : {std::pair(0, 0), {1, 8}, {2, 1}, {3, 9}, {16, 16}, {17, 24}})
    EXPECT_EQ(to_floats(stored.rows(row, row + 1)), to_floats(query.rows(ours, ours + 1))) << row;
}

TEST_F(GgufModelFiles, DtypesArePreserved) {
  using enum FileDType;
  for (const auto& [dtype, tolerance] :
       {std::pair(fp16, 1e-4), {bf16, 1e-3}, {q8_0, 1e-3}, {q4_0, 2e-2}}) {
    write(path, model, nullptr, dtype);
    const Gguf file(path);
    EXPECT_EQ(file.find_tensor("blk.0.attn_q.weight")->block->name,
              std::string(gguf_file_type(dtype).block));
    EXPECT_EQ(file.find_tensor("blk.0.attn_norm.weight")->block->name, std::string("F32"));
    ModelFiles files = open_model_files(path, Weights::owned);
    std::map<std::string, Tensor> values;
    model.each([&](const std::string& name, Parameter& p) { values[name] = p.value; });
    files.model.each([&](const std::string& name, Parameter& p) {
      const std::vector<float> read = to_floats(p.value), written = to_floats(values.at(name));
      for (size_t i = 0; i < read.size(); ++i) ASSERT_NEAR(read[i], written[i], tolerance) << name;
    });
  }
}

TEST_F(GgufModelFiles, PartsOpenAsOneModel) {
  const test::GgufContents file = test::gguf_contents(model, nullptr);
  for (uint32_t part = 0; part < 2; ++part) {
    GgufMetadata metadata = part == 0 ? file.metadata : GgufMetadata();
    metadata.integer("split.no", part);
    metadata.integer("split.count", 2);
    metadata.integer("split.tensors.count", static_cast<uint32_t>(file.tensors.size()));
    std::vector<GgufTensor> tensors;
    for (size_t i = part; i < file.tensors.size(); i += 2) tensors.push_back(file.tensors[i]);
    write_file_atomically(folder / ("m-0000" + std::to_string(part + 1) + "-of-00002.gguf"),
                          GgufImage(metadata, tensors).pieces());
  }
  std::map<std::string, std::vector<float>> values;
  model.each([&](const std::string& name, Parameter& p) { values[name] = to_floats(p.value); });
  for (const Weights weights : {Weights::mapped, Weights::packed}) {
    ModelFiles files = open_model_files(folder / "m-00002-of-00002.gguf", weights);
    files.model.each([&](const std::string& name, Parameter& p) {
      EXPECT_EQ(to_floats(p.packed ? p.packed.floats() : p.value), values.at(name)) << name;
    });
  }
}

// Ollama and the cache of Hugging Face store a file under the name of its hash.
TEST_F(GgufModelFiles, OpensAnyName) {
  write(path, model, nullptr);
  const std::string blob = folder / "sha256-0123";
  std::filesystem::copy_file(path, blob);
  EXPECT_EQ(open_model_files(blob, Weights::mapped).model.spec.width, model.spec.width);
  EXPECT_EQ(read_model_spec(blob).width, model.spec.width);
}

TEST_F(GgufModelFiles, BlocksArePackedWithoutLoss) {
  for (const auto& [dtype, format] :
       {std::pair(FileDType::q8_0, WeightFormat::int8), {FileDType::q4_0, WeightFormat::int4}}) {
    write(path, model, nullptr, dtype);
    ModelFiles full = open_model_files(path, Weights::mapped),
               packed = open_model_files(path, Weights::packed);
    ASSERT_TRUE(packed.origin.quantization);
    EXPECT_EQ(packed.origin.quantization->format, format);
    std::map<std::string, Tensor> values;
    full.model.each([&](const std::string& name, Parameter& p) { values[name] = p.value; });
    packed.model.each([&](const std::string& name, Parameter& p) {
      if (!name.starts_with("decoder.") || !p.packed) return;
      EXPECT_EQ(p.packed.matrix().format, format) << name;
      EXPECT_EQ(to_floats(p.packed.floats()), to_floats(values.at(name))) << name;
    });
  }
}

TEST_F(GgufModelFiles, SpecialTokensAreRead) {
  write_with([](GgufMetadata& metadata) {
    metadata.integer("tokenizer.ggml.bos_token_id", 1);
    metadata.integer("tokenizer.ggml.eos_token_id", 2);
    metadata.integer("tokenizer.ggml.eot_token_id", 3);
    metadata.integer("tokenizer.ggml.padding_token_id", 4'000'000'000);
  });
  const ModelFiles files = open_model_files(path, Weights::mapped);
  EXPECT_EQ(files.end_ids, (std::vector<int32_t>{2, 3}));
  EXPECT_EQ(special_id(files.origin, "bos_token_id"), 1);
  EXPECT_EQ(special_id(files.origin, "pad_token_id"), std::nullopt);
}

TEST_F(GgufModelFiles, UnknownArchitecturesAreRefused) {
  const auto alone = [&](const GgufMetadata& metadata) {
    write_file_atomically(path, GgufImage(metadata, {}).pieces());
  };
  alone({});
  expect_error(ErrorKind::BadFile, {"model.gguf: general.architecture is missing"},
               [&] { open_model_files(path, Weights::mapped); });
  GgufMetadata mamba;
  mamba.text("general.architecture", "mamba");
  alone(mamba);
  expect_error(ErrorKind::Unsupported,
               {"general.architecture is \"mamba\"; expected one of llama, qwen2"},
               [&] { open_model_files(path, Weights::mapped); });
  GgufMetadata odd;
  odd.text("general.architecture", "\x01\xff");
  alone(odd);
  expect_error(ErrorKind::BadFile, {"general.architecture is not printable text"},
               [&] { open_model_files(path, Weights::mapped); });
  GgufMetadata bare;
  bare.text("general.architecture", "llama");
  alone(bare);
  expect_error(ErrorKind::BadFile, {"model.gguf: vocab_size is missing"},
               [&] { open_model_files(path, Weights::mapped); });
}

TEST_F(GgufModelFiles, UnknownKeysAreRefused) {
  refused([](GgufMetadata& m) { m.integer("llama.new_idea", 1); },
          {"model.gguf: new_idea is not known"}, ErrorKind::Unsupported);
  refused([](GgufMetadata& m) { m.text("llama.rope.scaling.type", "wild"); },
          {"rope.scaling.type is \"wild\"; expected none, linear"}, ErrorKind::Unsupported);
  refused([](GgufMetadata& m) { m.boolean("llama.attention.causal", false); },
          {"attention.causal is false"}, ErrorKind::Unsupported);
  refused([](GgufMetadata& m) { m.number("llama.expert_count", 2); },
          {"expert_count is 2.0; expected an integer"});
  refused([](GgufMetadata& m) { m.integer("split.count", 2); },
          {"split.no is missing and split.count is 2", "expected a number from 0 to 1"});
  refused([](GgufMetadata& m) { m.integers("llama.sliding_window", {4, 8}); },
          {"sliding_window is not known"}, ErrorKind::Unsupported);
}

TEST_F(GgufModelFiles, MissingAndUnknownTensorsAreRefused) {
  const test::GgufContents file = test::gguf_contents(model, nullptr);
  const float one = 1;
  std::vector<GgufTensor> tensors = file.tensors;
  tensors.push_back({"blk.7.attn_q.weight",
                     find_gguf_block(0),
                     {1},
                     reinterpret_cast<const char*>(&one),
                     sizeof one});
  std::erase_if(tensors, [](const GgufTensor& t) { return t.name == "blk.1.ffn_up.weight"; });
  write_file_atomically(path, GgufImage(file.metadata, tensors).pieces());
  expect_error(ErrorKind::BadFile,
               {"model.gguf: the tensors do not match the config", "1 missing: blk.1.ffn_up.weight",
                "1 unknown: blk.7.attn_q.weight"},
               [&] { open_model_files(path, Weights::mapped); });
  tensors.back().name = "rope_freqs.weight";
  tensors.back().shape = {1, 1};
  write_file_atomically(path, GgufImage(file.metadata, tensors).pieces());
  expect_error(ErrorKind::BadFile,
               {"rope_freqs.weight is F32 [1, 1]; expected a one-dimensional F32 tensor"},
               [&] { open_model_files(path, Weights::mapped); });
}

TEST_F(GgufModelFiles, AnyDamageIsHarmless) {
  write_with([](GgufMetadata&) {});
  const std::string whole = read_file(path);
  std::mt19937 random(0);
  for (int i = 0; i < 300; ++i) {
    std::string bytes = whole;
    for (int change = 0; change <= i % 3; ++change)
      bytes[random() % 2000] = static_cast<char>(random());
    write_file_atomically(path, bytes);
    try {
      open_model_files(path, Weights::mapped);
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    }
  }
}

TEST_F(GgufModelFiles, ModelsWithoutAnArchitectureAreRefused) {
  Spec spec = small_spec();
  spec.decoder->norm.epsilon_outside = false;
  spec.decoder->ffn.activation = Activation::relu;
  Transformer other(validated(spec));
  expect_error(ErrorKind::Unsupported, {"no supported GGUF architecture can express its Spec"},
               [&] { GgufModel(other, nullptr, FileDType::fp32); });
}

}  // namespace
}  // namespace fovea::model

#include "families/registry.h"

#include <algorithm>

#include "base/error.h"
#include "base/nearest.h"
#include "families/bert.h"
#include "fovea/core/excerpt.h"

namespace fovea::model {
namespace {

const Architecture& architecture_named(const Family& family, const std::string& name,
                                       const Config& io) {
  std::vector<std::string> names;
  for (const Architecture& architecture : family.architectures) {
    if (name == architecture.name) return architecture;
    names.emplace_back(architecture.name);
  }
  fail(ErrorKind::Unsupported, "{}: architecture \"{}\" is not known; expected {}", io.name(),
       excerpt(name), fmt::join(names, " or "));
}

// Returns the class for a head: of several classes for the same kind of head, the one with or
// without a layer before the output, as the head has it. Null if there is none.
const Architecture* architecture_of(const Family& family, const HeadSpec& head) {
  const Architecture* found = nullptr;
  for (const Architecture& each : family.architectures) {
    if (each.head.kind != head.kind) continue;
    if (each.head.transform == head.transform) return &each;
    if (found == nullptr) found = &each;
  }
  return found;
}

// Returns the number of outputs of a head that is not a language model: the number of label names,
// else num_labels, else `absent`.
int64_t labels_of(Config& io, int64_t absent) {
  const nlohmann::json count = io.value("num_labels"), names = io.value("id2label");
  if (names.is_object() && !names.empty()) return std::ssize(names);
  return count.is_number_integer() && count > 0 ? count.get<int64_t>() : absent;
}

void write_labels(Config& io, const Spec& spec) {
  if (spec.head.labels == 0) return;
  nlohmann::ordered_json names, numbers;
  for (int64_t i = 0; i < spec.head.labels; ++i) {
    const std::string label = fmt::format("LABEL_{}", i);
    names[std::to_string(i)] = label;
    numbers[label] = i;
  }
  io.write("id2label", names);
  io.write("label2id", numbers);
}

// In the order in which saving tries them.
constexpr const Family* kFamilies[] = {&gpt2,
                                       &llama,
                                       &mistral,
                                       &mixtral,
                                       &qwen2,
                                       &qwen3,
                                       &qwen3_moe,
                                       &gpt_oss,
                                       &lfm2,
                                       &lfm2_moe,
                                       &qwen3_next,
                                       &qwen3_5_text,
                                       &qwen3_5_moe_text,
                                       &gemma2,
                                       &gemma3,
                                       &phi3,
                                       &olmo2,
                                       &opt,
                                       &bloom,
                                       &gpt_neox,
                                       &starcoder2,
                                       &gemma,
                                       &phi,
                                       &cohere,
                                       &cohere2,
                                       &granite,
                                       &granitemoe,
                                       &granitemoeshared,
                                       &granitemoehybrid,
                                       &mamba2,
                                       &bamba,
                                       &glm,
                                       &glm4,
                                       &smollm3,
                                       &olmo3,
                                       &olmo_hybrid,
                                       &olmoe,
                                       &flex_olmo,
                                       &qwen2_moe,
                                       &ernie4_5,
                                       &ernie4_5_moe,
                                       &exaone4,
                                       &stablelm,
                                       &falcon,
                                       &gpt_bigcode,
                                       &gptj,
                                       &codegen,
                                       &gpt_neo,
                                       &mpt,
                                       &seed_oss,
                                       &arcee,
                                       &apertus,
                                       &bitnet,
                                       &helium,
                                       &nemotron,
                                       &ministral,
                                       &ministral3,
                                       &hunyuan_v1_dense,
                                       &nanochat,
                                       &dots1,
                                       &glm4_moe,
                                       &deepseek_v2,
                                       &deepseek_v3,
                                       &glm4_moe_lite,
                                       &minimax_m2,
                                       &phimoe,
                                       &modernbert_decoder,
                                       &bert,
                                       &electra,
                                       &roberta,
                                       &xlm_roberta,
                                       &camembert,
                                       &data2vec_text,
                                       &roberta_prelayernorm,
                                       &albert,
                                       &roformer,
                                       &rembert,
                                       &distilbert,
                                       &mpnet,
                                       &modernbert,
                                       &jina_embeddings_v3,
                                       &nomic_bert,
                                       &gte,
                                       &alibaba_new,
                                       &eurobert,
                                       &deberta,
                                       &deberta_v2,
                                       &t5,
                                       &mt5,
                                       &umt5,
                                       &bart,
                                       &mbart,
                                       &m2m_100,
                                       &pegasus,
                                       &blenderbot,
                                       &blenderbot_small,
                                       &marian,
                                       &vit,
                                       &deit,
                                       &dinov2,
                                       &dinov2_with_registers,
                                       &clip_vision_model,
                                       &clip_text_model,
                                       &siglip_vision_model,
                                       &siglip_text_model,
                                       &whisper,
                                       &rnn,
                                       &gru,
                                       &lstm,
                                       &fovea_format};

}  // namespace

const std::vector<const Family*>& families() {
  static const std::vector<const Family*> all(std::begin(kFamilies), std::end(kFamilies));
  return all;
}

const Family& family_named(const std::string& model_type, const std::string& file) {
  std::vector<std::string> names;
  for (const Family* family : families()) {
    if (family->model_type == model_type) return *family;
    names.emplace_back(family->model_type);
  }
  fail(ErrorKind::Unsupported,
       "{}: model_type \"{}\" is not known; expected one of {} kinds, such as llama, bert or t5{}",
       file, excerpt(model_type), names.size(), did_you_mean(excerpt(model_type), names));
}

void describe(Config& io, const Family& family, Spec& spec) {
  if (!io.reading()) {
    const Architecture* const found = architecture_of(family, spec.head);
    if (found == nullptr)
      fail(ErrorKind::Unsupported,
           "{}: no architecture has the head of the Spec; expected another family",
           family.model_type);
    io.write("architectures", {found->name});
    io.write("model_type", family.model_type);
    write_labels(io, spec);
    family.config(io, spec);
    if (spec.encoder && spec.decoder) io.write("is_encoder_decoder", true);
    return;
  }
  const nlohmann::json names = io.value("architectures");
  const Architecture* architecture = &family.architectures[0];
  if (names.is_array() && !names.empty() && names[0].is_string())
    architecture = &architecture_named(family, names[0].get<std::string>(), io);
  spec.head = architecture->head;
  if (spec.head.labels > 0) spec.head.labels = labels_of(io, spec.head.labels);
  family.config(io, spec);
  // An encoder may be that of an encoder-decoder alone.
  if (spec.decoder) io.only("is_encoder_decoder", spec.encoder.has_value());
  try {
    spec = validated(spec);
  } catch (const Error& error) {
    fail(ErrorKind::BadFile, "{}: {}", io.name(), error.what());
  }
}

HeadSpec head_of(const Family& family, const Spec& spec, HeadKind kind, int64_t labels) {
  HeadSpec head{.kind = kind, .bias = true};
  if (kind == HeadKind::sequence) head.pooling = spec.decoder ? Pooling::last : Pooling::mean;
  for (const Architecture& architecture : family.architectures) {
    if (&family == &fovea_format || architecture.head.kind != kind) continue;
    head = architecture.head;
    break;
  }
  head.labels = labels;
  return head;
}

bool can_express(const Family& family, const Spec& spec) {
  try {
    Config writer;
    Spec copy = spec, back, same = spec;
    // Most families' functions assume a decoder. If the Spec has none, it gets one here; a family
    // of decoders then reads back a different Spec.
    if (!copy.decoder && &family != &fovea_format) copy.decoder.emplace();
    describe(writer, family, copy);
    const nlohmann::json json = writer.written();
    Config reader(json, family.model_type);
    describe(reader, family, back);
    // A file may lack the pooler of its class.
    if (back.head.kind == HeadKind::pooled && !spec.head.transform) {
      back.head.transform = false;
      back = validated(back);
    }
    same.init_deviation = back.init_deviation;  // it does not change what the model computes
    return write_spec(back) == write_spec(same);
  } catch (const Error&) {  // a value that this family's files cannot store
    return false;
  }
}

const Family& family_for(const Spec& spec) {
  for (const Family* family : families())
    if (can_express(*family, spec)) return *family;
  fail(ErrorKind::Internal, "no family can express the Spec");
}

}  // namespace fovea::model

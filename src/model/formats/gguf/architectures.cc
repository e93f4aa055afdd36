#include "formats/gguf/architectures.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "formats/gguf/model.h"
#include "formats/gguf/tiled_heads.h"

namespace fovea::model {
namespace {

// A Spec is written in the architecture of the family that the model was read from, if that can
// express it, else in the first architecture that can.
constexpr std::array kPairs = {GgufPair{&gguf_llama, &llama},
                               GgufPair{&gguf_qwen2, &qwen2},
                               GgufPair{&gguf_qwen3, &qwen3},
                               GgufPair{&gguf_qwen3_moe, &qwen3_moe},
                               GgufPair{&gguf_qwen3_next, &qwen3_next},
                               GgufPair{&gguf_qwen3_5, &qwen3_5_text},
                               GgufPair{&gguf_qwen3_5_moe, &qwen3_5_moe_text},
                               GgufPair{&gguf_gpt_oss, &gpt_oss},
                               GgufPair{&gguf_deepseek2, &deepseek_v3},
                               GgufPair{&gguf_deepseek2, &deepseek_v2},
                               GgufPair{&gguf_deepseek2, &glm4_moe_lite},
                               GgufPair{&gguf_glm4_moe, &glm4_moe},
                               GgufPair{&gguf_dots1, &dots1},
                               GgufPair{&gguf_mamba2, &mamba2},
                               GgufPair{&gguf_granite_hybrid, &granitemoehybrid},
                               GgufPair{&gguf_granite_hybrid, &bamba},
                               GgufPair{&gguf_lfm2, &lfm2},
                               GgufPair{&gguf_lfm2_moe, &lfm2_moe},
                               GgufPair{&gguf_phi3, &phi3},
                               GgufPair{&gguf_olmo2, &olmo2},
                               GgufPair{&gguf_gemma2, &gemma2},
                               GgufPair{&gguf_gemma3, &gemma3},
                               GgufPair{&gguf_gpt2, &gpt2},
                               GgufPair{&gguf_bloom, &bloom},
                               GgufPair{&gguf_gpt_neox, &gpt_neox},
                               GgufPair{&gguf_bert, &bert},
                               GgufPair{&gguf_modern_bert, &modernbert},
                               GgufPair{&gguf_nomic_bert, &nomic_bert},
                               GgufPair{&gguf_nomic_bert_moe, &nomic_bert},
                               GgufPair{&gguf_jina_bert_v3, &jina_embeddings_v3},
                               GgufPair{&gguf_gemma_embedding, &gemma3},
                               GgufPair{&gguf_t5_encoder, &t5},
                               GgufPair{&gguf_gemma, &gemma},
                               GgufPair{&gguf_granite, &granite},
                               GgufPair{&gguf_arcee, &arcee},
                               GgufPair{&gguf_smollm3, &smollm3},
                               GgufPair{&gguf_ernie4_5, &ernie4_5},
                               GgufPair{&gguf_glm4, &glm4},
                               GgufPair{&gguf_exaone4, &exaone4},
                               GgufPair{&gguf_olmoe, &olmoe},
                               GgufPair{&gguf_seed_oss, &seed_oss},
                               GgufPair{&gguf_starcoder2, &starcoder2},
                               GgufPair{&gguf_stablelm, &stablelm},
                               GgufPair{&gguf_phi2, &phi},
                               GgufPair{&gguf_nemotron, &nemotron},
                               GgufPair{&gguf_command_r, &cohere},
                               GgufPair{&gguf_cohere2, &cohere2}};

std::string all_names() {
  std::vector<std::string> names;
  for (const GgufPair& pair : kPairs)
    if (names.empty() || names.back() != pair.architecture->model_type)
      names.emplace_back(pair.architecture->model_type);
  return fmt::format("{}", fmt::join(names, ", "));
}

// Whether every token of the model sees all others: an encoder alone, or an embedder made from a
// decoder.
bool is_bidirectional(const Spec& spec) {
  return spec.decoder ? !spec.encoder && !spec.decoder->causal : spec.encoder.has_value();
}

}  // namespace

std::string gguf_plain_text(const Gguf& file, std::string_view key) {
  const std::string_view text = *file.text(key);
  if (text.size() > 256 || std::any_of(text.begin(), text.end(), [](char c) { return c < ' '; }))
    fail(ErrorKind::BadFile, "{}: {} is not printable text; expected at most 256 ASCII characters",
         file.path(), key);
  return std::string(text);
}

const GgufPair& gguf_pair_of(const Gguf& file) {
  if (file.text(kGgufType) == kGgufAdapter)
    fail(ErrorKind::BadFile,
         "{}: is an adapter; expected a model, such as the base of the adapter, to be opened with "
         "the adapter",
         file.path());
  constexpr const char* kName = "general.architecture";
  if (!file.text(kName))
    fail(ErrorKind::BadFile, "{}: {} is missing; expected a string", file.path(), kName);
  const std::string name = gguf_plain_text(file, kName);
  for (const GgufPair& pair : kPairs)
    if (name == pair.architecture->model_type) return pair;
  fail(ErrorKind::Unsupported, "{}: {} is \"{}\"; expected one of {}", file.path(), kName, name,
       all_names());
}

Spec gguf_spec(Spec spec) {
  spec.dropout = {};
  spec.init_deviation = Spec().init_deviation;
  spec.padding = -1;
  // GGUF's encoders count positions from 0: the rows before the first position are left out.
  if (spec.encoder) spec.encoder->position.offset = 0;
  for (StackSpec* stack :
       {spec.encoder ? &*spec.encoder : nullptr, spec.decoder ? &*spec.decoder : nullptr}) {
    if (stack == nullptr) continue;
    stack->ffn.experts.balance = stack->init_scale = 0;
    stack->zero_outputs = false;
  }
  // Vectors of tokens and texts need neither the pooler nor the head for masked words; a decoder
  // without a head gets the one that has no tensors of its own.
  const HeadKind head = spec.head.kind;
  if (!is_bidirectional(spec)) {
    if (spec.encoder || head != HeadKind::pooled || spec.head.projection > 0) return spec;
    spec.head = {};
    return validated(spec);
  }
  if (head != HeadKind::pooled && head != HeadKind::language_model) return spec;
  const Pooling pooling = spec.decoder                               ? Pooling::last
                          : spec.encoder->norm.kind == NormKind::rms ? Pooling::mean
                                                                     : Pooling::first;
  spec.head = {.kind = HeadKind::pooled, .pooling = pooling};
  return validated(spec);
}

const Family& gguf_architecture_for(const Spec& model, const Family* family) {
  const Spec spec = gguf_spec(model);
  const bool labels = spec.head.kind == HeadKind::sequence;
  const HeadKind other = is_bidirectional(spec) ? HeadKind::pooled : HeadKind::language_model;
  if ((spec.encoder && spec.decoder) || (!labels && spec.head.kind != other))
    fail(ErrorKind::Unsupported,
         "model: {}, which no supported GGUF architecture can express; expected a language model, "
         "an encoder or a classifier of texts, such as {}",
         spec.encoder && spec.decoder ? "it has an encoder and a decoder"
         : spec.encoder               ? "it has an encoder and a head for tokens"
                                      : "its head is not a language model",
         all_names());
  if (labels && spec.decoder && spec.head.labels == 1)
    fail(ErrorKind::Unsupported,
         "model: it has one label, but llama.cpp computes a softmax of the labels of decoders; "
         "expected at least 2 labels");
  const std::optional<Spec> tiled = with_tiled_heads(spec);
  const auto expresses = [&](const GgufPair& pair) {
    return can_express(*pair.architecture, spec) ||
           (tiled && can_express(*pair.architecture, *tiled));
  };
  for (const GgufPair& pair : kPairs)
    if (pair.family == family && expresses(pair)) return *pair.architecture;
  for (const GgufPair& pair : kPairs)
    if (expresses(pair)) return *pair.architecture;
  if (labels)
    fail(ErrorKind::Unsupported,
         "model: no supported GGUF architecture can express this classifier; expected one like "
         "those of bert, roberta, modernbert or qwen3");
  fail(ErrorKind::Unsupported,
       "model: no supported GGUF architecture can express its Spec; expected a "
       "model like those of {}",
       all_names());
}

}  // namespace fovea::model

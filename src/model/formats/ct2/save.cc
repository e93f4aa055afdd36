#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "checkpoint/ct2_file.h"
#include "families/registry.h"
#include "formats/ct2/ct2.h"
#include "formats/ct2/names.h"
#include "nn/positions.h"
#include "transformer/adapters.h"

namespace fovea::model {
namespace {

Ct2Type type_of(DType dtype) {
  if (dtype == DType::bf16) return Ct2Type::bf16;
  return dtype == DType::f16 ? Ct2Type::f16 : Ct2Type::f32;
}

Ct2Output whole_number(const std::string& name, double value, Ct2Type type = Ct2Type::i8) {
  return {name, tensor_of({static_cast<float>(value)}, {1}), type, true};
}

// CTranslate2's number of an activation function.
int activation_number(Activation kind) {
  switch (kind) {
    case Activation::relu: return 0;
    case Activation::gelu_tanh: return 1;
    case Activation::silu: return 2;
    case Activation::gelu: return 3;
    case Activation::quick_gelu: return 4;
    case Activation::tanh: return 5;
    default: break;
  }
  fail(ErrorKind::Unsupported,
       "model: has an activation function that CTranslate2 lacks; expected "
       "relu, gelu, silu or tanh");
}

// The numbers of the specification of both kinds.
void add_numbers(const Spec& spec, bool speech, std::vector<Ct2Output>& all) {
  const auto add = [&](const std::string& name, double value, Ct2Type type = Ct2Type::i8) {
    all.push_back(whole_number(name, value, type));
  };
  const StackSpec& decoder = *spec.decoder;
  add("encoder/num_heads", static_cast<double>(spec.encoder->attention.heads), Ct2Type::i16);
  add("decoder/num_heads", static_cast<double>(decoder.attention.heads), Ct2Type::i16);
  add("decoder/activation", activation_number(decoder.ffn.activation));
  for (const char* name : {"alibi", "alibi_use_positive_positions", "scale_alibi"})
    add(std::string("decoder/") + name, 0);
  add("decoder/alignment_heads", 1, Ct2Type::i16);
  add("decoder/alignment_layer", -1, Ct2Type::i16);
  add("decoder/pre_norm", speech);
  add("decoder/start_from_zero_embedding", !speech);
  if (speech) return add("decoder/scale_embeddings", 0);
  for (const char* name : {"embeddings_merge", "multi_query_attention", "pre_norm"})
    add(std::string("encoder/") + name, 0);
  add("encoder/activation", activation_number(spec.encoder->ffn.activation));
  const float scale = spec.scaled_embedding ? std::sqrt(static_cast<float>(spec.width)) : 1.0f;
  add("encoder/scale_embeddings", double{scale}, Ct2Type::f32);
  add("decoder/scale_embeddings", double{scale}, Ct2Type::f32);
}

// Whether int8 files have integers for a variable.
bool has_integers(const std::string& name) { return name.ends_with("/weight"); }

std::vector<Ct2Output> outputs_of(Transformer& model, bool speech, DType type, bool int8) {
  std::map<std::string, const Parameter*> parameters;
  model.each([&](const std::string& name, Parameter& p) { parameters[name] = &p; });
  std::vector<Ct2Output> all;
  for (const FileTensor& tensor : file_tensors(speech ? ct2_speech : ct2_translation, model)) {
    std::vector<Tensor> parts;
    for (const std::string& part : tensor.parts) parts.push_back(floats_of(*parameters.at(part)));
    Tensor values = to_file(tensor, parts);
    if (!speech && (tensor.name == kCt2Table || tensor.name == kCt2HeadBias)) {
      if (values.rank() == 2 && values.dim(0) == 1) values = values.view({values.dim(1)});
      values = values.rows(0, values.dim(0) - 1);  // without the token of padding
    }
    const bool integers = int8 && has_integers(tensor.name);
    all.push_back({tensor.name, values, integers ? Ct2Type::i8 : type_of(type)});
  }
  add_numbers(model.spec, speech, all);
  if (speech) return all;
  for (const char* stack : {"encoder", "decoder"})
    all.push_back({std::string(stack) + "/position_encodings/encodings",
                   sinusoids(model.spec.context, model.spec.width, Waves::halves), type_of(type)});
  return all;
}

nlohmann::ordered_json speech_settings(const Origin& origin) {
  const auto ids = [&](const char* key) -> nlohmann::ordered_json {
    return origin.generation.is_object() && origin.generation.contains(key)
               ? origin.generation.at(key)
               : nlohmann::ordered_json();
  };
  nlohmann::ordered_json languages = nlohmann::ordered_json::array();
  if (const nlohmann::ordered_json known = ids("lang_to_id"); known.is_object())
    for (const auto& [name, id] : known.items()) languages.push_back(id);
  std::sort(languages.begin(), languages.end());
  return {{"alignment_heads", ids("alignment_heads")},
          {"lang_ids", languages},
          {"suppress_ids", ids("suppress_tokens")},
          {"suppress_ids_begin", ids("begin_suppress_tokens")}};
}

nlohmann::ordered_json translation_settings(const text::Tokenizer& tokenizer, int32_t end) {
  const auto unknown = tokenizer.unknown_id();
  return {{"add_source_bos", false},
          {"add_source_eos", false},
          {"bos_token", "<s>"},
          {"decoder_start_token", tokenizer.text_of(end)},
          {"eos_token", tokenizer.text_of(end)},
          {"layer_norm_epsilon", nullptr},
          {"multi_query_attention", false},
          {"unk_token", unknown ? std::string(tokenizer.text_of(*unknown)) : "<unk>"}};
}

// The tokens of the vocabulary, and names of times for those that a tokenizer lacks.
nlohmann::ordered_json vocabulary_of(const text::Tokenizer& tokenizer, int64_t count) {
  nlohmann::ordered_json tokens = nlohmann::ordered_json::array();
  for (int32_t id = 0; id < count; ++id)
    tokens.push_back(id < tokenizer.size()
                         ? std::string(tokenizer.text_of(id))
                         : fmt::format("<|{:.2f}|>", 0.02 * (id - tokenizer.size())));
  return tokens;
}

}  // namespace

void save_ct2(const std::string& folder, Transformer& model, const Origin& origin,
              const text::Tokenizer& tokenizer, DType type, bool int8) {
  if (has_adapters(model)) {
    Transformer merged = model;
    merge_adapters(merged);
    return save_ct2(folder, merged, origin, tokenizer, type, int8);
  }
  const Spec& spec = model.spec;
  const bool speech = can_express(whisper, spec);
  if (!speech && !can_express(marian, spec))
    fail(ErrorKind::Unsupported,
         "model: is neither Whisper nor Marian, the models that are written "
         "for CTranslate2; expected one of them");
  const auto end = configured_id(origin, "eos_token_id");
  if (!speech && (spec.padding != spec.vocabulary - 1 || spec.source_vocabulary > 0 ||
                  !spec.head.tied || !end))
    fail(ErrorKind::Unsupported,
         "model: has separate vocabularies, or its last token is not that of "
         "padding; expected one vocabulary that ends with it");
  std::vector<std::pair<std::string, std::string>> aliases;
  if (spec.head.tied) aliases.emplace_back(kCt2Head, kCt2Table);
  if (!speech) aliases.emplace_back(kCt2Sources, kCt2Table);
  const int64_t count = spec.vocabulary - (speech ? 0 : 1);
  const std::string vocabulary = speech ? "/vocabulary.json" : "/shared_vocabulary.json";
  write_file_atomically(folder + vocabulary, pretty(vocabulary_of(tokenizer, count)));
  write_file_atomically(
      folder + "/config.json",
      pretty(speech ? speech_settings(origin) : translation_settings(tokenizer, *end)));
  write_ct2(folder + "/model.bin", speech ? ct2_speech.model_type : ct2_translation.model_type,
            speech ? kCt2SpeechRevision : kCt2TranslationRevision,
            outputs_of(model, speech, type, int8), aliases);
}

}  // namespace fovea::model

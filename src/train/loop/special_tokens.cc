#include "loop/special_tokens.h"

#include <fmt/format.h>

#include <algorithm>

#include "embed/text_format.h"

namespace fovea::train {

std::optional<int32_t> first_id(const text::Tokenizer& tokenizer,
                                std::initializer_list<const char*> texts) {
  for (const char* text : texts)
    if (const auto id = tokenizer.id_of(text)) return id;
  return std::nullopt;
}

std::optional<int32_t> padding_id(const text::Tokenizer& tokenizer) {
  return first_id(tokenizer, {"<pad>", "[PAD]"});
}

std::optional<int32_t> end_id(const text::Tokenizer& tokenizer) {
  return tokenizer.eos_id() ? tokenizer.eos_id() : first_id(tokenizer, {"</s>"});
}

std::vector<int32_t> end_ids_of(const model::Origin& origin, const text::Tokenizer& tokenizer) {
  std::vector<int32_t> all;
  for (const auto* json : {&origin.generation, &origin.carried}) {
    if (!json->is_object() || !all.empty()) continue;
    for (const int32_t id : model::ids_under(*json, "eos_token_id"))
      if (std::find(all.begin(), all.end(), id) == all.end()) all.push_back(id);
  }
  if (const auto end = tokenizer.eos_id(); end && all.empty()) all.push_back(*end);
  return all;
}

void say_names(const SpecialNames& names, const Say& say) {
  if (const std::string found = names.found(); !found.empty()) {
    say(fmt::format(
        "the text contains names of special tokens, which are read as plain characters, "
        "not as these tokens: {} (docs/training.md, Names of special tokens)",
        found));
  }
}

const model::Family& family_of_new(model::Spec spec, const text::Tokenizer& tokenizer) {
  spec.vocabulary = std::max<int64_t>(spec.vocabulary, tokenizer.size());
  return model::family_for(model::validated(spec));
}

void set_padding(model::Spec& spec, const text::Tokenizer& tokenizer) {
  model::Spec without = spec;
  without.padding = -1;
  spec.padding = padding_id(tokenizer).value_or(-1);
  if (&family_of_new(spec, tokenizer) == &model::fovea_format &&
      &family_of_new(without, tokenizer) != &model::fovea_format)
    spec.padding = -1;
}

void set_classifier_padding(model::Spec& spec, const text::Tokenizer& tokenizer,
                            const model::Origin& origin) {
  if (spec.encoder || spec.padding >= 0 || spec.head.kind != model::HeadKind::sequence) return;
  for (const auto& id :
       {model::configured_id(origin, "pad_token_id"),
        infer::special_token(tokenizer, "pad_token", {"<pad>", "[PAD]"}), end_id(tokenizer)})
    if (id && *id < std::max<int64_t>(spec.vocabulary, tokenizer.size())) {
      spec.padding = *id;
      return;
    }
}

Around around_text(const text::Tokenizer& tokenizer) {
  const text::Encoding found = tokenizer.encoding("a", {.truncate_and_pad = false});
  Around around;
  bool after = false;
  for (size_t i = 0; i < found.ids.size(); ++i) {
    if (found.special_mask[i] == 0) {
      after = true;
    } else {
      (after ? around.after : around.before).push_back(found.ids[i]);
    }
  }
  return around;
}

std::vector<int32_t> translation_ids(const text::Tokenizer& tokenizer, const std::string& text) {
  std::vector<int32_t> ids = tokenizer.encoding(text, {.truncate_and_pad = false}).ids;
  const auto end = end_id(tokenizer);
  if (end && (ids.empty() || ids.back() != *end)) ids.push_back(*end);
  return ids;
}

int32_t decoder_start(const text::Tokenizer& tokenizer, const model::Origin& origin) {
  if (const auto id = model::configured_id(origin, "decoder_start_token_id")) return *id;
  if (const auto id = padding_id(tokenizer)) return *id;
  return tokenizer.bos_id().value_or(tokenizer.eos_id().value_or(0));
}

model::Origin encoder_decoder_origin(const model::Spec& spec, const text::Tokenizer& tokenizer) {
  constexpr int kBeams = 5;  // the usual number of beams for translation
  model::Origin origin;
  origin.family = &model::family_for(spec);
  const int32_t start = decoder_start(tokenizer, {});
  origin.carried = {
      {"is_encoder_decoder", true}, {"decoder_start_token_id", start}, {"bos_token_id", nullptr}};
  origin.generation = {{"decoder_start_token_id", start},
                       {"pad_token_id", padding_id(tokenizer).value_or(start)},
                       {"max_length", spec.context},
                       {"num_beams", kBeams}};
  if (const auto end = end_id(tokenizer)) {
    for (auto* json : {&origin.carried, &origin.generation})
      (*json)["eos_token_id"] = (*json)["forced_eos_token_id"] = *end;
  }
  return origin;
}

}  // namespace fovea::train

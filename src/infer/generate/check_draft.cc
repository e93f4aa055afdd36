#include "generate/check_draft.h"

#include "base/fields.h"
#include "open/model_parts.h"
#include "tokenizer/state/difference.h"

namespace fovea::infer {
namespace {

void check_same(const text::Tokenizer& model, const text::Tokenizer& draft) {
  const std::string found = text::difference(model, draft);
  check_field(found.empty(), "draft", "{}; expected the model's vocabulary", found);
}

}  // namespace

void check_draft(const model::Model& model, const model::Model& draft) {
  const model::Spec &mine = model.spec(), &its = draft.spec();
  check_field(its.decoder && its.head.kind == model::HeadKind::language_model, "draft",
              "the model generates no text; expected a decoder with a language-model head");
  check_field(mine.encoder.has_value() == its.encoder.has_value(), "draft",
              "the model is {}; expected {}, like the model that it drafts for",
              its.encoder ? "an encoder-decoder" : "a decoder-only model",
              mine.encoder ? "an encoder-decoder" : "a decoder-only model");
  if (!model.has_tokenizer() || !draft.has_tokenizer()) {
    const bool same =
        mine.vocabulary == its.vocabulary && mine.source_vocabulary == its.source_vocabulary;
    check_field(same, "draft",
                "the vocabulary has {} tokens; expected the model's vocabulary, which has {}",
                its.vocabulary, mine.vocabulary);
    return;
  }
  check_same(*model::parts_of(model).tokenizer, *model::parts_of(draft).tokenizer);
  check_same(*model::parts_of(model).target_tokenizer, *model::parts_of(draft).target_tokenizer);
}

}  // namespace fovea::infer

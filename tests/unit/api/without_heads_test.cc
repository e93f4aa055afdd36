// A model with heads whose output is zero: in a run over a whole text, and token by token with the
// cache.

#include <gtest/gtest.h>

#include <algorithm>

#include "fovea/infer/generate.h"
#include "fovea/study/inspect.h"
#include "fovea/train/train_tokenizer.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"
#include "unit/inspect/kinds.h"

namespace fovea {
namespace {

class WithoutHeads : public testing::Test {
 protected:
  WithoutHeads() {
    write_file_atomically(folder_ / "text.txt", "abcdefghijklm");
    text::TokenizerTraining training;
    training.kind = text::TokenizerKind::character;
    training.vocabulary = 0;
    tokenizer_ = train::train_tokenizer({folder_ / "text.txt"}, training)->tokenizer;
  }
  model::Model made(const model::Spec& spec) const {
    model::Spec untied = spec;
    untied.head.tied = false;  // a tied random model would repeat one token
    return model::Model::create(model::validated(untied), *tokenizer_, 3);
  }

  const TemporaryFolder folder_;
  std::optional<text::Tokenizer> tokenizer_;
};

study::InspectInput input_of(const model::Spec& spec, std::vector<model::HeadIndex> muted) {
  study::InspectInput input;
  input.ids = {1, 5, 2, 9, 5};
  if (spec.encoder && spec.decoder) input.target_ids = {0, 3, 7};
  input.muted = std::move(muted);
  return input;
}

std::vector<model::HeadIndex> some_heads(const model::Spec& spec) {
  if (spec.encoder && spec.decoder)
    return {{model::AttentionKind::self, 0, 1},
            {model::AttentionKind::encoder, 1, 0},
            {model::AttentionKind::cross, 1, 1}};
  return {{model::AttentionKind::self, 1, 0}, {model::AttentionKind::self, 1, 1}};
}

TEST_F(WithoutHeads, EqualsInspectionsWithoutThem) {
  for (const auto& [name, spec] : study::kinds()) {
    SCOPED_TRACE(name);
    const auto shared = [](const auto& stack) { return stack && stack->layer_groups > 0; };
    const model::Model model = made(spec);
    const std::vector<model::HeadIndex> heads = some_heads(spec);
    if (shared(spec.encoder) || shared(spec.decoder)) {
      EXPECT_THROW(static_cast<void>(model.without_heads(heads)), Error);
      continue;
    }
    if (name.find("recurrent") != name.npos) continue;
    const int64_t last = spec.encoder && spec.decoder ? 2 : 4;
    const std::vector<float>
        expected = study::Inspection(model, input_of(spec, heads)).logits(last),
        found = study::Inspection(model.without_heads(heads), input_of(spec, {})).logits(last);
    EXPECT_EQ(found, expected);
    EXPECT_NE(found, study::Inspection(model, input_of(spec, {})).logits(last));
  }
}

TEST_F(WithoutHeads, GeneratesWhatALongTextPredicts) {
  model::Spec spec = study::small();
  spec.decoder->mixers = {model::MixerKind::attention, model::MixerKind::latent,
                          model::MixerKind::attention};
  spec.decoder->latent = {.width = 9, .query_width = 6};
  spec.decoder->position.kind = model::PositionKind::rotary;
  const model::Model model = made(spec).without_heads({{model::AttentionKind::self, 0, 3},
                                                       {model::AttentionKind::self, 1, 2},
                                                       {model::AttentionKind::self, 2, 0}});
  infer::GenerateOptions options;
  options.sampling.temperature = 0;
  options.max_tokens = 6;
  std::vector<int32_t> ids = {1, 5, 2};
  const std::vector<int32_t> generated = infer::generate(model, ids, options).at(0).ids;
  ASSERT_EQ(generated.size(), 6u);
  for (const int32_t id : generated) {
    study::InspectInput input;
    input.ids = ids;
    const std::vector<float> logits =
        study::Inspection(model, input).logits(static_cast<int64_t>(ids.size()) - 1);
    EXPECT_EQ(id, std::max_element(logits.begin(), logits.end()) - logits.begin());
    ids.push_back(id);
  }
}

TEST_F(WithoutHeads, RefusesHeadsThatDoNotExist) {
  const model::Model model = made(study::small());
  expect_error(ErrorKind::InvalidArgument, {"layer: 3; expected 0 to 2"},
               [&] { model.without_heads({{model::AttentionKind::self, 3, 0}}); });
  expect_error(ErrorKind::InvalidArgument, {"head: 4; expected 0 to 3"},
               [&] { model.without_heads({{model::AttentionKind::self, 0, 4}}); });
  expect_error(ErrorKind::InvalidArgument, {"need a model with an encoder and a decoder"},
               [&] { model.without_heads({{model::AttentionKind::cross, 0, 0}}); });
}

}  // namespace
}  // namespace fovea

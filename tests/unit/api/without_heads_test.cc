// A model with heads whose output is zero: in a run over a whole text, and token by token with the
// cache.

#include <gtest/gtest.h>

#include <algorithm>

#include "fovea/generate.h"
#include "fovea/inspect.h"
#include "fovea/train_tokenizer.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"
#include "unit/inspect/kinds.h"

namespace fovea {
namespace {

class WithoutHeads : public testing::Test {
 protected:
  WithoutHeads() {
    write_file_atomically(folder_ / "text.txt", "abcdefghijklm");
    TokenizerTraining training;
    training.kind = TokenizerKind::character;
    training.vocabulary = 0;
    tokenizer_ = train_tokenizer({folder_ / "text.txt"}, training)->tokenizer;
  }
  Model made(const Spec& spec) const {
    Spec untied = spec;
    untied.head.tied = false;  // a tied random model would repeat one token
    return Model::create(validated(untied), *tokenizer_, 3);
  }

  const TemporaryFolder folder_;
  std::optional<Tokenizer> tokenizer_;
};

InspectInput input_of(const Spec& spec, std::vector<HeadPlace> muted) {
  InspectInput input;
  input.ids = {1, 5, 2, 9, 5};
  if (spec.encoder && spec.decoder) input.target_ids = {0, 3, 7};
  input.muted = std::move(muted);
  return input;
}

std::vector<HeadPlace> some_heads(const Spec& spec) {
  if (spec.encoder && spec.decoder)
    return {
        {AttentionKind::self, 0, 1}, {AttentionKind::encoder, 1, 0}, {AttentionKind::cross, 1, 1}};
  return {{AttentionKind::self, 1, 0}, {AttentionKind::self, 1, 1}};
}

TEST_F(WithoutHeads, EqualsInspectionsWithoutThem) {
  for (const auto& [name, spec] : kinds()) {
    SCOPED_TRACE(name);
    const Model model = made(spec);
    const std::vector<HeadPlace> heads = some_heads(spec);
    if (name.find("recurrent") != name.npos) continue;
    const int64_t last = spec.encoder && spec.decoder ? 2 : 4;
    const std::vector<float> expected = Inspection(model, input_of(spec, heads)).logits(last),
                             found = Inspection(model.without_heads(heads), input_of(spec, {}))
                                         .logits(last);
    EXPECT_EQ(found, expected);
    EXPECT_NE(found, Inspection(model, input_of(spec, {})).logits(last));
  }
}

TEST_F(WithoutHeads, GeneratesWhatALongTextPredicts) {
  Spec spec = small();
  spec.decoder->mixers = {MixerKind::attention, MixerKind::latent, MixerKind::attention};
  spec.decoder->latent = {.width = 9, .query_width = 6};
  spec.decoder->position.kind = PositionKind::rotary;
  const Model model = made(spec).without_heads(
      {{AttentionKind::self, 0, 3}, {AttentionKind::self, 1, 2}, {AttentionKind::self, 2, 0}});
  GenerateOptions options;
  options.sampling.temperature = 0;
  options.max_tokens = 6;
  std::vector<int32_t> ids = {1, 5, 2};
  const std::vector<int32_t> generated = generate(model, ids, options).at(0).ids;
  ASSERT_EQ(generated.size(), 6u);
  for (const int32_t id : generated) {
    InspectInput input;
    input.ids = ids;
    const std::vector<float> logits =
        Inspection(model, input).logits(static_cast<int64_t>(ids.size()) - 1);
    EXPECT_EQ(id, std::max_element(logits.begin(), logits.end()) - logits.begin());
    ids.push_back(id);
  }
}

TEST_F(WithoutHeads, RefusesHeadsThatDoNotExist) {
  const Model model = made(small());
  expect_error(ErrorKind::InvalidArgument, {"layer: 3; expected 0 to 2"}, [&] {
    model.without_heads({{AttentionKind::self, 3, 0}});
  });
  expect_error(ErrorKind::InvalidArgument, {"head: 4; expected 0 to 3"}, [&] {
    model.without_heads({{AttentionKind::self, 0, 4}});
  });
  expect_error(ErrorKind::InvalidArgument, {"need a model with an encoder and a decoder"}, [&] {
    model.without_heads({{AttentionKind::cross, 0, 0}});
  });
}

}  // namespace
}  // namespace fovea

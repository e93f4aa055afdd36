// Decoding on devices whose elements the host cannot access: the second device, which has the
// reference kernels, and the GPU device, which has the bits of the CPU.

#include <gtest/gtest.h>

#include "kernels/isa.h"
#include "support/expect_error.h"
#include "support/gpu.h"
#include "support/second_device.h"
#include "unit/generate/requests.h"

namespace fovea::infer {
namespace {

using namespace test;
using namespace test::requests;

model::Transformer on(const Device& device, model::Transformer model) {
  model::move_to(device, model);
  return model;
}
model::Transformer on_second(model::Transformer model) {
  return on(second_device(), std::move(model));
}

void expect_texts_of_host(const Device& device, const model::Transformer& model) {
  const model::Transformer other = on(device, model);
  for (const DType cache : {DType::f32, DType::bf16, DType::i8}) {
    const Ids prompt(70, 3);  // more than a page
    const auto generated = [&](const model::Transformer& by) {
      return continued({by, nullptr, {}, DType::f32, cache}, prompt, greedy(20)).ids;
    };
    EXPECT_EQ(generated(other), generated(model)) << name_of(cache);
  }
}

// Samples, beams, speculative tokens and shared prefixes.
void expect_answers_of_host(const Device& device) {
  const model::Transformer model = small_model(40), other = on(device, model);
  const auto requests = some_requests(12, 40);
  const SchedulerOptions options{.pages = 64, .most_sequences = 8};
  EXPECT_EQ(answers_of(other, requests, options, {}, 2),
            answers_of(model, requests, options, {}, 2));
}

class SecondDevice : public testing::Test {
 protected:
  void SetUp() override { use_isa("reference"); }
  void TearDown() override { use_isa("auto"); }
};

TEST_F(SecondDevice, GivesTheLogitsOfTheReference) {
  const Ids ids = {3, 1, 4, 1, 5};
  EXPECT_EQ(logits_after(on_second(small_model()), ids), logits_after(small_model(), ids));
}

TEST_F(SecondDevice, GeneratesTheTextsOfTheReference) {
  for (const model::Transformer& model : {small_model(96), small_recurrent_model(96),
                                          small_latent_model(96), small_windowed_model(96)})
    expect_texts_of_host(second_device(), model);
}

TEST_F(SecondDevice, ReadsNoReleasedPage) {
  for (const model::Transformer& model : {small_windowed_model(300), small_recurrent_model(300)}) {
    const model::Transformer other = on_second(model);
    const Ids prompt(250, 3);
    EXPECT_EQ(continued({other}, prompt, greedy(20)).ids,
              continued({model}, prompt, greedy(20)).ids);
  }
}

TEST_F(SecondDevice, AnswersManyRequestsTogether) { expect_answers_of_host(second_device()); }

TEST_F(SecondDevice, GeneratesWithPackedWeights) {
  for (const WeightFormat format : {WeightFormat::bf16, WeightFormat::int8, WeightFormat::int4}) {
    model::Transformer model = small_model(40);
    model.each([&](const std::string&, model::Parameter& p) {
      if (p.role != model::Role::matrix && p.role != model::Role::residual_matrix) return;
      p.packed = PackedWeight(p.value, format, 32);
      p.value = {};
    });
    const model::Transformer other = on_second(model);
    const auto generated = [&](const model::Transformer& by) {
      return continued({by}, {1, 2, 3}, greedy(20)).ids;
    };
    EXPECT_EQ(generated(other), generated(model));
  }
}

TEST_F(SecondDevice, RefusesAttentionTraces) {
  const model::Transformer other = on_second(small_model(40));
  Scheduler scheduler(other, {}, nullptr, {.pages = 8});
  Task task{1, {1, 2, 3}, greedy(3), [](const Event&) { return true; }, false};
  task.trace.hidden = 1;
  expect_error(ErrorKind::InvalidArgument, {"the model is on device second; expected cpu"},
               [&] { (void)scheduler.request(task); });
}

TEST(GenerationOnGpu, HasTheLogitsOfTheCpu) {
  const Ids ids = {3, 1, 4, 1, 5};
  EXPECT_EQ(logits_after(on(gpu_device(), small_model()), ids), logits_after(small_model(), ids));
}

TEST(GenerationOnGpu, HasTheTextsOfTheCpu) {
  for (const model::Transformer& model :
       {small_model(96), small_windowed_model(96), small_latent_model(96)})
    expect_texts_of_host(gpu_device(), model);
}

TEST(GenerationOnGpu, AnswersManyRequestsTogether) { expect_answers_of_host(gpu_device()); }

}  // namespace
}  // namespace fovea::infer

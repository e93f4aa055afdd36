// Generation on the GPU device has the texts of the CPU.

#include <gtest/gtest.h>

#include "support/gpu.h"
#include "unit/generate/requests.h"

namespace fovea::infer {
namespace {

using namespace test;
using namespace test::requests;

model::Transformer on_gpu(model::Transformer model) {
  model::move_to(gpu_device(), model);
  return model;
}

TEST(GenerationOnGpu, HasTheLogitsOfTheCpu) {
  const Ids ids = {3, 1, 4, 1, 5};
  EXPECT_EQ(logits_after(on_gpu(small_model()), ids), logits_after(small_model(), ids));
}

TEST(GenerationOnGpu, HasTheTextsOfTheCpu) {
  for (const model::Transformer& model : {small_model(96), small_windowed_model(96)}) {
    const model::Transformer other = on_gpu(model);
    for (const DType cache : {DType::f32, DType::bf16, DType::i8}) {
      const Ids prompt(70, 3);  // more than a page
      const auto generated = [&](const model::Transformer& by) {
        return continued({by, nullptr, {}, DType::f32, cache}, prompt, greedy(20)).ids;
      };
      EXPECT_EQ(generated(other), generated(model)) << name_of(cache);
    }
  }
}

// Samples, beams, speculative tokens and shared prefixes.
TEST(GenerationOnGpu, AnswersManyRequestsTogether) {
  const model::Transformer model = small_model(40), other = on_gpu(model);
  const auto requests = some_requests(12, 40);
  const SchedulerOptions options{.pages = 64, .most_sequences = 8};
  EXPECT_EQ(answers_of(other, requests, options, {}, 2),
            answers_of(model, requests, options, {}, 2));
}

}  // namespace
}  // namespace fovea::infer

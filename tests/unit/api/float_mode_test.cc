// The calling program may flush denormal numbers to zero (as with -ffast-math) or use another
// rounding mode. Some products, gradients and moments of a small model are denormal, so the results
// once differed from those of the fovea program.

#include "base/float_mode.h"

#include <gtest/gtest.h>

#include <future>

#include "base/hash.h"
#include "base/threads.h"
#include "fovea/infer/embed.h"
#include "fovea/infer/engine.h"
#include "fovea/infer/generate.h"
#include "support/runs.h"

namespace fovea {
namespace {

std::string bytes_of(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

std::string answer_of_engine(const model::Model& model, const std::vector<int32_t>& prompt,
                             const infer::GenerateOptions& options) {
  std::promise<std::string> answer;
  infer::Engine engine(model);
  engine.submit(prompt, options, [&](const infer::Event& event) {
    if (event.error != nullptr) answer.set_value(event.error->what());
    if (event.finished != nullptr) answer.set_value(event.finished->text);
    return true;
  });
  return answer.get_future().get();
}

// Returns the results of public functions in the given mode, by the names of the functions.
std::map<std::string, std::string> results_in(FloatModeBits callers) {
  const FloatMode mode(callers);
  std::map<std::string, std::string> results;
  const Runs runs;
  train::TrainOptions training = runs.options("out");
  training.learning_rate = 0.0123;
  train::train(small_spec(0.1f), training);
  results["train"] = hash_text(hash_bytes(state_bytes(training, training.steps)));

  const model::Model model = model::Model::open(training.out);
  infer::GenerateOptions options;
  options.max_tokens = 100;
  options.sampling.temperature = 1.37f;
  const std::vector<int32_t> prompt = infer::prompt_ids(model, "the cat");
  results["generate"] = infer::generate(model, prompt, options)[0].text;
  results["engine"] = answer_of_engine(model, prompt, options);
  for (const infer::TokenLogprob& token : infer::score(model, prompt))
    results["score"] += bytes_of({token.logprob});

  const auto embedder = infer::Embedder::open("tests/goldens/sentence_model");
  results["embed"] = bytes_of(embedder.embed({"A cat sat on a mat.", "Another one."}).values);
  EXPECT_EQ(FloatMode::current(), callers);
  return results;
}

TEST(FloatModeOfACaller, DoesNotChangeResults) {
  const int before = thread_count();
  for (const int threads : {1, 2}) {
    set_threads(threads);
    const auto wanted = results_in(kDefaultFloatMode);
    EXPECT_EQ(results_in(kFlushToZero), wanted) << threads << " threads";
    EXPECT_EQ(results_in(kTowardZero), wanted) << threads << " threads";
  }
  set_threads(before);
}

}  // namespace
}  // namespace fovea

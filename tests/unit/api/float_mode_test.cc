// The calling program may flush denormal numbers to zero (as with -ffast-math) or use another
// rounding mode. Some products, gradients and moments of a small model are denormal, so the results
// once differed from those of the fovea program.

#include "base/float_mode.h"

#include <gtest/gtest.h>

#include <future>

#include "base/hash.h"
#include "base/threads.h"
#include "fovea/embed.h"
#include "fovea/engine.h"
#include "fovea/generate.h"
#include "support/runs.h"

namespace fovea {
namespace {

std::string bytes_of(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

std::string answer_of_engine(const Model& model, const std::vector<int32_t>& prompt,
                             const GenerateOptions& options) {
  std::promise<std::string> answer;
  Engine engine(model);
  engine.submit(prompt, options, [&](const Event& event) {
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
  TrainOptions training = runs.options("out");
  training.learning_rate = 0.0123;
  train(small_spec(0.1f), training);
  results["train"] = hash_text(hash_bytes(state_bytes(training, training.steps)));

  const Model model = Model::open(training.out);
  GenerateOptions options;
  options.max_tokens = 100;
  options.sampling.temperature = 1.37f;
  const std::vector<int32_t> prompt = prompt_ids(model, "the cat");
  results["generate"] = generate(model, prompt, options)[0].text;
  results["engine"] = answer_of_engine(model, prompt, options);
  for (const TokenLogprob& token : score(model, prompt))
    results["score"] += bytes_of({token.logprob});

  const auto embedder = Embedder::open("tests/goldens/sentence_model");
  results["embed"] = bytes_of(embedder.embed({"A cat sat on a mat.", "Another one."}).values);
  EXPECT_EQ(FloatMode::current(), callers);
  return results;
}

TEST(FloatModeOfACaller, DoesNotChangeResults) {
  constexpr FloatModeBits kTowardZero{0x1f80 | 0x6000, 0x037f | 0x0c00};
  const int before = thread_count();
  for (const int threads : {1, 2}) {
    set_thread_count(threads);
    const auto wanted = results_in(kDefaultFloatMode);
    EXPECT_EQ(results_in(kFlushToZero), wanted) << threads << " threads";
    EXPECT_EQ(results_in(kTowardZero), wanted) << threads << " threads";
  }
  set_thread_count(before);
}

}  // namespace
}  // namespace fovea

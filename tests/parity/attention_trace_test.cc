// The hidden states that generation reports equal those of a trace of the same text, for every
// family of generative models. In both, the last states are those after the final norm.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <future>

#include "fovea/infer/engine.h"
#include "fovea/study/trace.h"
#include "safetensors/safetensors.h"
#include "support/shared_folder.h"

namespace fovea {
namespace {

struct Shown {
  std::vector<int32_t> ids;
  std::vector<std::vector<float>> states;  // for each id, those of the preceding token
};

Shown shown(const model::Model& model, const std::vector<int32_t>& prompt, int64_t layer) {
  Shown shown;
  std::promise<void> done;
  infer::Engine engine(model);
  infer::GenerateOptions options;
  options.max_tokens = 4;
  options.ignore_end = true;
  const auto sink = [&](const infer::Event& event) {
    if (event.trace != nullptr) {
      shown.ids.push_back(event.id);
      shown.states.push_back(event.trace->hidden);
    }
    if (event.finished != nullptr || event.error != nullptr) done.set_value();
    return true;
  };
  infer::AttentionTraceOptions trace;
  trace.hidden = layer;
  engine.submit(prompt, options, sink, trace);
  done.get_future().wait();
  return shown;
}

class HiddenStatesOfFamilies : public ::testing::TestWithParam<const char*> {};

TEST_P(HiddenStatesOfFamilies, MatchATrace) {
  const std::string folder = shared(std::string("fixtures/models/") + GetParam());
  if (!std::filesystem::is_directory(folder)) GTEST_SKIP() << "needs " << folder;
  const model::Model model = model::Model::open(folder);
  const std::vector<int32_t> prompt{84, 104, 101, 32, 101, 121, 101};
  study::TraceOptions options;
  options.out = std::filesystem::temp_directory_path() /
                fmt::format("fovea_watching_{}_{}.safetensors", GetParam(), getpid());
  const int64_t layers = model.spec().decoder->layers;
  for (int64_t layer = 0; layer <= layers; ++layer) {
    const Shown found = shown(model, prompt, layer);
    ASSERT_EQ(found.ids.size(), 4u);
    options.ids = prompt;
    options.ids.insert(options.ids.end(), found.ids.begin(), found.ids.end());
    study::trace(model, options);
    const SafeTensors traced(options.out);
    const Tensor states = traced.tensor(fmt::format("hidden.{}", layer));  // [1, T, C]
    const int64_t C = states.dim(2);
    for (size_t i = 0; i < found.states.size(); ++i) {
      const float* row =
          states.data_as<float>() + (std::ssize(prompt) - 1 + static_cast<int64_t>(i)) * C;
      EXPECT_EQ(found.states[i], std::vector<float>(row, row + C)) << "layer " << layer;
    }
  }
  std::filesystem::remove(options.out);
}

INSTANTIATE_TEST_SUITE_P(Fixtures, HiddenStatesOfFamilies,
                         ::testing::Values("gpt2", "gpt_neox", "opt", "bloom", "llama", "mistral",
                                           "mixtral", "qwen2", "qwen3", "qwen3_moe", "gemma2",
                                           "gemma3_text", "phi3", "olmo2"),
                         [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace fovea

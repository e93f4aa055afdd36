// Pseudo-perplexity masks each token of a text in turn. The tests compare it with its
// definition, computed with a separate pass per token.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "fovea/evaluate.h"
#include "loading/loading.h"
#include "support/small_spec.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

constexpr const char* kTokenizer = R"({"version": "1.0", "added_tokens": [
  {"id": 0, "content": "[CLS]", "special": true}, {"id": 1, "content": "[SEP]", "special": true},
  {"id": 2, "content": "[MASK]", "special": true}], "normalizer": null,
  "pre_tokenizer": {"type": "Whitespace"}, "decoder": null,
  "post_processor": {"type": "BertProcessing", "cls": ["[CLS]", 0], "sep": ["[SEP]", 1]},
  "model": {"type": "WordLevel", "unk_token": "?", "vocab": {"[CLS]": 0, "[SEP]": 1, "[MASK]": 2,
  "?": 3, "the": 4, "eye": 5, "of": 6, "a": 7, "fox": 8}}})";

class PseudoPerplexity : public testing::Test {
 protected:
  PseudoPerplexity()
      : folder_(std::filesystem::temp_directory_path() /
                ("fovea_pseudo_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
    // Windows of four tokens between [CLS] and [SEP].
    model::Spec spec = test::scaled_down(
        model::preset("bert-base"), {.vocabulary = 9, .context = 6, .width = 16, .layers = 1}, 8);
    spec.head = {.bias = true, .transform = true, .transform_norm = true};
    spec.init_deviation = 0.8f;
    model_ = model::Transformer(model::validated(spec));
    model::initialise(model_, 1);
    model::save_model_files(folder_, model_, std::nullopt);
    write_file_atomically(folder_ / "tokenizer.json", kTokenizer);
    write_file_atomically(folder_ / "text.txt", "the eye of a fox the fox");
  }
  ~PseudoPerplexity() override { std::filesystem::remove_all(folder_); }

  double loss_at(std::vector<int32_t> ids, size_t at) const {
    const int32_t hidden = std::exchange(ids[at], 2);
    const NoGradient off;
    const auto T = static_cast<int64_t>(ids.size());
    const Tensor row = empty({1, T}, DType::i32);
    std::copy(ids.begin(), ids.end(), row.data_as<int32_t>());
    const std::vector<float> logits = to_floats(model_.logits(model_.hidden(row, model::Pass())));
    double total = 0;
    for (size_t v = 0; v < 9; ++v) total += std::exp(double{logits[at * 9 + v]});
    return std::log(total) - double{logits[at * 9 + static_cast<size_t>(hidden)]};
  }

  std::filesystem::path folder_;
  model::Transformer model_;
};

TEST_F(PseudoPerplexity, MasksEachTokenSeparately) {
  double sum = 0;
  for (const std::vector<int32_t>& window :
       {std::vector<int32_t>{0, 4, 5, 6, 7, 1}, std::vector<int32_t>{0, 8, 4, 8, 1}})
    for (size_t at = 1; at + 1 < window.size(); ++at) sum += loss_at(window, at);
  EvaluationData data;
  data.text = {folder_ / "text.txt"};
  data.one_by_one = true;
  const infer::Evaluation found = evaluate(model::Model::open(folder_), data);
  EXPECT_EQ(found.objective, "one_by_one");
  EXPECT_EQ(found.tokens, 7);
  EXPECT_NEAR(found.loss, sum / 7, 1e-5);
  EXPECT_NEAR(found.perplexity, std::exp(sum / 7), 1e-3);
}

}  // namespace
}  // namespace fovea

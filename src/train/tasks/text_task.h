#pragma once

// A task on windows of text.

#include <optional>

#include "data/corpus.h"
#include "data/masking.h"
#include "data/token_store.h"
#include "loop/examples_task.h"
#include "loop/special_tokens.h"
#include "tasks/window_examples.h"

namespace fovea::train {

// Predicts the next token of a text, its masked tokens, or spans cut out of it.
class TextTask : public ExamplesTask {
 public:
  TextTask(const TrainOptions& options, Purpose purpose, Objective objective);

  void watch(const std::function<bool(double fraction)>& watch) override { corpus_.watch(watch); }
  text::Tokenizer make_tokenizer(const model::Spec& spec) override;
  void shape(model::Spec& spec, const text::Tokenizer& tokenizer, const model::Origin& origin,
             const Say& say) override;
  PassSize pass_size(const model::Spec& spec) const override {
    return {options_.batch, reads_at_once(spec)};
  }
  model::Origin origin(const model::Spec& spec, const text::Tokenizer& tokenizer) const override;
  std::unique_ptr<Examples> examples(const model::Spec& spec,
                                     const text::TranslationTokenizers& tokenizers,
                                     const model::Origin& origin, bool read_only,
                                     const Say& say) override;
  infer::EvaluationTask evaluation() const override {
    return infer::evaluation_task(name_of(objective_));
  }

 protected:
  TextMixture training_part() const;
  TextMixture held_out() const;  // each text has the weight 1
  // Creates the examples of windows of the text.
  virtual std::unique_ptr<Examples> make_examples(const text::Tokenizer& tokenizer,
                                                  const model::Origin& origin,
                                                  const WindowOptions& windows) const;
  // How tokens are masked, and the special tokens around a window, whose length becomes shorter by
  // their number.
  struct MaskedText {
    Masking masking;
    Around around;
  };
  MaskedText masked_text(const text::Tokenizer& tokenizer, WindowOptions& windows) const;
  // Throws InvalidArgument if the text is too short for windows of this length.
  void require(int64_t window) const;
  void check_document_mask(const model::Spec& spec) const;

 private:
  int64_t reads_at_once(const model::Spec& spec) const;
  std::optional<int32_t> separator(const text::Tokenizer& tokenizer) const;
  std::unique_ptr<Examples> spans(const text::Tokenizer& tokenizer, const model::Origin& origin,
                                  WindowOptions windows) const;

  Objective objective_;
  Corpus corpus_;
  std::optional<TokenStore> store_;
};

}  // namespace fovea::train

#include <algorithm>
#include <cmath>

#include "base/fields.h"
#include "data/skip_gram.h"
#include "families/static_embedding.h"
#include "losses/skip_gram_loss.h"
#include "losses/token_rows.h"
#include "tasks/text_task.h"
#include "tensor/tape.h"

namespace fovea::train {
namespace {

// Returns how often each token occurs in an epoch, if each text is read as a whole.
std::vector<int64_t> counts_of(const TextMixture& texts, int64_t vocabulary) {
  constexpr int64_t kAtOnce = 1 << 16;
  std::vector<int64_t> all(static_cast<size_t>(vocabulary));
  std::vector<int32_t> ids(kAtOnce);
  for (const auto& [text, weight] : texts) {
    std::vector<int64_t> counts(all.size());
    for (int64_t first = 0; first < text.count; first += kAtOnce) {
      const int64_t length = std::min(kAtOnce, text.count - first);
      text.copy(first, length, ids.data());
      for (int64_t i = 0; i < length; ++i)
        ++counts[static_cast<size_t>(ids[static_cast<size_t>(i)])];
    }
    for (size_t id = 0; id < all.size(); ++id)
      all[id] += std::llround(weight * static_cast<double>(counts[id]));
  }
  return all;
}

// Pairs of the tokens in windows of a text. Batch::source has the tokens [N], `labels` the
// neighbours and random tokens [N, 1 + negatives].
class SkipGramExamples : public WindowExamples {
 public:
  SkipGramExamples(const TextMixture& training, const TextMixture& validation,
                   const WindowOptions& options, SkipGram pairs)
      : WindowExamples(training, validation, options), pairs_(std::move(pairs)) {
    held_out.bytes = 0;
  }

 protected:
  Batch make(const TokenRows& ids, const TokenRows&, int64_t first) const override {
    SkipGramPairs pairs;
    for (int64_t r = 0; r < ids.rows(); ++r)
      pairs_.add_pairs(options_.seed, first + r, ids.row(r), ids.width(), pairs);
    const int64_t N = std::ssize(pairs.tokens), K = std::ssize(pairs.others) / N;
    Batch batch;
    batch.source.ids = tensor_of(pairs.tokens, {N});
    batch.labels = tensor_of(pairs.others, {N, K});
    batch.predictions = N;
    batch.tokens = ids.size();
    return batch;
  }

 private:
  SkipGram pairs_;
};

// Trains vectors of tokens without a Transformer.
class SkipGramTask : public TextTask {
 public:
  SkipGramTask(const TrainOptions& options, Purpose purpose)
      : TextTask(options, purpose, Objective::skip_gram) {
    traits_.shares_steps = false;
    check_field(options_.from.empty(), "from",
                "given with skip_gram, which trains a new table; expected none");
    check_field(options_.distillation.teacher.empty(), "teacher",
                "given with skip_gram; expected another objective");
  }

  void shape(model::Spec& spec, const text::Tokenizer& tokenizer, const model::Origin& origin,
             const Say& say) override {
    spec = model::static_spec(tokenizer.size(), spec);
    TextTask::shape(spec, tokenizer, origin, say);
    spec.padding = -1;
  }
  PassSize loaded_size(const model::Spec& spec) const override { return pass_size(spec); }

  std::unique_ptr<Examples> examples(const model::Spec& spec,
                                     const text::TranslationTokenizers& tokenizers,
                                     const model::Origin& origin, bool read_only,
                                     const Say& say) override {
    vocabulary_ = spec.vocabulary;
    return TextTask::examples(spec, tokenizers, origin, read_only, say);
  }

  infer::Predictions predict_batches(const model::Transformer& model, DType, int64_t count,
                                     const std::function<Batch(int64_t n)>& batch) const override {
    const NoGradient off;
    infer::Predictions found;
    for (int64_t n = 0; n < count; ++n) {
      const Batch next = batch(n);
      found.loss += number_of(loss_of(model, next, 1));
      found.labels += next.predictions;
    }
    found.loss /= static_cast<double>(std::max<int64_t>(1, found.labels));
    return found;
  }
  std::string first_bad_tensor(model::Transformer& model, int64_t step) const override {
    // The batches are not those of examples. NOLINTNEXTLINE(bugprone-parent-virtual-call)
    return TrainingTask::first_bad_tensor(model, step);
  }
  // The table of neighbours is only in the snapshots.
  void write_model(const std::string& folder, model::Transformer& model) const override {
    model::write_static_model(folder, model.token_embedding.value, setting().tokenizers.source);
  }

 protected:
  std::unique_ptr<Examples> make_examples(const text::Tokenizer&, const model::Origin&,
                                          const WindowOptions& windows) const override {
    require(windows.length);
    check_field(windows.length > 1, "length", "{}; expected at least 2", windows.length);
    const SkipGramOptions options{options_.neighbours, options_.negatives, options_.subsampling};
    return std::make_unique<SkipGramExamples>(
        training_part(), held_out(), windows,
        SkipGram(options, counts_of(training_part(), vocabulary_)));
  }

  Tensor loss(const model::Transformer& model, const Batch& batch, const model::Pass&,
              double divisor) const override {
    return loss_of(model, batch, divisor);
  }

 private:
  static Tensor loss_of(const model::Transformer& model, const Batch& batch, double divisor) {
    return skip_gram_loss(model.token_embedding.value, model.head.output.weight.value,
                          batch.source.ids, batch.labels, divisor);
  }

  int64_t vocabulary_ = 0;
};

}  // namespace

std::unique_ptr<ExamplesTask> make_skip_gram_task(const TrainOptions& options,
                                                  ExamplesTask::Purpose purpose) {
  return std::make_unique<SkipGramTask>(options, purpose);
}

}  // namespace fovea::train

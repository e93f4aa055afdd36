#include "base/error.h"
#include "data/train_tokenizer.h"
#include "train/task.h"

namespace fovea {
namespace {

// To go on with a text.
class TextTask : public Task {
 public:
  explicit TextTask(const TrainOptions& options)
      : Task(options),
        corpus_(std::vector<std::filesystem::path>(options.data.begin(), options.data.end())) {}

  Tokenizer make_tokenizer(const Spec& spec) override {
    return fovea::make_tokenizer(corpus_, options_.tokenizer, options_.max_vocabulary,
                                 spec.context);
  }

  void shape(Spec& spec, const Tokenizer&, const Origin&, const Say&) override {
    check(spec.decoder && !spec.encoder && spec.head.kind == HeadKind::language_model,
          "spec: to go on with a text takes a decoder alone with a language model's head; expected "
          "such a model, or another --objective");
  }

  Cost cost(const Spec& spec, DType compute) const override {
    return training_cost(spec, options_.batch, spec.context, options_.accumulate, compute);
  }

  std::unique_ptr<Examples> examples(const Spec& spec, const Tokenizer& tokenizer, const Origin&,
                                     bool read_only, const Say&) override {
    store_.emplace(
        corpus_, tokenizer,
        TokenStoreOptions{
            .validation = options_.validation,
            .cache = read_only ? std::filesystem::path() : std::filesystem::path(options_.out),
            .in_memory_bytes = static_cast<int64_t>(options_.token_cache)});
    const int64_t count = store_->training().count;
    check(count > spec.context,
          "{}: too short: {} tokens to learn from; expected at least {}, one more than --context",
          fmt::join(options_.data, ", "), count, spec.context + 1);
    auto examples =
        std::make_unique<TextExamples>(store_->training(), store_->validation(), spec.context,
                                       options_.batch, options_.evaluate_windows, options_.seed);
    examples->hash = store_->corpus_hash();
    return examples;
  }

 private:
  Corpus corpus_;
  std::optional<TokenStore> store_;
};

}  // namespace

std::unique_ptr<Task> make_text_task(const TrainOptions& options) {
  return std::make_unique<TextTask>(options);
}

}  // namespace fovea

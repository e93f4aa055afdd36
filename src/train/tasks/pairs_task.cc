#include <algorithm>

#include "base/fields.h"
#include "base/machine.h"
#include "data/conversations.h"
#include "data/task_tokenizer.h"
#include "data/text_pairs.h"
#include "fovea/core/excerpt.h"
#include "generate/translation.h"
#include "loop/examples_task.h"
#include "loop/shared_evaluation.h"
#include "loop/special_tokens.h"
#include "tasks/length_examples.h"
#include "tasks/sequences.h"

namespace fovea::train {
namespace {

// Estimated tokens per sentence, for the plan.
constexpr int64_t kUsualSentence = 32;
constexpr size_t kShownBytes = 60;  // of a text in the plan

// Sources and targets, including special tokens.
struct TokenPairs {
  Sequences sources, targets;
  int64_t bytes = 0;  // bytes of the text of the targets
};

// The decoder reads `start` and then the target, and predicts each token of the target.
struct PairTokens {
  int32_t start = 0, padding = 0;
};

LengthBatches batches_of(const TokenPairs& pairs, int64_t budget, uint64_t seed) {
  std::vector<LengthBatches::Lengths> lengths;
  for (int64_t i = 0; i < pairs.sources.count(); ++i) {
    lengths.push_back({static_cast<int32_t>(pairs.sources.length(i)),
                       static_cast<int32_t>(pairs.targets.length(i))});
  }
  return LengthBatches(lengths, budget, 0, seed);
}

Examples::Part part_of(const TokenPairs& pairs) {
  return {pairs.sources.count(), pairs.sources.total() + pairs.targets.total(),
          pairs.targets.total(), pairs.bytes};
}

class PairExamples : public LengthExamples<TokenPairs> {
 public:
  // `batch_tokens`: maximum number of tokens, including padding, of the sources of a batch, and of
  // its targets.
  PairExamples(TokenPairs training, TokenPairs validation, int64_t batch_tokens, PairTokens tokens,
               uint64_t seed)
      : LengthExamples(
            std::move(training), std::move(validation),
            [=](const TokenPairs& pairs) { return batches_of(pairs, batch_tokens, seed); },
            part_of),
        tokens_(tokens) {}

 private:
  // Each row begins with its tokens; padding follows them. No query sees the padding of a source;
  // the padding of a target has no labels.
  Batch of(const TokenPairs& pairs, const std::vector<int64_t>& samples) const override {
    const int64_t T = pairs.targets.longest(samples);
    Batch batch;
    batch.source.ids = pairs.sources.rows(samples, pairs.sources.longest(samples), tokens_.padding);
    batch.labels = pairs.targets.rows(samples, T, -1);
    batch.target.ids = pairs.targets.shifted_rows(samples, T, tokens_.padding, tokens_.start);
    batch.units = units_of_rows(std::ssize(samples));
    for (const int64_t i : samples) {
      const int64_t read = pairs.sources.length(i), predicted = pairs.targets.length(i);
      batch.source_valid.push_back({0, read});
      batch.predictions += predicted;
      batch.tokens += read + predicted;
    }
    return batch;
  }

  PairTokens tokens_;
};

// Predicts the target text of a source text.
class PairsTask : public ExamplesTask {
 public:
  PairsTask(const TrainOptions& options, Purpose purpose)
      : ExamplesTask(options, purpose),
        training_(options.pairs.empty() ? read_pairs_of_messages(options.data, "data")
                                        : read_pairs(options.pairs, "pairs")) {
    check_field(options.chat_template.empty(), "chat_template",
                "does not suit an encoder-decoder; expected none");
    if (purpose == Purpose::measure) {
      if (options.evaluate_windows > 0) shorten(training_, options.evaluate_windows);
      return;
    }
    if (!options.validation_pairs.empty()) {
      validation_ = read_pairs(options.validation_pairs, "validation_pairs");
      return;
    }
    if (!options.validation_chats.empty()) {
      validation_ = read_pairs_of_messages(options.validation_chats, "validation_chats");
      return;
    }
    const auto all = static_cast<double>(training_.sources.size());
    const auto kept = static_cast<std::ptrdiff_t>(all * (1 - options.validation));
    for (auto side : {&TextPairs::sources, &TextPairs::targets}) {
      auto& texts = training_.*side;
      (validation_.*side).assign(texts.begin() + kept, texts.end());
      texts.resize(static_cast<size_t>(kept));
    }
  }

  text::Tokenizer make_tokenizer(const model::Spec& spec) override {
    const EachText both = [this](const auto& use) {
      for (const auto* side : {&training_.sources, &training_.targets})
        for (const std::string& text : *side) use(text);
    };
    return make_task_tokenizer(TokenizerUse::translation, both, options_.tokenizer, spec.context);
  }

  void shape(model::Spec& spec, const text::Tokenizer& tokenizer, const model::Origin& origin,
             const Say&) override {
    check_field(spec.encoder && spec.decoder && spec.input.kind == model::InputKind::tokens &&
                    spec.head.kind == model::HeadKind::language_model,
                options_.pairs.empty() ? "data" : "pairs",
                "the model is not a text encoder-decoder with a language-model head; expected "
                "one, such as the preset translate");
    if (origin.family == nullptr) set_padding(spec, tokenizer);
  }

  PassSize pass_size(const model::Spec& spec) const override {
    const int64_t length = std::min(spec.context, kUsualSentence);
    return {std::max<int64_t>(1, options_.batch_tokens / length), length};
  }

  model::Origin origin(const model::Spec& spec, const text::Tokenizer& tokenizer) const override {
    return encoder_decoder_origin(spec, tokenizer);
  }

  std::unique_ptr<Examples> examples(const model::Spec& spec,
                                     const text::TranslationTokenizers& tokenizers,
                                     const model::Origin& origin, bool, const Say& say) override {
    const text::Tokenizer& tokenizer = tokenizers.target;
    check(end_id(tokenizer).has_value(),
          "tokenizer: it has no end-of-text token; expected eos_token in "
          "tokenizer_config.json, or a token </s>");
    PairTokens tokens;
    tokens.start = decoder_start(tokenizer, origin);
    tokenizers_ = tokenizers;
    rules_ = infer::rules_of(origin, {*end_id(tokenizer)});
    rules_.start = tokens.start;
    tokens.padding =
        static_cast<int32_t>(spec.padding >= 0 ? spec.padding : padding_id(tokenizer).value_or(0));
    if (purpose_ == Purpose::train && !training_.sources.empty())
      say(fmt::format("the first pair is \"{}\" and its target \"{}\"",
                      excerpt(training_.sources.front(), kShownBytes),
                      excerpt(training_.targets.front(), kShownBytes)));
    if (training_.empty + validation_.empty > 0) {
      say(fmt::format("{} pairs with an empty side are skipped",
                      training_.empty + validation_.empty));
    }
    TokenPairs learnt = tokenized(training_, spec, tokenizers), held_out = learnt;
    if (purpose_ == Purpose::train) {
      held_out = tokenized(validation_, spec, tokenizers);
      SpecialNames names(tokenizer);
      for (const auto* side : {&training_.sources, &training_.targets})
        for (const std::string& text : *side) names.add(text);
      say_names(names, say);
    }
    if (too_long_ > 0) {
      say(fmt::format("{} pairs longer than {} tokens (the context) are skipped", too_long_,
                      spec.context));
    }
    check(learnt.sources.count() > 0,
          "{}: no pairs are left for training; expected at least one of at most {} tokens, the "
          "context",
          (options_.pairs.empty() ? options_.data : options_.pairs).front(), spec.context);
    auto examples = std::make_unique<PairExamples>(std::move(learnt), std::move(held_out),
                                                   options_.batch_tokens, tokens, options_.seed);
    examples->hash = training_.hash ^ validation_.hash;
    return examples;
  }

  infer::EvaluationTask evaluation() const override {
    infer::EvaluationTask task = infer::evaluation_task("pairs");
    if (options_.bleu_lines == 0) {
      task.metrics.clear();
      task.decisive = "loss";
    }
    return task;
  }

  // Adds greedy translations of the first held-out sources to the predictions.
  infer::Predictions predict(const model::Transformer& model) const override {
    infer::Predictions found = ExamplesTask::predict(model);
    const int64_t count = evaluated(std::min(std::ssize(validation_.sources), options_.bleu_lines));
    if (count == 0) return found;
    infer::TranslateOptions greedy;
    greedy.beams = 1;
    greedy.source_prefix = options_.source_prefix;
    const infer::Generator translator{.model = model,
                                      .tokenizer = &tokenizers_->target,
                                      .rules = rules_,
                                      .compute = compute(),
                                      .source = &tokenizers_->source};
    const auto translate = [&](int64_t begin, int64_t end) {
      std::vector<std::string> texts;
      infer::translate(
          translator, greedy, available_memory() / 2,
          [&]() -> std::optional<std::string> {
            if (begin == end) return std::nullopt;
            return validation_.sources[static_cast<size_t>(begin++)];
          },
          [&](const infer::Translation& translation) {
            texts.push_back(translation.best[0].text);
            return true;
          });
      return texts;
    };
    auto& translations = found.translations.emplace();
    for (std::string& text : share_texts(options_.ranks, count, translate))
      translations.emplace_back(std::move(text), validation_.targets[translations.size()]);
    return found;
  }

 private:
  TokenPairs tokenized(const TextPairs& texts, const model::Spec& spec,
                       const text::TranslationTokenizers& tokenizers) {
    TokenPairs pairs;
    for (size_t i = 0; i < texts.sources.size(); ++i) {
      const std::vector<int32_t> source = translation_ids(
                                     tokenizers.source, options_.source_prefix + texts.sources[i]),
                                 target = translation_ids(tokenizers.target, texts.targets[i]);
      if (std::ssize(source) > spec.context || std::ssize(target) > spec.context) {
        ++too_long_;
        continue;
      }
      pairs.sources.add(source);
      pairs.targets.add(target);
      pairs.bytes += std::ssize(texts.targets[i]);
    }
    return pairs;
  }

  TextPairs training_, validation_;
  int64_t too_long_ = 0;
  std::optional<text::TranslationTokenizers> tokenizers_;  // for translation
  infer::GenerationRules rules_;
};

}  // namespace

std::unique_ptr<ExamplesTask> make_pairs_task(const TrainOptions& options,
                                              ExamplesTask::Purpose purpose) {
  return std::make_unique<PairsTask>(options, purpose);
}

}  // namespace fovea::train

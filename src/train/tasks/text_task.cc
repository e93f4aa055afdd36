#include <algorithm>

#include "base/fields.h"
#include "data/task_tokenizer.h"
#include "data/train_tokenizer.h"
#include "fovea/excerpt.h"
#include "train/tasks/examples_task.h"
#include "train/tasks/special_tokens.h"
#include "train/tasks/window_examples.h"

namespace fovea {
namespace {

// A checkpoint may have a longer context than is useful for training.
constexpr int64_t kWindowOfCheckpoint = 1024;

// Predicts the next token of a text, its masked tokens, or spans cut out of it.
class TextTask : public ExamplesTask {
 public:
  TextTask(const TrainOptions& options, Purpose purpose, Objective objective)
      : ExamplesTask(options, purpose),
        objective_(objective),
        corpus_(std::vector<std::filesystem::path>(options.data.begin(), options.data.end())) {}

  void watch(const std::function<bool(double fraction)>& watch) override { corpus_.watch(watch); }

  Tokenizer make_tokenizer(const Spec& spec) override {
    if (objective_ == Objective::next_token) {
      return fovea::make_tokenizer(corpus_, options_.tokenizer, options_.max_vocabulary,
                                   spec.context);
    }
    const EachText pieces = [this](const auto& use) {
      corpus_.read([&](const Corpus::Piece& piece) { use(piece.text); });
    };
    const bool masked = objective_ == Objective::masked;
    return make_task_tokenizer(masked ? TokenizerUse::masking : TokenizerUse::spans, pieces,
                               options_.tokenizer, spec.context);
  }

  void shape(Spec& spec, const Tokenizer& tokenizer, const Origin& origin,
             const Say& say) override {
    if (const auto& links = corpus_.links_out(); !links.empty()) {
      say(fmt::format("{} links that lead out of their folder are skipped; the first is {}",
                      links.size(), excerpt(links[0].string(), 200)));
    }
    const bool words = spec.head.kind == HeadKind::language_model;
    const bool reads_text = spec.input.kind == InputKind::tokens;
    if (objective_ == Objective::next_token) {
      check(spec.decoder && !spec.encoder && words,
            "spec: does not suit the next-token objective; expected a decoder without an encoder, "
            "with a language-model head, or another `objective`");
    } else if (objective_ == Objective::masked) {
      check_field(spec.encoder && !spec.decoder && words && reads_text, objective_field(options_),
                  "masked does not suit the model; expected a text encoder with a language-model "
                  "head");
    } else {
      check_field(spec.encoder && spec.decoder && words && reads_text, objective_field(options_),
                  "spans does not suit the model; expected a text encoder-decoder with a "
                  "language-model head");
    }
    if (options_.document_mask) check_document_mask(spec);
    if (origin.family == nullptr && spec.encoder) set_padding(spec, tokenizer);
  }

  PassSize pass_size(const Spec& spec) const override {
    return {options_.batch, reads_at_once(spec)};
  }

  Origin origin(const Spec& spec, const Tokenizer& tokenizer) const override {
    return objective_ == Objective::spans ? encoder_decoder_origin(spec, tokenizer) : Origin();
  }

  std::unique_ptr<Examples> examples(const Spec& spec, const TranslationTokenizers& tokenizers,
                                     const Origin& origin, bool read_only,
                                     const Say& say) override {
    const Tokenizer& tokenizer = tokenizers.source;
    SpecialNames names(tokenizer);
    store_.emplace(corpus_, tokenizer,
                   TokenStoreOptions{.validation = options_.validation,
                                     .cache = read_only ? std::filesystem::path()
                                                        : std::filesystem::path(options_.out),
                                     .in_memory_bytes = static_cast<int64_t>(options_.token_cache),
                                     .names = purpose_ == Purpose::train ? &names : nullptr});
    say_names(names, say);
    WindowOptions windows{.length = reads_at_once(spec),
                          .batch = options_.batch,
                          .most = options_.evaluate_windows,
                          .seed = options_.seed,
                          .fixed = !options_.distillation.teacher.empty(),
                          .separator = separator(tokenizer)};
    std::unique_ptr<Examples> examples;
    if (objective_ == Objective::next_token) {
      require(windows.length);
      examples = std::make_unique<NextTokenExamples>(store_->training(), held_out(), windows);
    } else if (objective_ == Objective::masked) {
      examples = masked(tokenizer, windows);
    } else {
      examples = spans(tokenizer, origin, windows);
    }
    examples->hash = store_->corpus_hash();
    return examples;
  }

  EvaluationTask evaluation() const override { return evaluation_task(name_of(objective_)); }

  // Masks and spans are drawn anew.
  bool repeats() const override { return objective_ == Objective::next_token; }

 private:
  const TokenSpan& held_out() const {
    return purpose_ == Purpose::measure ? store_->training() : store_->validation();
  }

  void check_document_mask(const Spec& spec) const {
    check_field(objective_ != Objective::spans, "document_mask",
                "does not suit objective spans; expected objective next_token or masked");
    check_field(corpus_.separates_documents(), "document_mask",
                "the data is one document; expected several files, or JSON lines");
    if (!spec.decoder) return;
    const std::vector<MixerKind>& mixers = spec.decoder->mixers;
    const auto recurrent = std::find_if(mixers.begin(), mixers.end(), [](MixerKind mixer) {
      return mixer != MixerKind::attention && mixer != MixerKind::latent;
    });
    check_field(recurrent == mixers.end(), "document_mask",
                "does not suit recurrent layers, whose state continues in the next document; "
                "expected a model without them");
  }

  // Returns the token that separates documents, if tokens attend within their document only.
  std::optional<int32_t> separator(const Tokenizer& tokenizer) const {
    if (!options_.document_mask) return {};
    check_field(tokenizer.eos_id().has_value(), "document_mask",
                "the tokenizer has no end-of-text token to separate documents; expected another "
                "`tokenizer`");
    return tokenizer.eos_id();
  }

  int64_t reads_at_once(const Spec& spec) const {
    if (options_.length > 0) return std::min(options_.length, spec.context);
    return options_.from.empty() ? spec.context : std::min(spec.context, kWindowOfCheckpoint);
  }

  void require(int64_t window) const {
    const int64_t count = store_->training().count;
    check(
        count > window,
        "{}: too short: {} tokens for training; expected at least {}, one more than a sequence has "
        "(`length`, or `context`)",
        fmt::join(options_.data, ", "), count, window + 1);
  }

  std::unique_ptr<Examples> masked(const Tokenizer& tokenizer, WindowOptions windows) const {
    Masking masking{.share = options_.mask, .mask = 0, .ordinary = {}};
    const auto mask = first_id(tokenizer, {"[MASK]", "<mask>"});
    check_field(mask.has_value(), "objective",
                "masked: the tokenizer has no mask token; expected [MASK] or <mask>");
    masking.mask = *mask;
    for (int32_t id = 0; id < tokenizer.size(); ++id)
      if (!tokenizer.is_special(id)) masking.ordinary.push_back(id);
    const Around around = around_text(tokenizer);
    windows.length -= std::ssize(around.before) + std::ssize(around.after);
    check_field(windows.length >= 1, "context",
                "leaves {} tokens for text besides the special tokens; expected at least 1",
                windows.length);
    check_field(!masking.ordinary.empty(), "tokenizer",
                "has only special tokens; expected ordinary tokens too");
    require(windows.length);
    return std::make_unique<MaskedExamples>(store_->training(), held_out(), windows, masking,
                                            around.before, around.after);
  }

  std::unique_ptr<Examples> spans(const Tokenizer& tokenizer, const Origin& origin,
                                  WindowOptions windows) const {
    SpanCutting cutting{.share = options_.mask, .mean_span = options_.mean_span, .gaps = {}};
    while (const auto gap = tokenizer.id_of(fmt::format("<extra_id_{}>", cutting.gaps.size())))
      cutting.gaps.push_back(*gap);
    check_field(!cutting.gaps.empty() && tokenizer.eos_id(), "objective",
                "spans: the tokenizer has no {}; expected another tokenizer",
                cutting.gaps.empty() ? "tokens <extra_id_0>, ..." : "end-of-text token");
    cutting.end = *tokenizer.eos_id();
    check_field(windows.length >= 4, "context", "{}; expected at least 4 for spans",
                windows.length);
    windows.length = cutting.longest_window(windows.length);
    require(windows.length);
    check_field(cutting.spans(windows.length) <= std::ssize(cutting.gaps), "length",
                "a sequence has {} spans, but the tokenizer has {} tokens for spans; expected a "
                "shorter sequence or longer spans",
                cutting.spans(windows.length), cutting.gaps.size());
    return std::make_unique<SpanExamples>(store_->training(), held_out(), windows, cutting,
                                          decoder_start(tokenizer, origin));
  }

  Objective objective_;
  Corpus corpus_;
  std::optional<TokenStore> store_;
};

}  // namespace

std::unique_ptr<ExamplesTask> make_text_task(const TrainOptions& options,
                                             ExamplesTask::Purpose purpose, Objective objective) {
  return std::make_unique<TextTask>(options, purpose, objective);
}

}  // namespace fovea

#include "tasks/text_task.h"

#include <algorithm>

#include "base/fields.h"
#include "data/conversations.h"
#include "data/task_tokenizer.h"
#include "data/train_tokenizer.h"
#include "fovea/core/excerpt.h"

namespace fovea::train {
namespace {

// A checkpoint may have a longer context than is useful for training.
constexpr int64_t kWindowOfCheckpoint = 1024;

void check_shape(Objective objective, const TrainOptions& options, const model::Spec& spec) {
  const bool words = spec.head.kind == model::HeadKind::language_model;
  const bool reads_text = spec.input.kind == model::InputKind::tokens;
  if (objective == Objective::next_token) {
    check(spec.decoder && !spec.encoder && words,
          "spec: does not suit the next-token objective; expected a decoder without an encoder, "
          "with a language-model head, or another `objective`");
  } else if (objective == Objective::masked) {
    check_field(spec.encoder && !spec.decoder && words && reads_text, objective_field(options),
                "masked does not suit the model; expected a text encoder with a language-model "
                "head");
  } else if (objective == Objective::spans) {
    check_field(spec.encoder && spec.decoder && words && reads_text, objective_field(options),
                "spans does not suit the model; expected a text encoder-decoder with a "
                "language-model head");
  }
}

// Returns the files of the options, of which only those for training may have weights.
Corpus corpus_of(const TrainOptions& options, ExamplesTask::Purpose purpose) {
  std::vector<Conversations::File> files;
  for (const std::string& given : options.data) files.push_back(weighted_file(given));
  if (purpose == ExamplesTask::Purpose::measure) check_unweighted(files, "data");
  std::vector<std::filesystem::path> paths;
  std::vector<double> weights;
  for (const auto& [path, weight] : files) {
    paths.emplace_back(path);
    weights.push_back(weight);
  }
  return Corpus(paths, weights);
}

}  // namespace

TextTask::TextTask(const TrainOptions& options, Purpose purpose, Objective objective)
    : ExamplesTask(options, purpose,
                   {.repeats = objective == Objective::next_token}),  // others are drawn anew
      objective_(objective),
      corpus_(corpus_of(options, purpose)) {}

text::Tokenizer TextTask::make_tokenizer(const model::Spec& spec) {
  if (objective_ == Objective::next_token) {
    return train::make_tokenizer(corpus_, options_.tokenizer, options_.max_vocabulary,
                                 spec.context);
  }
  const EachText pieces = [this](const auto& use) {
    corpus_.read([&](const Corpus::Piece& piece) { use(piece.text); });
  };
  const bool spans = objective_ == Objective::spans;
  return make_task_tokenizer(spans ? TokenizerUse::spans : TokenizerUse::masking, pieces,
                             options_.tokenizer, spec.context);
}

void TextTask::shape(model::Spec& spec, const text::Tokenizer& tokenizer,
                     const model::Origin& origin, const Say& say) {
  if (const auto& links = corpus_.links_out(); !links.empty()) {
    say(fmt::format("{} links that lead out of their folder are skipped; the first is {}",
                    links.size(), excerpt(links[0].string(), 200)));
  }
  check_shape(objective_, options_, spec);
  if (options_.document_mask) check_document_mask(spec);
  if (origin.family == nullptr && spec.encoder) set_padding(spec, tokenizer);
}

model::Origin TextTask::origin(const model::Spec& spec, const text::Tokenizer& tokenizer) const {
  return objective_ == Objective::spans ? encoder_decoder_origin(spec, tokenizer) : model::Origin();
}

std::unique_ptr<Examples> TextTask::examples(const model::Spec& spec,
                                             const text::TranslationTokenizers& tokenizers,
                                             const model::Origin& origin, bool read_only,
                                             const Say& say) {
  const text::Tokenizer& tokenizer = tokenizers.source;
  SpecialNames names(tokenizer);
  store_.emplace(corpus_, tokenizer,
                 TokenStoreOptions{.validation = options_.validation,
                                   .cache = std::filesystem::path(options_.out),
                                   .writes = !read_only,
                                   .in_memory_bytes = static_cast<int64_t>(options_.token_cache),
                                   .names = purpose_ == Purpose::train ? &names : nullptr});
  say_names(names, say);
  const WindowOptions windows{.length = reads_at_once(spec),
                              .batch = options_.batch,
                              .most = options_.evaluate_windows,
                              .seed = options_.seed,
                              .fixed = !options_.distillation.teacher.empty(),
                              .separator = separator(tokenizer)};
  auto examples = make_examples(tokenizer, origin, windows);
  examples->hash = store_->corpus_hash();
  return examples;
}

std::unique_ptr<Examples> TextTask::make_examples(const text::Tokenizer& tokenizer,
                                                  const model::Origin& origin,
                                                  const WindowOptions& windows) const {
  if (objective_ == Objective::spans) return spans(tokenizer, origin, windows);
  if (objective_ == Objective::masked) {
    WindowOptions of_text = windows;
    const auto [masking, around] = masked_text(tokenizer, of_text);
    return std::make_unique<MaskedExamples>(training_part(), held_out(), of_text, masking,
                                            around.before, around.after);
  }
  require(windows.length);
  return std::make_unique<NextTokenExamples>(training_part(), held_out(), windows);
}

void TextTask::check_document_mask(const model::Spec& spec) const {
  check_field(corpus_.separates_documents(), "document_mask",
              "the data is one document; expected several files, or JSON lines");
  if (!spec.decoder) return;
  const std::vector<model::MixerKind>& mixers = spec.decoder->mixers;
  const bool recurrent = std::any_of(mixers.begin(), mixers.end(), [](model::MixerKind mixer) {
    return model::is_recurrent(mixer);
  });
  check_field(!recurrent, "document_mask",
              "does not suit recurrent layers, whose state continues in the next document; "
              "expected a model without them");
}

// Returns the token that separates documents, if tokens attend within their document only.
std::optional<int32_t> TextTask::separator(const text::Tokenizer& tokenizer) const {
  if (!options_.document_mask) return {};
  check_field(tokenizer.eos_id().has_value(), "document_mask",
              "the tokenizer has no end-of-text token to separate documents; expected another "
              "`tokenizer`");
  return tokenizer.eos_id();
}

int64_t TextTask::reads_at_once(const model::Spec& spec) const {
  if (options_.length > 0) return std::min(options_.length, spec.context);
  return options_.from.empty() ? spec.context : std::min(spec.context, kWindowOfCheckpoint);
}

TextMixture TextTask::training_part() const {
  TextMixture texts;
  for (size_t part = 0; part < store_->parts().size(); ++part)
    texts.push_back({store_->parts()[part].training, corpus_.weights()[part]});
  return texts;
}

TextMixture TextTask::held_out() const {
  TextMixture texts;
  for (const auto& [training, validation] : store_->parts())
    texts.push_back({purpose_ == Purpose::measure ? training : validation});
  return texts;
}

void TextTask::require(int64_t window) const {
  for (size_t part = 0; part < store_->parts().size(); ++part) {
    const int64_t count = store_->parts()[part].training.count;
    const std::string name = store_->parts().size() == 1
                                 ? fmt::format("{}", fmt::join(options_.data, ", "))
                                 : options_.data[part];
    check(
        count > window,
        "{}: too short: {} tokens for training; expected at least {}, one more than a sequence has "
        "(`length`, or `context`)",
        name, count, window + 1);
  }
}

TextTask::MaskedText TextTask::masked_text(const text::Tokenizer& tokenizer,
                                           WindowOptions& windows) const {
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
  return {masking, around};
}

std::unique_ptr<Examples> TextTask::spans(const text::Tokenizer& tokenizer,
                                          const model::Origin& origin,
                                          WindowOptions windows) const {
  SpanCutting cutting{.share = options_.mask, .mean_span = options_.mean_span, .gaps = {}};
  while (const auto gap = tokenizer.id_of(fmt::format("<extra_id_{}>", cutting.gaps.size())))
    cutting.gaps.push_back(*gap);
  check_field(!cutting.gaps.empty() && tokenizer.eos_id(), "objective",
              "spans: the tokenizer has no {}; expected another tokenizer",
              cutting.gaps.empty() ? "tokens <extra_id_0>, ..." : "end-of-text token");
  cutting.end = *tokenizer.eos_id();
  check_field(windows.length >= 4, "context", "{}; expected at least 4 for spans", windows.length);
  windows.length = cutting.longest_window(windows.length);
  require(windows.length);
  check_field(cutting.spans(windows.length) <= std::ssize(cutting.gaps), "length",
              "a sequence has {} spans, but the tokenizer has {} tokens for spans; expected a "
              "shorter sequence or longer spans",
              cutting.spans(windows.length), cutting.gaps.size());
  return std::make_unique<SpanExamples>(training_part(), held_out(), windows, cutting,
                                        decoder_start(tokenizer, origin));
}

std::unique_ptr<ExamplesTask> make_text_task(const TrainOptions& options,
                                             ExamplesTask::Purpose purpose, Objective objective) {
  return std::make_unique<TextTask>(options, purpose, objective);
}

}  // namespace fovea::train

#include "tasks/speech_task.h"

#include <algorithm>
#include <cmath>

#include "base/fields.h"
#include "base/files.h"
#include "base/machine.h"
#include "base/threads.h"
#include "families/languages.h"
#include "fovea/core/excerpt.h"
#include "loop/examples_task.h"
#include "tasks/speech_examples.h"
#include "transcribe/transcribe_texts.h"

namespace fovea::train {
namespace {

// Estimated tokens of a text, for the plan.
constexpr int64_t kUsualTranscript = 64;
constexpr const char* kPreprocessor = "preprocessor_config.json";

void move_recording(Recordings& from, size_t i, Recordings& to) {
  for (auto list :
       {&Recordings::files, &Recordings::texts, &Recordings::languages, &Recordings::places})
    (to.*list).push_back(std::move((from.*list)[i]));
}

// Replaces the languages by their codes, as the model's tokens have them.
void settle_languages(const infer::SpeechTokens& tokens, Recordings& recordings) {
  for (size_t i = 0; i < recordings.files.size(); ++i) {
    std::string& language = recordings.languages[i];
    if (!tokens.multilingual()) {
      language.clear();
      continue;
    }
    const auto code = model::language_code(language);
    if (!code || !tokens.languages.contains(*code))
      fail(
          ErrorKind::BadFile, "{}: {}; expected a language of the model, which knows {}",
          recordings.places[i],
          language.empty() ? "has no language" : excerpt(language) + " is no language of the model",
          tokens.languages.size());
    language = *code;
  }
}

// Predicts the text that is spoken in a sound.
class SpeechTask : public ExamplesTask {
 public:
  SpeechTask(const TrainOptions& options, Purpose purpose)
      : ExamplesTask(options, purpose),
        training_(read_recordings(options.pairs.empty() ? options.data : options.pairs)) {
    if (purpose == Purpose::measure) return;
    if (options.validation_pairs.empty())
      hold_out();
    else
      validation_ = read_recordings(options.validation_pairs);
  }

  text::Tokenizer make_tokenizer(const model::Spec&) override {
    fail_field(ErrorKind::InvalidArgument, "from",
               "not given; expected a model that reads sound, with its tokenizer");
  }

  void shape(model::Spec& spec, const text::Tokenizer&, const model::Origin& origin,
             const Say&) override {
    check_field(origin.family != nullptr, "from",
                "not given; expected a model that reads sound, with its tokenizer");
    check_field(spec.decoder && spec.head.kind == model::HeadKind::language_model, "from",
                "the model writes no text; expected one that transcribes sound");
  }

  // The sound is what the encoder reads, and the plan counts it.
  PassSize pass_size(const model::Spec& spec) const override {
    return {options_.batch, std::min(spec.context, kUsualTranscript)};
  }
  PassSize loaded_size(const model::Spec& spec) const override { return pass_size(spec); }

  infer::EvaluationTask evaluation() const override {
    infer::EvaluationTask task = infer::evaluation_task("speech");
    if (options_.bleu_lines > 0) return task;
    task.metrics.clear();
    task.decisive = "loss";
    return task;
  }

  std::unique_ptr<Examples> examples(const model::Spec& spec,
                                     const text::TranslationTokenizers& tokenizers,
                                     const model::Origin& origin, bool, const Say& say) override {
    const text::Tokenizer& tokenizer = tokenizers.source;
    ends_ = model::ids_under(origin.generation.is_object() ? origin.generation : origin.carried,
                             "eos_token_id");
    const infer::SpeechTokens tokens = infer::speech_tokens(origin, spec, tokenizer, ends_);
    tokenizer_ = tokenizer;
    settle_languages(tokens, training_);
    settle_languages(tokens, validation_);
    const SpeechExamples::Settings settings{spec.input.bins, 2 * spec.input.frames,
                                            options_.batch,  tokens.start,
                                            tokens.end,      options_.seed};
    SpeechPairs learnt = tokenized(training_, tokens, spec), held_out = learnt;
    if (purpose_ == Purpose::train) held_out = tokenized(validation_, tokens, spec);
    if (training_.empty + validation_.empty > 0)
      say(fmt::format("{} recordings without a text are skipped",
                      training_.empty + validation_.empty));
    if (skipped_ > 0)
      say(
          fmt::format("{} recordings that are longer than {} s, or whose text has more than {} "
                      "tokens, are skipped",
                      skipped_, spec.input.frames / 50, spec.context));
    check(learnt.labels.count() > 0,
          "{}: no recordings are left; expected at least one of at most {} s, the window of the "
          "model",
          training_.places.empty() ? "data" : training_.places.front(), spec.input.frames / 50);
    auto examples =
        std::make_unique<SpeechExamples>(std::move(learnt), std::move(held_out), settings);
    examples->hash = training_.hash ^ validation_.hash;
    return examples;
  }

  // Adds greedy transcripts of the first held-out recordings.
  infer::Predictions predict(const model::Transformer& model) const override {
    infer::Predictions found = ExamplesTask::predict(model);
    Recordings some = validation_;
    const auto most =
        static_cast<size_t>(evaluated(std::min(std::ssize(some.files), options_.bleu_lines)));
    some.files.resize(most);
    if (some.files.empty()) return found;
    const infer::Generator generator{model, &*tokenizer_, infer::rules_of(setting().origin, ends_),
                                     compute()};
    add_transcripts(generator, setting().origin, ends_, some, 1, {}, found);
    return found;
  }

  void write_fixed_files(const std::string& folder) const override {
    ExamplesTask::write_fixed_files(folder);
    const std::string path = options_.from + "/" + kPreprocessor;
    if (is_file(path)) write_file_atomically(folder + "/" + kPreprocessor, read_file(path));
  }

 private:
  // Holds out evenly spaced recordings, since a table may be sorted by speaker.
  void hold_out() {
    Recordings kept;
    kept.hash = training_.hash;
    kept.empty = training_.empty;
    const auto before = [&](size_t i) {
      return std::floor(static_cast<double>(i) * options_.validation);
    };
    for (size_t i = 0; i < training_.files.size(); ++i)
      move_recording(training_, i, before(i + 1) > before(i) ? validation_ : kept);
    training_ = std::move(kept);
  }

  // Leaves out recordings that do not fit into a window, also from the list.
  SpeechPairs tokenized(Recordings& recordings, const infer::SpeechTokens& tokens,
                        const model::Spec& spec) {
    const auto count = std::ssize(recordings.files);
    std::vector<char> fits(static_cast<size_t>(count));
    parallel_tasks(count, [&](int64_t i) {
      const auto n = static_cast<size_t>(i);
      fits[n] = fits_in_window(recordings.files[n], 2 * spec.input.frames);
    });
    SpeechPairs pairs;
    Recordings kept;
    kept.hash = recordings.hash;
    kept.empty = recordings.empty;
    for (size_t i = 0; i < recordings.files.size(); ++i) {
      const auto ids =
          infer::label_tokens(tokens, *tokenizer_, recordings.languages[i], recordings.texts[i]);
      if (fits[i] == 0 || std::ssize(ids) > spec.context) {
        ++skipped_;
        continue;
      }
      pairs.files.push_back(recordings.files[i]);
      pairs.labels.add(ids);
      pairs.bytes += std::ssize(recordings.texts[i]);
      move_recording(recordings, i, kept);
    }
    recordings = std::move(kept);
    return pairs;
  }

  Recordings training_, validation_;
  int64_t skipped_ = 0;
  std::vector<int32_t> ends_;
  std::optional<text::Tokenizer> tokenizer_;
};

}  // namespace

void add_transcripts(const infer::Generator& generator, const model::Origin& origin,
                     const std::vector<int32_t>& end_ids, const Recordings& recordings,
                     int64_t beams, const std::function<bool(int64_t done)>& advance,
                     infer::Predictions& found) {
  const model::Spec& spec = generator.model.spec;
  const infer::SpeechTokens tokens =
      infer::speech_tokens(origin, spec, *generator.tokenizer, end_ids);
  Recordings settled = recordings;
  settle_languages(tokens, settled);
  auto& texts = found.translations.emplace();
  const infer::WindowedSounds sounds{
      .count = std::ssize(settled.files),
      .spectrogram =
          [&](int64_t n) {
            return spectrogram_of_file(settled.files[static_cast<size_t>(n)], spec.input.bins,
                                       2 * spec.input.frames);
          },
      .language = [&](int64_t n) { return settled.languages[static_cast<size_t>(n)]; }};
  infer::transcribe_windows(generator, tokens, beams, sounds, available_memory() / 2,
                            [&](int64_t n, const std::string& text) {
                              texts.emplace_back(text, settled.texts[static_cast<size_t>(n)]);
                              return !advance || advance(n + 1);
                            });
}

std::unique_ptr<ExamplesTask> make_speech_task(const TrainOptions& options,
                                               ExamplesTask::Purpose purpose) {
  return std::make_unique<SpeechTask>(options, purpose);
}

}  // namespace fovea::train

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
#include "loop/shared_evaluation.h"
#include "tasks/speech_examples.h"
#include "transcribe/window_decoder.h"

namespace fovea::train {
namespace {

// Estimated tokens of a text, for the plan.
constexpr int64_t kUsualTranscript = 64;
constexpr size_t kTogether = 8;  // windows that are transcribed in one batch
constexpr const char* kPreprocessor = "preprocessor_config.json";

void move_recording(Recordings& from, size_t i, Recordings& to) {
  for (auto list :
       {&Recordings::files, &Recordings::texts, &Recordings::languages, &Recordings::locations})
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
          recordings.locations[i],
          language.empty() ? "has no language" : excerpt(language) + " is no language of the model",
          tokens.languages.size());
    language = *code;
  }
}

// The tokens between the start and the text.
std::vector<int32_t> task_tokens(const infer::SpeechTokens& tokens, const std::string& language) {
  std::vector<int32_t> ids;
  if (tokens.multilingual()) {
    ids.push_back(tokens.languages.at(language));
    if (tokens.transcribe >= 0) ids.push_back(tokens.transcribe);
  }
  ids.push_back(tokens.no_timestamps);
  return ids;
}

// The tokens of a text for a model that learns it: language, task, no times, the text, and the end.
// They follow the start token. `language`: a code; empty for a model of one language.
std::vector<int32_t> label_tokens(const infer::SpeechTokens& tokens,
                                  const text::Tokenizer& tokenizer, const std::string& language,
                                  const std::string& text) {
  std::vector<int32_t> ids = task_tokens(tokens, language);
  tokenizer.encode(text, ids);
  ids.push_back(tokens.end);
  return ids;
}

// Without times, without other temperatures.
infer::TranscribeOptions options_of_windows(int64_t beams) {
  infer::TranscribeOptions options;
  options.beams = beams;
  options.timestamps = false;
  options.temperatures = {0};
  options.no_speech = 1;
  options.windows = kTogether;
  return options;
}

// Predicts the text that is spoken in a recording.
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
               "not given; expected a model that reads audio, with its tokenizer");
  }

  void shape(model::Spec& spec, const text::Tokenizer&, const model::Origin& origin,
             const Say&) override {
    check_field(origin.family != nullptr, "from",
                "not given; expected a model that reads audio, with its tokenizer");
    check_field(spec.decoder && spec.head.kind == model::HeadKind::language_model, "from",
                "the model writes no text; expected one that transcribes audio");
  }

  // The audio is what the encoder reads, and the plan counts it.
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
          training_.locations.empty() ? "data" : training_.locations.front(),
          spec.input.frames / 50);
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
    add_transcripts(generator, setting().origin, ends_, some, 1, {}, options_.ranks, found);
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
          label_tokens(tokens, *tokenizer_, recordings.languages[i], recordings.texts[i]);
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
                     Communicator* ranks, infer::Predictions& found) {
  const model::Spec& spec = generator.model.spec;
  const infer::SpeechTokens tokens =
      infer::speech_tokens(origin, spec, *generator.tokenizer, end_ids);
  Recordings settled = recordings;
  settle_languages(tokens, settled);
  const infer::TranscribeOptions options = options_of_windows(beams);
  infer::WindowDecoder decoder(generator, tokens, options, available_memory() / 2);
  const auto transcribe = [&](int64_t begin, int64_t end) {
    std::vector<std::string> texts;
    for (auto first = static_cast<size_t>(begin); first < static_cast<size_t>(end);
         first += kTogether) {
      const size_t last = std::min(static_cast<size_t>(end), first + kTogether);
      std::vector<std::vector<float>> spectrograms;
      for (size_t n = first; n < last; ++n)
        spectrograms.push_back(
            spectrogram_of_file(settled.files[n], spec.input.bins, 2 * spec.input.frames));
      const std::vector<infer::EncodedAudio> encoded = decoder.encode(spectrograms);
      std::vector<infer::SpeechWindow> windows;
      for (size_t n = first; n < last; ++n) {
        infer::SpeechWindow window{encoded[n - first], {tokens.start}, 0};
        const std::vector<int32_t> task = task_tokens(tokens, settled.languages[n]);
        window.beginning.insert(window.beginning.end(), task.begin(), task.end());
        windows.push_back(std::move(window));
      }
      for (const infer::WindowText& decoded : decoder.decode(windows))
        texts.push_back(infer::speech_text(*generator.tokenizer, tokens, decoded.tokens));
      if (advance && !advance(std::ssize(texts))) break;
    }
    return texts;
  };
  auto& translations = found.translations.emplace();
  for (std::string& text : share_texts(ranks, std::ssize(settled.files), transcribe))
    translations.emplace_back(std::move(text), settled.texts[translations.size()]);
}

std::unique_ptr<ExamplesTask> make_speech_task(const TrainOptions& options,
                                               ExamplesTask::Purpose purpose) {
  return std::make_unique<SpeechTask>(options, purpose);
}

}  // namespace fovea::train

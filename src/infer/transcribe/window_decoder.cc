#include "transcribe/window_decoder.h"

#include <zlib.h>

#include <algorithm>
#include <utility>

#include "base/math.h"
#include "generate/reading.h"
#include "generate/sampler.h"
#include "tensor/tape.h"
#include "transcribe/time_rules.h"

namespace fovea::infer {
namespace {

SchedulerOptions scheduler_options(const Generator& generator, const TranscribeOptions& options,
                                   uint64_t cache_bytes) {
  const int64_t texts = options.windows * std::max(options.beams, options.samples);
  SchedulerOptions made{.compute = generator.compute,
                        .cache = generator.cache,
                        .pages = (texts + 1) * (model::pages_for(generator.model.spec.context) + 1),
                        .most_sequences = texts,
                        .step_tokens = 1024};
  made.pages = std::max<int64_t>(1, pages_within(cache_bytes, generator.model, made));
  return made;
}

// All ids may be generated: an older tokenizer lacks the tokens of times.
GenerationRules speech_rules(const Generator& generator, const SpeechTokens& tokens,
                             const TranscribeOptions& options) {
  GenerationRules rules = generator.rules;
  rules.ends = {tokens.end};
  rules.forced_first.reset();
  rules.forced_last.reset();
  rules.suppressed.insert(rules.suppressed.end(), options.suppress.begin(), options.suppress.end());
  return rules;
}

// The log-probability of a text that is generated token by token, among the tokens that the rules
// allow.
class GreedyScore {
 public:
  // Takes the logits [V] of the token after `decoded`, to which the rules have been applied.
  void see(std::span<const int32_t> decoded, std::span<const float> logits) {
    if (!decoded.empty()) add(decoded.back());
    logits_.assign(logits.begin(), logits.end());
  }
  // Returns the sum for a text whose last logits have been seen.
  double of(const std::vector<int32_t>& text) {
    if (!text.empty()) add(text.back());
    return sum_;
  }

 private:
  void add(int32_t id) {
    sum_ += double{logits_[static_cast<size_t>(id)]} - log_sum(logits_.data(), std::ssize(logits_));
  }
  std::vector<float> logits_;
  double sum_ = 0;
};

}  // namespace

void each_logits(const model::Transformer& model, const Tensor& hidden, int64_t first, int64_t last,
                 const std::function<void(int64_t row, float* logits)>& receive) {
  constexpr int64_t kRows = 32;  // the head's matrix is read once for all of them
  const Tensor rows = hidden.view({hidden.dim(1), hidden.dim(2)});
  for (int64_t begin = first; begin < last; begin += kRows) {
    const int64_t end = std::min(last, begin + kRows);
    const Tensor logits = model.logits(rows.rows(begin, end)).to(cpu_device());
    for (int64_t row = begin; row < end; ++row)
      receive(row, logits.data_as<float>() + (row - begin) * logits.dim(1));
  }
}

std::string speech_text(const text::Tokenizer& tokenizer, const SpeechTokens& tokens,
                        const std::vector<int32_t>& ids) {
  std::vector<int32_t> text;
  for (const int32_t id : ids)
    if (id < tokens.end && id < tokenizer.size()) text.push_back(id);
  return tokenizer.decode(text);
}

double compression_ratio_of(const std::string& text) {
  if (text.empty()) return 0;
  uLongf size = compressBound(text.size());
  std::vector<Bytef> compressed(size);
  compress(compressed.data(), &size, reinterpret_cast<const Bytef*>(text.data()), text.size());
  return static_cast<double>(text.size()) / static_cast<double>(size);
}

WindowDecoder::WindowDecoder(const Generator& generator, const SpeechTokens& tokens,
                             const TranscribeOptions& options, uint64_t cache_bytes)
    : generator_(generator),
      tokens_(tokens),
      options_(options),
      rules_(speech_rules(generator, tokens, options)),
      scheduler_(generator.model, rules_, nullptr,
                 scheduler_options(generator, options, cache_bytes)),
      pool_(scheduler_.pool().layout(),
            {.pages = model::pages_for(generator.model.spec.context),
             .texts = 1,
             .step_tokens = generator.model.spec.context},
            generator.model.token_embedding.device()) {}

std::vector<EncodedAudio> WindowDecoder::encode(
    const std::vector<std::vector<float>>& spectrograms) {
  const NoGradient off;
  const model::InputSpec& input = generator_.model.spec.input;
  const int64_t B = std::ssize(spectrograms);
  const Tensor signal = empty({B, input.bins, 2 * input.frames});
  float* next = signal.data_as<float>();
  for (const std::vector<float>& one : spectrograms) next = std::copy(one.begin(), one.end(), next);
  model::Pass pass;
  pass.compute = generator_.compute;
  const Tensor memory = generator_.model.encode({{}, {}, {}, signal}, pass);
  std::vector<EncodedAudio> encoded;
  for (int64_t b = 0; b < B; ++b) {
    const Tensor one = memory.rows(b, b + 1);
    model::CachedText text;
    remember_source(generator_.model, pool_, text, one, generator_.compute);
    encoded.push_back({one, text.memory});
  }
  return encoded;
}

// Returns the hidden states [1, T, C] of the tokens of a text from its first one on.
Tensor WindowDecoder::read(const EncodedAudio& audio, const std::vector<int32_t>& ids) {
  model::CachedText text;
  text.memory = audio.cross;
  const int64_t T = std::ssize(ids);
  const Tensor hidden =
      read_batch(generator_.model, pool_, {{&text, T, T}}, ids, generator_.compute);  // [T, C]
  model::shorten(pool_, text, 0);
  return hidden.view({1, T, hidden.dim(1)});
}

int32_t WindowDecoder::detect_language(const EncodedAudio& audio) {
  const NoGradient off;
  const Tensor hidden = read(audio, {tokens_.start});
  const Tensor logits = generator_.model.logits(hidden).to(cpu_device());
  const float* scores = logits.data_as<float>();
  int32_t best = tokens_.languages.begin()->second;
  for (const auto& [code, id] : tokens_.languages) {
    if (scores[id] > scores[best] || (scores[id] == scores[best] && id < best)) best = id;
  }
  return best;
}

GenerateOptions WindowDecoder::options_at(float temperature) const {
  GenerateOptions made;
  const bool samples = temperature > 0;
  made.sampling = {.temperature = temperature, .top_k = 0, .top_p = 1, .seed = options_.seed};
  made.generations = samples ? options_.samples : 1;
  made.beams = samples ? 1 : options_.beams;
  made.length_penalty = options_.length_penalty;
  made.max_tokens = options_.max_tokens > 0 ? options_.max_tokens : -1;
  made.speculative_tokens = 0;
  if (options_.timestamps) {
    made.constrain = [this](std::span<const int32_t> decoded, std::span<float> logits) {
      restrain_times(tokens_, decoded, logits.data(), std::ssize(logits));
    };
  }
  return made;
}

// Generates the texts of each window.
std::vector<std::vector<WindowDecoder::DecodedText>> WindowDecoder::generate_all(
    const std::vector<const SpeechWindow*>& windows, const GenerateOptions& options) {
  std::vector<std::vector<DecodedText>> all(windows.size());
  std::vector<GreedyScore> scores(windows.size());
  const bool greedy = options.generations == 1 && options.beams == 1;
  std::optional<Error> error;
  for (size_t i = 0; i < windows.size(); ++i) {
    all[i].resize(static_cast<size_t>(options.generations));
    Task task{.number = ++numbers_, .prompt = {}, .options = options, .sink = {}};
    task.beginning = windows[i]->beginning;
    task.memory = windows[i]->audio.memory;
    task.cross = windows[i]->audio.cross;
    if (greedy) {
      task.options.constrain = [rules = options.constrain, &score = scores[i]](
                                   std::span<const int32_t> decoded, std::span<float> logits) {
        if (rules) rules(decoded, logits);
        score.see(decoded, logits);
      };
    }
    task.sink = [&error, &texts = all[i]](const Event& event) {
      if (event.error != nullptr) error = *event.error;
      if (event.finished == nullptr) return true;
      std::vector<int32_t>& ids = texts[static_cast<size_t>(event.generation)].tokens;
      ids = event.finished->ids;
      if (event.finished->end_id >= 0) ids.push_back(event.finished->end_id);
      return true;
    };
    scheduler_.add(scheduler_.request(std::move(task)));
  }
  while (scheduler_.step()) {
  }
  if (error) throw *error;
  if (greedy)
    for (size_t i = 0; i < windows.size(); ++i) all[i][0].logprob = scores[i].of(all[i][0].tokens);
  return all;
}

// Reads the window's beginning again, to get the probability of silence, and, if its
// log-probability is unknown, the text, in one pass.
WindowText WindowDecoder::evaluated(const SpeechWindow& window, const DecodedText& decoded,
                                    float temperature) {
  const NoGradient off;
  const auto start = static_cast<int64_t>(window.start);
  std::vector<int32_t> ids = window.beginning;
  if (decoded.logprob) {
    ids.resize(window.start + 1);
  } else {
    ids.insert(ids.end(), decoded.tokens.begin(), decoded.tokens.end());
  }
  const Tensor hidden = read(window.audio, ids);  // [1, T, C]
  const int64_t V = generator_.model.spec.vocabulary;
  WindowText text;
  text.temperature = temperature;
  each_logits(generator_.model, hidden, start, start + 1, [&](int64_t, const float* logits) {
    text.no_speech = math::exp(double{logits[tokens_.silence()]} - log_sum(logits, V));
  });
  text.tokens = decoded.tokens;
  if (!text.tokens.empty()) {
    const double sum = decoded.logprob ? *decoded.logprob
                                       : logprob_of_text(hidden, window, text.tokens, temperature);
    text.logprob = sum / static_cast<double>(text.tokens.size());
    if (text.tokens.back() == tokens_.end) text.tokens.pop_back();
  }
  text.compression_ratio =
      compression_ratio_of(speech_text(*generator_.tokenizer, tokens_, text.tokens));
  return text;
}

// Returns the sum of the log-probabilities of the tokens among those that the rules allow. hidden
// [1, T, C] is of the window's beginning and the tokens.
double WindowDecoder::logprob_of_text(const Tensor& hidden, const SpeechWindow& window,
                                      const std::vector<int32_t>& tokens, float temperature) const {
  const GenerateOptions options = options_at(temperature);
  const TokenCounts counts(options.sampling, window.beginning);
  const int64_t V = generator_.model.spec.vocabulary;
  std::vector<int32_t> decoded;
  double sum = 0;
  const int64_t first = std::ssize(window.beginning) - 1;  // this row predicts the first token
  each_logits(generator_.model, hidden, first, first + std::ssize(tokens),
              [&](int64_t row, float* logits) {
                const int32_t id = tokens[static_cast<size_t>(row - first)];
                restrain(logits, V, {rules_, options, window.beginning, counts}, decoded);
                sum += double{logits[id]} - log_sum(logits, V);
                decoded.push_back(id);
              });
  return sum;
}

bool WindowDecoder::is_silent(const WindowText& text) const {
  const bool improbable = options_.logprob == 0 || text.logprob < double{options_.logprob};
  return text.no_speech > double{options_.no_speech} && improbable;
}

bool WindowDecoder::is_accepted(const WindowText& text) const {
  const bool repeats =
      options_.compression_ratio > 0 && text.compression_ratio > double{options_.compression_ratio};
  const bool improbable = options_.logprob < 0 && text.logprob < double{options_.logprob};
  return text.silent || (!repeats && !improbable);
}

std::vector<WindowText> WindowDecoder::decode(const std::vector<SpeechWindow>& windows) {
  std::vector<WindowText> texts(windows.size());
  std::vector<size_t> left;
  for (size_t i = 0; i < windows.size(); ++i) left.push_back(i);
  for (const float temperature : options_.temperatures) {
    std::vector<const SpeechWindow*> pending;
    for (const size_t i : left) pending.push_back(&windows[i]);
    const auto found = generate_all(pending, options_at(temperature));
    std::vector<size_t> refused;
    for (size_t n = 0; n < left.size(); ++n) {
      WindowText& text = texts[left[n]];
      text = evaluated(windows[left[n]], found[n][0], temperature);
      for (size_t answer = 1; answer < found[n].size(); ++answer) {
        WindowText other = evaluated(windows[left[n]], found[n][answer], temperature);
        if (other.logprob > text.logprob) text = std::move(other);
      }
      text.silent = is_silent(text);
      if (!is_accepted(text)) refused.push_back(left[n]);
    }
    left = std::move(refused);
    if (left.empty()) break;
  }
  return texts;
}

std::vector<int32_t> WindowDecoder::decode_greedily(const SpeechWindow& window) {
  GenerateOptions options = options_at(0);
  options.beams = 1;
  return generate_all({&window}, options)[0][0].tokens;
}

}  // namespace fovea::infer

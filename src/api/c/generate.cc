#include "fovea/infer/generate.h"

#include "c/handles.h"

using namespace fovea::c;

namespace fovea::c {
namespace {

infer::EarlyStopping early_stopping(int32_t value) {
  constexpr auto kMost = static_cast<int32_t>(infer::EarlyStopping::never);
  check(value >= 0 && value <= kMost, "early_stopping: {}; expected 0 to {}", value, kMost);
  return static_cast<infer::EarlyStopping>(value);
}

infer::GenerateOptions from_c(const fovea_generate_options& o) {
  infer::GenerateOptions options;
  options.sampling = {.temperature = o.temperature,
                      .top_k = o.top_k,
                      .top_p = o.top_p,
                      .min_p = o.min_p,
                      .typical_p = o.typical_p,
                      .top_n_sigma = o.top_n_sigma,
                      .xtc_probability = o.xtc_probability,
                      .xtc_threshold = o.xtc_threshold,
                      .samplers = o.samplers == nullptr ? "" : o.samplers,
                      .mirostat = o.mirostat,
                      .mirostat_tau = o.mirostat_tau,
                      .mirostat_eta = o.mirostat_eta,
                      .repetition_penalty = o.repetition_penalty,
                      .presence_penalty = o.presence_penalty,
                      .frequency_penalty = o.frequency_penalty,
                      .no_repeat_ngram = o.no_repeat_ngram,
                      .dry_multiplier = o.dry_multiplier,
                      .dry_base = o.dry_base,
                      .dry_allowed_length = o.dry_allowed_length,
                      .dry_penalty_last_n = o.dry_penalty_last_n,
                      .seed = o.seed};
  for (const char* text :
       list_of(o.dry_sequence_breakers, o.dry_sequence_breaker_count, "dry_sequence_breakers"))
    options.sampling.dry_sequence_breakers.emplace_back(required(text, "dry_sequence_breakers"));
  options.sampling.dry_breaker_ids =
      list_of(o.dry_breaker_ids, o.dry_breaker_id_count, "dry_breaker_ids");
  const auto biased = list_of(o.bias_ids, o.bias_count, "bias_ids");
  const auto biases = list_of(o.bias_values, o.bias_count, "bias_values");
  for (size_t i = 0; i < biased.size(); ++i)
    options.sampling.logit_bias.emplace_back(biased[i], biases[i]);
  options.beams = o.beams;
  options.length_penalty = o.length_penalty;
  options.early_stopping = early_stopping(o.early_stopping);
  options.max_tokens = o.max_tokens;
  options.min_tokens = o.min_tokens;
  options.ignore_end = o.ignore_end != 0;
  for (const char* text : list_of(o.stop, o.stop_count, "stop"))
    options.stop.emplace_back(required(text, "stop"));
  for (const char* text : list_of(o.banned, o.banned_count, "banned"))
    options.banned.emplace_back(required(text, "banned"));
  for (const char* text : list_of(o.required, o.required_count, "required"))
    options.required.emplace_back(required(text, "required"));
  if (o.beam_groups != 0) options.beam_groups = o.beam_groups;
  options.diversity_penalty = static_cast<float>(o.diversity_penalty);
  options.stop_ids = list_of(o.stop_ids, o.stop_id_count, "stop_ids");
  options.keep_special = o.keep_special != 0;
  options.forced = list_of(o.forced_ids, o.forced_count, "forced_ids");
  options.speculative_tokens = o.speculative_tokens;
  options.logprobs = o.logprobs;
  if (o.on_logits != nullptr)
    options.constrain = [&o](std::span<const int32_t> ids, std::span<float> logits) {
      o.on_logits(ids.data(), ids.size(), logits.data(), logits.size(), o.user);
    };
  return options;
}

int32_t finish_of(infer::FinishReason finish) {
  switch (finish) {
    case infer::FinishReason::cancelled: return FOVEA_FINISH_CANCELLED;
    case infer::FinishReason::stop: return FOVEA_FINISH_STOP;
    case infer::FinishReason::end: return FOVEA_FINISH_END;
    default: return FOVEA_FINISH_LENGTH;
  }
}

// Fills the arrays and returns the struct that points to them.
fovea_generation to_c(GenerationStore& store) {
  const infer::Generation& g = store.generation;
  store.logprobs.clear();
  store.top_ids.clear();
  store.top_logprobs.clear();
  const bool with_logprobs = !g.logprobs.empty();
  const size_t tops = with_logprobs ? g.logprobs[0].top.size() : 0;
  for (const infer::TokenLogprob& token : g.logprobs) {
    store.logprobs.push_back(token.logprob);
    check(token.top.size() == tops, "logprobs: {} alternatives; expected {}", token.top.size(),
          tops);
    for (const auto& [id, logprob] : token.top) {
      store.top_ids.push_back(id);
      store.top_logprobs.push_back(logprob);
    }
  }
  return {.size = sizeof(fovea_generation),
          .text = g.text.c_str(),
          .text_size = g.text.size(),
          .ids = g.ids.data(),
          .id_count = g.ids.size(),
          .logprobs = with_logprobs ? store.logprobs.data() : nullptr,
          .top_ids = tops > 0 ? store.top_ids.data() : nullptr,
          .top_logprobs = tops > 0 ? store.top_logprobs.data() : nullptr,
          .top_count = tops,
          .finish = finish_of(g.finish),
          .score = g.score,
          .prompt_tokens = g.prompt_tokens,
          .cached_tokens = g.cached_tokens,
          .speculative_tokens = g.speculative_tokens,
          .accepted_tokens = g.accepted_tokens,
          .prompt_seconds = g.prompt_seconds,
          .generation_seconds = g.generation_seconds};
}

}  // namespace

fovea_generate_options generate_defaults(const model::Model* model) {
  const infer::GenerateOptions o =
      model == nullptr ? infer::GenerateOptions() : infer::generation_defaults(*model);
  const infer::Sampling& s = o.sampling;
  auto options = sized<fovea_generate_options>();
  options.temperature = s.temperature;
  options.top_p = s.top_p;
  options.min_p = s.min_p;
  options.typical_p = s.typical_p;
  options.top_n_sigma = s.top_n_sigma;
  options.xtc_probability = s.xtc_probability;
  options.xtc_threshold = s.xtc_threshold;
  options.mirostat = s.mirostat;
  options.mirostat_tau = s.mirostat_tau;
  options.mirostat_eta = s.mirostat_eta;
  options.dry_multiplier = s.dry_multiplier;
  options.dry_base = s.dry_base;
  options.dry_allowed_length = s.dry_allowed_length;
  options.dry_penalty_last_n = s.dry_penalty_last_n;
  options.top_k = s.top_k;
  options.repetition_penalty = s.repetition_penalty;
  options.presence_penalty = s.presence_penalty;
  options.frequency_penalty = s.frequency_penalty;
  options.no_repeat_ngram = s.no_repeat_ngram;
  options.seed = s.seed;
  options.beams = o.beams;
  options.length_penalty = o.length_penalty;
  options.early_stopping = static_cast<int32_t>(o.early_stopping);
  options.max_tokens = o.max_tokens;
  options.min_tokens = o.min_tokens;
  options.ignore_end = o.ignore_end;
  options.keep_special = o.keep_special;
  options.logprobs = o.logprobs;
  options.speculative_tokens = o.speculative_tokens;
  options.beam_groups = o.beam_groups;
  options.diversity_penalty = o.diversity_penalty;
  return options;
}

void generate_into(GenerationStore& store, const model::Model& model,
                   const std::vector<int32_t>& prompt, const fovea_generate_options* options,
                   int64_t room, fovea_generation* result) {
  if (result != nullptr) check_size(result->size);
  const fovea_generate_options chosen = options_of(options, generate_defaults(&model));
  infer::GenerateOptions parts = from_c(chosen);
  if (room >= 0) parts.max_tokens = parts.max_tokens < 0 ? room : std::min(parts.max_tokens, room);
  std::string received;
  bool stopped = false;
  infer::TextSink sink;
  if (chosen.on_text != nullptr)
    sink = [&](std::string_view piece) {
      received += piece;
      const std::string ended(piece);  // with a NUL
      stopped = chosen.on_text(ended.c_str(), ended.size(), chosen.user) == FOVEA_STOP;
      return !stopped;
    };
  const model::Model* const draft = chosen.draft == nullptr ? nullptr : &chosen.draft->model;
  store.generation = infer::generate(model, prompt, parts, sink, draft).at(0);
  if (stopped) {
    store.generation.text = received;
    store.generation.finish = infer::FinishReason::cancelled;
  }
  const fovea_generation made = to_c(store);
  if (result != nullptr) give(made, result->size, result);
}

}  // namespace fovea::c

fovea_status fovea_generate_options_init(fovea_generate_options* options, size_t size,
                                         fovea_model* model) {
  const auto set = [&] {
    give(generate_defaults(model == nullptr ? nullptr : &model->model), size,
         required(options, "options"));
  };
  return model == nullptr ? guard(set) : guard(model, "model", set);
}

fovea_status fovea_model_generate(fovea_model* model, const char* prompt, size_t size,
                                  const fovea_generate_options* options, fovea_generation* result) {
  return guard(model, "model", [&] {
    const std::string text(text_of(prompt, size, "prompt"));
    generate_into(model->generated, model->model, fovea::infer::prompt_ids(model->model, text),
                  options, -1, result);
  });
}

fovea_status fovea_model_generate_ids(fovea_model* model, const int32_t* prompt, size_t count,
                                      const fovea_generate_options* options,
                                      fovea_generation* result) {
  return guard(model, "model", [&] {
    generate_into(model->generated, model->model, list_of(prompt, count, "prompt"), options, -1,
                  result);
  });
}

fovea_status fovea_model_prompt_ids(fovea_model* model, const char* prompt, size_t size,
                                    const int32_t** ids, size_t* count) {
  return guard(model, "model", [&] {
    required(ids, "ids");
    required(count, "count");
    const std::string text(text_of(prompt, size, "prompt"));
    model->ids = fovea::infer::prompt_ids(model->model, text);
    *ids = model->ids.data();
    *count = model->ids.size();
  });
}

fovea_status fovea_model_score(fovea_model* model, const int32_t* ids, size_t count,
                               float* logprobs) {
  return guard(model, "model", [&] {
    required(logprobs, "logprobs");
    const auto scores = fovea::infer::score(model->model, list_of(ids, count, "ids"));
    for (size_t i = 0; i < scores.size(); ++i) logprobs[i] = scores[i].logprob;
  });
}

#include "loop/generate_answers.h"

#include <algorithm>

#include "base/error.h"
#include "base/machine.h"
#include "fovea/core/random.h"
#include "generate/scheduler.h"
#include "plan/memory.h"

namespace fovea::train {
namespace {

constexpr int64_t kMostTexts = 256;  // that are generated at once

// The texts that are generated at once, and the tokens of the longest one, prompt included.
struct TextsAtOnce {
  int64_t count, tokens;
};

TextsAtOnce texts_at_once(const model::Spec& spec, int64_t prompts, int64_t longest, int64_t answer,
                          const AnswerSettings& settings) {
  const int64_t before = spec.encoder ? 1 : longest;  // tokens before an answer
  return {std::min(prompts * settings.generations, std::max(kMostTexts, settings.generations)),
          std::min(spec.context, before + answer)};
}

// Enough pages for all texts that are generated at once, if they fit into a quarter of the memory.
infer::SchedulerOptions scheduler_options(const model::Transformer& model, int64_t prompts,
                                          int64_t longest, int64_t answer,
                                          const AnswerSettings& settings) {
  const auto [texts, tokens] = texts_at_once(model.spec, prompts, longest, answer, settings);
  infer::SchedulerOptions options{.compute = settings.compute, .most_sequences = texts};
  options.pages = texts * (model::pages_for(tokens) + 1);
  options.pages = infer::pages_within(available_memory() / 4, model, options);
  if (options.pages < 1)
    fail(ErrorKind::OutOfMemory,
         "train: the keys and values of answers do not fit into a quarter of the free memory; "
         "expected fewer `generations` or `answer_tokens`");
  return options;
}

std::vector<infer::Generation> generate_all(const model::Transformer& model,
                                            const text::Tokenizer& tokenizer,
                                            const infer::GenerationRules& rules,
                                            const std::vector<AnswerPrompt>& prompts,
                                            const AnswerSettings& settings) {
  int64_t longest = 0, tokens = 0;
  for (const AnswerPrompt& prompt : prompts) {
    longest = std::max(longest, std::ssize(*prompt.ids));
    tokens = std::max(tokens, prompt.tokens);
  }
  infer::Scheduler scheduler(
      model, rules, &tokenizer,
      scheduler_options(model, std::ssize(prompts), longest, tokens, settings));
  const auto answers = static_cast<size_t>(settings.generations);
  std::vector<infer::Generation> generated(prompts.size() * answers);
  std::optional<Error> error;
  for (size_t p = 0; p < prompts.size(); ++p) {
    infer::GenerateOptions options;
    options.sampling = {.temperature = static_cast<float>(settings.temperature),
                        .top_k = 0,
                        .top_p = 1,
                        .seed = prompts[p].seed};
    options.generations = settings.generations;
    options.max_tokens = prompts[p].tokens;
    options.speculative_tokens = 0;
    options.logprobs = settings.logprobs;
    const auto sink = [&, p](const infer::Event& event) {
      if (event.error != nullptr) error = *event.error;
      if (event.finished != nullptr)
        generated[p * answers + static_cast<size_t>(event.generation)] = *event.finished;
      return true;
    };
    scheduler.add(scheduler.request(
        {.number = p + 1, .prompt = *prompts[p].ids, .options = options, .sink = sink}));
  }
  while (scheduler.step()) {
  }
  if (error) throw Error(*error);
  return generated;
}

}  // namespace

std::vector<infer::Generation> generate_answers(const model::Transformer& model,
                                                const text::Tokenizer& tokenizer,
                                                const infer::GenerationRules& rules,
                                                const std::vector<AnswerPrompt>& prompts,
                                                const AnswerSettings& settings) {
  std::vector<infer::Generation> generated =
      generate_all(model, tokenizer, rules, prompts, settings);
  release_cached_memory();  // the keys and values, before training needs memory
  return generated;
}

uint64_t seed_of_answers(uint64_t seed, uint64_t n) {
  constexpr uint32_t kSubstream = 1u << 31;  // of no answer
  const auto words = philox(seed, Stream::sampling, kSubstream, n);
  return static_cast<uint64_t>(words[0]) << 32 | words[1];
}

uint64_t generation_bytes(const model::Transformer& model, int64_t prompts, int64_t longest,
                          int64_t answer, const AnswerSettings& settings) {
  if (prompts == 0) return 0;
  const model::Spec& spec = model.spec;
  const auto [texts, tokens] = texts_at_once(spec, prompts, longest, answer, settings);
  const int64_t prompts_at_once =
      (texts + settings.generations - 1) / settings.generations;  // prompts at once
  // The answers to a prompt share its full pages. Pages that are not used take no memory.
  const int64_t shared = spec.encoder ? 0 : std::min(longest, tokens) / kPageTokens;
  infer::SchedulerOptions options{.compute = settings.compute, .most_sequences = texts};
  options.pages = prompts_at_once * shared + texts * (model::pages_for(tokens) - shared);
  options.pages = infer::pages_within(available_memory() / 4, model, options);
  int64_t bytes = infer::cache_bytes(model, options);
  if (spec.encoder) {
    const model::PagePool::Layout layout = model::page_layout(*spec.decoder, options.cache);
    bytes += prompts_at_once * model::pages_for(longest) * spec.decoder->layers *
             (layout.memory_keys.page_bytes() + layout.memory_values.page_bytes());
  }
  const Lengths lengths{spec.encoder ? longest : 0, tokens};
  return static_cast<uint64_t>(bytes) +
         static_cast<uint64_t>(step_bytes(spec, lengths, texts, options.step_tokens));
}

}  // namespace fovea::train

#include "train/write_answers.h"

#include <algorithm>

#include "base/error.h"
#include "base/machine.h"
#include "generate/scheduler.h"

namespace fovea {
namespace {

constexpr int64_t kMostTexts = 256;  // that are written at once

// Enough pages for all texts that are written at once, if they fit into a quarter of the memory.
SchedulerOptions writing_options(const Transformer& model, int64_t prompts, int64_t longest,
                                 const Writing& writing) {
  const int64_t texts = std::min(prompts * writing.answers, std::max(kMostTexts, writing.answers));
  SchedulerOptions options{.compute = writing.compute, .most_sequences = texts};
  const int64_t tokens = std::min(model.spec.context, longest + writing.tokens);
  options.pages = texts * (pages_for(tokens) + 1);
  options.pages = pages_within(available_memory() / 4, model, options);
  if (options.pages < 1)
    fail(ErrorKind::OutOfMemory,
         "train: the keys and values of answers do not fit into a quarter of the free memory; "
         "expected fewer `answers` or `answer_tokens`");
  return options;
}

std::vector<Generation> write_all(const Transformer& model, const Tokenizer& tokenizer,
                                  const GenerationRules& rules,
                                  const std::vector<const std::vector<int32_t>*>& prompts,
                                  const std::vector<uint64_t>& seeds, const Writing& writing) {
  size_t longest = 0;
  for (const auto* prompt : prompts) longest = std::max(longest, prompt->size());
  Scheduler scheduler(
      model, rules, &tokenizer,
      writing_options(model, std::ssize(prompts), static_cast<int64_t>(longest), writing));
  const auto answers = static_cast<size_t>(writing.answers);
  std::vector<Generation> written(prompts.size() * answers);
  std::optional<Error> error;
  for (size_t p = 0; p < prompts.size(); ++p) {
    GenerateOptions options;
    options.sampling = {.temperature = static_cast<float>(writing.temperature),
                        .top_k = 0,
                        .top_p = 1,
                        .seed = seeds[p]};
    options.answers = writing.answers;
    options.max_tokens = writing.tokens;
    options.guesses = 0;
    options.logprobs = writing.logprobs;
    const auto sink = [&, p](const Event& event) {
      if (event.error != nullptr) error = *event.error;
      if (event.finished != nullptr)
        written[p * answers + static_cast<size_t>(event.answer)] = *event.finished;
      return true;
    };
    scheduler.add(scheduler.request(
        {.number = p + 1, .prompt = *prompts[p], .options = options, .sink = sink}));
  }
  while (scheduler.step()) {
  }
  if (error) throw Error(*error);
  return written;
}

}  // namespace

std::vector<Generation> write_answers(const Transformer& model, const Tokenizer& tokenizer,
                                      const GenerationRules& rules,
                                      const std::vector<const std::vector<int32_t>*>& prompts,
                                      const std::vector<uint64_t>& seeds, const Writing& writing) {
  std::vector<Generation> written = write_all(model, tokenizer, rules, prompts, seeds, writing);
  release_cached_memory();  // the keys and values, before training needs memory
  return written;
}

}  // namespace fovea

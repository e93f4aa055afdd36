#include "generate/generate.h"

#include <optional>

#include "base/fields.h"
#include "generate/prompt_cache.h"
#include "generate/scheduler.h"
#include "unicode/utf8.h"

namespace fovea::infer {
namespace {

// Returns the scheduler's options for a single request. There are enough pages for all its texts,
// and one more for each additional generation or beam, which copies the last page of the prompt,
// but at most as many as fit in `bytes`.
SchedulerOptions options_of(const Generator& generator, size_t prompt,
                            const GenerateOptions& options, uint64_t bytes) {
  const model::Spec& spec = generator.model.spec;
  const int64_t before = spec.encoder ? 1 : static_cast<int64_t>(prompt);
  const int64_t most = options.max_tokens < 0 ? spec.context : before + options.max_tokens;
  const int64_t tokens = std::min(spec.context, most);
  const int64_t streams = std::max(options.generations, options.beams);
  SchedulerOptions of_one{.compute = generator.compute,
                          .cache = generator.cache,
                          .pages = 1,
                          .most_sequences = streams,
                          .draft = generator.draft};
  const int64_t page = cache_bytes(generator.model, of_one);
  of_one.pages = model::pages_for(tokens) + (streams - 1) * (model::pages_for(tokens) + 1);
  of_one.pages = pages_within(bytes, generator.model, of_one);
  if (of_one.pages < 1) {
    fail(ErrorKind::OutOfMemory,
         "generate: a page of keys and values takes {} bytes, but only {} are free; expected more "
         "memory",
         page, bytes);
  }
  return of_one;
}

// Returns the first token for an empty prompt: the end-of-text token, else a line break, else token
// 0.
std::vector<int32_t> beginning(const text::Tokenizer& tokenizer) {
  if (const auto end = tokenizer.eos_id()) return {*end};
  if (tokenizer.unknown("\n").empty()) return tokenizer.encode("\n");
  return {0};
}

}  // namespace

std::vector<int32_t> prompt_ids(const text::Tokenizer& tokenizer, const model::Spec& spec,
                                const std::string& prompt, text::SpecialTokens special) {
  const size_t text = text::utf8::valid_prefix(prompt);
  check_field(text == prompt.size(), "prompt", "not UTF-8 (byte {}); expected text", text + 1);
  text::EncodingOptions whole;
  whole.truncate_and_pad = false;
  whole.special = special;
  std::vector<int32_t> ids = tokenizer.encoding(prompt, whole).ids;
  if (spec.encoder) return ids;
  // A prompt that is to be continued must not end with an end token.
  if (ids.size() > 1 && tokenizer.eos_id() == ids.back()) ids.pop_back();
  return ids.empty() ? beginning(tokenizer) : ids;
}

std::vector<Generation> generate(const Generator& generator, const ImagePrompt& prompt,
                                 const GenerateOptions& options, const TextSink& stream,
                                 uint64_t cache_bytes, const PromptCache* cache) {
  const model::Spec& spec = checked_writer(generator.model.spec);
  check_options(options, spec.vocabulary);
  Scheduler scheduler(generator.model, generator.rules, generator.tokenizer,
                      options_of(generator, prompt.ids.size(), options, cache_bytes));
  if (cache != nullptr) load_prompt(*cache, spec, prompt.ids, scheduler);
  std::vector<Generation> results(static_cast<size_t>(options.generations));
  std::optional<Error> error;
  const auto sink = [&](const Event& event) {
    if (event.error != nullptr) error = *event.error;
    if (event.finished != nullptr) results[static_cast<size_t>(event.generation)] = *event.finished;
    return event.generation != 0 || event.text.empty() || !stream || stream(event.text);
  };
  Task task{1, prompt.ids, options, sink, prompt.images == nullptr};
  task.images = prompt.images;
  scheduler.add(scheduler.request(std::move(task)));
  while (scheduler.step()) {
  }
  if (error) throw Error(*error);
  if (cache != nullptr) save_prompt(*cache, prompt.ids, scheduler);
  return results;
}

std::vector<Generation> generate(const Generator& generator, const std::vector<int32_t>& prompt,
                                 const GenerateOptions& options, const TextSink& stream,
                                 uint64_t cache_bytes, const PromptCache* cache) {
  return generate(generator, ImagePrompt{prompt}, options, stream, cache_bytes, cache);
}

}  // namespace fovea::infer

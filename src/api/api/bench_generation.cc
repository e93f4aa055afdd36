#include <algorithm>
#include <chrono>

#include "base/fields.h"
#include "base/float_mode.h"
#include "base/machine.h"
#include "base/threads.h"
#include "fovea/bench.h"
#include "fovea/core/random.h"
#include "generate/scheduler.h"
#include "kernels/isa.h"
#include "open/model_parts.h"

namespace fovea {
namespace {

constexpr int64_t kFirst = 16;  // the most tokens read for the time to the first token

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Requests with prompts of random tokens, decoded together as in a server.
class Streams {
 public:
  Streams(const model::ModelParts& model, int64_t count, int64_t prompt, int64_t tokens)
      : scheduler_(model.transformer, {}, nullptr,
                   {.cache = model.cache,
                    .pages = count * model::pages_for(prompt + tokens + 1),
                    .most_sequences = count}) {
    infer::GenerateOptions options;
    options.sampling.temperature = 0;
    options.max_tokens = tokens;
    options.speculative_tokens = 0;  // a step is one pass over one token of each text
    const auto V = static_cast<uint64_t>(model.transformer.spec.vocabulary);
    Random random(1, Stream::sampling);
    for (int64_t i = 0; i < count; ++i) {
      std::vector<int32_t> ids(static_cast<size_t>(prompt));
      for (int32_t& id : ids) id = static_cast<int32_t>(random.word() % V);
      scheduler_.add(
          scheduler_.request({static_cast<uint64_t>(i + 1), std::move(ids), options, {}, false}));
    }
  }
  // Runs until all requests together have generated `tokens` tokens, or all have ended.
  void write(int64_t tokens) {
    while (scheduler_.status().generated_tokens < tokens && scheduler_.step()) {
    }
  }
  int64_t generated() const { return scheduler_.status().generated_tokens; }

 private:
  infer::Scheduler scheduler_;
};

// Returns the time in seconds to read a prompt and generate one token.
double seconds_to_read(const model::ModelParts& model, int64_t prompt) {
  Streams one(model, 1, prompt, 1);
  const auto start = std::chrono::steady_clock::now();
  one.write(1);
  return seconds_since(start);
}

// Returns the median time of up to `runs` prompts, after one that is not measured: its pass
// allocates the memory. A prompt that takes longer than kLong is read only once.
double median_seconds_to_read(const model::ModelParts& model, int64_t prompt, int64_t runs) {
  constexpr double kLong = 5;
  const double first = seconds_to_read(model, prompt);
  if (first > kLong) return first;
  std::vector<double> seconds;
  for (int64_t run = 0; run < runs; ++run) seconds.push_back(seconds_to_read(model, prompt));
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

}  // namespace

GenerationBench bench_generation(const model::Model& model, const BenchOptions& options) {
  const FloatMode mode;
  check_fields(options);
  const int64_t prompt = options.prompt, decode = options.decode, depth = options.depth;
  const int64_t batch = std::max<int64_t>(1, options.batch);
  const model::Spec& spec = infer::checked_writer(model.spec());
  check(!spec.encoder,
        "bench: the model has an encoder; expected a decoder-only model (or `translate`)");
  check_field(prompt <= spec.context, "prompt", "{}; expected 1 to {}, the model's context", prompt,
              spec.context);
  check_field(depth + 1 < spec.context, "depth",
              "{}; expected 1 to {}, for the model's context of {}", depth, spec.context - 2,
              spec.context);
  check_field(decode + depth < spec.context, "decode", "{}; expected 1 to {}", decode,
              spec.context - depth - 1);
  GenerationBench result;
  result.isa = instruction_set();
  result.threads = thread_count();
  result.prompt = prompt;
  result.decode = decode;
  result.batch = batch;
  result.depth = depth;
  result.weight_bytes = model.weight_bytes();
  result.weight_formats = model.weight_formats();

  result.first_token_seconds = seconds_to_read(model::parts_of(model), std::min(kFirst, depth));
  seconds_to_read(model::parts_of(model),
                  1);  // the second pass packs weights for good: ops/packed.h
  result.prompt_seconds = median_seconds_to_read(model::parts_of(model), prompt, options.runs);
  result.prompt_tokens_per_second = static_cast<double>(prompt) / result.prompt_seconds;

  Streams all(model::parts_of(model), batch, depth, 1 + decode);
  all.write(batch);  // the first token of each sequence
  const int64_t before = all.generated();
  const auto start = std::chrono::steady_clock::now();
  all.write(batch * (1 + decode));
  result.decode_seconds = seconds_since(start);
  result.decode_tokens_per_second =
      static_cast<double>(all.generated() - before) / result.decode_seconds;
  result.peak_bytes = resident_peak();
  return result;
}

}  // namespace fovea

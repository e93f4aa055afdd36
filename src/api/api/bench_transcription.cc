#include <algorithm>

#include "api/median_time.h"
#include "audio/log_mel.h"
#include "base/fields.h"
#include "base/machine.h"
#include "base/threads.h"
#include "fovea/bench.h"
#include "fovea/core/random.h"
#include "kernels/isa.h"
#include "open/model_parts.h"

namespace fovea {
namespace {

// Returns a source of `count` samples of noise.
media::AudioSource noise(int64_t count) {
  return [left = count, random = Random(0, Stream::init)](float* samples, int64_t most) mutable {
    const int64_t some = std::min(left, most);
    for (int64_t i = 0; i < some; ++i) samples[i] = 0.1f * random.normal();
    left -= some;
    return some;
  };
}

// Options with which every window gets exactly options.max_tokens tokens, once.
infer::TranscribeOptions of_bench(const model::Model& model, infer::TranscribeOptions options) {
  options.timestamps = options.previous_text = false;
  options.temperatures = {0};
  options.no_speech = 1;
  const std::vector<int32_t>& ends = model::parts_of(model).end_ids;
  options.suppress.insert(options.suppress.end(), ends.begin(), ends.end());
  return options;
}

}  // namespace

TranscriptionBench bench_transcription(const model::Model& model,
                                       const infer::TranscribeOptions& transcription,
                                       const BenchOptions& options) {
  check_fields(options);
  check(transcription.max_tokens > 0, "bench: {} tokens per window; expected at least 1",
        transcription.max_tokens);
  const infer::TranscribeOptions fixed = of_bench(model, transcription);
  TranscriptionBench result;
  result.windows = fixed.windows;
  const int64_t samples = fixed.windows * 2 * model.spec().input.frames * media::kHop;
  result.audio_seconds = static_cast<double>(samples) / static_cast<double>(media::kSampleRate);
  const auto run = [&](int64_t) {
    result.tokens = 0;
    for (const infer::TranscribedSegment& segment :
         infer::transcribe(model, noise(samples), fixed).segments)
      result.tokens += std::ssize(segment.tokens);
  };
  result.seconds = median_seconds(run, options.runs);
  result.isa = instruction_set();
  result.threads = thread_count();
  result.audio_per_second = result.audio_seconds / result.seconds;
  result.peak_bytes = resident_peak();
  return result;
}

}  // namespace fovea

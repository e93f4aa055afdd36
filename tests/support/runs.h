#pragma once

#include <string>

#include "base/files.h"
#include "checkpoint/snapshot.h"
#include "fovea/core/random.h"
#include "loop/examples_task.h"
#include "safetensors/safetensors.h"
#include "support/small_spec.h"
#include "support/temporary_folder.h"

namespace fovea {

// Returns a text with few distinct characters, which a small model can learn: words of a small
// vocabulary in random order.
inline std::string words(int64_t count) {
  const char* const all[] = {"the ", "cat ", "sat ", "on ", "a ", "mat\n"};
  std::string text;
  for (int64_t i = 0; i < count; ++i)
    text += all[philox(7, Stream::shuffle, 1, static_cast<uint64_t>(i))[0] % std::size(all)];
  return text;
}

inline model::Spec small_spec(float dropout = 0) {
  model::Spec spec =
      test::small_decoder({.vocabulary = 0, .context = 16, .width = 16, .layers = 1});
  spec.dropout = {dropout, dropout, dropout};
  return spec;
}

inline model::Spec small_encoder() {
  model::Spec spec = test::scaled_down(
      model::preset("bert-base"), {.vocabulary = 0, .context = 32, .width = 32, .layers = 1}, 64);
  spec.dropout = {};
  spec.head = {.bias = true, .transform = true, .transform_norm = true};
  return spec;
}

inline model::Spec small_t5() {
  model::Spec spec = test::scaled_down(
      model::preset("t5-small"), {.vocabulary = 0, .context = 64, .width = 32, .layers = 1}, 64);
  spec.dropout = {};
  return spec;
}

// A folder with a text, and the options of a training run on this text that takes a few
// milliseconds.
class Runs {
 public:
  Runs() { write_file_atomically(folder_ / "text.txt", words(600)); }

  train::TrainOptions options(const std::string& out) const {
    train::TrainOptions o;
    o.data = {folder_ / "text.txt"};
    o.out = folder_ / out;
    o.steps = 20;
    o.batch = 4;
    o.warmup = 3;
    o.precision = train::Precision::fp32;
    o.evaluate_every = o.save_every = o.sample_every = 0;
    o.sample_tokens = 0;
    return o;
  }
  std::string operator/(const std::string& name) const { return folder_ / name; }

 private:
  TemporaryFolder folder_;
};

inline std::string state_bytes(const train::TrainOptions& options, int64_t step) {
  return read_file(model::snapshot_path(options.out, step) + "/state.safetensors");
}

inline const train::Examples& examples_of(const train::Job& job) {
  return dynamic_cast<const train::ExamplesTask&>(*job.task).loaded();
}

// Returns a callback that stops the run after the given step.
inline auto stop_after(int64_t step) {
  return [step](const train::TrainProgress& progress) { return progress.step < step; };
}

}  // namespace fovea

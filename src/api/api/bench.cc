#include "fovea/bench.h"

#include "api/median_time.h"
#include "base/fields.h"
#include "base/float_mode.h"
#include "base/machine.h"
#include "base/threads.h"
#include "families/registry.h"
#include "fovea/core/random.h"
#include "kernels/isa.h"
#include "loop/passes.h"
#include "loop/stepper.h"
#include "plan/estimate.h"
#include "plan/speed.h"
#include "tasks/window_examples.h"
#include "tensor/host_values.h"

namespace fovea {
namespace {

constexpr int64_t kCharacters = 65;  // of the text that presets without a vocabulary train on
constexpr int64_t kTokens = 1 << 20;
constexpr int64_t kLabels = 1000;  // of images, as in ImageNet
constexpr int64_t kWarmup = 5;

std::vector<uint32_t> random_tokens(int64_t vocabulary) {
  std::vector<uint32_t> tokens(kTokens);
  Random random(1, Stream::shuffle);
  for (auto& token : tokens)
    token = static_cast<uint32_t>(random.word() % static_cast<uint64_t>(vocabulary));
  return tokens;
}

// Trains on the labels of the examples, as `fovea train` does.
class LossTask : public train::TrainingTask {
 public:
  LossTask(const train::Examples& examples, const train::PassOptions& options)
      : examples_(examples), options_(options) {}
  StepLoss backward(const model::Transformer& model, int64_t step) const override {
    return train::backward_by_passes(
        examples_, step, options_,
        [&](const train::Batch& batch, const model::Pass& pass, double divisor) {
          return train::label_loss(model, batch, pass, divisor);
        });
  }
  double steps_per_epoch() const override { return examples_.passes_per_epoch(); }
  void write_model(const std::string&, model::Transformer&) const override {}

 private:
  const train::Examples& examples_;
  train::PassOptions options_;
};

// Random images and labels, the same in every pass.
class RandomImages : public train::Examples {
 public:
  RandomImages(const model::InputSpec& input, int64_t count, int64_t tokens) {
    Random random(1, Stream::shuffle);
    batch_.source.signal = tensor_from<float>({count, input.channels, input.size, input.size},
                                              [&](int64_t) { return random.normal(); });
    batch_.labels = tensor_from<int32_t>({count}, [&](int64_t) { return random.word() % kLabels; });
    batch_.predictions = count;
    batch_.tokens = count * tokens;
    batch_.units = train::units_of_rows(count);
  }
  train::Batch training(int64_t) const override { return batch_; }
  double passes_per_epoch() const override { return 1; }
  int64_t validation_batches() const override { return 0; }
  train::Batch validation(int64_t) const override { return batch_; }

 private:
  train::Batch batch_;
};

// Returns the architecture that docs/performance.md compares, without dropout: decoders without
// biases and with the exact GELU; recurrent layers and encoders of images as they are.
model::Spec compared_spec(const std::string& preset_name) {
  model::Spec spec = model::preset(preset_name);
  const bool images = spec.input.kind == model::InputKind::image;
  check_field(images || (spec.decoder && !spec.encoder), "preset",
              "{} is neither a decoder nor an encoder of images; expected a preset such as nano",
              preset_name);
  spec.dropout = {};
  if (images) {
    spec.head = model::head_of(model::family_for(model::validated(spec)), spec,
                               model::HeadKind::sequence, kLabels);
    return model::validated(spec);
  }
  if (spec.vocabulary == 0) spec.vocabulary = kCharacters;
  spec.decoder->norm.bias = spec.decoder->attention.bias = spec.decoder->attention.output_bias =
      false;
  spec.decoder->ffn.bias = false;
  spec.decoder->ffn.activation = Activation::gelu;
  return model::validated(spec);
}

// The examples of a step, and the tokens from which windows are drawn.
struct BenchExamples {
  std::vector<uint32_t> tokens;
  std::unique_ptr<train::Examples> examples;

  BenchExamples(const model::Spec& spec, const train::TrainOptions& options) {
    if (spec.input.kind == model::InputKind::image) {
      examples = std::make_unique<RandomImages>(spec.input, options.batch, spec.context);
      return;
    }
    tokens = random_tokens(spec.vocabulary);
    const train::TokenSpan all{tokens.data(), 4, kTokens, kTokens};
    examples = std::make_unique<train::NextTokenExamples>(
        train::TextMixture{{all}}, train::TextMixture{},
        train::WindowOptions{spec.context, options.batch, 0, options.seed});
  }
};

}  // namespace

void visit(BenchOptions& o, OptionVisitor& v) {
  constexpr int64_t kMostTokens = 1 << 20;
  v.text({"preset", "preset to train, such as tiny, nano, baby or lstm"}, o.preset);
  v.choice({"precision", "training: precision of matrix products"}, o.precision,
           {"automatic", "fp32", "bf16"});
  v.integer({"steps", "training: steps to measure"}, o.steps, 1, 1'000'000);
  v.integer({"prompt", "generation: tokens in the prompt"}, o.prompt, 1, kMostTokens);
  v.integer({"decode", "generation: tokens to generate"}, o.decode, 1, kMostTokens);
  v.integer({"depth", "generation: tokens before the measured decoding"}, o.depth, 1, kMostTokens);
  v.integer(
      {"batch", "sequences per step; 0 = the preset's batch for benchmarks, or 1 for generation"},
      o.batch, 0, 65536);
  v.choice({"heads",
            "instead of training steps, measure the attention of one layer of the preset: all "
            "heads in one call, or a loop over them"},
           o.heads, {"batched", "loop"});
  v.integer({"runs",
             "prompts, embedding, translation, transcription, images: number of runs; the result "
             "is their median"},
            o.runs, 1, 10000);
}

TrainBench bench_training(const BenchOptions& bench) {
  const FloatMode mode;
  check_fields(bench);
  const model::Spec spec = compared_spec(bench.preset);
  train::TrainOptions options = train::preset_training(bench.preset);
  if (bench.batch > 0)
    options.batch = bench.batch;
  else if (bench.preset == "baby")
    options.batch = 16;
  else if (spec.input.kind == model::InputKind::image)
    options.batch = 8;
  options.accumulate = 1;
  const DType compute = bench.precision == train::Precision::bf16 ||
                                (bench.precision == train::Precision::automatic && native_bf16())
                            ? DType::bf16
                            : DType::f32;
  TrainBench result;
  result.preset = bench.preset;
  result.precision = name_of(compute);
  result.isa = instruction_set();
  result.threads = thread_count();
  result.batch = options.batch;
  result.context = spec.context;
  result.steps = bench.steps;
  const train::Cost cost = train::training_cost(spec, options.batch, spec.context, 1, compute);
  const uint64_t bytes = cost.weight_bytes + cost.optimizer_bytes + cost.activation_bytes;
  if (bytes > available_memory()) {
    fail_field(ErrorKind::OutOfMemory, "preset",
               "{} needs {} MB, but {} MB are free; expected a smaller preset or batch",
               bench.preset, bytes >> 20, available_memory() >> 20);
  }
  result.flops_per_step = cost.flops_per_step;
  result.peak_flops = train::measured_flops(compute, 0.3);

  model::Transformer model(spec);
  model::initialise(model, options.seed);
  move_to(default_device(), model);
  const BenchExamples data(spec, options);
  LossTask task(*data.examples, {.compute = compute, .passes = {}, .seed = options.seed});
  train::Stepper step(model, task, options, compute);
  const double median = median_seconds([&](int64_t i) { step(i); }, bench.steps, kWarmup);
  result.milliseconds_per_step = 1e3 * median;
  result.sequences_per_second = static_cast<double>(options.batch) / median;
  result.tokens_per_second = result.sequences_per_second * static_cast<double>(spec.context);
  result.peak_bytes = resident_peak();
  return result;
}

}  // namespace fovea

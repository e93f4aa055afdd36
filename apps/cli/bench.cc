#include "fovea/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "command.h"
#include "files.h"
#include "progress.h"
#include "terminal.h"

namespace fovea::cli {
namespace {

class BenchCommand : public Command {
 public:
  BenchCommand()
      : Command(
            "bench [MODEL | --train PRESET] [--dtype NAME] [OPTIONS]",
            "Times how fast a model reads a prompt and writes; without MODEL, training steps of "
            "a preset on made-up text, and how near they come to the fastest matrix product "
            "measured on this machine.") {}

  void declare(OptionTable& table) override {
    table.add(text("--train", {"--preset"}, "preset to train: tiny, nano, baby, gpt2", preset_));
    table.add(place("MODEL", {"-m", "--model"}, "model directory", model_));
    table.add(
        choice("--dtype", {"--precision"},
               "precision of matrix products; of MODEL: of its weights, automatic = as stored",
               precision_, kWeightPrecisions));
    table.add(integer("--prompt", {}, "with MODEL: tokens of the prompt", prompt_, 1, 1 << 20));
    table.add(integer("--decode", {}, "with MODEL: tokens to write", decode_, 1, 1 << 20));
    table.add(integer("--steps", {"--iters"}, "steps to time", steps_, 1, 1'000'000));
    table.add(integer("--batch", {"-b", "--batch-size"},
                      "sequences in a step; 0 = the benchmark's own", batch_, 0, 65536));
  }

  int run(const OptionTable&) override {
    if (!model_.empty()) return run_model();
    if (precision_ > 2) throw UsageError("--dtype: int8 and int4 are for a MODEL's weights");
    const TrainBench r =
        bench_training(preset_, static_cast<Precision>(precision_), steps_, batch_);
    print(json ? as_json(r) : as_text(r));
    return 0;
  }

 private:
  int run_model() {
    const auto start = std::chrono::steady_clock::now();
    const Model model = open_model(model_, weight_precision(precision_));
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const GenerationBench r =
        bench_generation(model, prompt_, decode_, std::max<int64_t>(1, batch_));
    print(json ? as_json(r, seconds) : as_text(r, seconds));
    return 0;
  }

  static std::string as_text(const GenerationBench& r, double open_seconds) {
    return fmt::format(
        "open    {:.2f} s, {} of weights\nfirst   {:.3f} s, 16 tokens read and one written\n"
        "prompt  {:.1f} tokens/s, {} tokens\ndecode  {:.1f} tokens/s, {} x {} tokens\n"
        "memory  {} resident ({}, {} threads)\n",
        open_seconds, memory(static_cast<double>(r.weight_bytes)), r.first_token_seconds,
        r.prompt_tokens_per_second, r.prompt, r.decode_tokens_per_second, r.batch, r.decode,
        memory(static_cast<double>(r.peak_bytes)), r.isa, r.threads);
  }

  std::string as_json(const GenerationBench& r, double open_seconds) const {
    static constexpr const char* kNames[] = {"stored", "fp32", "bf16", "int8", "int4"};
    return nlohmann::ordered_json({{"model", model_},
                                   {"dtype", kNames[precision_]},
                                   {"isa", r.isa},
                                   {"threads", r.threads},
                                   {"prompt", r.prompt},
                                   {"decode", r.decode},
                                   {"batch", r.batch},
                                   {"weight_bytes", r.weight_bytes},
                                   {"open_seconds", open_seconds},
                                   {"first_token_seconds", r.first_token_seconds},
                                   {"prompt_seconds", r.prompt_seconds},
                                   {"prompt_tokens_per_second", r.prompt_tokens_per_second},
                                   {"decode_seconds", r.decode_seconds},
                                   {"decode_tokens_per_second", r.decode_tokens_per_second},
                                   {"peak_bytes", r.peak_bytes}})
               .dump() +
           "\n";
  }

  static double share(const TrainBench& r) {
    const double seconds = r.milliseconds_per_step / 1e3;
    return r.peak_flops > 0 && seconds > 0 ? r.flops_per_step / seconds / r.peak_flops : 0;
  }

  static std::string as_text(const TrainBench& r) {
    return fmt::format(
        "train {} ({}, {}, {} threads): {:.0f} tokens/s, {:.2f} ms a step of {} x {} tokens, "
        "{:.0f}% of the measured "
        "peak, {} resident\n",
        r.preset, r.precision, r.isa, r.threads, r.tokens_per_second, r.milliseconds_per_step,
        r.batch, r.context, 100 * share(r), memory(static_cast<double>(r.peak_bytes)));
  }

  static std::string as_json(const TrainBench& r) {
    return nlohmann::ordered_json({{"preset", r.preset},
                                   {"precision", r.precision},
                                   {"isa", r.isa},
                                   {"threads", r.threads},
                                   {"batch", r.batch},
                                   {"context", r.context},
                                   {"steps", r.steps},
                                   {"milliseconds_per_step", r.milliseconds_per_step},
                                   {"tokens_per_second", r.tokens_per_second},
                                   {"flops_per_step", r.flops_per_step},
                                   {"peak_flops", r.peak_flops},
                                   {"share_of_peak", share(r)},
                                   {"peak_bytes", r.peak_bytes}})
               .dump() +
           "\n";
  }

  std::string preset_ = "nano", model_;
  int precision_ = 0;
  int64_t steps_ = 50, batch_ = 0, prompt_ = 512, decode_ = 64;
};

}  // namespace

std::unique_ptr<Command> make_bench() { return std::make_unique<BenchCommand>(); }

}  // namespace fovea::cli

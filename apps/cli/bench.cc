#include "fovea/bench.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "command.h"
#include "progress.h"
#include "terminal.h"

namespace fovea::cli {
namespace {

class BenchCommand : public Command {
 public:
  BenchCommand()
      : Command("bench [--train PRESET] [--dtype NAME] [OPTIONS]",
                "Times training steps of a preset on made-up text, and says how near they come to "
                "the fastest "
                "matrix product measured on this machine.") {}

  void declare(OptionTable& table) override {
    table.add(text("--train", {"--preset"}, "preset to train: tiny, nano, baby, gpt2", preset_));
    table.add(choice("--dtype", {"--precision"}, "precision of matrix products", precision_,
                     {"automatic|auto", "fp32|float32|f32", "bf16|bfloat16"}));
    table.add(integer("--steps", {"--iters"}, "steps to time", steps_, 1, 1'000'000));
    table.add(integer("--batch", {"-b", "--batch-size"},
                      "sequences in a step; 0 = the benchmark's own", batch_, 0, 65536));
  }

  int run(const OptionTable&) override {
    const TrainBench r =
        bench_training(preset_, static_cast<Precision>(precision_), steps_, batch_);
    print(json ? as_json(r) : as_text(r));
    return 0;
  }

 private:
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

  std::string preset_ = "nano";
  int precision_ = 0;
  int64_t steps_ = 50, batch_ = 0;
};

}  // namespace

std::unique_ptr<Command> make_bench() { return std::make_unique<BenchCommand>(); }

}  // namespace fovea::cli

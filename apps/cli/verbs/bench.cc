#include "fovea/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "fovea/text/text_lines.h"
#include "options/common_options.h"
#include "options/field_options.h"
#include "options/open_model.h"
#include "terminal/progress.h"
#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

class BenchCommand : public Command {
 public:
  BenchCommand()
      : Command("bench [MODEL | --train PRESET | --machine] [--dtype NAME] [OPTIONS]",
                "Measures how fast a model reads a prompt and generates tokens. Without MODEL: "
                "measures training steps of a preset on random text, and compares them with the "
                "fastest matrix product measured on this machine.") {}

  void declare(OptionTable& table) override {
    table.add(of_model(positional("MODEL", {"-m", "--model"}, "model directory", model_)));
    table.add(
        choice("--dtype", {"--precision"},
               "precision of matrix products; with MODEL: of its weights, automatic = as stored",
               precision_, kWeightPrecisions));
    table.add(cache_option(cache_));
    table.add(adapter_option(adapters_));
    table.add(as("FILE", text("--embed", {}, "with MODEL: measure embedding the lines of this file",
                              lines_)));
    table.add(integer("--images", {},
                      "with MODEL: measure the labels or vectors of N random images", images_, 0,
                      1 << 20));
    table.add(flag("--machine", {},
                   "measure the machine: the rates of matrix products in fp32, bf16 and int8, and "
                   "of reading memory",
                   machine_));
    add_fields(table, options_,
               {{"preset", {"--preset"}, "--train", "NAME"},
                {.field = "precision", .omitted = true},  // --dtype, also for the weights of MODEL
                {"steps", {"--iters"}},
                {"batch", {"-b", "--batch-size"}}});
    table.section("Translation and transcription");
    table.add(as("FILE", text("--translate", {},
                              "with MODEL: measure translating the lines of this file", sources_)));
    add_fields(table, translation_,
               {{"beams", {"--beam", "--beam-size", "--num-beams"}},
                {"source_language", {"--source-lang", "--src-lang"}, "", "CODE"},
                {"target_language", {"--target-lang", "--tgt-lang"}, "", "CODE"}},
               Fields::spelled);
    table.add(integer("--transcribe", {},
                      "with MODEL: measure transcribing N windows of noise together", windows_, 0,
                      256));
    table.add(integer("--tokens", {},
                      "generate exactly N tokens per line or window; 0 = until the end token, and "
                      "64 per window",
                      exact_, 0, 1 << 20));
  }

  int run(const OptionTable& table) override {
    if (machine_) return run_machine();
    if (table.given("--heads")) return run_heads();
    if (!lines_.empty()) return run_embedding();
    if (!sources_.empty()) return run_translation();
    if (images_ > 0) return run_images();
    if (windows_ > 0) return run_transcription();
    if (!model_.empty()) return run_model();
    if (!adapters_.empty())
      throw UsageError("--adapter: requires a MODEL; expected a model directory");
    if (precision_ > 2)
      throw UsageError("--dtype: int8 and int4 require a MODEL; expected automatic, fp32 or bf16");
    options_.precision = static_cast<train::Precision>(precision_);
    const TrainBench r = bench_training(options_);
    print(json ? as_json(r) : as_text(r));
    return 0;
  }

 private:
  int run_machine() {
    if (!model_.empty())
      throw UsageError("--machine: cannot be combined with a MODEL; expected one of them");
    const MachineBench r = bench_machine();
    print(json ? nlohmann::ordered_json({{"cpu", r.cpu},
                                         {"isa", r.isa},
                                         {"threads", r.threads},
                                         {"fp32_flops", r.fp32_flops},
                                         {"bf16_flops", r.bf16_flops},
                                         {"int8_operations", r.int8_operations},
                                         {"one_thread_bytes_per_second", r.one_thread_bandwidth},
                                         {"bytes_per_second", r.bandwidth}})
                         .dump() +
                     "\n"
               : fmt::format(
                     "{} ({}, {} threads)\nproducts  fp32 {:.0f} GFLOP/s, bf16 {:.0f} "
                     "GFLOP/s, int8 {:.0f} GOP/s\nmemory    {:.1f} GB/s read by one thread, "
                     "{:.1f} GB/s by all\n",
                     r.cpu, r.isa, r.threads, r.fp32_flops / 1e9, r.bf16_flops / 1e9,
                     r.int8_operations / 1e9, r.one_thread_bandwidth / 1e9, r.bandwidth / 1e9));
    return 0;
  }

  int run_heads() {
    if (!model_.empty() || precision_ > 2)
      throw UsageError("--heads: measures a preset in fp32 or bf16; expected --train NAME");
    options_.precision = static_cast<train::Precision>(precision_);
    const HeadsBench r = bench_heads(options_);
    print(json ? nlohmann::ordered_json({{"preset", r.preset},
                                         {"precision", r.precision},
                                         {"isa", r.isa},
                                         {"threads", r.threads},
                                         {"batch", r.batch},
                                         {"context", r.context},
                                         {"heads", r.heads},
                                         {"head_width", r.head_width},
                                         {"milliseconds", r.milliseconds},
                                         {"tokens_per_second", r.tokens_per_second}})
                         .dump() +
                     "\n"
               : fmt::format("attention of {} ({}, {}, {} threads): {:.3f} ms for {} x {} tokens, "
                             "{} heads of width {}, forward and backward, {:.0f} tokens/s\n",
                             r.preset, r.precision, r.isa, r.threads, r.milliseconds, r.batch,
                             r.context, r.heads, r.head_width, r.tokens_per_second));
    return 0;
  }

  int run_embedding() {
    if (model_.empty()) throw UsageError("--embed: requires a MODEL; expected a model directory");
    const std::vector<std::string> texts = text::all_lines(lines_);
    const infer::Embedder embedder =
        open_embedder(model_, weight_precision(precision_), adapters_of(adapters_));
    const EmbedBench r = bench_embedding(embedder, texts, options_);
    print(json ? nlohmann::ordered_json({{"isa", r.isa},
                                         {"threads", r.threads},
                                         {"sentences", r.sentences},
                                         {"tokens", r.tokens},
                                         {"seconds", r.seconds},
                                         {"sentences_per_second", r.sentences_per_second},
                                         {"tokens_per_second", r.tokens_per_second}})
                         .dump() +
                     "\n"
               : fmt::format("embed {} lines ({}, {} threads): {:.0f} lines/s, {:.0f} tokens/s\n",
                             r.sentences, r.isa, r.threads, r.sentences_per_second,
                             r.tokens_per_second));
    return 0;
  }

  int run_images() {
    if (model_.empty()) throw UsageError("--images: requires a MODEL; expected a model directory");
    const infer::ImageModel model = infer::ImageModel::open(model_, weight_precision(precision_));
    const ImageBench r = bench_images(model, images_, options_);
    print(json ? nlohmann::ordered_json({{"isa", r.isa},
                                         {"threads", r.threads},
                                         {"images", r.images},
                                         {"seconds", r.seconds},
                                         {"images_per_second", r.images_per_second}})
                         .dump() +
                     "\n"
               : fmt::format("{} images ({}, {} threads): {:.1f} images/s\n", r.images, r.isa,
                             r.threads, r.images_per_second));
    return 0;
  }

  int run_translation() {
    if (model_.empty())
      throw UsageError("--translate: requires a MODEL; expected a model directory");
    translation_.min_tokens = translation_.max_tokens = exact_;
    translation_.sequences = std::max(translation_.sequences, translation_.beams);
    const model::Model model = opened();
    const TranslationBench r =
        bench_translation(model, text::all_lines(sources_), translation_, options_);
    print(json ? nlohmann::ordered_json({{"model", model_},
                                         {"dtype", kPrecisionNames[precision_]},
                                         {"isa", r.isa},
                                         {"threads", r.threads},
                                         {"beams", translation_.beams},
                                         {"lines", r.lines},
                                         {"source_tokens", r.source_tokens},
                                         {"tokens", r.tokens},
                                         {"seconds", r.seconds},
                                         {"lines_per_second", r.lines_per_second},
                                         {"tokens_per_second", r.tokens_per_second},
                                         {"peak_bytes", r.peak_bytes}})
                         .dump() +
                     "\n"
               : fmt::format("translate {} lines with {} beam{} ({}, {} threads): {:.1f} lines/s, "
                             "{:.0f} output tokens/s\n",
                             r.lines, translation_.beams, translation_.beams == 1 ? "" : "s", r.isa,
                             r.threads, r.lines_per_second, r.tokens_per_second));
    return 0;
  }

  int run_transcription() {
    if (model_.empty())
      throw UsageError("--transcribe: requires a MODEL; expected a model directory");
    constexpr int64_t kTokens = 64;
    infer::TranscribeOptions transcription;
    transcription.windows = windows_;
    transcription.beams = translation_.beams;
    transcription.max_tokens = exact_ > 0 ? exact_ : kTokens;
    const TranscriptionBench r = bench_transcription(opened(), transcription, options_);
    print(json ? nlohmann::ordered_json({{"model", model_},
                                         {"dtype", kPrecisionNames[precision_]},
                                         {"isa", r.isa},
                                         {"threads", r.threads},
                                         {"beams", transcription.beams},
                                         {"windows", r.windows},
                                         {"tokens", r.tokens},
                                         {"audio_seconds", r.audio_seconds},
                                         {"seconds", r.seconds},
                                         {"audio_per_second", r.audio_per_second},
                                         {"peak_bytes", r.peak_bytes}})
                         .dump() +
                     "\n"
               : fmt::format("transcribe {} windows with {} beam{} ({}, {} threads): {:.1f} s of "
                             "audio/s, {} tokens\n",
                             r.windows, transcription.beams, transcription.beams == 1 ? "" : "s",
                             r.isa, r.threads, r.audio_per_second, r.tokens));
    return 0;
  }

  int run_model() {
    const auto start = std::chrono::steady_clock::now();
    const model::Model model = opened();
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const GenerationBench r = bench_generation(model, options_);
    print(json ? as_json(r, seconds) : as_text(r, seconds));
    return 0;
  }

  static std::string as_text(const GenerationBench& r, double open_seconds) {
    std::string formats;
    for (const model::FormatBytes& each : r.weight_formats)
      formats += (formats.empty() ? "" : ", ") + each.format;
    return fmt::format(
        "open    {:.2f} s, {} of weights ({})\nfirst   {:.3f} s, 16 tokens read and one "
        "generated\nprompt  {:.1f} tokens/s, {} tokens\ndecode  {:.1f} tokens/s, {} x {} "
        "tokens after {}\nmemory  {} resident ({}, {} threads)\n",
        open_seconds, memory(static_cast<double>(r.weight_bytes)), formats, r.first_token_seconds,
        r.prompt_tokens_per_second, r.prompt, r.decode_tokens_per_second, r.batch, r.decode,
        r.depth, memory(static_cast<double>(r.peak_bytes)), r.isa, r.threads);
  }

  std::string as_json(const GenerationBench& r, double open_seconds) const {
    return nlohmann::ordered_json({{"model", model_},
                                   {"dtype", kPrecisionNames[precision_]},
                                   {"isa", r.isa},
                                   {"threads", r.threads},
                                   {"prompt", r.prompt},
                                   {"decode", r.decode},
                                   {"batch", r.batch},
                                   {"depth", r.depth},
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
        "train {} ({}, {}, {} threads): {:.0f} tokens/s, {:.2f} ms per step of {} x {} tokens, "
        "{:.0f}% of the measured peak, {} resident\n",
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
                                   {"sequences_per_second", r.sequences_per_second},
                                   {"tokens_per_second", r.tokens_per_second},
                                   {"flops_per_step", r.flops_per_step},
                                   {"peak_flops", r.peak_flops},
                                   {"share_of_peak", share(r)},
                                   {"peak_bytes", r.peak_bytes}})
               .dump() +
           "\n";
  }

  static constexpr const char* kPrecisionNames[] = {"stored", "fp32", "bf16", "int8", "int4"};

  model::Model opened() const {
    return open_model(model_, weight_precision(precision_), cache_type(cache_),
                      adapters_of(adapters_));
  }

  std::string lines_, sources_, model_;
  std::vector<std::string> adapters_;
  BenchOptions options_;
  infer::TranslateOptions translation_;
  int64_t exact_ = 0, images_ = 0, windows_ = 0;
  int precision_ = 0, cache_ = 0;
  bool machine_ = false;
};

}  // namespace

std::unique_ptr<Command> make_bench() { return std::make_unique<BenchCommand>(); }

}  // namespace fovea::cli

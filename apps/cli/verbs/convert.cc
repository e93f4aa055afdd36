#include "fovea/model/convert.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "options/common_options.h"
#include "options/field_options.h"
#include "options/open_model.h"
#include "terminal/progress.h"
#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

class ConvertCommand : public Command {
 public:
  ConvertCommand()
      : Command("convert IN OUT [--dtype NAME] [--quantize int8|int4] [OPTIONS]",
                "Converts a model to another directory or .gguf file, with another dtype or "
                "quantised weights. Quantised weights take 2 to 4 times less memory than bf16 "
                "and speed up generation by about the same factor. By default, the weights of a "
                "directory are not quantised, and a .gguf file keeps the precision of the model; "
                "--dtype q4_k_m is a common choice for a .gguf file. "
                "Only fovea reads a directory of int8 or int4 weights. Adapters (--adapter, or IN "
                "itself) are merged into the weights; --adapter-only converts them. The encoder of "
                "images of a model of texts and images becomes a file beside a .gguf file.") {}

  void declare(OptionTable& table) override {
    table.add(
        of_model(positional("IN", {"-m", "--model"},
                            "model directory, also of CTranslate2, .gguf file, or .bin file of "
                            "whisper.cpp",
                            from_)));
    table.add(positional("OUT", {"-o", "--out"},
                         "directory, .gguf file or, for whisper.cpp, .bin file to write", to_));
    add_fields(table, options_,
               {{.field = "dtype",
                 .aliases = {"--precision"},
                 .values = {"automatic|auto",
                            "fp32|float32|f32",
                            "bf16|bfloat16",
                            "fp16|float16|f16",
                            "q8_0|Q8_0",
                            "q6_k|Q6_K",
                            "q5_k_m|q5_k|Q5_K_M|Q5_K",
                            "q5_k_s|Q5_K_S",
                            "q5_1|Q5_1",
                            "q5_0|Q5_0",
                            "q4_k_m|q4_k|Q4_K_M|Q4_K",
                            "q4_k_s|Q4_K_S",
                            "q4_1|Q4_1",
                            "q4_0|Q4_0",
                            "iq4_nl|IQ4_NL",
                            "iq4_xs|IQ4_XS",
                            "q3_k_l|Q3_K_L",
                            "q3_k_m|q3_k|Q3_K_M|Q3_K",
                            "q3_k_s|Q3_K_S",
                            "q2_k|Q2_K",
                            "q2_k_s|Q2_K_S",
                            "mxfp4_moe|MXFP4_MOE"}},
                {.field = "quantize",
                 .aliases = {"-q"},
                 .values = {"automatic|auto", "int8|q8|q8_0", "int4|q4|q4_0"}},
                {"group", {"--group-size"}},
                {"shard_size", {"--max-shard-size"}, "", "SIZE"},
                {.field = "calibrate", .placeholder = "FILE"},
                {.field = "imatrix", .placeholder = "FILE"},
                {.field = "save_imatrix", .placeholder = "FILE"}});
    table.add(adapter_option(adapters_));
  }

  int run(const OptionTable&) override {
    if (from_.empty()) throw UsageError("IN: not given; expected a model directory or .gguf file");
    if (to_.empty())
      throw UsageError("OUT: not given; expected a directory or .gguf file to write");
    const model::Conversion r = model::convert_model(from_, to_, options_, adapters_of(adapters_));
    warn(r.warnings);
    print(json ? as_json(r) : as_text(r));
    return 0;
  }

 private:
  std::string as_text(const model::Conversion& r) const {
    const auto parameters = static_cast<double>(r.parameters);
    const auto bytes = static_cast<double>(r.bytes_after);
    const auto size = [](double count) {
      return count < 1e6 ? fmt::format("{:.1f} KB", count / 1e3)
                         : fmt::format("{:.1f} MB", count / 1e6);
    };
    std::string lines =
        fmt::format("{}: {} parameters as {}, {}, {:.2f} bits per parameter (before: {})\n",
                    printable(to_), amount(parameters), r.weights, size(bytes),
                    8 * bytes / parameters, size(static_cast<double>(r.bytes_before)));
    if (!r.mmproj.empty())
      lines += fmt::format("{}: the encoder of images, for --mmproj\n", printable(r.mmproj));
    return lines;
  }

  std::string as_json(const model::Conversion& r) const {
    nlohmann::ordered_json result = {{"out", to_},
                                     {"parameters", r.parameters},
                                     {"weights", r.weights},
                                     {"bytes_before", r.bytes_before},
                                     {"bytes_after", r.bytes_after}};
    if (!r.mmproj.empty()) result["mmproj"] = r.mmproj;
    return result.dump() + "\n";
  }

  std::string from_, to_;
  std::vector<std::string> adapters_;
  model::ConvertOptions options_;
};

}  // namespace

std::unique_ptr<Command> make_convert() { return std::make_unique<ConvertCommand>(); }

}  // namespace fovea::cli

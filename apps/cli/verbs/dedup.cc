#include <fmt/format.h>

#include <algorithm>

#include "base/ordered_json.h"
#include "cli/command.h"
#include "fovea/train/deduplicate.h"
#include "options/field_options.h"
#include "terminal/progress.h"
#include "terminal/signals.h"
#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

using Json = nlohmann::ordered_json;
using Amount = train::Deduplicated::Amount;

class DedupCommand : public Command {
 public:
  DedupCommand()
      : Command("dedup DATA... --out FILE [OPTIONS]",
                "Copies the documents of training data, and leaves out those that are equal, or "
                "with --near similar, to an earlier one; or with --lines the repeated lines. "
                "Reports what was left out, with examples.") {}

  void declare(OptionTable& table) override {
    add_fields(table, options_,
               {{.field = "data", .aliases = {"--data", "-f", "--file"}, .name = "DATA"},
                {.field = "out", .aliases = {"-o", "--output"}, .placeholder = "FILE"}});
  }

  int run(const OptionTable&) override {
    if (options_.data.empty()) throw UsageError("DATA: not given; expected text files");
    if (options_.out.empty()) throw UsageError("--out: not given; expected the output file");
    catch_signals();
    ProgressLine line;
    const train::Deduplicated result = train::deduplicate(options_, [&](double fraction) {
      line.show(fraction, "reading", fmt::format("reading {:.0f}%", 100 * fraction));
      return !stop_requested();
    });
    line.clear();
    if (result.stopped) return stop_code();
    print(json ? as_json(result) : as_text(result));
    return 0;
  }

 private:
  std::string as_text(const train::Deduplicated& r) const {
    const char* const what = options_.lines ? "lines" : "documents";
    const auto row = [&](const char* name, const Amount& amount) {
      const double share = static_cast<double>(amount.bytes) /
                           static_cast<double>(std::max<int64_t>(1, r.read.bytes));
      return fmt::format("{:<12}{:>12} {}, {} bytes ({:.1f}%)\n", name, amount.number, what,
                         amount.bytes, 100 * share);
    };
    std::string text = row("read", r.read) + row("equal", r.equal);
    if (options_.near > 0) text += row("similar", r.near);
    text += row("kept", r.kept);
    for (const auto& each : r.examples)
      text +=
          fmt::format("left out: {} \"{}\", {} {}\n", printable(each.where), printable(each.text),
                      each.similarity == 1 ? "equal to" : fmt::format("{:.2f} as", each.similarity),
                      printable(each.kept));
    return text;
  }

  std::string as_json(const train::Deduplicated& r) const {
    const auto amount = [](const Amount& a) {
      return Json{{"number", a.number}, {"bytes", a.bytes}};
    };
    Json examples = Json::array();
    for (const auto& each : r.examples)
      examples.push_back({{"where", each.where},
                          {"text", each.text},
                          {"kept", each.kept},
                          {"similarity", each.similarity}});
    return json_line(Json{{"out", options_.out},
                          {"read", amount(r.read)},
                          {"equal", amount(r.equal)},
                          {"similar", amount(r.near)},
                          {"kept", amount(r.kept)},
                          {"examples", examples}}) +
           "\n";
  }

  train::DeduplicateOptions options_;
};

}  // namespace

std::unique_ptr<Command> make_dedup() { return std::make_unique<DedupCommand>(); }

}  // namespace fovea::cli

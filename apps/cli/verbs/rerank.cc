#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/ordered_json.h"
#include "cli/command.h"
#include "cli/reports/classify_input.h"
#include "fovea/text/text_lines.h"
#include "options/common_options.h"
#include "options/field_options.h"
#include "options/open_model.h"
#include "options/text_scorer.h"
#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

using Json = nlohmann::ordered_json;

class RerankCommand : public Command {
 public:
  RerankCommand()
      : Command("rerank MODEL --query TEXT [FILE...] [OPTIONS]",
                "Sorts the lines of files, or of standard input, by relevance to a query. MODEL is "
                "a cross-encoder (a sequence classifier with one label that reads query and line "
                "together) or a late interaction model (ColBERT). Prints score, line number and "
                "line, best first.") {}

  void declare(OptionTable& table) override {
    table.add(model_argument(model_));
    table.add(text("--query", {"-q"}, "the query", query_));
    table.add(input_arguments(files_));
    table.add(integer("--top", {"-n", "--top-n", "--top-k"}, "number of lines to print; 0 = all",
                      top_, 0, 1'000'000'000));
    add_fields(table, options_,
               {{"raw", {"--raw-scores"}}, {.field = "truncate", .omitted = true}});
    table.add(flag("--no-truncate", {},
                   "refuse lines with too many tokens instead of truncating them", whole_));
    table.add(choice("--dtype", {}, "precision of the weights; automatic = as stored", weights_,
                     kWeightPrecisions));
    table.add(adapter_option(adapters_));
  }

  int run(const OptionTable& table) override {
    if (model_.empty()) throw UsageError("MODEL: not given; expected a model directory");
    if (!table.given("--query")) throw UsageError("--query: not given; expected a text");
    options_.truncate = !whole_;
    const TextScorer score =
        open_scorer(model_, weight_precision(weights_), adapters_of(adapters_));
    const std::vector<std::string> lines = read_lines();
    const std::vector<float> scores = score(query_, lines, options_);

    std::vector<size_t> order(lines.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return scores[a] > scores[b]; });
    if (top_ > 0) order.resize(std::min(order.size(), static_cast<size_t>(top_)));
    print(json ? as_json(lines, scores, order) : as_text(lines, scores, order));
    return 0;
  }

 private:
  std::vector<std::string> read_lines() {
    if (files_.empty()) files_.emplace_back("-");
    std::vector<std::string> lines;
    for (const std::string& file : files_) {
      std::vector<std::string> more = texts_of({file, 0, 0, text::all_lines(file)});
      std::move(more.begin(), more.end(), std::back_inserter(lines));
    }
    return lines;
  }

  static std::string as_text(const std::vector<std::string>& lines,
                             const std::vector<float>& scores, const std::vector<size_t>& order) {
    std::string out;
    for (const size_t i : order) out += fmt::format("{:.6f}\t{}\t{}\n", scores[i], i + 1, lines[i]);
    return out;
  }

  std::string as_json(const std::vector<std::string>& lines, const std::vector<float>& scores,
                      const std::vector<size_t>& order) const {
    Json results = Json::array();
    for (const size_t i : order)
      results.push_back({{"index", i}, {"score", scores[i]}, {"text", lines[i]}});
    return json_line({{"query", query_}, {"results", results}}) + "\n";
  }

  std::string model_, query_;
  std::vector<std::string> files_, adapters_;
  infer::RerankOptions options_;
  int64_t top_ = 0;
  int weights_ = 0;
  bool whole_ = false;
};

}  // namespace

std::unique_ptr<Command> make_rerank() { return std::make_unique<RerankCommand>(); }

}  // namespace fovea::cli

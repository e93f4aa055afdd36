#include "cli/verbs/embed_mine.h"

#include <fmt/format.h>

#include <iterator>
#include <optional>

#include "base/files.h"
#include "base/ordered_json.h"
#include "cli/reports/classify_input.h"
#include "fovea/text/text_lines.h"
#include "options/common_options.h"
#include "options/field_options.h"
#include "options/text_scorer.h"
#include "terminal/progress.h"
#include "terminal/signals.h"
#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

using Json = nlohmann::ordered_json;

// A line for each pair, with the names of columns that training reads.
std::string lines_of(const infer::MinedNegatives& mined) {
  std::string lines;
  for (const infer::MinedPair& pair : mined.pairs) {
    Json row = {{"anchor", pair.anchor}, {"positive", pair.positive}};
    for (size_t i = 0; i < pair.negatives.size(); ++i)
      row[fmt::format("negative_{}", i + 1)] = pair.negatives[i];
    row["scores"] = pair.scores;
    lines += json_line(row) + "\n";
  }
  return lines;
}

// Returns the mean scores of the positives and of the negatives.
std::pair<double, double> mean_scores(const infer::MinedNegatives& mined) {
  double positive = 0, negative = 0, negatives = 0;
  for (const infer::MinedPair& pair : mined.pairs) {
    positive += pair.scores[0];
    for (size_t i = 1; i < pair.scores.size(); ++i) negative += pair.scores[i];
    negatives += static_cast<double>(pair.negatives.size());
  }
  const auto pairs = static_cast<double>(mined.pairs.size());
  return {positive / std::max(1.0, pairs), negative / std::max(1.0, negatives)};
}

std::string report(const infer::MinedNegatives& mined, int64_t negatives, bool json) {
  const auto [positive, negative] = mean_scores(mined);
  if (json)
    return json_line({{"pairs", mined.pairs.size()},
                      {"incomplete", mined.incomplete},
                      {"mean_positive", positive},
                      {"mean_negative", negative},
                      {"by_margin", mined.by_margin},
                      {"by_relative_margin", mined.by_relative_margin},
                      {"by_max_score", mined.by_max_score}}) +
           "\n";
  std::string text = fmt::format(
      "{} pairs with {} negatives; mean scores {:.4f} of positives, {:.4f} of negatives\n",
      mined.pairs.size(), negatives, positive, negative);
  if (mined.incomplete > 0)
    text += fmt::format("{} pairs with fewer negatives are left out\n", mined.incomplete);
  return text;
}

}  // namespace

void MiningRequest::declare(OptionTable& table) {
  add_fields(table, options_,
             {{.field = "pairs",
               .name = "--mine",
               .placeholder = "FILE",
               .section = "Mining hard negatives"},
              {"negatives", {"--num-negatives"}},
              {.field = "margin", .omitted = true},
              {.field = "relative_margin", .omitted = true},
              {"sampling", {"--sampling-strategy"}},
              {.field = "seed", .omitted = true}});
  table.add(of_model(
      as("DIR", text("--rerank", {"--cross-encoder"},
                     "score the candidates by a cross-encoder, whose scores are those of a "
                     "teacher for --loss margin_mse and kl",
                     reranker_))));
}

int MiningRequest::run(const infer::Embedder& embedder, const std::vector<std::string>& corpus,
                       const std::string& out, const infer::MiningOptions& shared, bool json) {
  options_.margin = shared.margin;
  options_.relative_margin = shared.relative_margin;
  options_.seed = shared.seed;
  for (const std::string& file : corpus) {
    std::vector<std::string> texts = texts_of({file, 0, 0, text::all_lines(file)});
    std::move(texts.begin(), texts.end(), std::back_inserter(options_.corpus));
  }
  if (!reranker_.empty())
    options_.reranker = [score = open_scorer(reranker_)](const std::string& query,
                                                         const std::vector<std::string>& texts) {
      return score(query, texts, {});
    };
  catch_signals();
  std::optional<infer::MinedNegatives> mined;
  ProgressLine line;
  try {
    mined = infer::mine_negatives(embedder, options_, [&](double fraction) {
      line.show(fraction, "mining", fmt::format("mined {:.0f}%", 100 * fraction));
      return !stop_requested();
    });
  } catch (const Error&) {
    if (!stop_requested()) throw;
  }
  line.clear();
  if (!mined) return stop_code();
  const std::string summary = report(*mined, options_.negatives, json);
  if (out.empty()) {
    print(lines_of(*mined));
    note(summary);
  } else {
    write_file_atomically(out, lines_of(*mined));
    print(summary);
  }
  return 0;
}

}  // namespace fovea::cli

#include "cli/reports/explained.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "terminal/heatmap.h"
#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

constexpr size_t kToken = 14, kBar = 12;  // widths of tokens and of bars, in characters
constexpr size_t kColumn = 26;            // of a method: score, bar and space
constexpr int kOrange = 208, kBlue = 33;  // of the 256 colours
constexpr size_t kListed = 8;             // removed tokens to list

const char* title_of(study::AttributionMethod method) {
  switch (method) {
    case study::AttributionMethod::gradient_input: return "gradient x input";
    case study::AttributionMethod::integrated_gradients: return "integrated gradients";
    case study::AttributionMethod::rollout: return "attention rollout";
  }
  return "";
}

// Returns a bar of kBar characters for a score of at most `most`.
std::string bar(double score, double most, BarStyle style) {
  const double share = most > 0 ? std::abs(score) / most : 0;
  const auto length = static_cast<size_t>(std::lround(share * static_cast<double>(kBar)));
  const bool negative = score < 0;
  const char* cell = !style.blocks ? (negative ? "-" : "+") : negative ? "\u2592" : "\u2588";
  std::string cells;
  for (size_t i = 0; i < length; ++i) cells += cell;
  if (style.colours && length > 0)
    cells = fmt::format("\x1b[38;5;{}m{}\x1b[0m", negative ? kBlue : kOrange, cells);
  return cells + std::string(kBar - length, ' ');
}

std::string without_end(std::string line) {
  while (line.ends_with(' ')) line.pop_back();
  return line + "\n";
}

bool is_kept(const study::Explanation& explanation, int64_t token) {
  return std::find(explanation.positions.begin(), explanation.positions.end(), token) !=
         explanation.positions.end();
}

std::string score_table(const study::Explanation& explanation, BarStyle style) {
  std::string heading(kToken + 2, ' ');
  std::vector<double> most;
  for (const study::Attribution& attribution : explanation.attributions) {
    heading += fmt::format("{:<{}}", title_of(attribution.method), kColumn);
    double largest = 0;
    for (const double score : attribution.scores) largest = std::max(largest, std::abs(score));
    most.push_back(largest);
  }
  std::string out = without_end(heading);
  for (size_t t = 0; t < explanation.tokens.size(); ++t) {
    const study::InspectedToken& token = explanation.tokens[t];
    const bool kept = is_kept(explanation, static_cast<int64_t>(t));
    std::string line = token_label(token.text, kToken) + (kept            ? "= "
                                                          : token.special ? "* "
                                                                          : "  ");
    for (size_t i = 0; i < most.size(); ++i) {
      const double score = explanation.attributions[i].scores[t];
      line += fmt::format("{:>11.5f} ", score) + bar(score, most[i], style) + "  ";
    }
    out += without_end(line);
  }
  const bool added = std::any_of(explanation.tokens.begin(), explanation.tokens.end(),
                                 [](const study::InspectedToken& token) { return token.special; });
  if (added) out += "* added to the text; the deletion test keeps these tokens\n";
  if (!explanation.positions.empty())
    out += "= what the answer is about; the deletion test keeps these tokens\n";
  return out;
}

// Returns the texts of removed tokens, those with the greatest scores first.
std::string names_of(const study::Explanation& explanation, const std::vector<int64_t>& removed) {
  std::string names;
  for (size_t i = 0; i < std::min(removed.size(), kListed); ++i) {
    const std::string text = explanation.tokens[static_cast<size_t>(removed[i])].text;
    names += (i > 0 ? ", " : "") + without_end(token_label(text, kToken));
    names.pop_back();  // the line break
  }
  return names + (removed.size() > kListed ? ", ..." : "");
}

std::string deletions_of(const study::Explanation& explanation,
                         const study::ExplainOptions& options) {
  const std::vector<study::Attribution>& all = explanation.attributions;
  if (all.empty() || !all.front().deletion)
    return "deletion test: fewer than two tokens can be removed\n";
  const study::DeletionTest& first = *all.front().deletion;
  int64_t own = 0;
  for (size_t t = 0; t < explanation.tokens.size(); ++t)
    own += !explanation.tokens[t].special && !is_kept(explanation, static_cast<int64_t>(t));
  std::string out = fmt::format("deletion test: change of the {} without {} of {} tokens\n",
                                explanation.value_name, first.removed.size(), own);
  for (const study::Attribution& attribution : all)
    out += fmt::format("  {:<22}{:>11.5f}  {}\n", title_of(attribution.method),
                       attribution.deletion->change,
                       names_of(explanation, attribution.deletion->removed));
  return out + fmt::format("  {:<22}{:>11.5f}  mean of {} choices, standard deviation {:.5f}\n",
                           "random tokens", first.random_change, options.random_choices,
                           first.random_deviation);
}

std::string completeness_of(const study::Explanation& explanation,
                            const study::Attribution& attribution) {
  std::string out = fmt::format(
      "integrated gradients: baseline {} with {} {:.6f}, {} steps, completeness error {:.2g}\n",
      explanation.baseline, explanation.value_name, *attribution.baseline_value,
      attribution.integration_steps, *attribution.completeness_error);
  if (!attribution.converged)
    out += fmt::format(
        "warning: integrated gradients did not converge: the scores add up to the difference "
        "{:.4g} only with an error of {:.2g}; more --integration-steps may help\n",
        explanation.value - *attribution.baseline_value, *attribution.completeness_error);
  return out;
}

}  // namespace

Spellings explain_spellings(const Spelling& method, const std::vector<std::string>& omitted) {
  Spelling first = method;
  first.section = "Explanation";
  Spellings all = {first};
  for (const std::string& field : omitted) all.push_back({.field = field, .omitted = true});
  return all;
}

void check_explain_options(const OptionTable& table) {
  if (table.given("--explain")) return;
  for (const Option& option : table.all())
    if (option.section == "Explanation" && table.given(option.name))
      throw UsageError(option.name + ": --explain is not given; expected it");
}

BarStyle bar_style(bool to_file) {
  const char* const no_colour = std::getenv("NO_COLOR");
  const bool colours =
      !to_file && is_terminal(Channel::output) && (no_colour == nullptr || *no_colour == '\0');
  return {colours, can_utf8()};
}

std::string explanation_text(const study::Explanation& explanation,
                             const study::ExplainOptions& options, BarStyle style) {
  std::string out = fmt::format(
      "{} {}: {:.6f}\n", explanation.value_name,
      explanation.target.empty() ? "of the empty answer" : printable(explanation.target),
      explanation.value);
  out += score_table(explanation, style) + deletions_of(explanation, options);
  for (const study::Attribution& attribution : explanation.attributions)
    if (attribution.completeness_error) out += completeness_of(explanation, attribution);
  return out;
}

}  // namespace fovea::cli

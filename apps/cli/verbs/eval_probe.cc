#include "cli/verbs/eval_probe.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/ordered_json.h"
#include "cli/reports/estimate.h"
#include "options/field_options.h"
#include "terminal/progress.h"
#include "terminal/signals.h"
#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string title_of(const study::ProbeResult::Vectors& vectors) {
  return vectors.layer ? fmt::format("layer {}", *vectors.layer) : "vectors";
}

bool has_numbers(const study::ProbeResult& r) {
  return r.problem == model::ProblemType::regression;
}

std::string row(const std::string& name, const study::ProbeScores& scores, bool numbers,
                const std::string& gain) {
  return fmt::format("{:<12}{:<28}{:<28}{:<31}{}\n", name,
                     text_of(numbers ? scores.r2 : scores.accuracy),
                     text_of(numbers ? scores.pearson : scores.f1), gain, fmt::join(scores.c, " "));
}

std::string as_text(const study::ProbeResult& r) {
  std::string out;
  const auto line = [&](const char* name, const std::string& value) {
    out += fmt::format("{:<12}{}\n", name, value);
  };
  const bool numbers = has_numbers(r);
  line("texts", fmt::format("{}", r.fold.size()));
  if (!numbers) line("labels", fmt::format("{}", r.labels.size()));
  line("folds", fmt::format("{}", r.tfidf.c.size()));
  if (!numbers) line("majority", fmt::format("{:.4f}", r.majority));
  out += fmt::format("\n{:<12}{:<28}{:<28}{:<31}{}\n", "features",
                     numbers ? "R2 (95% interval)" : "accuracy (95% interval)",
                     numbers ? "Pearson's correlation" : "macro F1",
                     numbers ? "R2 above TF-IDF" : "accuracy above TF-IDF", "C of each fold");
  out += row("TF-IDF", r.tfidf, numbers, "");
  for (const study::ProbeResult::Vectors& vectors : r.vectors)
    out += row(title_of(vectors), vectors.scores, numbers, text_of(vectors.gain, true));
  return out;
}

Json scores_json(const study::ProbeScores& scores, bool numbers) {
  if (numbers)
    return {{"r2", json_of(scores.r2)},
            {"pearson", json_of(scores.pearson)},
            {"fold_r2", scores.fold_scores},
            {"c", scores.c}};
  return {{"accuracy", json_of(scores.accuracy)},
          {"f1", json_of(scores.f1)},
          {"fold_accuracy", scores.fold_scores},
          {"c", scores.c}};
}

std::string as_json(const study::ProbeResult& r) {
  const bool numbers = has_numbers(r);
  Json json = {{"objective", "probe"}, {"texts", r.fold.size()}};
  if (!numbers) json.update({{"labels", r.labels}, {"majority", r.majority}});
  json["tfidf"] = scores_json(r.tfidf, numbers);
  json["vectors"] = Json::array();
  for (const study::ProbeResult::Vectors& vectors : r.vectors) {
    Json one = {{"layer", vectors.layer ? Json(*vectors.layer) : Json()}, {"width", vectors.width}};
    one.update(scores_json(vectors.scores, numbers));
    one["gain"] = json_of(vectors.gain);
    json["vectors"].push_back(std::move(one));
  }
  return json_line(json) + "\n";
}

// Returns the label, the labels or the number of a text.
Json predicted_value(const study::ProbeResult& r, const std::vector<int32_t>& labels,
                     const std::vector<double>& numbers, size_t text) {
  if (has_numbers(r)) return numbers[text];
  if (r.problem == model::ProblemType::single_label)
    return r.labels[static_cast<size_t>(labels[text])];
  Json list = Json::array();
  for (size_t k = 0; k < r.labels.size(); ++k)
    if (labels[text * r.labels.size() + k] != 0) list.push_back(r.labels[k]);
  return list;
}

}  // namespace

void ProbeRequest::declare(OptionTable& table) {
  add_fields(table, options_,
             {{.field = "data",
               .name = "--probe",
               .placeholder = "FILE...",
               .section = "Linear probe",
               .most = kMostFiles},
              {"layers", {"--layers"}, "--layer"},
              {.field = "seed", .omitted = true},
              {.field = "bootstrap", .omitted = true}});
  table.add(as("FILE", text("--predictions", {},
                            "write the fold, the label and the predictions of each text to FILE, "
                            "as JSON lines",
                            predictions_)));
}

void ProbeRequest::declare_intervals(OptionTable& table) {
  add_fields(table, options_, {{.field = "seed", .section = "Intervals"}, {"bootstrap"}},
             Fields::spelled);
}

int ProbeRequest::run(const infer::Embedder& embedder, bool json) {
  catch_signals();
  ProgressLine line;
  study::ProbeResult result;
  try {
    result = study::linear_probe(embedder, options_, [&](double fraction) {
      line.show(fraction, "probing", fmt::format("probed {:.0f}%", 100 * fraction));
      return !stop_requested();
    });
  } catch (const Error&) {
    line.clear();
    if (stop_requested()) return stop_code();
    throw;
  }
  line.clear();
  for (const std::string& text : result.notes) note("note: " + printable(text) + "\n");
  if (!predictions_.empty()) write_file_atomically(predictions_, predictions_of(result));
  print(json ? as_json(result) : as_text(result));
  return 0;
}

std::string ProbeRequest::predictions_of(const study::ProbeResult& r) const {
  const auto predicted = [&](const study::ProbeScores& scores, size_t text) {
    return predicted_value(r, scores.predicted, scores.numbers, text);
  };
  std::string out;
  for (size_t i = 0; i < r.fold.size(); ++i) {
    Json json = {{"index", i},
                 {"fold", r.fold[i]},
                 {has_numbers(r)                                  ? "number"
                  : r.problem == model::ProblemType::single_label ? "label"
                                                                  : "labels",
                  predicted_value(r, r.labelled, r.numbers, i)},
                 {"tfidf", predicted(r.tfidf, i)}};
    for (const study::ProbeResult::Vectors& vectors : r.vectors)
      json[title_of(vectors)] = predicted(vectors.scores, i);
    out += json_line(json) + "\n";
  }
  return out;
}

}  // namespace fovea::cli

#include "cli/verbs/eval_probe.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/ordered_json.h"
#include "options/field_options.h"
#include "terminal/progress.h"
#include "terminal/signals.h"
#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string title_of(const ProbeResult::Vectors& vectors) {
  return vectors.layer ? fmt::format("layer {}", *vectors.layer) : "vectors";
}

std::string text_of(const ProbeEstimate& e, const char* sign = "") {
  const auto number = [&](double x) {
    return *sign != '\0' ? fmt::format("{:+.4f}", x) : fmt::format("{:.4f}", x);
  };
  return fmt::format("{} ({} to {})", number(e.value), number(e.low), number(e.high));
}

std::string row(const std::string& name, const ProbeScores& scores, const std::string& gain) {
  return fmt::format("{:<12}{:<28}{:<28}{:<31}{}\n", name, text_of(scores.accuracy),
                     text_of(scores.f1), gain, fmt::join(scores.c, " "));
}

std::string as_text(const ProbeResult& r) {
  std::string out;
  const auto line = [&](const char* name, const std::string& value) {
    out += fmt::format("{:<12}{}\n", name, value);
  };
  line("texts", fmt::format("{}", r.labelled.size()));
  line("labels", fmt::format("{}", r.labels.size()));
  line("folds", fmt::format("{}", r.tfidf.c.size()));
  line("majority", fmt::format("{:.4f}", r.majority));
  out += fmt::format("\n{:<12}{:<28}{:<28}{:<31}{}\n", "features", "accuracy (95% interval)",
                     "macro F1", "accuracy above TF-IDF", "C of each fold");
  out += row("TF-IDF", r.tfidf, "");
  for (const ProbeResult::Vectors& vectors : r.vectors)
    out += row(title_of(vectors), vectors.scores, text_of(vectors.gain, "+"));
  return out;
}

Json json_of(const ProbeEstimate& e) {
  return {{"value", e.value}, {"low", e.low}, {"high", e.high}};
}

Json json_of(const ProbeScores& scores) {
  return {{"accuracy", json_of(scores.accuracy)},
          {"f1", json_of(scores.f1)},
          {"fold_accuracy", scores.fold_accuracy},
          {"c", scores.c}};
}

std::string as_json(const ProbeResult& r) {
  Json json = {{"objective", "probe"},   {"texts", r.labelled.size()}, {"labels", r.labels},
               {"majority", r.majority}, {"tfidf", json_of(r.tfidf)},  {"vectors", Json::array()}};
  for (const ProbeResult::Vectors& vectors : r.vectors) {
    Json one = {{"layer", vectors.layer ? Json(*vectors.layer) : Json()}, {"width", vectors.width}};
    one.update(json_of(vectors.scores));
    one["gain"] = json_of(vectors.gain);
    json["vectors"].push_back(std::move(one));
  }
  return json_line(json) + "\n";
}

}  // namespace

void ProbeRequest::declare(OptionTable& table) {
  add_fields(table, options_,
             {{.field = "data",
               .name = "--probe",
               .placeholder = "FILE...",
               .section = "Linear probe",
               .most = kMostFiles},
              {"layers", {"--layers"}, "--layer"}});
  table.add(as("FILE", text("--predictions", {},
                            "write the fold, the label and the predictions of each text to FILE, "
                            "as JSON lines",
                            predictions_)));
}

int ProbeRequest::run(const Embedder& embedder, bool json) {
  catch_signals();
  ProgressLine line;
  ProbeResult result;
  try {
    result = linear_probe(embedder, options_, [&](double fraction) {
      line.show(fraction, "probing", fmt::format("probed {:.0f}%", 100 * fraction));
      return !asked_to_stop();
    });
  } catch (const Error&) {
    line.clear();
    if (asked_to_stop()) return stop_code();
    throw;
  }
  line.clear();
  for (const std::string& text : result.notes) note("note: " + printable(text) + "\n");
  if (!predictions_.empty()) write_file_atomically(predictions_, predictions_of(result));
  print(json ? as_json(result) : as_text(result));
  return 0;
}

std::string ProbeRequest::predictions_of(const ProbeResult& r) const {
  const auto name = [&](const std::vector<int32_t>& labels, size_t text) {
    return r.labels[static_cast<size_t>(labels[text])];
  };
  std::string out;
  for (size_t i = 0; i < r.labelled.size(); ++i) {
    Json json = {{"index", i},
                 {"fold", r.fold[i]},
                 {"label", name(r.labelled, i)},
                 {"tfidf", name(r.tfidf.predicted, i)}};
    for (const ProbeResult::Vectors& vectors : r.vectors)
      json[title_of(vectors)] = name(vectors.scores.predicted, i);
    out += json_line(json) + "\n";
  }
  return out;
}

}  // namespace fovea::cli

#include "lab/scale.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/fields.h"
#include "base/float_mode.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/math.h"
#include "fovea/train/plan.h"
#include "lab/journal.h"
#include "lab/report.h"
#include "lab/scaling_law.h"
#include "lab/training.h"

namespace fovea {
namespace lab {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kResamples = 200;

// The parameters of the layers, without embeddings and biases: 12 squares of the width each.
double size_of(int64_t layers, int64_t width) {
  return 12 * static_cast<double>(layers) * static_cast<double>(width) * static_cast<double>(width);
}

Json settings_of(const ScaleOptions& o, const Text& text) {
  return {{"experiment", "scale"}, {"data", hash_text(text.hash())},
          {"layers", o.layers},    {"batch", o.batch},
          {"length", o.length},    {"learning_rate", o.learning_rate}};
}

constexpr const char* kArm = "width ";  // followed by the width

LabRun run_of(const ScaleOptions& o, int64_t width, int64_t steps) {
  constexpr double kWidthOfRate = 64;
  return {.arm = fmt::format("{}{}", kArm, width),
          .x = static_cast<double>(steps),
          .rate = o.learning_rate * std::sqrt(kWidthOfRate / static_cast<double>(width)),
          .seed = o.seed};
}

// The runs of all widths and steps, from the journal or measured. Returns none if it was stopped.
std::vector<double> losses_of(const ScaleBench& bench, const std::vector<LabRun>& runs,
                              Journal& journal,
                              const std::function<bool(int64_t run, int64_t runs)>& progress,
                              const MeasureLabRuns& measure) {
  std::vector<LabRun> missing;
  for (const LabRun& run : runs)
    if (journal.find(run) == nullptr) missing.push_back(run);
  if (measure) {
    measure(missing, [&](size_t n, const Readings& readings, double seconds) {
      journal.add(missing[n], readings, seconds);
    });
  } else {
    int64_t done = std::ssize(runs) - std::ssize(missing);
    for (const LabRun& run : missing) {
      if (progress && !progress(done++, std::ssize(runs))) return {};
      const auto start = std::chrono::steady_clock::now();
      const Readings readings = bench.measure(run);
      const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
      journal.add(run, readings, passed.count());
    }
  }
  std::vector<double> losses;
  for (const LabRun& run : runs) {
    const Readings* const found = journal.find(run);
    if (found == nullptr) return {};
    losses.push_back(found->at(0).y);
  }
  return losses;
}

std::vector<LawPoint> points_of(const std::vector<ScaleRun>& runs, bool all) {
  std::vector<LawPoint> points;
  for (const ScaleRun& run : runs)
    if (all || !run.left_out) points.push_back({run.parameters, run.tokens, run.loss});
  return points;
}

// Predicts all runs by the law of those that are not left out.
void predict(ScaleResult& result, uint64_t seed) {
  const std::vector<LawPoint> known = points_of(result.runs, false);
  const LawConstants law = fit_law(known);
  const std::vector<LawConstants> resampled = resampled_laws(known, kResamples, seed);
  double left_out = 0;
  for (ScaleRun& run : result.runs) {
    run.predicted = fitted(law, resampled, [&](const LawConstants& each) {
      return each.loss(run.parameters, run.tokens);
    });
    if (!run.left_out) continue;
    result.error += std::abs(run.predicted.value - run.loss) / run.loss;
    result.covered += run.predicted.low <= run.loss && run.loss <= run.predicted.high;
    ++left_out;
  }
  result.error /= left_out;
}

void fit(ScaleResult& result, uint64_t seed) {
  const std::vector<LawPoint> points = points_of(result.runs, true);
  const LawConstants law = fit_law(points);
  const std::vector<LawConstants> resampled = resampled_laws(points, kResamples, seed);
  const auto number = [&](double LawConstants::* member) {
    return fitted(law, resampled, [member](const LawConstants& each) { return each.*member; });
  };
  result.law = {number(&LawConstants::floor), number(&LawConstants::size_factor),
                number(&LawConstants::size_exponent), number(&LawConstants::data_factor),
                number(&LawConstants::data_exponent)};
  const double flops = result.budget;
  const auto tokens = [flops](const LawConstants& each) {
    return flops / train::rule_flops(each.best_size(flops), 1);
  };
  result.parameters =
      fitted(law, resampled, [flops](const LawConstants& each) { return each.best_size(flops); });
  result.tokens = fitted(law, resampled, tokens);
  result.loss = fitted(law, resampled, [&](const LawConstants& each) {
    return each.loss(each.best_size(flops), tokens(each));
  });
}

Json as_json(const FittedNumber& n) {
  return {{"value", n.value}, {"low", n.low}, {"high", n.high}};
}

Json as_json(const ScaleResult& r) {
  Json runs = Json::array();
  for (const ScaleRun& run : r.runs)
    runs.push_back({{"parameters", run.parameters},
                    {"tokens", run.tokens},
                    {"loss", run.loss},
                    {"predicted", as_json(run.predicted)},
                    {"left_out", run.left_out}});
  return {{"interval", "95%, of 200 resamples of the runs"},
          {"law",
           {{"E", as_json(r.law.floor)},
            {"A", as_json(r.law.size_factor)},
            {"alpha", as_json(r.law.size_exponent)},
            {"B", as_json(r.law.data_factor)},
            {"beta", as_json(r.law.data_exponent)}}},
          {"error", r.error},
          {"covered", r.covered},
          {"budget", r.budget},
          {"parameters", as_json(r.parameters)},
          {"tokens", as_json(r.tokens)},
          {"loss", as_json(r.loss)},
          {"runs", runs}};
}

// Measured losses and those of the law, by the size of the model, one series per number of tokens.
void write_scale(const ScaleResult& r, const std::string& folder) {
  LabResult chart;
  chart.experiment.metric = "loss on held-out text, nats per character";
  chart.experiment.axis = "parameters without embeddings";
  Table table;
  for (const ScaleRun& run : r.runs) {
    const std::string name = fmt::format("{:.3g} tokens", run.tokens);
    table.add(name, run.parameters, 0, run.loss);
    table.add(name + ", law", run.parameters, 0, run.predicted.value);
  }
  table.finish();
  chart.points = table.points();
  write_file_atomically(folder + "/result.json", pretty(as_json(r)));
  write_file_atomically(folder + "/table.md", table_text(chart));
  write_file_atomically(folder + "/chart.svg", line_chart(chart, true));
}

}  // namespace
}  // namespace lab

void visit(ScaleOptions& o, OptionVisitor& v) {
  constexpr int64_t kMost = 1 << 20;
  v.texts({"data", "text files, directories or JSON lines"}, o.data);
  v.text({"out", "folder of the results; its runs are not repeated"}, o.out);
  v.integers({"widths", "widths of the models, ascending; the last one is predicted"}, o.widths, 4,
             kMost);
  v.integers({"steps", "steps of the runs of each model, ascending"}, o.steps, 1, 1'000'000'000);
  v.integer({"layers", "layers of every model"}, o.layers, 1, 1000);
  v.integer({"batch", "sequences per step"}, o.batch, 1, kMost);
  v.integer({"length", "characters per sequence"}, o.length, 2, kMost);
  v.number({"learning_rate", "peak learning rate at width 64; proportional to 1 / sqrt(width)"},
           o.learning_rate, 0, 1000);
  v.number({"budget", "FLOPs to plan for; 0 = 100 times those of the largest run"}, o.budget, 0,
           1e30);
  v.seed({"seed", "seed of weights and of the order of the text"}, o.seed);
}

struct ScaleBench::Parts {
  ScaleOptions options;
  lab::Text text;
};

ScaleBench::ScaleBench(const ScaleOptions& o) {
  check_fields(o);
  check_field(!o.data.empty(), "data", "none; expected text files or directories");
  check_field(o.widths.size() >= 4 && std::is_sorted(o.widths.begin(), o.widths.end()), "widths",
              "{}; expected at least 4, ascending", fmt::join(o.widths, ","));
  for (const int64_t width : o.widths)
    check_field(width % 4 == 0, "widths", "{}; expected multiples of 4, the number of heads",
                width);
  check_field(o.steps.size() >= 3 && std::is_sorted(o.steps.begin(), o.steps.end()), "steps",
              "{}; expected at least 3, ascending", fmt::join(o.steps, ","));
  parts_ = std::make_unique<const Parts>(Parts{o, lab::Text(o.data)});
}

ScaleBench::~ScaleBench() = default;

std::string ScaleBench::key() const {
  return lab::settings_of(parts_->options, parts_->text).dump();
}

// Trains a model of the width for the steps.
std::vector<LabReading> ScaleBench::measure(const LabRun& run) const {
  const FloatMode mode;
  const ScaleOptions& o = parts_->options;
  lab::Trial trial{run};
  trial.text = &parts_->text;
  const int64_t width = std::stoll(run.arm.substr(std::string_view(lab::kArm).size()));
  const nn::Transformer model(
      lab::small_decoder(o.layers, width, parts_->text.vocabulary(), o.length), o.seed);
  const double loss = lab::loss_on_text(
      model, trial, {.steps = static_cast<int64_t>(run.x), .rows = o.batch, .length = o.length});
  return {{run.arm, run.x, loss}};
}

ScaleResult fit_scaling_law(const ScaleOptions& o,
                            const std::function<bool(int64_t run, int64_t runs)>& progress,
                            const MeasureLabRuns& measure) {
  const FloatMode mode;
  const ScaleBench bench(o);
  lab::Journal journal(o.out, lab::settings_of(o, bench.parts().text));
  std::vector<LabRun> runs;
  for (const int64_t width : o.widths)
    for (const int64_t steps : o.steps) runs.push_back(lab::run_of(o, width, steps));
  const std::vector<double> losses = lab::losses_of(bench, runs, journal, progress, measure);
  ScaleResult result;
  result.stopped = losses.empty();
  if (result.stopped) return result;
  auto loss = losses.begin();
  for (const int64_t width : o.widths) {
    for (const int64_t steps : o.steps)
      result.runs.push_back({.parameters = lab::size_of(o.layers, width),
                             .tokens = static_cast<double>(steps * o.batch * o.length),
                             .loss = *loss++,
                             .predicted = {},
                             .left_out = width == o.widths.back()});
  }
  const ScaleRun& largest = result.runs.back();
  result.budget =
      o.budget > 0 ? o.budget : 100 * train::rule_flops(largest.parameters, largest.tokens);
  lab::predict(result, o.seed);
  lab::fit(result, o.seed);
  lab::write_scale(result, o.out);
  return result;
}

}  // namespace fovea

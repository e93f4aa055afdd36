#include "lab/experiment.h"

#include <algorithm>
#include <cmath>

#include "base/fields.h"
#include "base/nearest.h"
#include "lab/experiments.h"

namespace fovea::lab {
namespace {

// In the order of the list.
constexpr Experiment (*kMakers[])() = {
    operations,     speed,           quality,        recall,       gradient_distance, crossover,
    norm_placement, residuals,       norm,           no_positions, extrapolation,     leaking_mask,
    masked_weights, rotary_distance, score_variance, saturation,   wide_head,         head_loop,
    long_context,   pooling,         small_model,    induction,    head_removal,      neurons,
    worked_steps,   emergence,       scaling};

}  // namespace

int64_t Trial::times(int64_t brief, int64_t full) const {
  const auto whole = static_cast<double>(form == LabForm::brief ? brief : full);
  return std::max<int64_t>(1, std::llround(effort * whole));
}

const std::vector<Experiment>& all_experiments() {
  static const std::vector<Experiment> all = [] {
    std::vector<Experiment> made;
    for (const auto maker : kMakers) made.push_back(maker());
    return made;
  }();
  return all;
}

const Experiment& experiment_named(const std::string& name) {
  std::vector<std::string> names;
  for (const Experiment& experiment : all_experiments()) {
    if (experiment.summary.name == name) return experiment;
    names.push_back(experiment.summary.name);
  }
  fail_field(ErrorKind::InvalidArgument, "name",
             "\"{}\" is not an experiment; expected one of {}{}", name, fmt::join(names, ", "),
             did_you_mean(name, names));
}

}  // namespace fovea::lab

namespace fovea {

std::vector<ExperimentSummary> experiments() {
  std::vector<ExperimentSummary> summaries;
  for (const lab::Experiment& experiment : lab::all_experiments())
    summaries.push_back(experiment.summary);
  return summaries;
}

const char* name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::held: return "held";
    case Verdict::did_not_hold: return "did not hold";
    case Verdict::holds_only_if: return "holds only if";
    case Verdict::undecided: return "undecided";
    case Verdict::voided: return "void";
  }
  return "";
}

void visit(LabOptions& o, OptionVisitor& v) {
  v.text({"out", "folder of the results; its runs are not repeated"}, o.out);
  v.texts({"data", "text for the experiments on text: files, directories or JSON lines"}, o.data);
  v.choice({"form",
            "brief: a small grid, with one learning rate; full: a larger grid, with tuned learning "
            "rates"},
           o.form, {"brief", "full"});
  v.number({"effort", "fraction of the steps of each run; the rules are for 1"}, o.effort, 1e-6, 1);
}

}  // namespace fovea

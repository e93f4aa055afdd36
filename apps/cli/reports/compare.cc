#include "cli/reports/compare.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "fovea/compare.h"
#include "options/open_model.h"
#include "terminal/progress.h"
#include "terminal/signals.h"
#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

std::string as_text(const Comparison& r) {
  return fmt::format(
      "perplexity     {:.4f} +- {:.4f}; reference {:.4f}\nloss           {:+.6f} +- {:.6f} nats "
      "per "
      "token, compared to the reference\ndivergence     {:.6f} +- {:.6f} nats per token, "
      "KL(reference || model)\nflips          {:.3f}% +- {:.3f}% of the most likely next "
      "tokens\nweights        {}; reference {}\ntokens         {}\n",
      r.perplexity, r.perplexity_error, r.full_perplexity, r.loss_difference,
      r.loss_difference_error, r.divergence, r.divergence_error, 100 * r.flips, 100 * r.flips_error,
      memory(static_cast<double>(r.weight_bytes)), memory(static_cast<double>(r.full_weight_bytes)),
      r.tokens);
}

std::string as_json(const Comparison& r) {
  return nlohmann::ordered_json({{"perplexity", r.perplexity},
                                 {"full_perplexity", r.full_perplexity},
                                 {"divergence", r.divergence},
                                 {"flips", r.flips},
                                 {"loss_difference", r.loss_difference},
                                 {"perplexity_error", r.perplexity_error},
                                 {"loss_difference_error", r.loss_difference_error},
                                 {"divergence_error", r.divergence_error},
                                 {"flips_error", r.flips_error},
                                 {"weight_bytes", r.weight_bytes},
                                 {"full_weight_bytes", r.full_weight_bytes},
                                 {"tokens", r.tokens}})
             .dump() +
         "\n";
}

}  // namespace

int run_compare(const model::Model& model, const std::string& against,
                const std::vector<std::string>& data, bool json) {
  const model::Model full = open_model(against);
  ProgressLine line;
  const Comparison result = compare(model, full, data, [&](double fraction) {
    line.show(fraction, "reading", fmt::format("read {:.0f}%", 100 * fraction));
    return !asked_to_stop();
  });
  line.clear();
  if (asked_to_stop()) return stop_code();
  print(json ? as_json(result) : as_text(result));
  return 0;
}

}  // namespace fovea::cli

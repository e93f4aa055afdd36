#include "cli/reports/hosts_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>

namespace fovea::cli {

std::string hosts_text(const std::vector<train::HostsStep>& steps, double tokens) {
  std::string text = fmt::format(
      "\nSteps of {:.0f} tokens on several hosts\n"
      "  hosts   step ms  computes  exchange     waits  tokens/s  efficiency   sent MB\n",
      tokens);
  int64_t efficient = 1;
  for (const train::HostsStep& step : steps) {
    const double efficiency =
        steps[0].seconds() / (static_cast<double>(step.hosts) * step.seconds());
    if (efficiency >= 0.5) efficient = step.hosts;
    if (!std::has_single_bit(static_cast<uint64_t>(step.hosts)) && step.hosts != std::ssize(steps))
      continue;
    text += fmt::format(
        "  {:>5} {:>9.1f} {:>9.1f} {:>9.1f} {:>9.1f} {:>9.0f} {:>9.0f} % {:>9.1f}\n", step.hosts,
        1e3 * step.seconds(), 1e3 * step.compute_seconds, 1e3 * step.exchange_seconds,
        1e3 * step.wait_seconds, tokens / step.seconds(), 100 * efficiency, step.bytes_sent / 1e6);
  }
  const auto fastest = std::ranges::min_element(
      steps, {}, [](const train::HostsStep& step) { return step.seconds(); });
  text += fastest->hosts < std::ssize(steps)
              ? fmt::format("  More than {} hosts make a step slower", fastest->hosts)
              : fmt::format("  The step becomes shorter up to {} hosts", std::ssize(steps));
  return text + fmt::format("; up to {}, at least half of the time is computation.\n", efficient);
}

nlohmann::ordered_json hosts_json(const std::vector<train::HostsStep>& steps) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const train::HostsStep& step : steps)
    all.push_back({{"hosts", step.hosts},
                   {"step_seconds", step.seconds()},
                   {"compute_seconds", step.compute_seconds},
                   {"exchange_seconds", step.exchange_seconds},
                   {"wait_seconds", step.wait_seconds},
                   {"bytes_sent", step.bytes_sent}});
  return all;
}

}  // namespace fovea::cli

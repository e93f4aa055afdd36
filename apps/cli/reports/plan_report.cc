#include "cli/reports/plan_report.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "terminal/progress.h"
#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

using Json = nlohmann::ordered_json;

// Formats 124439808 as 124,439,808.
std::string grouped(int64_t value) {
  std::string digits = std::to_string(value);
  for (auto at = std::ssize(digits) - 3; at > 0; at -= 3)
    digits.insert(static_cast<size_t>(at), ",");
  return digits;
}

// Formats 1.5e9 as "1.5 billion", and numbers above the named powers as 3.14e23.
std::string large(double value) {
  constexpr std::array<const char*, 4> kWords = {" thousand", " million", " billion", " trillion"};
  if (value < 1e4) return fmt::format("{:.4g}", value);
  if (value >= 1e15) return fmt::format("{:.3g}", value);
  size_t word = 0;
  double count = value / 1000;
  for (; count >= 1000; ++word) count /= 1000;
  return fmt::format("{:.4g}{}", count, kWords[word]);
}

std::string long_time(double seconds) {
  constexpr double kDay = 86400, kYear = 365.25 * kDay;
  if (seconds > 2 * kYear) return large(seconds / kYear) + " years";
  return seconds > 2 * kDay ? large(seconds / kDay) + " days" : duration(seconds);
}

std::string size(double bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "KB", "MB", "GB", "TB"};
  size_t unit = 0;
  for (; bytes >= 1000 && unit + 1 < kUnits.size(); ++unit) bytes /= 1000;
  const bool short_enough = bytes < 1000;  // false only for the largest unit
  return (short_enough ? fmt::format("{:.3g} ", bytes) : fmt::format("{:.0f} ", bytes)) +
         kUnits[unit];
}

std::string row(const char* name, const std::string& value) {
  return fmt::format("  {:<18}{}\n", name, value);
}

std::string stack_words(const char* kind, const model::StackSpec& s) {
  std::string words =
      fmt::format("{} of {} layers with {} heads", kind, s.layers, s.attention.heads);
  if (s.attention.kv_heads != s.attention.heads)
    words += fmt::format(" over {} key-value heads", s.attention.kv_heads);
  if (s.ffn.experts.count > 0)
    words += fmt::format(", {} of {} experts per token", s.ffn.experts.chosen, s.ffn.experts.count);
  if (s.ffn.experts.shared > 0) words += fmt::format(" and {} shared", s.ffn.experts.shared);
  return words;
}

std::string headline(const std::string& name, const model::Spec& s) {
  std::string line = printable(name) + ": ";
  if (s.encoder) line += stack_words("encoder", *s.encoder) + "; ";
  if (s.decoder) line += stack_words("decoder", *s.decoder) + "; ";
  line += fmt::format("width {}, context {}", s.width, grouped(s.context));
  return line + (s.vocabulary > 0 ? ", vocabulary " + grouped(s.vocabulary) : "") + "\n";
}

std::string parts_table(const model::Spec& spec, const train::Plan& p) {
  std::string table =
      fmt::format("\n{:<20}{:>20}{:>9}{:>20}\n", "Part", "parameters", "share", "FLOPs per token");
  const auto tokens = p.flops / p.flops_per_token;
  for (const train::PlanPart& part : p.parts) {
    const double share = static_cast<double>(part.parameters) / static_cast<double>(p.parameters);
    table += fmt::format("  {:<18}{:>20}{:>9}{:>20}\n", part.name,
                         part.parameters > 0 ? grouped(part.parameters) : "-",
                         part.parameters > 0 ? fmt::format("{:.1f} %", 100 * share) : "-",
                         part.flops > 0 ? grouped(std::llround(part.flops / tokens)) : "-");
  }
  table += fmt::format("  {:<18}{:>20}{:>9}{:>20}\n", "total", grouped(p.parameters), "100 %",
                       grouped(std::llround(p.flops_per_token)));
  if (p.active != p.parameters)
    table += fmt::format("  {:<18}{:>20}{:>9}\n", "active per token", grouped(p.active),
                         fmt::format("{:.1f} %", 100 * static_cast<double>(p.active) /
                                                     static_cast<double>(p.parameters)));
  if (spec.head.tied)
    table +=
        "  The head shares the matrix of the token embedding, where its parameters are counted.\n";
  if (p.source_length > 0)
    table +=
        "  Each token passes through one of the two stacks; the 6 N D rule below counts both.\n";
  return table;
}

std::string work_rows(const train::Plan& p) {
  const std::string source =
      p.source_length > 0 ? fmt::format(" and {} of the source", grouped(p.source_length)) : "";
  std::string rows = "\nCompute (FLOPs: additions and multiplications in matrix products)\n";
  rows += row("forward",
              fmt::format("{} per token, {} per sequence of {} tokens{}", large(p.flops_per_token),
                          large(p.flops), grouped(p.length), source));
  rows += row("training",
              fmt::format("three times as much: {} per token; by the rule of 6 per parameter: {}",
                          large(3 * p.flops_per_token), large(6 * static_cast<double>(p.active))));
  std::string shares;
  for (const train::AttentionShare& a : p.attention)
    shares += fmt::format("{}{:.2g} % at {}", shares.empty() ? "" : ", ", 100 * a.share,
                          grouped(a.length));
  return rows + row("attention scores", shares + " tokens");
}

// The weights as stored, and the memory of a process that generates.
std::string inference_rows(const InferencePlans& memory) {
  if (memory.empty()) return "";
  double bytes = 0;
  std::string formats, totals;
  for (const model::FormatBytes& each : memory.front().second.formats) {
    bytes += static_cast<double>(each.bytes);
    formats += fmt::format("{}{} in {}", formats.empty() ? "" : ", ",
                           size(static_cast<double>(each.bytes)), each.format);
  }
  for (const auto& [precision, each] : memory)
    totals += fmt::format("{}{} {} {}", totals.empty() ? "" : ", ", size(each.total()),
                          precision == "stored" ? "as" : "in", precision);
  return row("weights as stored", fmt::format("{}: {}", size(bytes), formats)) +
         row("inference", totals) +
         row("",
             fmt::format("the whole process, of which {} are key-value cache and {} program",
                         size(memory.front().second.cache), size(memory.front().second.program)));
}

std::string memory_rows(const train::Plan& p, const InferencePlans& memory) {
  const train::MemoryPlan& m = p.memory;
  std::string rows = "\nMemory\n" + inference_rows(memory);
  rows += row("weights",
              fmt::format("{} in fp32, {} in bf16, {} in int8, {} in int4", size(m.weights.fp32),
                          size(m.weights.bf16), size(m.weights.int8), size(m.weights.int4)));
  const double state = m.weights.fp32 + m.gradients + m.moments;
  rows += row("training",
              fmt::format("{}: weights {}, gradients {}, moments {}, "
                          "activations {} ({} in bf16)",
                          size(state + m.activations.fp32), size(m.weights.fp32), size(m.gradients),
                          size(m.moments), size(m.activations.fp32), size(m.activations.bf16)));
  if (m.cache.fp32 > 0)
    rows += row("key-value cache",
                fmt::format("{} in bf16 ({} in fp32, {} in int8); each further token {}",
                            size(m.cache.bf16), size(m.cache.fp32), size(m.cache.int8),
                            size(m.cache_per_token.bf16)));
  const char* const what = m.cache.fp32 > 0 ? "activations and cache" : "activations";
  return rows + row("", fmt::format("{}: batch {} x {} tokens", what, p.batch, grouped(p.length)));
}

std::string training_rows(const train::Plan& p, const train::PlanOptions& o) {
  const train::TrainingPlan& t = p.training;
  const bool chosen = o.tokens > 0;
  std::string rows = fmt::format("\nTraining on {} tokens{}\n", large(t.tokens),
                                 chosen       ? ""
                                 : t.loss > 0 ? ", the compute-optimal number: 20 per parameter"
                                              : ": 20 per parameter, since --tokens is unset");
  rows += row("FLOPs", fmt::format("{:.3g}; by the rule 6 N D: {:.3g}", t.flops, t.rule_flops));
  if (chosen && t.loss > 0)
    rows +=
        row("optimal number", fmt::format("{} tokens, 20 per parameter", large(t.optimal_tokens)));
  if (t.loss > 0)
    rows += row(
        "expected loss",
        fmt::format("{:.2f} nats per token, with the text and tokenizer of Hoffmann et al. 2022",
                    t.loss));
  if (o.speed == 0)
    return rows + row("time", "unknown; set --speed, the peak FLOP/s of one device");
  rows += row("time",
              fmt::format("{} on {} device{}, {} device hours", long_time(t.seconds),
                          grouped(o.devices), o.devices == 1 ? "" : "s", large(t.device_hours)));
  if (o.price == 0) return rows;
  return rows + row("cost", fmt::format("{}; by the rule 6 N D: {}", large(t.cost),
                                        large(t.cost * t.rule_flops / t.flops)));
}

Json json_of(const train::Bytes& b) {
  return {{"fp32", b.fp32}, {"bf16", b.bf16}, {"int8", b.int8}, {"int4", b.int4}};
}

}  // namespace

std::string plan_text(const std::string& name, const model::Spec& spec, const train::Plan& plan,
                      const train::PlanOptions& options, const InferencePlans& memory) {
  return headline(name, spec) + parts_table(spec, plan) + work_rows(plan) +
         memory_rows(plan, memory) + training_rows(plan, options);
}

std::string plan_json(const std::string& name, const model::Spec& spec, const train::Plan& p,
                      const train::PlanOptions& o, const InferencePlans& memory) {
  Json formats = Json::object(), inference = Json::object();
  for (const auto& [precision, each] : memory) inference[precision] = each.total();
  if (!memory.empty())
    for (const model::FormatBytes& each : memory.front().second.formats)
      formats[each.format] = each.bytes;
  Json parts = Json::array(), attention = Json::array();
  for (const train::PlanPart& part : p.parts)
    parts.push_back({{"name", part.name},
                     {"parameters", part.parameters},
                     {"active", part.active},
                     {"flops", part.flops}});
  for (const train::AttentionShare& a : p.attention)
    attention.push_back({{"length", a.length}, {"share", a.share}});
  const train::MemoryPlan& m = p.memory;
  const train::TrainingPlan& t = p.training;
  const Json bytes = {{"weights", json_of(m.weights)},
                      {"weights_as_stored", memory.empty() ? Json() : formats},
                      {"inference", memory.empty() ? Json() : inference},
                      {"gradients", m.gradients},
                      {"moments", m.moments},
                      {"activations", {{"fp32", m.activations.fp32}, {"bf16", m.activations.bf16}}},
                      {"cache_per_token", json_of(m.cache_per_token)},
                      {"cache", json_of(m.cache)}};
  const Json training = {{"tokens", t.tokens},
                         {"flops", t.flops},
                         {"rule_flops", t.rule_flops},
                         {"seconds", o.speed > 0 ? Json(t.seconds) : Json()},
                         {"device_hours", o.speed > 0 ? Json(t.device_hours) : Json()},
                         {"cost", o.speed > 0 && o.price > 0 ? Json(t.cost) : Json()},
                         {"optimal_tokens", t.optimal_tokens},
                         {"expected_loss", t.loss > 0 ? Json(t.loss) : Json()}};
  return Json({{"name", name},
               {"parameters", p.parameters},
               {"active", p.active},
               {"parts", parts},
               {"batch", p.batch},
               {"length", p.length},
               {"source_length", p.source_length},
               {"flops", p.flops},
               {"flops_per_token", p.flops_per_token},
               {"attention", attention},
               {"bytes", bytes},
               {"training", training},
               {"spec", Json::parse(model::write_spec(spec))}})
             .dump() +
         "\n";
}

std::string budget_text(const train::BudgetPlan& b) {
  return fmt::format("budget of {:.3g} FLOPs\n", b.flops) +
         row("parameters",
             large(b.parameters) + fmt::format(", as {} layers of width {}", b.layers, b.width)) +
         row("tokens", large(b.tokens) + ", 20 per parameter") +
         row("expected loss", fmt::format("{:.3f} nats per token (Hoffmann et al. 2022)", b.loss)) +
         row("least of the fit",
             fmt::format("{:.3f} with {} parameters and {} tokens", b.fitted_loss,
                         large(b.fitted_parameters), large(b.fitted_tokens)));
}

std::string budget_json(const train::BudgetPlan& b) {
  return Json({{"flops", b.flops},
               {"parameters", b.parameters},
               {"tokens", b.tokens},
               {"expected_loss", b.loss},
               {"layers", b.layers},
               {"width", b.width},
               {"fitted",
                {{"parameters", b.fitted_parameters},
                 {"tokens", b.fitted_tokens},
                 {"expected_loss", b.fitted_loss}}}})
             .dump() +
         "\n";
}

}  // namespace fovea::cli

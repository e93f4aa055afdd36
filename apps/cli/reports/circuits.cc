#include "cli/reports/circuits.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/ordered_json.h"
#include "inspector/circuits_json.h"
#include "options/open_model.h"

namespace fovea::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMostIndex = 1'000'000;  // the model limits layers and tokens further
constexpr int64_t kNeurons = 8;            // neurons of a layer

// Returns the token of an answer: an id, or a word that is one token, with a space before it as in
// the middle of a text, or without.
int32_t answer_token(const model::Model& model, const std::string& answer) {
  int32_t id = 0;
  const char* const end = answer.data() + answer.size();
  const auto read = std::from_chars(answer.data(), end, id);
  if (read.ec == std::errc() && read.ptr == end && id >= 0) return id;
  std::string pieces;
  for (const bool spaced : {true, false}) {
    const std::vector<int32_t> ids = model.tokenizer().encode((spaced ? " " : "") + answer);
    if (ids.size() == 1) return ids[0];
    pieces.clear();
    for (const study::InspectedToken& token : study::token_texts(model, ids))
      pieces += (pieces.empty() ? "" : ", ") + Json(token.text).dump();
  }
  throw UsageError(fmt::format(
      "--answers: \"{}\" is the tokens {}; expected a single token, or its id", answer, pieces));
}

// The tokens of a list [[id, value], ...], with their values.
std::string tokens_text(const model::Model& model, const Json& list) {
  std::vector<int32_t> ids;
  for (const Json& each : list) ids.push_back(each[0]);
  std::string text;
  const std::vector<study::InspectedToken> tokens = study::token_texts(model, ids);
  for (size_t i = 0; i < tokens.size(); ++i)
    text += fmt::format("{}{} {:.4g}", i > 0 ? ", " : "", Json(tokens[i].text).dump(),
                        list[i][1].get<double>());
  return text;
}

std::string neurons_text(const model::Model& model, const Json& layers) {
  std::string text = "layer  neuron  activation  promoted tokens\n";
  for (size_t l = 0; l < layers.size(); ++l)
    for (const Json& neuron : layers[l])
      text +=
          fmt::format("{:>5}{:>8}{:>12.4g}  {}\n", l, neuron["neuron"].get<int64_t>(),
                      neuron["activation"].get<double>(), tokens_text(model, neuron["promoted"]));
  return text;
}

std::string numbers_text(const Json& numbers) {
  return fmt::format("{:.4g}", fmt::join(numbers.get<std::vector<double>>(), " "));
}

std::string attribution_text(const Json& a) {
  std::string text = fmt::format("difference {:.6g} = embedding {:.4g} + biases {:.4g} +\n",
                                 a["difference"].get<double>(), a["embedding"].get<double>(),
                                 a["biases"].get<double>());
  for (size_t l = 0; l < a["heads"].size(); ++l)
    text += fmt::format(
        "layer {}: heads {}; recurrence {:.4g}; cross-attention {:.4g}; feed-forward {:.4g}\n", l,
        numbers_text(a["heads"][l]), a["recurrence"][l].get<double>(), a["cross"][l].get<double>(),
        a["feed_forward"][l].get<double>());
  return text;
}

std::string patched_text(const Json& p) {
  std::string text = fmt::format(
      "difference {:.6g}; of the other text {:.6g}; with its residual stream at one "
      "layer and token:\n",
      p["into"].get<double>(), p["from"].get<double>());
  for (size_t l = 0; l < p["patched"].size(); ++l)
    text += fmt::format("layer {}: {}\n", l, numbers_text(p["patched"][l]));
  return text;
}

std::string circuit_text(const model::Model& model, const study::Inspection& run,
                         const Json& circuit) {
  std::string text = "token: looks for; writes\n";
  for (size_t t = 0; t < circuit["sought"].size(); ++t)
    text += fmt::format(
        "{}: {}; {}\n", Json(run.tokens()[t].text).dump(), tokens_text(model, circuit["sought"][t]),
        circuit["written"].empty() ? std::string("-") : tokens_text(model, circuit["written"][t]));
  return text;
}

}  // namespace

void CircuitReport::declare(OptionTable& table) {
  table.section("Circuits");
  table.add(flag("--neurons", {},
                 "print the feed-forward neurons of each layer with the largest activations for a "
                 "token, and the tokens that they promote",
                 neurons_));
  table.add(as("A,B", text("--answers", {},
                           "two words that are tokens, or token ids: print the difference of their "
                           "logits after a token as a sum over heads and feed-forward layers; with "
                           "--other, as a map of activation patching",
                           answers_)));
  table.add(as("TEXT", text("--other", {}, "a second text, for --answers and --steer", other_)));
  table.add(as("LAYER.HEAD",
               text("--circuit", {}, "print what a head looks for and what it writes", circuit_)));
  Option steered = integer("--steer", {},
                           "print how the model continues the text if the residual stream before "
                           "this layer is moved towards that of --other",
                           steer_, 0, kMostIndex);
  steered.initial = "";
  table.add(as("LAYER", steered));
  table.add(number("--strength", {}, "length of the step of --steer", strength_, -1e6, 1e6));
  Option at = integer("--token", {}, "token of --neurons and --answers, counted from 0", token_, 0,
                      kMostIndex);
  at.initial = "";
  at.unset = "the last one";
  table.add(at);
}

bool CircuitReport::requested(const OptionTable& table,
                              const std::vector<const char*>& others) const {
  const std::vector<const char*> reports{"--neurons", "--answers", "--circuit", "--steer"};
  const auto given = [&](const char* name) { return table.given(name); };
  const auto count = std::count_if(reports.begin(), reports.end(), given);
  if (count == 0) {
    for (const char* option : {"--other", "--strength", "--token"})
      if (given(option))
        throw UsageError(fmt::format("{}: {} not given; expected one of them", option,
                                     fmt::join(reports, ", ")));
    return false;
  }
  if (count > 1) throw UsageError(fmt::format("{}: expected only one", fmt::join(reports, ", ")));
  for (const char* option : others)
    if (given(option))
      throw UsageError(fmt::format("{}: cannot be combined with {}", option,
                                   *std::find_if(reports.begin(), reports.end(), given)));
  if (given("--answers") && std::count(answers_.begin(), answers_.end(), ',') != 1)
    throw UsageError(
        fmt::format("--answers: '{}'; expected two answers, such as Mary,John", answers_));
  if (given("--steer") && other_.empty())
    throw UsageError("--steer: --other is not given; expected a second text");
  return true;
}

std::string CircuitReport::report(const model::Model& model, const study::InspectInput& input,
                                  bool json) const {
  const study::Inspection run(model, input);
  const int64_t token = token_ >= 0 ? token_ : std::ssize(run.tokens()) - 1;
  std::optional<study::Inspection> other;
  if (!other_.empty()) {
    study::InspectInput second;
    second.text = other_;
    other.emplace(model, second);
  }
  Json found;
  std::string text;
  if (neurons_) {
    found = inspector::neurons_json(
        study::strongest_neurons(run, model::AttentionKind::self, token, kNeurons));
    if (!json) text = neurons_text(model, found);
  } else if (!circuit_.empty()) {
    const model::HeadIndex head = parse_head("--circuit", circuit_);
    found = inspector::circuit_json(
        study::head_circuit(run, model::AttentionKind::self, head.layer, head.head, 6));
    if (!json) text = circuit_text(model, run, found);
  } else if (!answers_.empty()) {
    const size_t comma = answers_.find(',');
    const int32_t one = answer_token(model, answers_.substr(0, comma));
    const int32_t two = answer_token(model, answers_.substr(comma + 1));
    found = other
                ? inspector::patched_json(study::patch_differences(run, *other, one, two))
                : inspector::logit_attribution_json(study::attribute_logits(run, token, one, two));
    if (!json) text = other ? patched_text(found) : attribution_text(found);
  } else {
    study::SteerOptions options;
    options.layer = steer_;
    options.strength = strength_;
    const std::vector<int32_t> ids = study::steer(run, *other, options);
    for (const study::InspectedToken& each : study::token_texts(model, ids)) text += each.text;
    found = {{"ids", ids}, {"text", text}};
    text += "\n";
  }
  return json ? json_line(found) + "\n" : text;
}

}  // namespace fovea::cli

#include "inspector/explanation_json.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace fovea::inspector {
namespace {

using Json = nlohmann::ordered_json;

Json attribution_json(const Attribution& attribution, const std::string& baseline) {
  Json result = {{"method", name_of(attribution.method)}, {"scores", attribution.scores}};
  if (attribution.baseline_value) {
    result["baseline"] = baseline;
    result["baseline_value"] = *attribution.baseline_value;
    result["completeness_error"] = *attribution.completeness_error;
  }
  const std::optional<DeletionTest>& deletion = attribution.deletion;
  result["deletion"] = deletion ? Json({{"removed", deletion->removed},
                                        {"change", deletion->change},
                                        {"random_change", deletion->random_change},
                                        {"random_deviation", deletion->random_deviation}})
                                : Json();
  return result;
}

// Sets the fields that a request has.
class RequestFields : public OptionVisitor {
 public:
  explicit RequestFields(const Json& asked) : asked_(asked) {}

  void integer(const Field& field, int64_t& value, int64_t least, int64_t most) override {
    const Json* const given = find(field);
    if (given == nullptr) return;
    const int64_t limit = std::min(most, kMostSteps);
    const bool fits = given->is_number_integer() && *given >= least && *given <= limit;
    expect(fits, field, fmt::format("an integer from {} to {}", least, limit));
    value = given->get<int64_t>();
  }
  void number(const Field& field, double& value, double least, double most) override {
    const Json* const given = find(field);
    if (given == nullptr) return;
    const bool fits = given->is_number() && *given >= least && *given <= most;
    expect(fits, field, fmt::format("a number from {} to {}", least, most));
    value = given->get<double>();
  }
  void choice(const Field& field, int& value, const Names& names) override {
    const Json* const given = find(field);
    if (given == nullptr) return;
    const auto found = std::find(names.begin(), names.end(), *given);
    expect(found != names.end(), field, fmt::format("one of {}", fmt::join(names, ", ")));
    value = static_cast<int>(found - names.begin());
  }
  void text(const Field& field, std::string& value) override {
    const Json* const given = find(field);
    if (given == nullptr) return;
    expect(given->is_string(), field, "a text");
    value = given->get<std::string>();
  }
  void seed(const Field& field, uint64_t& value) override {
    const Json* const given = find(field);
    if (given == nullptr) return;
    expect(given->is_number_unsigned(), field, "an integer of at least 0");
    value = given->get<uint64_t>();
  }

 private:
  const Json* find(const Field& field) const {
    const auto found = asked_.find(field.name);
    return found == asked_.end() ? nullptr : &*found;
  }
  static void expect(bool holds, const Field& field, const std::string& expected) {
    if (!holds) throw Error(ErrorKind::InvalidArgument, field.name + ": expected " + expected);
  }

  const Json& asked_;
};

}  // namespace

ExplainOptions explain_options(const Json& asked) {
  ExplainOptions options;
  RequestFields fields(asked);
  visit(options, fields);
  return options;
}

Json tokens_json(const std::vector<InspectedToken>& tokens) {
  Json all = Json::array();
  for (const InspectedToken& token : tokens)
    all.push_back({{"id", token.id}, {"text", token.text}, {"special", token.special}});
  return all;
}

Json explanation_json(const Explanation& explanation) {
  Json answers = Json::array(), attributions = Json::array();
  for (const ScoredAnswer& answer : explanation.answers) {
    Json& one = answers.emplace_back(Json({{"name", answer.name}, {"score", answer.score}}));
    if (answer.id) one["id"] = *answer.id;
  }
  for (const Attribution& attribution : explanation.attributions)
    attributions.push_back(attribution_json(attribution, explanation.baseline));
  return {{"target", explanation.target}, {"value_name", explanation.value_name},
          {"value", explanation.value},   {"answers", answers},
          {"cut", explanation.cut},       {"tokens", tokens_json(explanation.tokens)},
          {"places", explanation.places}, {"attributions", attributions}};
}

}  // namespace fovea::inspector

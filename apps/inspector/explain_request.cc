#include "inspector/explain_request.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "inspector/explanation_json.h"

namespace fovea::inspector {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMostSteps = 1000;  // integration steps and random choices of a request
constexpr int64_t kAnswers = 3;       // to a question

// Sets the fields that a request has.
class RequestFields : public OptionVisitor {
 public:
  explicit RequestFields(const Json& request) : request_(request) {}

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
    const auto* const name = given->get_ptr<const std::string*>();  // null if it is no text
    const auto found = name ? std::find(names.begin(), names.end(), *name) : names.end();
    expect(found != names.end(), field, fmt::format("one of {}", fmt::join(names, ", ")));
    value = static_cast<int>(found - names.begin());
  }
  void text(const Field& field, std::string& value) override {
    const Json* const given = find(field);
    if (given == nullptr) return;
    expect(given->is_string(), field, "a text");
    value = given->get<std::string>();
  }
  void unsigned_integer(const Field& field, uint64_t& value, Unit) override {
    const Json* const given = find(field);
    if (given == nullptr) return;
    expect(given->is_number_unsigned(), field, "an integer of at least 0");
    value = given->get<uint64_t>();
  }

 private:
  const Json* find(const Field& field) const {
    const auto found = request_.find(field.name);
    return found == request_.end() ? nullptr : &*found;
  }
  static void expect(bool holds, const Field& field, const std::string& expected) {
    if (!holds) throw Error(ErrorKind::InvalidArgument, field.name + ": expected " + expected);
  }

  const Json& request_;
};

study::ExplainOptions explain_options(const Json& request) {
  study::ExplainOptions options;
  RequestFields fields(request);
  visit(options, fields);
  fields.integer({"result", ""}, options.only = 0, 0, kMostSteps);
  return options;
}

// Returns the part of the text that an explanation is about, such as an entity.
std::string text_at_positions(const study::Explanation& explanation) {
  std::string text;
  for (const int64_t position : explanation.positions)
    text += explanation.tokens[static_cast<size_t>(position)].text;
  return text;
}

}  // namespace

Json explain_request(const model::Model& model, study::InspectInput input, const Json& request) {
  const study::ExplainOptions options = explain_options(request);
  input.target = request.value("context", "");
  infer::ClassifyOptions how;
  how.top = kAnswers;
  how.name_of_text = [](size_t) { return "text"; };
  const std::vector<study::Explanation> all = study::explain(model, input, options, how);
  const auto number = static_cast<size_t>(options.only);
  if (number >= all.size() && number > 0)
    throw Error(ErrorKind::InvalidArgument,
                fmt::format("result: {}; the text has {} results", number, all.size()));
  Json answer = all.empty() ? Json::object() : explanation_json(all[number]);
  Json& results = answer["results"] = Json::array();
  for (const study::Explanation& one : all)
    results.push_back({{"target", one.target}, {"text", text_at_positions(one)}});
  return answer;
}

}  // namespace fovea::inspector

#include "serve/generation/guide_constraint.h"

#include <limits>

#include "fovea/text/grammar.h"

namespace fovea::serve {
namespace {

text::Constraint only(const std::vector<int32_t>& ids, int64_t vocabulary) {
  std::vector<bool> allowed(static_cast<size_t>(vocabulary));
  for (const int32_t id : ids) allowed[static_cast<size_t>(id)] = true;
  return [allowed = std::move(allowed)](std::span<const int32_t>, std::span<float> logits) {
    for (size_t id = 0; id < logits.size(); ++id)
      if (id >= allowed.size() || !allowed[id])
        logits[id] = -std::numeric_limits<float>::infinity();
  };
}

}  // namespace

text::Constraint constraint_of(const Guide& guide, ServedModel& model, int64_t most) {
  switch (guide.kind) {
    case Guide::Kind::grammar:
      return text::gbnf_constraint(model.json_vocabulary(), guide.text, most);
    case Guide::Kind::regex:
      return text::regex_constraint(model.json_vocabulary(), guide.text, most);
    case Guide::Kind::choices:
      return text::choice_constraint(model.json_vocabulary(), guide.choices, most);
    case Guide::Kind::ids: return only(guide.ids, model.facts.vocabulary);
    case Guide::Kind::json_object: return text::json_constraint(model.json_vocabulary(), "", most);
    case Guide::Kind::schema: break;
  }
  return text::json_constraint(model.json_vocabulary(), guide.text, most);
}

}  // namespace fovea::serve

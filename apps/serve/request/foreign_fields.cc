#include "serve/request/foreign_fields.h"

#include <cstdint>

namespace fovea::serve {

Field<GenerationRequest> penalty_window_field(const std::string& name) {
  constexpr double kMostTokens = 2147483647;
  const auto put = [name](const Json& value, GenerationRequest& request) {
    infer::Sampling& sampling = request.options.sampling;
    if (value == 0) {
      sampling.repetition_penalty = 1;
      sampling.presence_penalty = sampling.frequency_penalty = 0;
    } else if (value != -1) {
      request.warnings.push_back(name + " is ignored: the penalties apply to all earlier tokens");
    }
  };
  return {{name, FieldType::integer, -1, kMostTokens, "-1",
           "-1 = the penalties apply to all earlier tokens, which other numbers do not change; 0 = "
           "no penalties"},
          put};
}

void put_seed_or_random(const Json& value, GenerationRequest& request) {
  const auto seed = value.get<int64_t>();
  request.seed_given = seed >= 0;
  if (seed >= 0) request.options.sampling.seed = static_cast<uint64_t>(seed);
}

}  // namespace fovea::serve

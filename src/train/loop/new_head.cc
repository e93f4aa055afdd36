#include "loop/new_head.h"

#include <map>
#include <string>

namespace fovea::train {

void initialise_missing(model::Transformer& model, uint64_t seed) {
  model::Transformer fresh(model.spec);
  model::initialise(fresh, seed);
  std::map<std::string, Tensor> values;
  fresh.each([&](const std::string& name, model::Parameter& p) { values[name] = p.value; });
  model.each([&](const std::string& name, model::Parameter& p) {
    if (!p.value && !p.packed) p.value = values.at(name);
  });
}

}  // namespace fovea::train

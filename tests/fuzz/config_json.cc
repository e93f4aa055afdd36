// The input is config.json: an accepted Spec can be written by its own family, and family selection
// finds a family for it.

#include "base/json.h"
#include "families/registry.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fovea;
  succeeds([&] {
    const nlohmann::json json = parse_json(text_of(data, size), "config.json");
    if (!json.is_object()) return;
    const model::Family& family =
        model::family_named(get_string(json, "model_type", "config.json"), "config.json");
    model::Spec spec;
    model::Config reader(json, "config.json");
    model::describe(reader, family, spec);
    require(model::can_express(family, spec), "the family can write the Spec that it read");
    require(model::can_express(model::family_for(spec), spec), "some family can write any Spec");
  });
  return 0;
}

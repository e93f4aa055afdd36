#pragma once

#include <memory>
#include <string_view>

#include "grammar/json_rules.h"

namespace fovea::text {

struct SchemaGrammar {
  std::shared_ptr<const Grammar> grammar;
  int32_t root = 0;
};

// Returns the grammar of the JSON values that satisfy a schema; "" = any object. The grammar uses
// only the bytes in `usable`. fovea/text/json_grammar.h lists the supported keywords and the
// errors.
SchemaGrammar schema_grammar(std::string_view schema, const Grammar::Bytes& usable);
// Adds the rules of these values to a grammar. Returns the rule of a value.
Grammar::Symbol add_schema(std::string_view schema, Grammar& grammar, Words words);

}  // namespace fovea::text

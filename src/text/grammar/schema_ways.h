#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "grammar/schema_parts.h"
#include "grammar/schema_work.h"

namespace fovea::text {

// Expands the keywords that apply other schemas in place ($ref, allOf, anyOf, oneOf, if, not and
// dependentRequired).
class SchemaWays {
 public:
  using Json = SchemaTree::Json;
  SchemaWays(SchemaTree& tree, SchemaWork& work) : tree_(tree), work_(work) {}

  // Returns the ways to satisfy all schemas: a value must satisfy all schemas of one of them.
  // Throws Unsupported if there are too many, or if the schemas of oneOf may be satisfied together.
  std::vector<Conjunction> of(const Conjunction& schemas, const SchemaLocation& location);
  // Returns the schemas of a keyword such as anyOf.
  const Json& list(const Json& schema, const char* key, const SchemaLocation& location) const;
  const Json& target(const Json& schema, const SchemaLocation& location) const;  // of $ref
  // Throws Unsupported if a text generated for one schema of oneOf may satisfy another one.
  void check_exclusive(const Json& one_of, const SchemaLocation& location);

 private:
  using Ways = std::vector<Conjunction>;
  Ways with(const Conjunction& before, const Json& schema, const SchemaLocation& location);
  Ways with_each(const Ways& all, const Json& schema, const char* key,
                 const SchemaLocation& location);
  Ways with_conditions(Ways all, const Json& schema, const SchemaLocation& location);
  void check_exclusive(const std::vector<Ways>& generated, const Json& one_of,
                       const SchemaLocation& location);
  bool have_own_values(const std::vector<Ways>& parts, const SchemaLocation& location);
  bool have_own_tags(const std::vector<Ways>& generated, const std::vector<Ways>& alone,
                     const SchemaLocation& location);
  std::vector<Ways> values_of_tag(const std::vector<Ways>& parts, std::string_view name,
                                  const SchemaLocation& location);
  bool excludes(const Conjunction& generated, const Conjunction& other,
                const SchemaLocation& location);
  bool excludes_object(const Conjunction& generated, const Conjunction& other,
                       const SchemaLocation& location);
  bool excludes_type(Types type, const Conjunction& generated, const Conjunction& other,
                     const SchemaLocation& location);

  SchemaTree& tree_;
  SchemaWork& work_;
  std::vector<const Json*> open_;  // schemas that are being expanded
  std::unordered_map<const Json*, std::vector<const Json*>> conditions_;  // by their schema
  int depth_ = 0;  // of values within values that `excludes` compares
};

}  // namespace fovea::text

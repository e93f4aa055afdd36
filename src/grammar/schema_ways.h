#pragma once

#include <string>
#include <vector>

#include "grammar/schema_parts.h"

namespace fovea {

// Expands the keywords that apply other schemas in place ($ref, allOf, anyOf and oneOf).
class SchemaWays {
 public:
  using Json = SchemaTree::Json;
  explicit SchemaWays(const SchemaTree& tree) : tree_(tree) {}

  // Returns the ways to satisfy all schemas: a value must satisfy all schemas of one of them.
  // Throws Unsupported if there are too many, or if the schemas of oneOf may be satisfied together.
  std::vector<Conjunction> of(const Conjunction& schemas, const Place& place);
  // Returns the schemas of a keyword such as anyOf.
  const Json& list(const Json& schema, const char* key, const Place& place) const;
  const Json& target(const Json& schema, const Place& place) const;  // of $ref
  // Throws Unsupported if a text generated for one schema of oneOf may satisfy another one.
  void check_exclusive(const Json& one_of, const Place& place);

 private:
  using Ways = std::vector<Conjunction>;
  Ways with(const Conjunction& before, const Json& schema, const Place& place);
  Ways with_each(Ways all, const Json& schema, const char* key, const Place& place);
  void check_exclusive(const std::vector<Ways>& generated, const Json& one_of, const Place& place);
  bool excludes(const Conjunction& generated, const Conjunction& other, const Place& place);
  bool excludes_object(const Conjunction& generated, const Conjunction& other, const Place& place);
  bool excludes_type(Types type, const Conjunction& generated, const Conjunction& other,
                     const Place& place);

  const SchemaTree& tree_;
  std::vector<const Json*> open_;  // schemas that are being expanded
  int64_t work_ = 0;
  int depth_ = 0;  // of values within values that `excludes` compares
};

}  // namespace fovea

#pragma once

#include <map>
#include <string>
#include <vector>

#include "fovea/study/inspect.h"

namespace fovea::inspector {

// Parses the parameters of a URL's query. Throws InvalidArgument, naming the parameter, if a value
// is invalid or a required parameter is missing.
class Query {
 public:
  explicit Query(const std::map<std::string, std::string>& parts) : parts_(parts) {}

  std::string text(const std::string& name) const;  // required
  int64_t number(const std::string& name) const;    // required
  int64_t number(const std::string& name, int64_t otherwise) const;
  double real(const std::string& name) const;                       // required
  std::vector<int64_t> numbers(const std::string& name) const;      // "0,3,5"
  std::pair<int64_t, int64_t> span(const std::string& name) const;  // "0-256"; missing: {0, -1}
  model::AttentionKind kind() const;                                // missing: self

 private:
  const std::map<std::string, std::string>& parts_;
};

model::AttentionKind attention_kind(const std::string& name);

}  // namespace fovea::inspector

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fovea {

// Looks for stop strings in a text that grows piece by piece, and holds back what may become one.
class StopStringMatcher {
 public:
  explicit StopStringMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {}
  std::string add(std::string_view piece);  // what is sure to come before any stop string
  std::string finish();                     // what was held back for nothing
  bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace fovea

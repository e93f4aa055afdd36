#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fovea::infer {

// Finds stop strings in a text that arrives in pieces. Holds back text that may begin a stop
// string.
class StopStringMatcher {
 public:
  explicit StopStringMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {}
  std::string add(std::string_view piece);  // returns text that precedes any stop string
  std::string finish();                     // returns the text that was held back
  bool stopped() const { return stopped_; }
  const std::string& found() const { return found_; }  // the stop string that ended the text

 private:
  std::vector<std::string> stops_;
  std::string held_, found_;
  bool stopped_ = false;
};

}  // namespace fovea::infer

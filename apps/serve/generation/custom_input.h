#pragma once

#include <string>
#include <string_view>

namespace fovea::serve {

// Reads the input of a custom tool, a text, from the arguments {"input": "..."} of its function
// while they are generated.
class CustomInput {
 public:
  std::string add(std::string_view arguments);  // returns what more of the input they have
  // Returns the rest. Arguments of another form are the input themselves.
  std::string finish();

 private:
  std::string held_;  // arguments that are not read yet
  bool inside_ = false, ended_ = false;
};
std::string custom_input(std::string_view arguments);

}  // namespace fovea::serve

#pragma once

#include <string>
#include <vector>

namespace fovea::text {

// A chat template for a model that has none. It marks the assistant's part with {% generation %}
// blocks.
struct BuiltinTemplate {
  std::string name;
  std::string source;
  // The special tokens that it uses, besides bos_token and eos_token.
  std::vector<std::string> tokens;
  bool needs_end;  // whether it ends answers with eos_token
};

const std::vector<BuiltinTemplate>& builtin_templates();
std::string builtin_template_names();  // separated by commas

// Returns the template of this name, or null if no template has it.
const BuiltinTemplate* find_builtin_template(const std::string& name);

}  // namespace fovea::text

#pragma once

#include <string_view>

#include "jinja/value.h"

namespace fovea::jinja {

// `refused`: Jinja has it, this does not.
enum class Known { yes, no, refused };
Known know_filter(std::string_view name);
Known know_test(std::string_view name);

// A filter or a test, its subject the first argument.
using Operation = Value (*)(Interpreter& interpreter, Arguments& arguments);
struct NamedOperation {
  std::string_view name;
  Operation operation;
};
Operation find_filter(std::string_view name);  // nullptr if there is none
Operation find_test(std::string_view name);

// The filters by kind, each table in a file of its own.
Operation find_text_filter(std::string_view name);
Operation find_sequence_filter(std::string_view name);
Operation find_selection_filter(std::string_view name);
Operation find_number_filter(std::string_view name);

}  // namespace fovea::jinja

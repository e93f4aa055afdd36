#include "jinja/filters.h"

#include <algorithm>
#include <array>

namespace fovea::jinja {

Operation find_filter(std::string_view name) {
  for (const auto find :
       {find_text_filter, find_sequence_filter, find_selection_filter, find_number_filter}) {
    if (const Operation operation = find(name)) return operation;
  }
  return nullptr;
}

namespace {

// What Jinja has beyond that and no chat template uses.
constexpr std::array<std::string_view, 15> refused = {
    "batch",     "center", "filesizeformat", "forceescape", "groupby",
    "pprint",    "random", "slice",          "striptags",   "truncate",
    "urlencode", "urlize", "wordcount",      "wordwrap",    "xmlattr"};

}  // namespace

Known know_filter(std::string_view name) {
  if (find_filter(name)) return Known::yes;
  return std::find(refused.begin(), refused.end(), name) != refused.end() ? Known::refused
                                                                          : Known::no;
}

Known know_test(std::string_view name) { return find_test(name) ? Known::yes : Known::no; }

}  // namespace fovea::jinja

#pragma once

#include <functional>

#include "fovea/core/options.h"
#include "options/options.h"

namespace fovea::cli {

// How the command line spells a field of an options struct. The default is an option with the
// field's name, such as --learning-rate for "learning_rate", in the section of the field before it.
struct Spelling {
  std::string field;
  std::vector<std::string> aliases = {};
  std::string name = {};         // of the option; without "--": a positional argument
  std::string placeholder = {};  // of the value in the help
  std::string section = {};      // heading in the help of this and the following fields
  int most = 1;                  // maximum values per occurrence
  bool omitted = false;          // no option
  std::string implied = {};      // value of a number or a choice if none is given
  // A choice's names with alternatives: "fp32|float32"; an integer's values with words: "-1|auto".
  std::vector<std::string> values = {};
};
using Spellings = std::vector<Spelling>;
enum class Fields { all, spelled };  // those that become options; `spelled` = only the listed ones

// The spellings of the fields of a Spec.
const Spellings& spec_spellings();

// Passes a visitor to the fields of the options or, if `copy`, of a copy of the options, whose
// values the visitor may change.
using VisitFields = std::function<void(OptionVisitor& visitor, bool copy)>;
void add_fields(OptionTable& table, const Spellings& spellings, Fields fields,
                const VisitFields& visit_fields);

// Adds an option for each field of `options`, which must outlive the table.
template <class Options>
void add_fields(OptionTable& table, Options& options, const Spellings& spellings = {},
                Fields fields = Fields::all) {
  add_fields(table, spellings, fields, [&options](OptionVisitor& visitor, bool copy) {
    if (!copy) return visit(options, visitor);
    Options other = options;
    visit(other, visitor);
  });
}

}  // namespace fovea::cli

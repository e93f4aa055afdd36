#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "fovea/core/error.h"

namespace fovea::cli {

// A usage error: exit code 2. The message excludes the prefix "fovea: error:".
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

enum class Kind { flag, boolean, integer, number, bytes, choice, text, list, positional };

// One option of a verb. Parsing, checks, help and generated tests all use this description.
struct Option {
  std::string name;                  // "--learning-rate", or "MODEL" for a positional argument
  std::string field;                 // its name in errors of the library: "learning_rate"
  std::vector<std::string> aliases;  // "--lr", "-l"; inner '-' may also be typed as '_'
  std::string help;
  Kind kind = Kind::text;
  std::string expected;                         // "1 to 65536"
  std::string placeholder;                      // of the value in the help: "N", "FILE"
  std::string initial;                          // the default, as text; empty: none, or `unset`
  std::string unset;                            // what applies without a value: "the model's"
  std::function<void(const std::string&)> set;  // throws UsageError
  std::function<std::string()> get;             // the current value as text
  std::string section;                          // heading in the help
  bool advanced = false;                        // hidden from the short help
  bool in_config = false;                       // allowed under "train" in --config
  int most = 1;                                 // maximum values per occurrence
  std::string implied;                          // value of a number or a choice without one
  // Returns the model or the adapter that a value names, which may be at the Hugging Face Hub; null
  // = values name none.
  std::function<std::string(const std::string&)> model_in;
  bool of_spec = false;  // a field of the Spec
  // The path in a Spec's JSON that replaces the option, such as "decoder.norm.alpha". The option
  // is hidden, gives a warning, and goes in the next version; empty = it stays.
  std::string replaced_by;
  std::vector<std::string> given;  // the typed values, set by OptionTable::parse()
  std::string source;              // of `given`, if it is not the command line: "FOVEA_TEMPERATURE"
};

bool is_boolean(const std::string& text);  // true, no, off, 1, ...
Option flag(std::string name, std::vector<std::string> aliases, std::string help, bool& value);
// Without a value, such an option is true.
Option boolean(std::string name, std::vector<std::string> aliases, std::string help, bool& value);
Option integer(std::string name, std::vector<std::string> aliases, std::string help, int64_t& value,
               int64_t least, int64_t most);
// Integers separated by commas.
Option integers(std::string name, std::vector<std::string> aliases, std::string help,
                std::vector<int64_t>& values, int64_t least, int64_t most);
Option number(std::string name, std::vector<std::string> aliases, std::string help, double& value,
              double least, double most);
// Numbers separated by commas.
Option numbers(std::string name, std::vector<std::string> aliases, std::string help,
               std::vector<double>& values, double least, double most);
// A size such as 300000000, 512M or 2GB (powers of 1024).
Option bytes(std::string name, std::vector<std::string> aliases, std::string help, uint64_t& value);
// `value` is an index into `names`. A name may list alternatives: "fp32|float32".
Option choice(std::string name, std::vector<std::string> aliases, std::string help, int& value,
              const std::vector<std::string>& names);
Option text(std::string name, std::vector<std::string> aliases, std::string help,
            std::string& value);
Option list(std::string name, std::vector<std::string> aliases, std::string help,
            std::vector<std::string>& values);
constexpr int kMostFiles = 10'000;
// Accepts up to `most` values per occurrence: "--pairs train.de train.en".
Option files(std::string name, std::vector<std::string> aliases, std::string help,
             std::vector<std::string>& values, int most);
// Positional arguments. They may also be given by one of the aliases.
Option positional(std::string name, std::vector<std::string> aliases, std::string help,
                  std::string& value);
Option positionals(std::string name, std::vector<std::string> aliases, std::string help,
                   std::vector<std::string>& values);
// Returns `option` with this placeholder for its value: as("FILE", text(...)).
Option as(std::string placeholder, Option option);
// Returns an option that also accepts words for values: with_words({"-1|auto"}, integer(...)).
Option with_words(const std::vector<std::string>& values, Option option);

// The options of one verb.
class OptionTable {
 public:
  // Sets the section of options added afterwards; they follow the options that it already has.
  void section(std::string title) { section_ = std::move(title); }
  void add(Option option);
  // Allows all options added so far in --config, except these.
  void set_in_config(const std::vector<std::string>& except);
  // Hides all options added so far from the short help, except these.
  void show_only(const std::vector<std::string>& names);
  // Sets `model_in` of an option whose values are models.
  void names_model(const std::string& name);
  // States what applies if an option of this section is not given, instead of an initial value.
  void unset_means(const std::string& what);
  // Throws UsageError for unknown options, missing values and unexpected arguments.
  void parse(const std::vector<std::string>& arguments);
  // Gives an option that is not given these values; `source` names them in errors.
  void give(const std::string& name, const std::vector<std::string>& values,
            const std::string& source);
  void apply(const std::string& name);  // sets one option to its typed values
  void apply();                         // sets all options
  void apply_section(const std::string& section) const;
  bool given(const std::string& name) const;
  // Throws UsageError if an option in the section of option `name` was given without it.
  void refuse_without(const std::string& name) const;
  const Option* find(const std::string& name) const;  // by name or alias; null if unknown
  const std::vector<Option>& all() const { return options_; }

 private:
  std::vector<Option> options_;
  std::string section_;
};

// "learning_rate" -> "--learning-rate"
std::string option_name(const std::string& field);

// Returns the message of an error of the library, with the names of options instead of fields.
std::string message_of(const Error& error, const OptionTable& table);

// Returns the table as JSON, from which tests are generated.
std::string table_json(const OptionTable& table);

// Returns the program's version and the given options, except positional arguments and the options
// in `indifferent`, which do not affect the result.
nlohmann::ordered_json decisive_options(const OptionTable& table,
                                        const std::vector<std::string>& indifferent);

}  // namespace fovea::cli

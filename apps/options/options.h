#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace fovea::cli {

// Wrong use of the program: exit code 2. The message has no "fovea: error:" in front.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

enum class Kind { flag, boolean, integer, number, bytes, choice, text, list, positional };

// One option of a verb: help, checking and the list that the tests are made from all come from
// here.
struct Option {
  std::string name;                  // "--learning-rate"; "MODEL" if it is given by its place
  std::vector<std::string> aliases;  // "--lr", "-l"; every '-' inside may also be typed '_'
  std::string help;
  Kind kind = Kind::text;
  std::string expected;                         // "1 to 65536"
  std::string initial;                          // the default, as text
  std::function<void(const std::string&)> set;  // throws UsageError
  std::function<std::string()> get;             // the value, as it would be typed
  std::string section;                          // the heading in the help under which it stands
  bool in_config = false;                       // may stand under "train" in --config
  int most = 1;                                 // values that may follow one mention of it
  bool of_spec = false;                         // describes the model rather than its training
  std::vector<std::string> given;
};

Option flag(std::string name, std::vector<std::string> aliases, std::string help, bool& value);
Option boolean(std::string name, std::vector<std::string> aliases, std::string help, bool& value);
Option integer(std::string name, std::vector<std::string> aliases, std::string help, int64_t& value,
               int64_t least, int64_t most);
// Whole numbers, separated by commas.
Option integers(std::string name, std::vector<std::string> aliases, std::string help,
                std::vector<int64_t>& values, int64_t least, int64_t most);
Option number(std::string name, std::vector<std::string> aliases, std::string help, double& value,
              double least, double most);
Option number(std::string name, std::vector<std::string> aliases, std::string help, float& value,
              double least, double most);
// A size such as 300000000, 512M or 2GB (powers of 1024).
Option bytes(std::string name, std::vector<std::string> aliases, std::string help, uint64_t& value);
// `value` is an index into `names`; of a name with bars ("fp32|float32") every part may be typed.
Option choice(std::string name, std::vector<std::string> aliases, std::string help, int& value,
              const std::vector<std::string>& names);
Option text(std::string name, std::vector<std::string> aliases, std::string help,
            std::string& value);
Option list(std::string name, std::vector<std::string> aliases, std::string help,
            std::vector<std::string>& values);
// Of which several may follow: "--pairs train.de train.en".
constexpr int kMostFiles = 10'000;
Option files(std::string name, std::vector<std::string> aliases, std::string help,
             std::vector<std::string>& values, int most);
// Given by their place, or by one of the aliases.
Option place(std::string name, std::vector<std::string> aliases, std::string help,
             std::string& value);
Option places(std::string name, std::vector<std::string> aliases, std::string help,
              std::vector<std::string>& values);

// The options of one verb.
class OptionTable {
 public:
  void section(std::string title) {
    section_ = std::move(title);
  }  // of the options added from now on
  void add(Option option);
  void add_config(Option option);  // one that --config may hold too
  void parse(const std::vector<std::string>& arguments);
  void apply(const std::string& name);  // hands what was typed to one option
  void apply();                         // to all
  bool given(const std::string& name) const;
  // For a verb that was not told to --train: UsageError where one of these was given.
  void refuse_training(std::span<const char* const> names) const;
  Option* find(const std::string& name);  // also by alias; null if there is none
  const std::vector<Option>& all() const { return options_; }

 private:
  std::vector<Option> options_;
  std::string section_;
};

// The help of a verb, wrapped to `width` columns.
std::string help_text(const std::string& usage, const std::string& summary,
                      const OptionTable& table, int width);
// The table as JSON: what the tests are generated from.
std::string table_json(const OptionTable& table);

// The options that were typed, without those that do not change a byte of the result.
nlohmann::ordered_json decisive_options(const OptionTable& table,
                                        const std::vector<std::string>& indifferent);

}  // namespace fovea::cli

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/nearest.h"
#include "fovea/core/options.h"
#include "options/options.h"
#include "options/refusals.h"

namespace fovea::cli {
namespace {

struct Foreign {
  const char* options;  // separated by spaces
  const char* sentence;
};

// Options of llama.cpp, nanoGPT, transformers, sentence-transformers and vLLM. An option of the
// verb itself takes precedence.
constexpr Foreign kForeign[] = {
    {"--resume --resume-from-checkpoint --resume-from --init-from",
     "a training run resumes by itself if --out holds a snapshot of it"},
    {"--wandb --wandb-log --wandb-project --report-to --tensorboard --logging-steps --logging-dir "
     "--log-interval --log-every",
     "a training run writes every step to log.jsonl in --out, and train --inspect shows the "
     "curves"},
    {"-ngl --n-gpu-layers --gpu-layers -mg --main-gpu -sm --split-mode -ts --tensor-split -dev "
     "--device-map --gpu --gpus --cuda --cpu --no-cuda --use-cpu -tp "
     "--tensor-parallel-size --gpu-memory-utilization",
     "--device cuda computes on an NVIDIA GPU, all of a model; --threads sets the number of "
     "threads of "
     "the CPU"},
    {"-tb --threads-batch --n-threads --num-threads --num-workers --dataloader-num-workers",
     "--threads sets the number of threads of all work"},
    {"-c --ctx-size --n-ctx --context --block-size --max-model-len --max-seq-len --max-seq-length",
     "the context is the model's; serve --cache limits the memory of its keys and values"},
    {"-np", "serve --parallel sets the number of simultaneous sequences"},
    {"--jinja --no-jinja", "chat templates are always rendered"},
    {"--fp16 --half", "the 16-bit precision for computing is --dtype bf16"},
    {"--bf16", "the precision is set by --dtype bf16"},
    {"--fp32 --tf32", "the precision is set by --dtype fp32"},
    {"--load-in-8bit", "the precision of weights is set by --dtype int8"},
    {"--load-in-4bit --quantization", "the precision of weights is set by --dtype int4"},
    {"-ctk -ctv --cache-type-k --cache-type-v",
     "the precision of keys and values is set by --cache-dtype"},
    {"--mmap --no-mmap --mlock", "weights are mapped into memory and read once"},
    {"-fa --flash-attn --flash-attention --attn-implementation",
     "attention is always computed in tiles, without a matrix of scores"},
    {"--compile --torch-compile --enforce-eager",
     "kernels are compiled in advance and selected for the CPU at startup"},
    {"-hf -hfr -hff --hf-repo --hf-file -mu --model-url",
     "MODEL may be a name of the Hugging Face Hub, such as hf:USER/NAME:Q4_K_M"},
    {"--trust-remote-code", "the code of a model's directory is never run"},
    {"-cnv --conversation -no-cnv --no-conversation --interactive",
     "fovea chat holds conversations, and fovea generate continues texts"},
    {"--do-sample", "sampling is the default; --greedy turns it off"},
    {"--epochs --num-epochs --num-train-epochs",
     "train --steps or --epochs sets the length of a run"},
    {"--eval-only --do-eval", "fovea eval evaluates a model"},
};

bool is_positional(const Option& option) { return option.kind == Kind::positional; }

// All accepted spellings: the name, the aliases, and both with '_' instead of inner '-'.
std::vector<std::string> spellings(const Option& option) {
  std::vector<std::string> all;
  if (!is_positional(option)) all.push_back(option.name);
  all.insert(all.end(), option.aliases.begin(), option.aliases.end());
  const size_t plain = all.size();
  for (size_t i = 0; i < plain; ++i) {
    std::string other = all[i];
    if (other.rfind("--", 0) != 0) continue;
    std::replace(other.begin() + 2, other.end(), '-', '_');
    if (other != all[i]) all.push_back(other);
  }
  return all;
}

// "--learning-rate" -> "learning_rate"
std::string field_name(const std::string& option) {
  std::string name = option.starts_with("--") ? option.substr(2) : option;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::string long_form(const std::string& argument) {
  return argument.substr(0, argument.find('='));
}

// Returns a sentence that names fovea's equivalent of an option of another program, such as
// --resume; empty if the option is not known.
std::string foreign_option(const std::string& typed) {
  std::string name = typed;
  std::replace(name.begin(), name.end(), '_', '-');
  for (const Foreign& foreign : kForeign)
    if (fmt::format(" {} ", foreign.options).find(fmt::format(" {} ", name)) != std::string::npos)
      return foreign.sentence;
  return {};
}

void refuse_unknown(const std::vector<std::string>& rest, const std::vector<Option>& options) {
  std::vector<std::string> names;
  for (const Option& option : options) {
    for (const std::string& name : spellings(option)) names.push_back(name);
  }
  for (const std::string& argument : rest) {
    if (argument.size() < 2 || argument[0] != '-') continue;
    const std::string typed = long_form(argument);
    const std::string foreign = foreign_option(typed);
    if (!foreign.empty()) throw UsageError(fmt::format("{}: unknown option; {}", typed, foreign));
    std::string near = typed.size() > 2 ? nearest(typed, names) : "";
    // For an alias, suggest the option's main name.
    for (const Option& option : options) {
      const auto all = spellings(option);
      const bool its = std::find(all.begin(), all.end(), near) != all.end();
      if (its && !is_positional(option)) near = option.name;
    }
    const std::string hint = near.empty() ? "see --help" : "did you mean " + near + "?";
    throw UsageError(fmt::format("{}: unknown option; {}", typed, hint));
  }
  if (!rest.empty()) {
    const bool prompts = std::any_of(options.begin(), options.end(),
                                     [](const Option& option) { return option.name == "TEXT"; });
    throw UsageError(
        fmt::format("\"{}\": unexpected argument; {}", rest.front(),
                    prompts ? "expected quotes around a prompt of several words" : "see --help"));
  }
}

bool begins_a_number(const std::string& text) {
  return text.find_first_of("0123456789") == (text.starts_with('-') ? 1 : 0);
}

// Returns whether `text` is the value of an option that has an implied value.
bool is_value_of(const Option& option, const std::string& text) {
  if (option.kind == Kind::boolean) return is_boolean(text);
  if (option.kind != Kind::choice) return begins_a_number(text);
  return (", " + option.expected + ", ").find(", " + text + ", ") != std::string::npos;
}

// Adds the implied value of options that are given without a value: "--lora" becomes "--lora 16",
// unless a number follows, "--explain" becomes "--explain all", unless a method follows, and
// "--causal" becomes "--causal true".
std::vector<std::string> with_implied(const std::vector<std::string>& arguments,
                                      const OptionTable& table) {
  std::vector<std::string> all;
  for (size_t i = 0; i < arguments.size(); ++i) {
    all.push_back(arguments[i]);
    if (arguments[i] == "--") {
      all.insert(all.end(), arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                 arguments.end());
      break;
    }
    const Option* const option = table.find(arguments[i]);
    if (option == nullptr || option->implied.empty()) continue;
    const bool valued = i + 1 < arguments.size() && is_value_of(*option, arguments[i + 1]);
    if (!valued) all.push_back(option->implied);
  }
  return all;
}

// CLI11 would read -np as -n p. In other programs -np is a single option, and a value that is
// joined to a short option is easily misread, so both are refused.
void refuse_joined(const std::vector<std::string>& arguments, const OptionTable& table) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& typed = arguments[i];
    if (typed == "--") return;
    if (typed.size() < 2 || typed[0] != '-') continue;
    if (const Option* const option = table.find(long_form(typed))) {
      const bool joined = typed.find('=') != typed.npos;
      if (option->kind == Kind::flag || (joined && typed.starts_with("--"))) continue;
      if (!joined) {
        ++i;  // skips its value, which may begin with '-'
        continue;
      }
    }
    if (typed.size() < 3 || typed[1] == '-') continue;
    const Option* const option = table.find(typed.substr(0, 2));
    const bool valued = option != nullptr && option->kind != Kind::flag;
    if (!foreign_option(typed).empty() || !valued) refuse_unknown({typed}, table.all());
    throw UsageError(fmt::format("{}: unknown option; expected a space after {}, which is {}",
                                 typed, typed.substr(0, 2), option->name));
  }
}

// Follows an argument in square brackets, which CLI11 would read as a list.
constexpr char kNoList = '\x01';

std::vector<std::string> without_marks(std::vector<std::string> values) {
  for (std::string& value : values)
    if (value.ends_with(kNoList)) value.pop_back();
  return values;
}

// Declares an option to CLI11, which only collects strings; Option::set parses them.
CLI::Option* declare(CLI::App& app, const Option& option) {
  std::string names;
  if (is_positional(option)) names = option.name;
  for (const std::string& name : spellings(option)) names += (names.empty() ? "" : ",") + name;
  if (option.kind == Kind::flag) {
    return app.add_flag(names)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  }
  CLI::Option* declared = app.add_option(names, [](const CLI::results_t&) { return true; });
  declared->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  if (option.expected == "one or more") {
    declared->expected(1, CLI::detail::expected_max_vector_size)->allow_extra_args();
  }
  if (option.most > 1) declared->expected(1, option.most)->allow_extra_args();
  return declared;
}

using Names = std::vector<std::string>;

// Sets an option to its given values. An error names their source instead of the option.
void set_given(const Option& option) {
  try {
    for (const std::string& value : option.given) option.set(value);
  } catch (const UsageError& error) {
    const std::string message = error.what();
    if (option.source.empty() || !message.starts_with(option.name)) throw;
    throw UsageError(option.source + message.substr(option.name.size()));
  }
}

}  // namespace

void OptionTable::add(Option option) {
  option.section = section_;
  if (option.field.empty()) option.field = field_name(option.name);
  const auto last = std::find_if(options_.rbegin(), options_.rend(),
                                 [&](const Option& other) { return other.section == section_; });
  options_.insert(last == options_.rend() ? options_.end() : last.base(), std::move(option));
}

void OptionTable::set_in_config(const std::vector<std::string>& except) {
  for (Option& option : options_)
    option.in_config = std::find(except.begin(), except.end(), option.name) == except.end();
}

const Option* OptionTable::find(const std::string& name) const {
  for (const Option& option : options_) {
    const std::vector<std::string> all = spellings(option);
    if (option.name == name || std::find(all.begin(), all.end(), name) != all.end()) return &option;
  }
  return nullptr;
}

bool OptionTable::given(const std::string& name) const {
  for (const Option& option : options_) {
    if (option.name == name) return !option.given.empty();
  }
  throw std::logic_error("no option is named " + name);
}

void OptionTable::show_only(const std::vector<std::string>& names) {
  for (Option& option : options_)
    option.advanced = std::find(names.begin(), names.end(), option.name) == names.end();
}

void OptionTable::names_model(const std::string& name) {
  for (Option& option : options_)
    if (option.name == name) option.model_in = [](const std::string& value) { return value; };
}

void OptionTable::unset_means(const std::string& what) {
  for (Option& option : options_) {
    if (option.section != section_) continue;
    option.unset = what;
    option.initial.clear();
  }
}

void OptionTable::refuse_without(const std::string& name) const {
  const Option* const leading = find(name);
  if (!leading->given.empty()) return;
  for (const Option& option : options_)
    if (option.section == leading->section && !option.given.empty())
      throw UsageError(fmt::format("{}: requires {}", option.name, name));
}

void OptionTable::parse(const std::vector<std::string>& given) {
  const std::vector<std::string> arguments = with_implied(given, *this);
  refuse_joined(arguments, *this);
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  std::vector<CLI::Option*> declared;
  for (const Option& option : options_) declared.push_back(declare(app, option));

  std::vector<std::string> reversed;  // CLI11 expects the last argument first
  for (const std::string& argument : arguments) {
    // CLI11 reads "--batch=" as "--batch" with its value in the next argument.
    const bool bare = argument.size() > 3 && argument.back() == '=' && find(long_form(argument));
    const bool list = argument.starts_with('[') && argument.ends_with(']');
    reversed.push_back(bare ? long_form(argument) : list ? argument + kNoList : argument);
    if (bare) reversed.emplace_back();
  }
  std::reverse(reversed.begin(), reversed.end());
  try {
    app.parse(reversed);
  } catch (const CLI::ArgumentMismatch&) {
    // Only the last argument can lack its value: any other one consumes the next argument.
    throw UsageError(
        fmt::format("{}: the value is missing; expected one after the option", arguments.back()));
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }
  refuse_unknown(without_marks(app.remaining()), options_);
  for (size_t i = 0; i < options_.size(); ++i)
    options_[i].given = without_marks(declared[i]->results());
}

void OptionTable::give(const std::string& name, const std::vector<std::string>& values,
                       const std::string& source) {
  for (Option& option : options_) {
    if (option.name != name || !option.given.empty()) continue;
    if (option.kind == Kind::flag && (values == Names{"false"} || values == Names{"0"})) return;
    option.given = values;
    option.source = source;
  }
}

void OptionTable::apply(const std::string& name) { set_given(*find(name)); }

void OptionTable::apply_section(const std::string& section) const {
  for (const Option& option : options_) {
    if (option.section == section) set_given(option);
  }
}

void OptionTable::apply() {
  for (const Option& option : options_) set_given(option);
}

void require(const OptionTable& table, bool used, const Names& names, const std::string& needed) {
  for (const std::string& name : names) {
    const Option* const option = table.find(name);
    if (used || option == nullptr || option->given.empty() || !option->source.empty()) continue;
    throw UsageError(fmt::format("{}: has no effect in this run; expected {}", name, needed));
  }
}

void allow_only(const OptionTable& table, const std::string& action, const Names& names) {
  const std::string& section = table.find(action)->section;
  for (const Option& option : table.all()) {
    const bool allowed = option.name == action || option.section == "Common" ||
                         (!section.empty() && option.section == section) ||
                         std::find(names.begin(), names.end(), option.name) != names.end();
    if (!allowed && !option.given.empty() && option.source.empty())
      throw UsageError(
          fmt::format("{}: cannot be combined with {}; expected one of them", action, option.name));
  }
}

std::string option_name(const std::string& field) {
  std::string name = "--" + field;
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

std::string message_of(const Error& error, const OptionTable& table) {
  const auto option_of = [&](const std::string& field) -> const Option* {
    const Option* found = table.find(option_name(field));
    for (const Option& option : table.all())  // a verb may have two structs with this field
      if (option.field == field && (found == nullptr || !option.given.empty())) found = &option;
    return found;
  };
  std::string message = error.what();
  if (const auto* const about = dynamic_cast<const FieldError*>(&error)) {
    if (const Option* const option = option_of(about->field()))
      message.replace(0, about->field().size(), option->name);
  }
  size_t begin = 0, end = 0;
  while ((begin = message.find('`', begin)) != message.npos &&
         (end = message.find('`', begin + 1)) != message.npos) {
    const Option* const option = option_of(message.substr(begin + 1, end - begin - 1));
    if (option != nullptr) message.replace(begin, end + 1 - begin, option->name);
    begin = option != nullptr ? begin + option->name.size() : end;
  }
  return message;
}

std::string table_json(const OptionTable& table) {
  static const char* const kinds[] = {"flag",   "boolean", "integer", "number",    "bytes",
                                      "choice", "text",    "list",    "positional"};
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const Option& option : table.all()) {
    if (!option.replaced_by.empty()) continue;
    all.push_back({{"name", option.name},
                   {"aliases", option.aliases},
                   {"kind", kinds[static_cast<int>(option.kind)]},
                   {"expected", option.expected},
                   {"of_spec", option.of_spec},
                   {"default", option.initial},
                   {"implied", option.implied},
                   {"help", option.help}});
  }
  return all.dump();
}

}  // namespace fovea::cli

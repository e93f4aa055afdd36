#include "options/spec_options.h"

#include <map>

#include "fovea/error.h"

namespace fovea::cli {
namespace {

std::vector<std::string> aliases_of(const std::string& flag) {
  static const std::map<std::string, std::vector<std::string>> aliases = {
      {"--context",
       {"-c", "--ctx-size", "--block-size", "--max-seq-length", "--max-seq-len",
        "--max-model-len"}},
      {"--width", {"--n-embd", "--hidden-size", "--d-model"}},
      {"--layers", {"--n-layer", "--num-layers", "--num-hidden-layers"}},
      {"--heads", {"--n-head", "--num-heads", "--num-attention-heads"}},
      {"--kv-heads", {"--num-key-value-heads"}},
      {"--ffn-width", {"--d-ff", "--intermediate-size"}},
      {"--vocabulary", {"--vocab-size"}},
      {"--tied-head", {"--tie-word-embeddings"}},
      {"--window", {"--sliding-window"}}};
  const auto found = aliases.find(flag);
  return found == aliases.end() ? std::vector<std::string>{} : found->second;
}

// Passes each field as an Option that is valid only during the visit. The fields of an absent stack
// are visited if `wanted` is one of them, or empty.
class Fields : public SpecVisitor {
 public:
  using Use = std::function<void(Option field)>;
  Fields(std::string wanted, Use use) : wanted_(std::move(wanted)), use_(std::move(use)) {}

  void integer(Text, Text flag, Text help, int64_t& value, int64_t least, int64_t most) override {
    use_(cli::integer(flag, aliases_of(flag), help, value, least, most));
  }
  void integers(Text, Text flag, Text help, std::vector<int64_t>& values, int64_t least,
                int64_t most) override {
    use_(cli::integers(flag, aliases_of(flag), help, values, least, most));
  }
  void number(Text, Text flag, Text help, float& value, float least, float most) override {
    // Converting through text makes 0.95f read as 0.95 in double.
    use_(cli::number(flag, aliases_of(flag), help, value, widened(least), widened(most)));
  }
  // Lists of factors are set in a file, not by options.
  void numbers(Text, Text, Text, std::vector<float>&, float, float) override {}
  void boolean(Text, Text flag, Text help, bool& value) override {
    use_(cli::boolean(flag, aliases_of(flag), help, value));
  }
  void choice(Text, Text flag, Text help, int& value,
              const std::vector<std::string>& names) override {
    use_(cli::choice(flag, aliases_of(flag), help, value, names));
  }
  void group(Text, Text flag, Text help, bool& present) override {
    use_(cli::boolean(flag, {}, help, present));
    if (wanted_.empty() || wanted_.starts_with(flag + "-")) present = true;
  }

 private:
  static double widened(float value);
  std::string wanted_;
  Use use_;
};

double Fields::widened(float value) {
  double result = 0;
  cli::number("", {}, "", result, -1e300, 1e300).set(cli::number("", {}, "", value, 0, 0).get());
  return result;
}

// A visited value may be a temporary copy of the field, so each read and each write is a separate
// visit.
void with_field(Spec& spec, const std::string& name, const Fields::Use& use) {
  bool found = false;
  Fields fields(name, [&](Option field) {
    if (field.name != name) return;
    found = true;
    use(std::move(field));
  });
  visit(spec, fields);
  if (!found)
    throw Error(
        ErrorKind::InvalidArgument,
        name + ": the model has no decoder; expected a decoder, or --encoder-" + name.substr(2));
}

}  // namespace

void add_spec_options(OptionTable& table, Spec& spec) {
  Fields fields("", [&](Option option) {
    const std::string name = option.name;
    option.set = [&spec, name](const std::string& typed) {
      with_field(spec, name, [&](const Option& field) { field.set(typed); });
    };
    option.get = [&spec, name] {
      std::string value;
      Spec copy = spec;
      if (!copy.decoder) copy.decoder.emplace();
      with_field(copy, name, [&](const Option& field) { value = field.get(); });
      return value;
    };
    option.of_spec = true;
    table.add(std::move(option));
  });
  Spec all = spec;
  visit(all, fields);
}

}  // namespace fovea::cli

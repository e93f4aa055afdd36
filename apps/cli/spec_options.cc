#include "spec_options.h"

#include <map>

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

// Shows each field as an Option, which lives only during the visit.
class Fields : public SpecVisitor {
 public:
  using Use = std::function<void(Option field)>;
  explicit Fields(Use use) : use_(std::move(use)) {}

  void integer(const char*, const char* flag, const char* help, int64_t& value, int64_t least,
               int64_t most) override {
    use_(cli::integer(flag, aliases_of(flag), help, value, least, most));
  }
  void number(const char*, const char* flag, const char* help, float& value, float least,
              float most) override {
    // Through text, so that 0.95f reads 0.95 as a double too.
    use_(cli::number(flag, aliases_of(flag), help, value, widened(least), widened(most)));
  }
  void boolean(const char*, const char* flag, const char* help, bool& value) override {
    use_(cli::boolean(flag, aliases_of(flag), help, value));
  }
  void choice(const char*, const char* flag, const char* help, int& value,
              const std::vector<std::string>& names) override {
    use_(cli::choice(flag, aliases_of(flag), help, value, names));
  }

 private:
  static double widened(float value);
  Use use_;
};

double Fields::widened(float value) {
  double result = 0;
  cli::number("", {}, "", result, -1e300, 1e300).set(cli::number("", {}, "", value, 0, 0).get());
  return result;
}

// A visited value may be a passing copy of the field, so each reading and each writing is a visit
// of its own.
void with_field(Spec& spec, const std::string& name, const Fields::Use& use) {
  Fields fields([&](Option field) {
    if (field.name == name) use(std::move(field));
  });
  visit(spec, fields);
}

}  // namespace

void add_spec_options(OptionTable& table, Spec& spec) {
  Fields fields([&](Option option) {
    const std::string name = option.name;
    option.set = [&spec, name](const std::string& typed) {
      with_field(spec, name, [&](const Option& field) { field.set(typed); });
    };
    option.get = [&spec, name] {
      std::string value;
      with_field(spec, name, [&](const Option& field) { value = field.get(); });
      return value;
    };
    option.of_spec = true;
    table.add(std::move(option));
  });
  visit(spec, fields);
}

}  // namespace fovea::cli

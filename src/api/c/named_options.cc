#include "c/named_options.h"

#include <charconv>
#include <cmath>
#include <optional>

#include "base/fields.h"
#include "base/nearest.h"
#include "c/arguments.h"

namespace fovea::c {
namespace {

constexpr const char* kPreset = "preset";
constexpr const char* kDropout = "dropout";

// Collects the names and descriptions of fields.
class ListFields : public OptionVisitor {
 public:
  std::vector<NamedOption> found;

  void integer(const Field& f, int64_t&, int64_t, int64_t) override { add(f); }
  void number(const Field& f, double&, double, double) override { add(f); }
  void boolean(const Field& f, bool&) override { add(f); }
  void choice(const Field& f, int&, const Names& names) override {
    found.push_back({f.name, fmt::format("{}: {}", f.help, fmt::join(names, ", "))});
  }
  void text(const Field& f, std::string&) override { add(f); }
  void list(const Field& f, const List&) override { add(f); }
  void unsigned_integer(const Field& f, uint64_t&, Unit) override { add(f); }
  void optional(const Field& f, bool& present, Part part) override {
    if (part == Part::group) add(f);
    present = true;
  }

 private:
  void add(const Field& f) { found.push_back({f.name, f.help}); }
};

[[noreturn]] void refuse(const std::string& name, std::string_view value,
                         const std::string& expected) {
  fail_field(ErrorKind::InvalidArgument, name, "\"{}\"; expected {}", value, expected);
}

template <class Number>
Number parse(const std::string& name, std::string_view text, const std::string& expected) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (stop != end || error != std::errc()) refuse(name, text, expected);
  return value;
}

bool parse_truth(const std::string& name, std::string_view text) {
  if (text != "true" && text != "false") refuse(name, text, "true or false");
  return text == "true";
}

// Sets the field with a name. The value is refused if it is out of the field's range.
class SetField : public OptionVisitor {
 public:
  SetField(std::string name, std::string_view value) : name_(std::move(name)), value_(value) {}
  bool found = false;

  void integer(const Field& f, int64_t& value, int64_t least, int64_t most) override {
    if (is(f)) value = in_range<int64_t>(value_, least, most);
  }
  void number(const Field& f, double& value, double least, double most) override {
    if (is(f)) value = in_range<double>(value_, least, most);
  }
  void boolean(const Field& f, bool& value) override {
    if (is(f)) value = parse_truth(name_, value_);
  }
  void choice(const Field& f, int& value, const Names& names) override {
    if (!is(f)) return;
    const auto chosen = std::find(names.begin(), names.end(), value_);
    if (chosen == names.end()) refuse(name_, value_, fmt::format("{}", fmt::join(names, ", ")));
    value = static_cast<int>(chosen - names.begin());
  }
  void text(const Field& f, std::string& value) override {
    if (is(f)) value = value_;
  }
  void list(const Field& f, const List& list) override {
    if (is(f)) std::visit([&](const auto& each) { set(each); }, list);
  }
  void unsigned_integer(const Field& f, uint64_t& value, Unit unit) override {
    const bool bytes = unit == Unit::bytes;
    if (is(f))
      value = parse<uint64_t>(name_, value_,
                              bytes ? "a number of bytes" : "a number from 0 to 2^64 - 1");
  }
  // The name of a field of the encoder adds an encoder.
  void optional(const Field& f, bool& present, Part part) override {
    if (part == Part::field)
      present = present || f.name == name_;
    else if (is(f))
      present = parse_truth(name_, value_);
    else
      present = present || name_.starts_with(f.name + "_");
  }

 private:
  bool is(const Field& f) {
    found = found || f.name == name_;
    return f.name == name_;
  }

  template <class Number>
  Number in_range(std::string_view text, Number least, Number most) const {
    const std::string expected = range_text(least, most);
    const auto value = parse<Number>(name_, text, expected);
    if (!(value >= least && value <= most)) refuse(name_, text, expected);
    return value;
  }

  // Numbers are separated by commas; a text is added to the list.
  template <class Numbers>
  void set(const Numbers& list) const {
    list.values.clear();
    for (size_t begin = 0, end = 0; begin < value_.size(); begin = end + 1) {
      end = std::min(value_.find(',', begin), value_.size());
      list.values.push_back(in_range(value_.substr(begin, end - begin), list.least, list.most));
    }
  }
  void set(const Texts& list) const { list.values.emplace_back(value_); }

  std::string name_;
  std::string_view value_;
};

void set_dropout(TrainRequest& request, std::string_view value) {
  for (const char* name : {"embedding_dropout", "attention_dropout", "residual_dropout"}) {
    SetField field(name, value);
    visit(request.spec, field);
    request.options.given->emplace_back(name);
  }
}

[[noreturn]] void refuse_name(const std::string& name) {
  std::vector<std::string> names;
  for (const NamedOption& option : train_option_list()) {
    if (option.name == name)
      fail_field(ErrorKind::InvalidArgument, name, "the model has no decoder; expected encoder_{}",
                 name);
    names.push_back(option.name);
  }
  const std::string near = nearest(name, names);
  fail_field(ErrorKind::InvalidArgument, name, "unknown option; expected {}",
             near.empty() ? "a name in fovea_train_option_name()" : near);
}

void set_option(TrainRequest& request, const std::string& name, std::string_view value) {
  if (name == kPreset) return;  // set before all others
  if (name == kDropout) return set_dropout(request, value);
  request.options.given->push_back(name);
  SetField field(name, value);
  visit(request.options, field);
  if (field.found) return;
  visit(request.spec, field);
  if (!field.found) refuse_name(name);
  check_field(
      request.options.from.empty() || name.find("dropout") != std::string::npos, name.c_str(),
      "cannot be combined with `from`, which determines the model; expected only one of them");
}

}  // namespace

const std::vector<NamedOption>& train_option_list() {
  static const std::vector<NamedOption> all = [] {
    ListFields fields;
    fields.found = {{kPreset, fmt::format("model architecture and training options: {}",
                                          fmt::join(model::preset_names(), ", "))},
                    {kDropout, "probability of embedding, attention and residual dropout"}};
    train::TrainOptions options;
    visit(options, fields);
    model::Spec spec;
    visit(spec, fields);
    return fields.found;
  }();
  return all;
}

TrainRequest train_request(const std::vector<fovea_option>& options) {
  std::string name = "nano";
  std::string from;
  bool named = false;
  for (const fovea_option& option : options) {
    const std::string_view field = required(option.name, "name");
    required(option.value, "value");
    if (field == kPreset) name = option.value, named = true;
    if (field == "pairs" && !named) name = "translate";
    if (field == "from") from = option.value;
  }
  TrainRequest request = {model::preset(name), from.empty() ? train::preset_training(name)
                                                            : train::fine_tuning_options(name)};
  request.spec.vocabulary = 0;  // of the text, not of the published model
  request.options.from = from;
  request.options.given.emplace();
  for (const fovea_option& option : options) set_option(request, option.name, option.value);
  return request;
}

}  // namespace fovea::c

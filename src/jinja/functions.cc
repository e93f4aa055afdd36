// The functions that every template can call, and how built-in functions take their arguments.

#include <algorithm>
#include <array>
#include <ctime>

#include "jinja/characters.h"
#include "jinja/function.h"
#include "jinja/loop.h"

namespace fovea::jinja {

Bound::Bound(Interpreter& interpreter, std::string_view function, Arguments& arguments,
             std::initializer_list<std::string_view> names, size_t required)
    : interpreter_(interpreter), function_(function), names_(names), values_(names.size()) {
  if (arguments.positional.size() > names_.size()) {
    interpreter.fail("{}() takes at most {} arguments ({} given)", function, names_.size(),
                     arguments.positional.size());
  }
  std::move(arguments.positional.begin(), arguments.positional.end(), values_.begin());
  for (auto& [name, value] : arguments.named) {
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (found == names_.end()) {
      interpreter.fail("{}() got an unexpected keyword argument '{}'", function, name);
    }
    Value& place = values_[static_cast<size_t>(found - names_.begin())];
    if (!place.is(Kind::missing)) {
      interpreter.fail("{}() got multiple values for argument '{}'", function, name);
    }
    place = std::move(value);
  }
  for (size_t i = 0; i < required; ++i) {
    if (!given(i)) interpreter.fail("{}() needs the argument '{}'", function, names_[i]);
  }
}

int64_t Bound::integer(size_t i, int64_t otherwise) const {
  if (!given(i)) return otherwise;
  return index_of(interpreter_, values_[i], fmt::format("{} of {}()", names_[i], function_));
}

const std::string& Bound::text(size_t i) const {
  if (values_[i].is_undefined()) interpreter_.fail("{}", values_[i].message());
  if (!values_[i].is(Kind::string)) {
    interpreter_.fail("{} of {}() is of type '{}'; expected a string", names_[i], function_,
                      type_name(values_[i]));
  }
  return values_[i].bytes();
}

bool Bound::truth(size_t i, bool otherwise) const {
  return given(i) ? jinja::truth(interpreter_, values_[i]) : otherwise;
}

namespace {

class BuiltinFunction : public Object {
 public:
  BuiltinFunction(std::string name, Builtin function, int held)
      : name_(std::move(name)), function_(std::move(function)), held_(held) {}
  std::string type() const override { return "builtin_function_or_method"; }
  bool callable() const override { return true; }
  Value call(Interpreter& interpreter, Arguments&& arguments) override {
    return function_(interpreter, arguments);
  }
  int depth() const override { return 1 + held_; }

 private:
  std::string name_;
  Builtin function_;
  int held_;
};

// Nothing at the first call, the separator at every later one.
class Joiner : public Object {
 public:
  explicit Joiner(Value separator) : separator_(std::move(separator)) {}
  std::string type() const override { return "Joiner"; }
  bool callable() const override { return true; }
  int depth() const override { return 1 + separator_.depth(); }
  Value call(Interpreter&, Arguments&&) override {
    return std::exchange(used_, true) ? separator_ : Value("");
  }

 private:
  Value separator_;
  bool used_ = false;
};

constexpr size_t kRange = 100000;  // MAX_RANGE of Jinja's sandbox

Value range(Interpreter& interpreter, Arguments& arguments) {
  if (!arguments.named.empty()) interpreter.fail("range() takes no keyword arguments");
  const Values& given = arguments.positional;
  if (given.empty() || given.size() > 3) {
    interpreter.fail("range expected 1 to 3 arguments, got {}", given.size());
  }
  std::array<int64_t, 3> bounds = {0, 0, 1};
  for (size_t i = 0; i < given.size(); ++i) {
    bounds[given.size() == 1 ? 1 : i] = index_of(interpreter, given[i], "an argument of range()");
  }
  if (bounds[2] == 0) interpreter.fail("range() arg 3 must not be zero");
  const Value made = make_range(bounds[0], bounds[1], bounds[2]);
  if (made.as<Range>()->count > kRange) {
    interpreter.fail("Range too big. The sandbox blocks ranges larger than MAX_RANGE ({}).",
                     kRange);
  }
  return made;
}

// dict(mapping or pairs, key=value, ...)
std::shared_ptr<Dict> dictionary(Interpreter& interpreter, Arguments& arguments) {
  if (arguments.positional.size() > 1) {
    interpreter.fail("dict expected at most 1 argument, got {}", arguments.positional.size());
  }
  auto made = std::make_shared<Dict>();
  if (!arguments.positional.empty()) {
    const Value& from = arguments.positional[0];
    if (from.is(Kind::dict)) {
      for (const auto& [key, value] : from.dict()->entries()) made->set(interpreter, key, value);
    } else {
      for (const Value& item : to_list(interpreter, from)) {
        Values pair = to_list(interpreter, item);
        if (pair.size() != 2) {
          interpreter.fail("an item of length {} for a dict; expected key and value", pair.size());
        }
        made->set(interpreter, pair[0], std::move(pair[1]));
      }
    }
  }
  for (auto& [name, value] : arguments.named) made->set(interpreter, Value(name), value);
  return made;
}

Value make_dict(Interpreter& interpreter, Arguments& arguments) {
  return Value(std::shared_ptr<const Dict>(dictionary(interpreter, arguments)));
}

Value make_namespace(Interpreter& interpreter, Arguments& arguments) {
  const std::shared_ptr<Dict> values = dictionary(interpreter, arguments);
  for (const auto& [key, value] : values->entries()) {
    if (key.is(Kind::string) && key.bytes().starts_with('_')) {
      interpreter.fail(
          "the attribute {} of a namespace; expected a name without an underscore in "
          "front",
          key.bytes());
    }
  }
  const auto made = interpreter.make_namespace();
  made->values = values;
  return Value(std::shared_ptr<Object>(made));
}

Value raise_exception(Interpreter& interpreter, Arguments& arguments) {
  const Bound bound(interpreter, "raise_exception", arguments, {"message"}, 1);
  interpreter.fail("{}", to_text(interpreter, bound[0]));
}

// What the C library does with one conversion, in the C locale.
std::string formatted(const std::tm& time, const std::string& format) {
  std::array<char, 256> text;
  return {text.data(), std::strftime(text.data(), text.size(), format.c_str(), &time)};
}

Value strftime_now(Interpreter& interpreter, Arguments& arguments) {
  const Bound bound(interpreter, "strftime_now", arguments, {"format"}, 1);
  const std::string& format = bound.text(0);
  const std::tm now = interpreter.now();
  std::string out;
  for (size_t at = 0; at < format.size();) {
    const size_t percent = std::min(format.find('%', at), format.size());
    out.append(format, at, percent - at);
    if (percent == format.size()) break;
    size_t end = percent + 1;  // flags and modifiers: %-d, %_H, %Ey
    while (end < format.size() &&
           std::string_view("-_0^#EO").find(format[end]) != std::string_view::npos)
      ++end;
    if (end == format.size()) {
      out.append(format, percent);
      break;
    }
    const char kind = format[end++];
    // A naive datetime has no zone, and this clock no microseconds.
    if (kind == 'f') {
      out += "000000";
    } else if (kind != 'z' && kind != 'Z') {
      out += formatted(now, format.substr(percent, end - percent));
    }
    at = end;
  }
  return Value(std::move(out));
}

Value joiner(Interpreter& interpreter, Arguments& arguments) {
  const Bound bound(interpreter, "joiner", arguments, {"sep"});
  Value separator = bound.given(0) ? bound[0] : Value(", ");
  return Value(std::shared_ptr<Object>(std::make_shared<Joiner>(std::move(separator))));
}

}  // namespace

Value make_function(std::string name, Builtin call, int held) {
  return Value(std::shared_ptr<Object>(
      std::make_shared<BuiltinFunction>(std::move(name), std::move(call), held)));
}

Value make_method(std::shared_ptr<Loop> loop, std::string_view name) {
  const int held = loop->depth();
  const bool cycle = name == "cycle";
  return make_function(
      std::string(name),
      [loop = std::move(loop), cycle](Interpreter& interpreter, Arguments& arguments) {
        if (!arguments.named.empty()) interpreter.fail("no keyword arguments are taken");
        return cycle ? loop->cycle(interpreter, arguments)
                     : loop->changed(interpreter, std::move(arguments));
      },
      held);
}

std::string Namespace::repr(Runtime& runtime) const {
  constexpr int deepest = 8;  // they can hold one another, and themselves
  if (runtime.open_namespaces == deepest) runtime.fail("printing namespaces within namespaces");
  ++runtime.open_namespaces;
  const auto copy = std::make_shared<Dict>(*values);
  std::string text =
      fmt::format("<Namespace {}>", jinja::repr(runtime, Value(std::shared_ptr<const Dict>(copy))));
  --runtime.open_namespaces;
  return text;
}

Value Namespace::attribute(Interpreter&, std::string_view name) {
  const Value* found = values->find(name);
  return found ? *found : Value();
}

Value find_global(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, Value (*)(Interpreter&, Arguments&)>, 6>
      functions = {{{"range", range},
                    {"dict", make_dict},
                    {"namespace", make_namespace},
                    {"raise_exception", raise_exception},
                    {"strftime_now", strftime_now},
                    {"joiner", joiner}}};
  for (const auto& [known, function] : functions) {
    if (known == name) return make_function(std::string(name), function);
  }
  if (name != "cycler" && name != "lipsum") return Value();
  return make_function(std::string(name),
                       [text = std::string(name)](Interpreter& interpreter, Arguments&) -> Value {
                         interpreter.unsupported("the function {} is not supported", text);
                       });
}

}  // namespace fovea::jinja

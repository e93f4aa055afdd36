#include "jinja/macro.h"

#include <algorithm>
#include <unordered_map>

#include "jinja/characters.h"

namespace fovea::jinja {
namespace {

// How Jinja's Macro takes its arguments: first those by place, then those by name; the rest goes to
// varargs and kwargs if the body uses them.
class Macro : public Object {
 public:
  Macro(const Statement& node, Activation* outer)
      : node_(node), function_(*node.function), outer_(outer) {}

  std::string type() const override { return "Macro"; }
  bool callable() const override { return true; }
  std::string repr(Runtime&) const override {
    return node_.name.empty() ? "<Macro anonymous>"
                              : fmt::format("<Macro {}>", jinja::quoted(node_.name));
  }

  Value attribute(Interpreter& interpreter, std::string_view name) override {
    if (name == "name") return node_.name.empty() ? Value::none() : Value(node_.name);
    if (name == "arguments") {
      Values names;
      for (const std::string& each : function_.parameters) names.emplace_back(each);
      return new_tuple(interpreter, std::move(names));
    }
    if (name == "catch_kwargs") return Value(function_.kwargs >= 0);
    if (name == "catch_varargs") return Value(function_.varargs >= 0);
    if (name == "caller") return Value(function_.caller >= 0);
    return Value();
  }

  Value call(Interpreter& interpreter, Arguments&& arguments) override {
    Values values = by_place(arguments);
    Value caller = take_caller(arguments);
    Value kwargs = take_kwargs(interpreter, arguments),
          varargs = take_varargs(interpreter, arguments);
    return interpreter.invoke(function_, node_.body, outer_, [&](Activation& own) {
      const auto set = [&](int slot, Value&& value) {
        if (slot >= 0) own.slots[static_cast<size_t>(slot)] = std::move(value);
      };
      const bool by_name = explicit_caller();
      if (!by_name) set(function_.caller, std::move(caller));
      set(function_.kwargs, std::move(kwargs));
      set(function_.varargs, std::move(varargs));
      for (size_t i = 0; i < values.size(); ++i)
        set(function_.parameter_slots[i], std::move(values[i]));
      fill_defaults(interpreter, own);
    });
  }

 private:
  bool explicit_caller() const {
    return std::count(function_.parameters.begin(), function_.parameters.end(), "caller") > 0;
  }

  // The values of the parameters, missing where not given.
  Values by_place(Arguments& arguments) const {
    const std::vector<std::string>& parameters = function_.parameters;
    const size_t placed = std::min(parameters.size(), arguments.positional.size());
    Values values(arguments.positional.begin(),
                  arguments.positional.begin() + static_cast<std::ptrdiff_t>(placed));
    values.resize(parameters.size());
    if (placed == parameters.size() || arguments.named.empty()) return values;
    std::unordered_map<std::string_view, size_t> open;
    for (size_t i = placed; i < parameters.size(); ++i) open.emplace(parameters[i], i);
    std::erase_if(arguments.named, [&](const auto& each) {
      const auto found = open.find(each.first);
      if (found == open.end()) return false;
      values[found->second] = each.second;
      return true;
    });
    return values;
  }

  Value take_caller(Arguments& arguments) const {
    if (function_.caller < 0 || explicit_caller()) return Value();
    Value caller;
    std::erase_if(arguments.named, [&](const auto& each) {
      if (each.first != "caller") return false;
      caller = each.second;
      return true;
    });
    if (caller.is(Kind::missing)) caller = Value::undefined("No caller defined");
    return caller;
  }

  Value take_kwargs(Interpreter& interpreter, Arguments& arguments) const {
    if (function_.kwargs < 0) {
      if (arguments.named.empty()) return Value();
      interpreter.fail("macro {} takes no keyword argument {}", jinja::quoted(node_.name),
                       jinja::quoted(arguments.named[0].first));
    }
    const auto dict = std::make_shared<Dict>();
    for (auto& [name, value] : arguments.named) dict->set(interpreter, Value(name), value);
    return Value(std::shared_ptr<const Dict>(dict));
  }

  Value take_varargs(Interpreter& interpreter, const Arguments& arguments) const {
    const size_t taken = function_.parameters.size(), given = arguments.positional.size();
    if (function_.varargs < 0) {
      if (given > taken) {
        interpreter.fail("macro {} takes not more than {} argument(s)", jinja::quoted(node_.name),
                         taken);
      }
      return Value();
    }
    const auto& all = arguments.positional;
    return new_tuple(interpreter, given > taken
                                      ? Values(all.begin() + static_cast<int64_t>(taken), all.end())
                                      : Values());
  }

  void fill_defaults(Interpreter& interpreter, Activation& own) const {
    const size_t first = function_.parameters.size() - function_.defaults.size();
    for (size_t i = 0; i < function_.parameters.size(); ++i) {
      const auto slot = static_cast<size_t>(function_.parameter_slots[i]);
      if (!own.slots[slot].is(Kind::missing)) continue;
      Value value = i < first
                        ? Value::undefined(fmt::format("parameter {} was not provided",
                                                       jinja::quoted(function_.parameters[i])))
                        : interpreter.evaluate_in(own, *function_.defaults[i - first]);
      own.slots[slot] = std::move(value);
    }
  }

  const Statement& node_;
  const Function& function_;
  Activation* outer_;
};

}  // namespace

Value make_macro(const Statement& node, Activation* outer) {
  return Value(std::shared_ptr<Object>(std::make_shared<Macro>(node, outer)));
}

}  // namespace fovea::jinja

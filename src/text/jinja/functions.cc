// The functions that every template can call, and the binding of arguments to the parameters of
// built-in functions.

#include "jinja/builtins.h"

#include <algorithm>

namespace fovea::text::jinja {

Bound::Bound(Interpreter& interpreter, const Builtin& builtin, Arguments&& given)
    : interpreter_(interpreter), builtin_(builtin) {
  const auto& names = builtin.parameters;
  const auto end = std::find(names.begin(), names.end(), std::string_view());
  if (end == names.begin()) {
    all = std::move(given);
    return;
  }
  const auto most = static_cast<size_t>(end - names.begin());
  if (given.positional.size() > most) {
    interpreter.fail("{}() takes at most {} arguments ({} given)", builtin.name, most,
                     given.positional.size());
  }
  std::move(given.positional.begin(), given.positional.end(), values_.begin());
  for (auto& [name, value] : given.named) {
    const auto slot = static_cast<size_t>(std::find(names.begin(), end, name) - names.begin());
    if (slot == most || this->given(slot)) {
      interpreter.fail("{}() got an unexpected keyword argument '{}'", builtin.name, name);
    }
    values_[slot] = std::move(value);
  }
  for (size_t i = 0; i < builtin.required; ++i) {
    if (!this->given(i)) interpreter.fail("{}() needs the argument '{}'", builtin.name, names[i]);
  }
}

int64_t Bound::integer(size_t i, int64_t otherwise) const {
  if (!given(i)) return otherwise;
  return integer_of(interpreter_, values_[i],
                    fmt::format("{} of {}()", builtin_.parameters[i], builtin_.name));
}

const std::string& Bound::text(size_t i) const {
  if (values_[i].is_undefined()) interpreter_.fail("{}", values_[i].message());
  if (!values_[i].is(Kind::string)) {
    interpreter_.fail("{} of {}() is of type '{}'; expected a string", builtin_.parameters[i],
                      builtin_.name, type_name(values_[i]));
  }
  return values_[i].bytes();
}

bool Bound::truth(size_t i, bool otherwise) const {
  return given(i) ? jinja::truth(values_[i]) : otherwise;
}

Value Namespace::attribute(Interpreter&, std::string_view name) {
  const Value* found = values->find(name);
  return found ? *found : Value();
}

namespace {

using In = Interpreter;

constexpr size_t kRange = 100'000;  // MAX_RANGE of Jinja's sandbox

Value range(In& in, Bound& b) {
  const bool bounds = b.given(1);
  const int64_t start = bounds ? b.integer(0) : 0, stop = b.integer(bounds ? 1 : 0);
  const int64_t stride = b.integer(2, 1);
  if (stride == 0) in.fail("range() arg 3 must not be zero");
  Values items;
  int64_t at = start;
  for (bool more = true; more && (stride > 0 ? at < stop : at > stop);) {
    if (items.size() == kRange) {
      in.fail("Range too big. The sandbox blocks ranges larger than MAX_RANGE ({}).", kRange);
    }
    items.emplace_back(at);
    more = !__builtin_add_overflow(at, stride, &at);
  }
  return new_sequence(in, std::move(items), SequenceKind::range);
}

// Returns dict(mapping, key=value, ...).
std::shared_ptr<Dict> dictionary(In& in, const Arguments& arguments) {
  auto made = std::make_shared<Dict>();
  for (const Value& from : arguments.positional) {
    if (!from.is(Kind::dict) || arguments.positional.size() > 1) {
      in.fail("expected at most one dict, and keyword arguments");
    }
    for (const auto& [key, value] : from.dict().entries()) made->set(in, key, value);
  }
  for (const auto& [name, value] : arguments.named) made->set(in, Value(name), value);
  return made;
}

Value make_dict(In& in, Bound& b) {
  return Value(std::shared_ptr<const Dict>(dictionary(in, b.all)));
}

Value make_namespace(In& in, Bound& b) {
  const auto made = in.make_namespace();
  made->values = dictionary(in, b.all);
  for (const auto& [key, value] : made->values->entries()) {
    if (key.is(Kind::string) && key.bytes().starts_with('_')) {
      in.fail("the attribute {} of a namespace; expected a name that does not start with _",
              key.bytes());
    }
  }
  return Value(std::shared_ptr<Object>(made));
}

Value strftime_now(In& in, Bound& b) {
  const std::tm now = in.now();
  const std::string& format = b.text(0);
  std::string out;
  for (size_t at = 0; at < format.size(); ++at) {
    const size_t begin = at;
    if (format[at] == '%') at = format.find_first_not_of("-_0^#EO", at + 1);  // flags
    if (at == format.npos) return Value(out + format.substr(begin));
    const char kind = format[at];
    if (begin == at) {
      out += kind;
    } else if (kind == 'f') {
      out += "000000";                        // this clock has no microseconds
    } else if (kind != 'z' && kind != 'Z') {  // a naive datetime has no time zone
      std::array<char, 256> text;
      const std::string one = format.substr(begin, at + 1 - begin);
      out.append(text.data(), std::strftime(text.data(), text.size(), one.c_str(), &now));
    }
  }
  return Value(std::move(out));
}

constexpr Builtin kGlobals[] = {
    {"range", {"start", "stop", "step"}, 1, range},
    {"dict", {}, 0, make_dict},
    {"namespace", {}, 0, make_namespace},
    {"raise_exception",
     {"message"},
     1,
     [](In& in, Bound& b) -> Value { in.fail("{}", to_text(in, b[0])); }},
    {"strftime_now", {"format"}, 1, strftime_now},
};

class GlobalFunction : public Object {
 public:
  explicit GlobalFunction(const Builtin& builtin) : builtin_(builtin) {}
  std::string type() const override { return "function"; }
  bool callable() const override { return true; }
  Value call(Interpreter& interpreter, Arguments&& arguments) override {
    Bound bound(interpreter, builtin_, std::move(arguments));
    return builtin_.call(interpreter, bound);
  }

 private:
  const Builtin& builtin_;
};

}  // namespace

Value find_global(std::string_view name) {
  const Builtin* const found = find_builtin(kGlobals, name);
  if (!found) return Value();
  return Value(std::shared_ptr<Object>(std::make_shared<GlobalFunction>(*found)));
}

}  // namespace fovea::text::jinja

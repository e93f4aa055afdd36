#pragma once

#include "serve/request/fields.h"

namespace fovea::serve {

// Fills the type, range, default and help of a request's field from the description of an option. A
// default that the field already has is kept.
class DescribeField : public OptionVisitor {
 public:
  DescribeField(const std::string& option, FieldInfo& field) : option_(option), field_(field) {}
  void integer(const fovea::Field&, int64_t& value, int64_t least, int64_t most) override;
  void number(const fovea::Field&, double& value, double least, double most) override;
  void boolean(const fovea::Field&, bool& value) override;
  void text(const fovea::Field&, std::string& value) override;
  void list(const fovea::Field&, const List& list) override;
  void unsigned_integer(const fovea::Field&, uint64_t& value, Unit) override;
  void optional(const fovea::Field&, bool& present, Part) override { present = true; }

 private:
  void fill(const fovea::Field&, FieldType type, double least, double most, std::string initial);
  const std::string& option_;
  FieldInfo& field_;
};

// Sets an option to the value of a request's field, which has been checked.
class SetOption : public OptionVisitor {
 public:
  SetOption(const std::string& option, const Json& value) : option_(option), value_(value) {}
  void integer(const fovea::Field&, int64_t& value, int64_t, int64_t) override;
  void number(const fovea::Field&, double& value, double, double) override;
  void boolean(const fovea::Field&, bool& value) override;
  void text(const fovea::Field&, std::string& value) override;
  void list(const fovea::Field&, const List& list) override;
  void optional(const fovea::Field&, bool& present, Part) override;

 private:
  const std::string& option_;
  const Json& value_;
};

// A field of a request that sets `option` of the request's `options`.
template <class Request, class Options>
Field<Request> described(std::string name, Options Request::* options, const std::string& option,
                         std::string initial = {}) {
  FieldInfo info{.name = std::move(name), .initial = std::move(initial)};
  Options defaults;
  DescribeField describe(option, info);
  visit(defaults, describe);
  return {std::move(info), [options, option](const Json& value, Request& request) {
            SetOption set(option, value);
            visit(request.*options, set);
          }};
}

}  // namespace fovea::serve

#include "fovea/model/spec.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "fovea/core/random.h"
#include "support/expect_error.h"

namespace fovea::model {
namespace {

using Json = nlohmann::json;

// A field of a Spec, with valid and invalid values.
struct JsonValues {
  std::string path;
  std::vector<Json> legal, illegal;
};

class Fields : public OptionVisitor {
 public:
  std::vector<JsonValues> all;

  void integer(const Field& field, int64_t&, int64_t least, int64_t most) override {
    add(field, {least, most},
        {least - 1, most + 1, 1.5, 1e300, UINT64_MAX, "1", true, Json::array()});
  }
  void number(const Field& field, double&, double least, double most) override {
    add(field, {least, most},
        {least - 0.001, most + std::abs(most) / 1000, 1e300, "1", true, Json::array()});
  }
  void list(const Field& field, const List& list) override {
    if (const auto* integers = std::get_if<Integers>(&list)) {
      const auto [values, least, most] = *integers;
      add(field, {Json::array(), least, {least, most}},
          {{least - 1}, {least, most + 1}, {1.5}, {UINT64_MAX}, "1", {"1"}, true, {{least}}});
    }
    if (const auto* numbers = std::get_if<Numbers>(&list)) {
      const auto [values, least, most] = *numbers;
      add(field, {Json::array(), least, {least, most}},
          {{least - 0.001}, {least, most * 1.001}, {1e300}, "1", {"1"}, true, {{least}}});
    }
  }
  void boolean(const Field& field, bool&) override {
    add(field, {true, false}, {0, 1, "true", Json::array()});
  }
  void choice(const Field& field, int&, const std::vector<std::string>& names) override {
    add(field, {names.front(), names.back()}, {"nonsense", "", 0, true, Json::array()});
  }
  void optional(const Field& field, bool&, Part) override { look(field); }

 private:
  static void look(const Field& field) {
    EXPECT_FALSE(field.name.empty()) << field.path;
    EXPECT_FALSE(field.help.empty()) << field.path;
  }
  void add(const Field& field, std::vector<Json> legal, std::vector<Json> illegal) {
    look(field);
    for (Json other : {Json(nullptr), Json::object()}) illegal.push_back(other);
    all.push_back({field.path, std::move(legal), std::move(illegal)});
  }
};

std::vector<JsonValues> fields() {
  Spec spec;
  spec.encoder.emplace();
  Fields visitor;
  visit(spec, visitor);
  return visitor.all;
}

std::string json_with(std::string path, const Json& value) {
  std::replace(path.begin(), path.end(), '.', '/');
  Json json = Json::object();
  json[Json::json_pointer("/" + path)] = value;
  return json.dump();
}

// Sets every field to a random valid value.
class Randomiser : public OptionVisitor {
 public:
  explicit Randomiser(uint64_t seed) : random_(seed, Stream::init) {}
  void integer(const Field&, int64_t& value, int64_t least, int64_t most) override {
    value = least + random_.word() % (most - least + 1);
  }
  void number(const Field&, double& value, double least, double most) override {
    value = least + (most - least) * static_cast<double>(random_.uniform());
  }
  void list(const Field& field, const List& list) override {
    if (const auto* integers = std::get_if<Integers>(&list)) {
      integers->values.resize(random_.word() % 3);
      for (int64_t& value : integers->values)
        integer(field, value, integers->least, integers->most);
    }
    if (const auto* numbers = std::get_if<Numbers>(&list)) {
      numbers->values.resize(random_.word() % 3);
      for (double& value : numbers->values) number(field, value, numbers->least, numbers->most);
    }
  }
  void boolean(const Field&, bool& value) override { value = random_.word() % 2 == 0; }
  void choice(const Field&, int& value, const std::vector<std::string>& names) override {
    value = static_cast<int>(random_.word() % names.size());
  }
  // Keeps the decoder if there is no encoder, since every model needs a stack.
  void optional(const Field& field, bool& present, Part) override {
    present = field.path == "encoder" ? (encodes_ = random_.word() % 2 == 0)
                                      : !encodes_ || random_.word() % 2 == 0;
  }

 private:
  Random random_;
  bool encodes_ = false;
};

// Lists every value in full precision.
class Values : public OptionVisitor {
 public:
  std::vector<std::string> all;
  void integer(const Field&, int64_t& value, int64_t, int64_t) override {
    all.push_back(std::to_string(value));
  }
  void number(const Field&, double& value, double, double) override {
    all.push_back(fmt::format("{:a}", value));
  }
  void list(const Field&, const List& list) override {
    if (const auto* integers = std::get_if<Integers>(&list))
      all.push_back(fmt::format("{}", fmt::join(integers->values, " ")));
    if (const auto* numbers = std::get_if<Numbers>(&list))
      all.push_back(fmt::format("{:a}", fmt::join(numbers->values, " ")));
  }
  void boolean(const Field&, bool& value) override { all.push_back(value ? "true" : "false"); }
  void choice(const Field&, int& value, const std::vector<std::string>&) override {
    all.push_back(std::to_string(value));
  }
  void optional(const Field& field, bool& present, Part) override {
    all.push_back(field.path + (present ? " is there" : " is absent"));
  }
};

std::vector<std::string> values_of(Spec spec) {
  Values visitor;
  visit(spec, visitor);
  return visitor.all;
}

TEST(Specs, RoundTripThroughJson) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Spec spec;
    Randomiser randomiser(seed);
    visit(spec, randomiser);
    const std::string json = write_spec(spec);
    ASSERT_EQ(values_of(read_spec(json, "spec.json")), values_of(spec)) << json;
    ASSERT_EQ(write_spec(read_spec(json, "spec.json")), json);
  }
}

TEST(Specs, KeepTheDefaultsOfMissingKeys) {
  EXPECT_EQ(values_of(read_spec("{}", "spec.json")), values_of(Spec()));
  EXPECT_EQ(values_of(read_spec(R"({"decoder": {}})", "spec.json")), values_of(Spec()));
  const Spec spec = read_spec(R"({"decoder": {"norm": {"kind": "rms"}}})", "spec.json");
  EXPECT_EQ(spec.decoder->norm.kind, NormKind::rms);
  EXPECT_EQ(spec.decoder->norm.epsilon, 1e-5f);
}

TEST(Specs, HaveOnlyTheStacksInTheFile) {
  const auto stacks = [](const char* json) {
    const Spec s = read_spec(json, "spec.json");
    return std::pair(s.encoder.has_value(), s.decoder.has_value());
  };
  EXPECT_EQ(stacks("{}"), std::pair(false, true));
  EXPECT_EQ(stacks(R"({"decoder": {}})"), std::pair(false, true));
  EXPECT_EQ(stacks(R"({"encoder": {}})"), std::pair(true, false));
  EXPECT_EQ(stacks(R"({"encoder": {}, "decoder": {}})"), std::pair(true, true));
  EXPECT_EQ(stacks(R"({"encoder": {}, "decoder": null})"), std::pair(true, false));
  EXPECT_EQ(stacks(R"({"encoder": null, "decoder": {}})"), std::pair(false, true));
}

TEST(Specs, RefuseEveryIllegalValueByName) {
  for (const JsonValues& field : fields()) {
    for (const Json& value : field.legal) {
      EXPECT_NO_THROW(read_spec(json_with(field.path, value), "spec.json"))
          << field.path << ' ' << value;
    }
    for (const Json& value : field.illegal) {
      SCOPED_TRACE(field.path + " = " + value.dump());
      expect_error(ErrorKind::InvalidArgument, {"spec.json: " + field.path, "expected"},
                   [&] { read_spec(json_with(field.path, value), "spec.json"); });
    }
  }
}

TEST(Specs, SuggestTheFieldNearestToAnUnknownOne) {
  for (const JsonValues& field : fields()) {
    const std::string slip = field.path + "x";
    expect_error(ErrorKind::InvalidArgument,
                 {"spec.json: " + slip + " is not a field", "did you mean " + field.path + "?"},
                 [&] { read_spec(json_with(slip, 1), "spec.json"); });
  }
  expect_error(ErrorKind::InvalidArgument, {"encodr is not a field", "did you mean encoder?"},
               [] { read_spec(R"({"encodr": {"layers": 4}})", "spec.json"); });
  expect_error(ErrorKind::InvalidArgument,
               {"decoder.atention is not a field", "did you mean decoder.attention?"},
               [] { read_spec(R"({"decoder": {"atention": {"heads": 4}}})", "spec.json"); });
  for (const char* part : {R"({"decoder": 5})", R"({"decoder": []})",
                           R"({"encoder": {"norm": null}})", "[]", "5", "null"})
    expect_error(ErrorKind::InvalidArgument, {"spec.json", "not an object"},
                 [&] { read_spec(part, "spec.json"); });
  expect_error(ErrorKind::BadFile, {"spec.json", "duplicate key"},
               [] { read_spec(R"({"width": 4, "width": 5})", "spec.json"); });
}

TEST(Presets, AreValidAndNamed) {
  for (const std::string& name : preset_names()) {
    Spec s = preset(name);
    s.vocabulary = 100;
    EXPECT_NO_THROW(validated(s)) << name;
    EXPECT_EQ(values_of(read_spec(write_spec(s), name)), values_of(s));
  }
  expect_error(ErrorKind::InvalidArgument, {"preset: ", "\"nanoo\"", "did you mean nano?"},
               [] { preset("nanoo"); });
}

}  // namespace
}  // namespace fovea::model

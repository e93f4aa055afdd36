#include "fovea/spec.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/json.h"
#include "base/random.h"
#include "unit/base/expect_error.h"

namespace fovea {
namespace {

using Json = nlohmann::json;

// Every field of a Spec, with values that it may and may not have.
struct Field {
  std::string path;
  std::vector<Json> legal, illegal;
};

class Fields : public SpecVisitor {
 public:
  std::vector<Field> all;

  void integer(Text path, Text flag, Text help, int64_t&, int64_t least,
               int64_t most) override {
    add(path, flag, help, {least, most}, {least - 1, most + 1, 1.5, 1e300, UINT64_MAX, "1", true});
  }
  void number(Text path, Text flag, Text help, float&, float least,
              float most) override {
    const double top = std::stod(fmt::format("{}", most));  // as one would write it: 0.95
    add(path, flag, help, {least, top, 0}, {least - 0.001, top + 0.001, 1e300, "1", true});
  }
  void boolean(Text path, Text flag, Text help, bool&) override {
    add(path, flag, help, {true, false}, {0, 1, "true"});
  }
  void choice(Text path, Text flag, Text help, int&,
              const std::vector<std::string>& names) override {
    add(path, flag, help, {names.front(), names.back()}, {"nonsense", "", 0, true});
  }

 private:
  void add(const char* path, const std::string& flag, const std::string& help,
           std::vector<Json> legal, std::vector<Json> illegal) {
    EXPECT_TRUE(flag.starts_with("--")) << path;
    EXPECT_FALSE(help.empty()) << path;
    for (Json other : {Json(nullptr), Json::array(), Json::object()}) illegal.push_back(other);
    all.push_back({path, std::move(legal), std::move(illegal)});
  }
};

std::vector<Field> fields() {
  Spec spec;
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

// Gives every field another random value that it may have.
class Randomiser : public SpecVisitor {
 public:
  explicit Randomiser(uint64_t seed) : random_(seed, Stream::init) {}
  void integer(Text, Text, Text, int64_t& value, int64_t least,
               int64_t most) override {
    value = least + random_.word() % (most - least + 1);
  }
  void number(Text, Text, Text, float& value, float least,
              float most) override {
    value = least + (most - least) * random_.uniform();
  }
  void boolean(Text, Text, Text, bool& value) override {
    value = random_.word() % 2 == 0;
  }
  void choice(Text, Text, Text, int& value,
              const std::vector<std::string>& names) override {
    value = static_cast<int>(random_.word() % names.size());
  }

 private:
  Random random_;
};

// Every value, as exactly as it is held.
class Values : public SpecVisitor {
 public:
  std::vector<std::string> all;
  void integer(Text, Text, Text, int64_t& value, int64_t, int64_t) override {
    all.push_back(std::to_string(value));
  }
  void number(Text, Text, Text, float& value, float, float) override {
    all.push_back(fmt::format("{:a}", value));
  }
  void boolean(Text, Text, Text, bool& value) override {
    all.push_back(value ? "true" : "false");
  }
  void choice(Text, Text, Text, int& value,
              const std::vector<std::string>&) override {
    all.push_back(std::to_string(value));
  }
};

std::vector<std::string> values_of(Spec spec) {
  Values visitor;
  visit(spec, visitor);
  return visitor.all;
}

TEST(Specs, ComeBackFromJsonAsTheyWere) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Spec spec;
    Randomiser randomiser(seed);
    visit(spec, randomiser);
    const std::string json = write_spec(spec);
    ASSERT_EQ(values_of(read_spec(json, "spec.json")), values_of(spec)) << json;
    ASSERT_EQ(write_spec(read_spec(json, "spec.json")), json);
  }
}

TEST(Specs, KeepTheDefaultsOfAbsentKeys) {
  EXPECT_EQ(values_of(read_spec("{}", "spec.json")), values_of(Spec()));
  EXPECT_EQ(values_of(read_spec(R"({"decoder": {}})", "spec.json")), values_of(Spec()));
  const Spec spec = read_spec(R"({"decoder": {"norm": {"kind": "rms"}}})", "spec.json");
  EXPECT_EQ(spec.decoder->norm.kind, NormKind::rms);
  EXPECT_EQ(spec.decoder->norm.epsilon, 1e-5f);
}

TEST(Specs, RefuseEveryIllegalValueByName) {
  for (const Field& field : fields()) {
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
  for (const Field& field : fields()) {
    const std::string slip = field.path + "x";
    expect_error(ErrorKind::InvalidArgument,
                 {"spec.json: " + slip + " is not a field", "did you mean " + field.path + "?"},
                 [&] { read_spec(json_with(slip, 1), "spec.json"); });
  }
  expect_error(ErrorKind::InvalidArgument,
               {"decoder.atention is not a field", "did you mean decoder.attention?"},
               [] { read_spec(R"({"decoder": {"atention": {"heads": 4}}})", "spec.json"); });
  for (const char* part : {R"({"decoder": 5})", R"({"decoder": null})", "[]", "5", "null"})
    expect_error(ErrorKind::InvalidArgument, {"spec.json", "not an object"},
                 [&] { read_spec(part, "spec.json"); });
  expect_error(ErrorKind::BadFile, {"spec.json", "duplicate key"},
               [] { read_spec(R"({"width": 4, "width": 5})", "spec.json"); });
}

Spec small() {
  Spec s;
  s.vocabulary = 10;
  s.context = 8;
  s.width = 12;
  s.decoder->layers = 1;
  s.decoder->attention.heads = 6;
  return s;
}

TEST(ValidSpecs, FillWhatFollowsFromTheRest) {
  const Spec s = validated(small());
  EXPECT_EQ(s.decoder->attention.kv_heads, 6);
  EXPECT_EQ(s.decoder->attention.head_width, 2);
  EXPECT_EQ(s.decoder->ffn.width, 48);
  EXPECT_EQ(values_of(validated(s)), values_of(s));
  Spec given = small();
  given.decoder->attention.kv_heads = 3;
  given.decoder->attention.head_width = 5;
  given.decoder->ffn.width = 7;
  EXPECT_EQ(values_of(validated(given)), values_of(given));
}

TEST(ValidSpecs, RefuseWhatCannotBeTogether) {
  struct Case {
    void (*change)(Spec&);
    std::initializer_list<std::string> texts;
  };
  const Case cases[] = {
      {[](Spec& s) { s.vocabulary = 0; }, {"vocabulary", "0"}},
      {[](Spec& s) { s.vocabulary = -1; }, {"vocabulary", "-1"}},
      {[](Spec& s) { s.context = 0; }, {"context is 0"}},
      {[](Spec& s) { s.width = 0; }, {"width is 0"}},
      {[](Spec& s) { s.width = int64_t{1} << 40; }, {"width is 1099511627776", "16777216"}},
      {[](Spec& s) { s.width = 13; }, {"heads 6", "width 13", "divisor"}},
      {[](Spec& s) { s.decoder->layers = 0; }, {"decoder.layers is 0", "1 to 4096"}},
      {[](Spec& s) { s.decoder->attention.heads = 0; }, {"decoder.attention.heads is 0"}},
      {[](Spec& s) { s.decoder->attention.heads = 5; }, {"heads 5", "width 12"}},
      {[](Spec& s) { s.decoder->attention.kv_heads = 4; }, {"kv_heads 4", "heads 6", "divisor"}},
      {[](Spec& s) { s.decoder->attention.kv_heads = -1; }, {"decoder.attention.kv_heads is -1"}},
      {[](Spec& s) { s.decoder->attention.head_width = 257; }, {"head_width is 257", "256"}},
      {[](Spec& s) { s.width = 6 * 257; }, {"257 wide", "256"}},
      {[](Spec& s) { s.decoder->attention.window = -1; }, {"decoder.attention.window is -1"}},
      {[](Spec& s) { s.decoder->ffn.width = -4; }, {"decoder.ffn.width is -4"}},
      {[](Spec& s) { s.decoder->norm.epsilon = -1; }, {"decoder.norm.epsilon is -1"}},
      {[](Spec& s) { s.decoder->norm.epsilon = NAN; }, {"decoder.norm.epsilon is nan"}},
      {[](Spec& s) { s.dropout.attention = 1; }, {"dropout.attention is 1", "0.95"}},
      {[](Spec& s) { s.init_deviation = INFINITY; }, {"init_deviation is inf"}},
      {[](Spec& s) { s.position = static_cast<Position>(7); }, {"position is 7"}},
      {[](Spec& s) { s.decoder->parallel = s.decoder->placement.sum = true; },
       {"parallel", "input only"}},
      {[](Spec& s) { s.decoder->parallel = s.decoder->placement.output = true; }, {"parallel"}},
      {[](Spec& s) { s.decoder->parallel = true, s.decoder->placement.input = false; }, {"parallel"}},
  };
  for (const Case& c : cases) {
    Spec s = small();
    c.change(s);
    SCOPED_TRACE(*c.texts.begin());
    expect_error(ErrorKind::InvalidArgument, c.texts, [&] { validated(s); });
  }
}

TEST(Presets, AreValidAndNamed) {
  for (const std::string& name : preset_names()) {
    Spec s = preset(name);
    s.vocabulary = 100;
    EXPECT_NO_THROW(validated(s)) << name;
    EXPECT_EQ(values_of(read_spec(write_spec(s), name)), values_of(s));
  }
  expect_error(ErrorKind::InvalidArgument, {"--preset", "\"nanoo\"", "did you mean nano?"},
               [] { preset("nanoo"); });
}

}  // namespace
}  // namespace fovea

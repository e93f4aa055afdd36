#include "fovea/train/train.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <set>

#include "c/named_options.h"
#include "unit/c/support.h"

namespace fovea {
namespace {

// Collects the values of fields as texts that set the same values. Values below the range are
// replaced by the least valid one, and empty lists by one element.
class Values : public OptionVisitor {
 public:
  std::map<std::string, std::string> found;

  void integer(const Field& f, int64_t& v, int64_t least, int64_t) override {
    add(f, std::max(v, least));
  }
  void number(const Field& f, double& v, double, double) override { add(f, v); }
  void list(const Field& f, const List& list) override {
    if (const auto* integers = std::get_if<Integers>(&list))
      add(f, integers->values.empty() ? integers->least : integers->values[0]);
    if (const auto* numbers = std::get_if<Numbers>(&list))
      add(f, numbers->values.empty() ? 1 : numbers->values[0]);
    if (const auto* texts = std::get_if<Texts>(&list)) {
      const std::string usual = f.name.ends_with("mixer") ? "lstm" : "text";
      add(f, texts->values.empty() ? usual : texts->values[0]);
    }
  }
  void boolean(const Field& f, bool& v) override { add(f, v); }
  void choice(const Field& f, int& v, const Names& names) override {
    add(f, names[static_cast<size_t>(v)]);
  }
  void text(const Field& f, std::string& v) override { add(f, v); }
  void unsigned_integer(const Field& f, uint64_t& v, Unit) override { add(f, v); }
  void optional(const Field& f, bool& present, Part part) override {
    if (part == Part::group) add(f, present = true);
  }

 private:
  template <class T>
  void add(const Field& f, const T& value) {
    EXPECT_TRUE(found.emplace(f.name, fmt::format("{}", value)).second) << f.name;
  }
};

std::map<std::string, std::string> values_of(train::TrainOptions options, model::Spec spec) {
  Values values;
  visit(options, values);
  visit(spec, values);
  return values.found;
}

TEST(CTrain, SetsEveryOption) {
  std::set<std::string> names;
  for (size_t i = 0; const char* const name = fovea_train_option_name(i); ++i) {
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_FALSE(std::string(fovea_train_option_help(i)).empty()) << name;
  }
  for (auto& [name, value] : values_of({}, {})) {
    EXPECT_EQ(names.erase(name), 1u) << name;
    if (name == "decoder" || name == "encoder") continue;
    const std::string changed = value == "true" ? "false" : value == "false" ? "true" : value;
    const c::TrainRequest request = c::train_request({{name.c_str(), changed.c_str()}});
    EXPECT_EQ(values_of(request.options, request.spec).at(name), changed) << name;
  }
  EXPECT_EQ(names, (std::set<std::string>{"dropout", "preset"}));
  EXPECT_EQ(fovea_train_option_name(100000), nullptr);
  EXPECT_EQ(fovea_train_option_help(100000), nullptr);
}

TEST(CTrain, AppliesThePresetFirst) {
  const c::TrainRequest request = c::train_request({{"layers", "3"},
                                                    {"preset", "tiny"},
                                                    {"dropout", "0.25"},
                                                    {"data", "a"},
                                                    {"data", "b"},
                                                    {"window", "4,0,4"},
                                                    {"seed", "18446744073709551615"}});
  EXPECT_EQ(request.spec.decoder->layers, 3);
  EXPECT_EQ(request.spec.width, model::preset("tiny").width);
  EXPECT_EQ(request.spec.dropout.attention, 0.25f);
  EXPECT_EQ(request.options.steps, train::preset_training("tiny").steps);
  EXPECT_EQ(request.options.data, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(request.spec.decoder->attention.windows, (std::vector<int64_t>{4, 0, 4}));
  EXPECT_EQ(request.options.seed, UINT64_MAX);
  EXPECT_TRUE(c::train_request({{"pairs", "a"}}).spec.encoder);  // the default preset for pairs
}

TEST(CTrain, AddsAndRemovesStacks) {
  EXPECT_EQ(c::train_request({{"encoder_layers", "2"}}).spec.encoder->layers, 2);
  const model::Spec spec = c::train_request({{"encoder", "true"}, {"decoder", "false"}}).spec;
  EXPECT_TRUE(spec.encoder);
  EXPECT_FALSE(spec.decoder);
}

TEST(CTrain, RefusesInvalidOptionsByName) {
  const auto refuse = [](const std::vector<fovea_option>& options, const char* part) {
    EXPECT_EQ(fovea_train(options.data(), options.size(), nullptr, nullptr, nullptr),
              FOVEA_INVALID_ARGUMENT);
    expect_message(fovea_error(), part);
  };
  refuse({{"learning_rat", "1"}}, "learning_rat: unknown option; expected learning_rate");
  refuse({{"zzzzzzzz", "1"}}, "zzzzzzzz: unknown option; expected a name in");
  refuse({{"steps", "many"}}, "steps: \"many\"; expected 0 to");
  refuse({{"steps", "-1"}}, "steps: \"-1\"; expected 0 to");
  refuse({{"learning_rate", "nan"}}, "learning_rate: \"nan\"; expected -1 to 1000");
  refuse({{"schedule", "round"}}, "schedule: \"round\"; expected cosine, trapezoid");
  refuse({{"allow_change", "maybe"}}, "allow_change: \"maybe\"; expected true or false");
  refuse({{"window", "1,,2"}}, "window: \"\"; expected");
  refuse({{"preset", "huge"}}, "huge");
  refuse({{"from", "model"}, {"layers", "3"}}, "layers: cannot be combined with `from`");
  refuse({{"decoder", "false"}, {"layers", "3"}}, "the model has no decoder");
  refuse({{"steps", nullptr}}, "value: NULL");
  refuse({{nullptr, "1"}}, "name: NULL");
}

class CTraining : public testing::Test {
 protected:
  // Returns options by name that equal small_spec() and Runs::options().
  std::vector<fovea_option> options(const std::string& out) {
    text_ = runs_ / "text.txt";
    out_ = runs_ / out;
    return {{"data", text_.c_str()}, {"out", out_.c_str()}, {"preset", "gpt2"},
            {"steps", "20"},         {"batch", "4"},        {"accumulate", "1"},
            {"warmup", "3"},         {"precision", "fp32"}, {"evaluate_every", "0"},
            {"save_every", "0"},     {"sample_every", "0"}, {"sample_tokens", "0"},
            {"context", "16"},       {"width", "16"},       {"layers", "1"},
            {"heads", "2"},          {"dropout", "0"}};
  }

  Runs runs_;
  std::string text_, out_;
};

TEST_F(CTraining, WritesTheSameBitsAsInCpp) {
  const auto named = options("mine");
  fovea_train_result result = {};
  result.size = sizeof result;
  int64_t steps = 0;
  const auto count_steps = [](const fovea_train_progress* progress, void* user) {
    ++*static_cast<int64_t*>(user);
    EXPECT_EQ(progress->size, sizeof *progress);
    EXPECT_EQ(progress->steps, 20);
    EXPECT_GT(progress->loss, 0);
    EXPECT_EQ(progress->sample, nullptr);
    return int{FOVEA_CONTINUE};
  };
  ASSERT_EQ(fovea_train(named.data(), named.size(), count_steps, &steps, &result), FOVEA_OK)
      << fovea_error();
  EXPECT_EQ(steps, 20);
  EXPECT_EQ(result.step, 20);
  EXPECT_FALSE(result.interrupted);

  c::TrainRequest same = c::train_request(named);
  same.options.out = runs_ / "theirs";
  const train::TrainResult expected = train::train(same.spec, same.options);
  EXPECT_EQ(result.loss, expected.loss);
  EXPECT_EQ(result.best_loss, expected.best_loss);
  EXPECT_EQ(read_file(runs_ / "mine/model.safetensors"),
            read_file(runs_ / "theirs/model.safetensors"));
}

TEST_F(CTraining, StopsAndResumes) {
  const auto named = options("model");
  fovea_train_result result = {};
  result.size = sizeof result;
  const auto stop = [](const fovea_train_progress* progress, void*) {
    return int{progress->step < 7 ? FOVEA_CONTINUE : FOVEA_STOP};
  };
  ASSERT_EQ(fovea_train(named.data(), named.size(), stop, nullptr, &result), FOVEA_OK)
      << fovea_error();
  EXPECT_EQ(result.step, 7);
  EXPECT_TRUE(result.interrupted);
  int64_t first = 0;
  const auto resumed = [](const fovea_train_progress* progress, void* user) {
    auto& step = *static_cast<int64_t*>(user);
    if (step == 0) step = progress->step;
    return int{FOVEA_CONTINUE};
  };
  ASSERT_EQ(fovea_train(named.data(), named.size(), resumed, &first, nullptr), FOVEA_OK);
  EXPECT_EQ(first, 8);
}

TEST_F(CTraining, TurnsAnExceptionOfTheCallbackIntoAnError) {
  const auto named = options("model");
  const auto thrower = [](const fovea_train_progress*, void*) -> int { throw 1; };
  EXPECT_EQ(fovea_train(named.data(), named.size(), thrower, nullptr, nullptr), FOVEA_INTERNAL);
  expect_message(fovea_error(), "exception");
}

}  // namespace
}  // namespace fovea

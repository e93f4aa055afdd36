// fovea computes small examples from the literature on Transformers: those in the repository, and
// those of the shared fixtures if they exist.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "support/shared_folder.h"
#include "worked_examples.h"

namespace fovea::worked {
namespace {

// Returns the tolerance relative to the largest value, for sums of a few terms. With double
// precision, constants such as the epsilon of a norm and the scale of attention are still floats,
// and so are attention weights.
double tolerance_of(DType dtype) { return dtype == DType::f32 ? 1e-5 : 1e-6; }

const std::string& shared_file() {
  static const std::string file = shared("fixtures/worked_examples.json");
  return file;
}
constexpr const char* kOurs = "tests/goldens/worked_examples.json";

const Checks& all_checks() {
  static const Checks checks = [] {
    Checks all = attention_checks();
    for (Checks more : {layer_checks(), count_checks(), claims()}) all.merge(more);
    return all;
  }();
  return checks;
}

nlohmann::json examples_of(const std::string& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file).at("examples");
}

Shape shape_of(const nlohmann::json& extents) {
  const auto list = extents.get<std::vector<int64_t>>();
  return {list.begin(), list.end()};
}

}  // namespace

Tensor tensor_of(const std::vector<double>& values, const Shape& shape, DType dtype) {
  Tensor x = empty(shape, dtype);
  for (size_t i = 0; i < values.size(); ++i) {
    if (dtype == DType::f64)
      x.data_as<double>()[i] = values[i];
    else
      x.data_as<float>()[i] = static_cast<float>(values[i]);
  }
  return x;
}

std::vector<double> to_doubles(const Tensor& x) {
  std::vector<double> values;
  for (int64_t i = 0; i < x.size(); ++i)
    values.push_back(x.dtype() == DType::f64 ? x.data_as<double>()[i]
                                             : double{x.data_as<float>()[i]});
  return values;
}

Tensor transposed(const Tensor& x) {
  const auto values = to_doubles(x);
  std::vector<double> turned;
  for (int64_t c = 0; c < x.dim(1); ++c)
    for (int64_t r = 0; r < x.dim(0); ++r)
      turned.push_back(values[static_cast<size_t>(r * x.dim(1) + c)]);
  return tensor_of(turned, {x.dim(1), x.dim(0)}, x.dtype());
}

std::vector<double> Example::values(const char* input) const {
  return record_["inputs"].at(input).at("data").get<std::vector<double>>();
}

Tensor Example::tensor(const char* input) const {
  return tensor_of(values(input), shape_of(record_["inputs"].at(input).at("shape")), dtype_);
}

nlohmann::json Example::external(const char* name) const {
  const auto& parameters = record_["parameters"];
  const std::string flat = std::string("external_") + name;
  return parameters.contains(flat) ? parameters[flat] : parameters.at("external").at(name);
}

const nlohmann::json& Example::expected(const char* output) {
  seen_.insert(output);
  return record_["expected"].at(output);
}

void Example::expect(const char* output, const std::vector<double>& found, double slack) {
  const nlohmann::json& wanted = expected(output);
  const auto data = wanted.at("data").get<std::vector<double>>();
  ASSERT_EQ(found.size(), data.size()) << id() << " " << output;
  double largest = 0;
  for (const double value : data) largest = std::max(largest, std::abs(value));
  // Numbers that are less precise than the arithmetic have their own tolerance.
  const double relative = std::max(wanted.value("rel_tol", 0.0), slack * tolerance_of(dtype_));
  for (size_t i = 0; i < data.size(); ++i)
    EXPECT_NEAR(found[i], data[i], relative * largest) << id() << " " << output << " at " << i;
}

void Example::expect(const char* output, const Tensor& found, double slack) {
  expect(output, to_doubles(found), slack);
}

void Example::expect_shape(const char* output, const Shape& found) {
  EXPECT_EQ(found, shape_of(expected(output).at("data"))) << id() << " " << output;
}

void Example::pass_over(const char* output, const char* reason) {
  ASSERT_STRNE(reason, "");
  expected(output);
}

void Example::finish() const {
  for (const auto& [key, value] : record_["expected"].items())
    EXPECT_TRUE(seen_.contains(key)) << id() << ": not compared: " << key;
}

class WorkedExamples : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    path_ = std::string(GetParam()) == "ours" ? kOurs : shared_file();
    if (!std::filesystem::exists(path_)) GTEST_SKIP() << "needs " << path_;
  }
  std::string path_;
};

TEST_P(WorkedExamples, AreReproduced) {
  std::set<std::string> ids;
  for (const nlohmann::json& record : examples_of(path_)) {
    const std::string id = record.at("id");
    SCOPED_TRACE(id);
    EXPECT_TRUE(ids.insert(id).second) << "duplicate id";
    const auto check = all_checks().find(id);
    ASSERT_NE(check, all_checks().end()) << "no check compares this record";
    for (const DType dtype : {DType::f32, DType::f64}) {
      Example example(record, dtype);
      check->second(example);
      example.finish();
    }
  }
  for (const auto& [id, check] : all_checks())
    EXPECT_TRUE(ids.contains(id)) << id << " is not in the file";
  const Checks said = claims();
  RecordProperty("computed", static_cast<int>(ids.size() - said.size()));
  RecordProperty("claims", static_cast<int>(said.size()));
}

INSTANTIATE_TEST_SUITE_P(Files, WorkedExamples, testing::Values("ours", "shared"),
                         [](const auto& file) { return std::string(file.param); });

}  // namespace fovea::worked

#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "ops/ops.h"

namespace fovea::worked {

// One record of a file of worked examples, with its inputs and expected outputs. Every expected
// output must be compared, or skipped with a reason; otherwise finish() fails.
class Example {
 public:
  Example(const nlohmann::json& record, DType dtype) : record_(record), dtype_(dtype) {}

  DType dtype() const { return dtype_; }
  std::string id() const { return record_["id"]; }
  Tensor tensor(const char* input) const;  // with the input's shape, in this example's dtype
  std::vector<double> values(const char* input) const;
  double value(const char* input) const { return values(input).at(0); }
  int64_t integer(const char* input) const { return static_cast<int64_t>(value(input)); }
  bool has_parameter(const char* name) const { return record_["parameters"].contains(name); }
  nlohmann::json parameter(const char* name) const { return record_["parameters"].at(name); }
  nlohmann::json external(const char* name) const;  // a published number that the record cites

  // `slack` multiplies the tolerance of the dtype, for sums of many or of large terms.
  void expect(const char* output, const std::vector<double>& found, double slack = 1);
  void expect(const char* output, const Tensor& found, double slack = 1);
  void expect(const char* output, double found, double slack = 1) {
    expect(output, std::vector<double>{found}, slack);
  }
  void expect_shape(const char* output, const Shape& found);
  const nlohmann::json& expected(const char* output);  // compared by the caller
  // Skips an output that code cannot verify: text, a claim, or a number measured by others.
  void pass_over(const char* output, const char* reason);
  void finish() const;

 private:
  const nlohmann::json& record_;
  DType dtype_;
  std::set<std::string> seen_;
};

std::vector<double> to_doubles(const Tensor& x);
Tensor tensor_of(const std::vector<double>& values, const Shape& shape, DType dtype);
Tensor transposed(const Tensor& x);  // the transpose of a matrix

using Check = std::function<void(Example&)>;
using Checks = std::map<std::string, Check>;
Checks attention_checks();  // attention, softmax, masks, pooling
Checks layer_checks();      // norms, activations, positions, complete blocks, shapes
Checks count_checks();      // sizes, parameters, FLOPs, costs, scaling laws
Checks claims();            // claims without a computation

}  // namespace fovea::worked

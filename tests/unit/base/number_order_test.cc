#include "base/number_order.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace fovea {
namespace {

TEST(NumberOrder, ComparesDigitsAsNumbers) {
  const std::vector<std::string> ascending = {"",
                                              "attention.9",
                                              "attention.10",
                                              "hidden.",
                                              "hidden.2",
                                              "hidden.10",
                                              "hidden.10a",
                                              "hidden.99999999999999999999",
                                              "hidden.100000000000000000000",
                                              "hidden.unnormed",
                                              "x.001",
                                              "x.01",
                                              "x.1",
                                              "x.1a",
                                              "x.01b",
                                              "x.2"};
  for (size_t i = 0; i < ascending.size(); ++i)
    for (size_t j = 0; j < ascending.size(); ++j)
      EXPECT_EQ(NumberOrder()(ascending[i], ascending[j]), i < j)
          << ascending[i] << " " << ascending[j];
}

}  // namespace
}  // namespace fovea

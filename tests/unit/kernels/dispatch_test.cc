#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "kernels/cpu/cpu_features.h"
#include "kernels/isa.h"
#include "kernels/kernels.h"

namespace fovea {
namespace {

TEST(Dispatch, ThisMachineCanRun) { EXPECT_EQ(missing_cpu_features(), ""); }

TEST(Dispatch, ListsTheBestFirstAndTheBaselineLast) {
  const std::vector<std::string> isas = available_isas();
  ASSERT_FALSE(isas.empty());
#ifdef __aarch64__
  EXPECT_EQ(isas, std::vector<std::string>{"neon"});
#else
  EXPECT_EQ(isas.back(), "avx2");
#endif
  use_isa("auto");
  EXPECT_EQ(instruction_set(), isas.front());
}

TEST(Dispatch, UsesTheRequestedInstructionSet) {
  for (const std::string& isa : testable_isas()) {
    use_isa(isa);
    EXPECT_EQ(instruction_set(), isa);
    const bool amx = isa.starts_with("amx");
    EXPECT_EQ(native_bf16(), amx || isa.starts_with("avx512-bf16"));
    EXPECT_EQ(numeric_class(DType::bf16), amx ? "amx" : "common");
    EXPECT_EQ(numeric_class(DType::f32), "common");
    EXPECT_STREQ(kernels_for(DType::f32).device, "cpu");
    EXPECT_STREQ(kernels_for(DType::bf16).device, "cpu");
    EXPECT_STREQ(kernels_for(DType::f64).device, "reference");
  }
  use_isa("reference");
  EXPECT_EQ(instruction_set(), "reference");
  EXPECT_STREQ(kernels_for(DType::f32).device, "reference");
  use_isa("auto");
}

TEST(Dispatch, ProductsOfThisCpuAgreeWithTheirModels) {
  EXPECT_EQ(rejected_isas(), std::vector<std::string>());
}

TEST(Dispatch, RefusesAnUnknownInstructionSet) {
  try {
    use_isa("mmx");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::InvalidArgument);
    const std::string text = error.what();
    EXPECT_EQ(text.rfind("isa: 'mmx' is not available; expected auto, ", 0), 0u) << text;
    EXPECT_NE(text.find("avx512-bf16-model, or reference"), std::string::npos) << text;
  }
}

TEST(Dispatch, ATestCanSwapTheTable) {
  const Kernels table{.device = "mine"};
  use_kernels(&table);
  EXPECT_STREQ(kernels_for(DType::f32).device, "mine");
  use_kernels(nullptr);
  EXPECT_STREQ(kernels_for(DType::f32).device, "cpu");
}

}  // namespace
}  // namespace fovea

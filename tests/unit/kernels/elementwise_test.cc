#include "kernels/isa.h"
#include "unit/kernels/compare.h"

namespace fovea {
namespace {

using test::Array;

using test::compare_with_gpu;

constexpr DType kStored[] = {DType::f32, DType::bf16};
// Sizes near those of a vector, a block, and the share of one thread.
constexpr int64_t kSizes[] = {0, 1, 7, 33, 1023, 1025, 20011};

// Returns special and extreme numbers.
std::vector<double> extremes() {
  const double infinity = std::numeric_limits<double>::infinity();
  std::vector<double> values = {0, -0.0, std::nan(""), infinity, -infinity};
  for (double magnitude : {1e-45, 1e-40, 1.2e-38, 1e-20, 1e-4, 0.5, 1., 5., 12., 20., 88., 89.,
                           104., 1e4, 1e20, 3.3e38}) {
    values.push_back(magnitude);
    values.push_back(-magnitude);
  }
  return values;
}

std::string describe(const char* op, int64_t size, DType y, DType x, bool add) {
  return fmt::format("{} of {} elements, {} from {}{}", op, size, name_of(y), name_of(x),
                     add ? ", added" : "");
}

// Calls the test with all pairs of dtypes, with and without adding, in all sizes.
template <class Test>
void each_case(const Test& test) {
  for (DType y : kStored) {
    for (DType x : kStored) {
      for (bool add : {false, true}) {
        for (int64_t size : kSizes) test(y, x, add, size);
      }
    }
  }
}

TEST(Elementwise, MatchesTheReference) {
  each_case([](DType out, DType in, bool added, int64_t size) {
    const Array a = Array::normal(size, in, 1), b = Array::normal(size, DType::f32, 2),
                y = Array::normal(size, out, 3);
    compare_with_gpu({y, y, y, y}, describe("convert, add, multiply, scale", size, out, in, added),
                     [&](const Kernels& kernels, std::vector<Array>& outputs) {
                       kernels.convert(outputs[0].out(added), a.in(), size);
                       kernels.add(outputs[1].out(added), a.in(), b.in(), size);
                       kernels.multiply(outputs[2].out(added), b.in(), a.in(), size);
                       kernels.scale(outputs[3].out(added), a.in(), -0.3f, size);
                     });
  });
}

TEST(Elementwise, ShiftAndSoftcapMatchTheReference) {
  each_case([](DType out, DType in, bool added, int64_t size) {
    const Array x = Array::normal(size, in, 1, 20), dy = Array::normal(size, DType::bf16, 2),
                y = Array::normal(size, out, 3);
    compare_with_gpu({y, y, y}, describe("shift, softcap", size, out, in, added),
                     [&](const Kernels& kernels, std::vector<Array>& outputs) {
                       kernels.shift(outputs[0].out(added), x.in(), 1, size);
                       kernels.softcap(outputs[1].out(added), x.in(), 30, size);
                       kernels.softcap_backward(outputs[2].out(added), dy.in(), x.in(), 30, size);
                     });
  });
}

TEST(Elementwise, ElementaryFunctionsMatchTheReference) {
  for (const Elementary kind : {Elementary::exp, Elementary::log, Elementary::log_sigmoid}) {
    each_case([&](DType out, DType in, bool added, int64_t size) {
      Array x = Array::normal(size, in, 1, 4);
      if (kind == Elementary::log)
        for (int64_t i = 0; i < size; ++i) reference::put(x.out(), i, std::abs(x[i]));
      const Array dy = Array::normal(size, DType::bf16, 2), y = Array::normal(size, out, 3);
      compare_with_gpu({y, y}, describe("elementary function", size, out, in, added),
                       [&](const Kernels& kernels, std::vector<Array>& outputs) {
                         kernels.elementary(outputs[0].out(added), x.in(), kind, size);
                         kernels.elementary_backward(outputs[1].out(added), dy.in(), x.in(), kind,
                                                     size);
                       });
    });
  }
}

// Errors are relative to each result, over all magnitudes; log_sigmoid(20) is -2e-9.
TEST(Elementwise, ElementaryFunctionsKeepTheirPrecision) {
  std::vector<double> values = extremes();
  for (double x = 1e-3; x < 100; x *= 1.07) values.insert(values.end(), {x, -x, 1 / x});
  const Array x(values, DType::f32);
  const auto size = static_cast<int64_t>(values.size());
  for (const Elementary kind : {Elementary::exp, Elementary::log, Elementary::log_sigmoid}) {
    Array expected(size, DType::f32);
    reference_kernels().elementary(expected.out(), x.in(), kind, size);
    for (const std::string& isa : testable_isas()) {
      use_isa(isa);
      Array y(size, DType::f32);
      cpu_kernels().elementary(y.out(), x.in(), kind, size);
      for (int64_t i = 0; i < size; ++i) {
        if (std::isfinite(expected[i])) {
          EXPECT_NEAR(y[i], expected[i], 5e-7 * std::abs(expected[i]) + 1e-44)
              << isa << " " << x[i];
        } else {
          EXPECT_EQ(std::isnan(y[i]), std::isnan(expected[i])) << isa << " " << x[i];
          EXPECT_EQ(y[i] > 0, expected[i] > 0) << isa << " " << x[i];
        }
      }
    }
  }
}

TEST(Elementwise, MinimumAndClipMatchTheReference) {
  each_case([](DType out, DType in, bool added, int64_t size) {
    Array a = Array::normal(size, in, 1), b = Array::normal(size, DType::bf16, 2);
    for (int64_t i = 0; i < size; i += 5) {
      reference::put(a.out(), i, 0.5);
      reference::put(b.out(), i, 0.5);
    }
    for (int64_t i = 3; i < size; i += 11)
      reference::put((i % 2 == 0 ? a : b).out(), i, std::nan(""));
    const Array dy = Array::normal(size, DType::f32, 3), y = Array::normal(size, out, 4);
    compare_with_gpu(
        {y, y, y, y}, describe("minimum, clip", size, out, in, added),
        [&](const Kernels& kernels, std::vector<Array>& outputs) {
          kernels.minimum(outputs[0].out(added), a.in(), b.in(), size);
          kernels.minimum_backward(outputs[1].out(added), dy.in(), a.in(), b.in(), size);
          kernels.clip(outputs[2].out(added), a.in(), -0.25f, 0.5f, size);
          kernels.clip_backward(outputs[3].out(added), dy.in(), a.in(), -0.25f, 0.5f, size);
        });
  });
}

// The error is relative to each result, also for numbers far below the cap.
TEST(Elementwise, SoftcapKeepsThePrecisionOfSmallNumbers) {
  for (const double value : {1e-30, 1e-6, 0.01, 1.0, 18.0, 32.0, 100.0, 1e30}) {
    const Array x({value, -value}, DType::f32);
    for (const std::string& isa : testable_isas()) {
      use_isa(isa);
      Array y(2, DType::f32);
      cpu_kernels().softcap(y.out(), x.in(), 50, 2);
      const double expected = 50 * std::tanh(x[0] / 50);
      EXPECT_NEAR(y[0], expected, 4e-7 * expected) << isa;
      EXPECT_EQ(y[1], -y[0]);
    }
  }
  use_isa("auto");
}

TEST(Elementwise, ConvertMatchesTheScalarFunction) {
  std::vector<double> values = extremes();
  Random random(1, Stream::init);
  for (int i = 0; i < 1000; ++i) values.push_back(std::bit_cast<float>(random.word()));
  const Array x(values, DType::f32);
  Array y(x.size(), DType::bf16);
  for (const std::string& isa : testable_isas()) {
    use_isa(isa);
    cpu_kernels().convert(y.out(), x.in(), x.size());
    for (int64_t i = 0; i < x.size(); ++i) {
      const float expected = widen(narrow(static_cast<float>(x[i])));
      EXPECT_TRUE(y[i] == expected || (std::isnan(y[i]) && std::isnan(expected)))
          << x[i] << " on " << isa;
    }
  }
  use_isa("auto");
}

TEST(Elementwise, WritesInPlace) {
  const Array x = Array::normal(5000, DType::f32, 4);
  compare_with_gpu({x}, "scale in place", [](const Kernels& kernels, std::vector<Array>& outputs) {
    kernels.scale(outputs[0].out(), outputs[0].in(), 2, outputs[0].size());
  });
}

TEST(Elementwise, RefusesUnsupportedDTypes) {
  Array x(3, DType::f32);
  try {
    cpu_kernels().convert(x.out(), In{x.in().data, DType::i32}, 3);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Internal);
    EXPECT_STREQ(error.what(), "cpu kernel: the dtype is int32; expected fp32 or bf16");
  }
}

class ActivationTest : public testing::TestWithParam<Activation> {};
INSTANTIATE_TEST_SUITE_P(All, ActivationTest,
                         testing::Values(Activation::relu, Activation::gelu, Activation::gelu_tanh,
                                         Activation::silu, Activation::tanh, Activation::quick_gelu,
                                         Activation::relu_squared, Activation::sigmoid));

TEST_P(ActivationTest, MatchesTheReference) {
  each_case([](DType out, DType in, bool added, int64_t size) {
    const Array x = Array::normal(size, in, 1, 3), dy = Array::normal(size, DType::bf16, 2);
    const Array y = Array::normal(size, out, 3);
    compare_with_gpu({y, y}, describe("activation and its backward", size, out, in, added),
                     [&](const Kernels& kernels, std::vector<Array>& outputs) {
                       kernels.activation(outputs[0].out(added), x.in(), GetParam(), size);
                       kernels.activation_backward(outputs[1].out(added), dy.in(), x.in(),
                                                   GetParam(), size);
                     });
  });
}

// Numbers are tested one by one, since one infinity would hide all other errors.
TEST_P(ActivationTest, HandlesExtremeNumbers) {
  for (double value : extremes()) {
    const Array x({value, value}, DType::f32), dy({1, -1}, DType::f32);
    Array y(2, DType::f32), dx(y), expected_y(y), expected_dx(y);
    for (const std::string& isa : testable_isas()) {
      use_isa(isa);
      cpu_kernels().activation(y.out(), x.in(), GetParam(), 2);
      cpu_kernels().activation_backward(dx.out(), dy.in(), x.in(), GetParam(), 2);
      reference_kernels().activation(expected_y.out(), x.in(), GetParam(), 2);
      reference_kernels().activation_backward(expected_dx.out(), dy.in(), x.in(), GetParam(), 2);
      for (int64_t i = 0; i < 2; ++i) {
        const auto same = [](double a, double b) {
          return a == b || (std::isnan(a) && std::isnan(b)) ||
                 std::abs(a - b) <= 1e-6 * std::max(1.0, std::abs(b));
        };
        EXPECT_TRUE(same(y[i], expected_y[i]))
            << value << " gives " << y[i] << ", not " << expected_y[i];
        EXPECT_TRUE(same(dx[i], expected_dx[i]))
            << value << " has slope " << dx[i] << ", not " << expected_dx[i];
      }
    }
  }
  use_isa("auto");
}

TEST(Dropout, MatchesTheReferenceAndItself) {
  each_case([](DType out, DType in, bool added, int64_t size) {
    const Array x = Array::normal(size, in, 1), y = Array::normal(size, out, 3);
    const Dropout dropout{
        .probability = 0.3f, .seed = 0x123456789abcdef, .substream = 5, .step = 7};
    compare_with_gpu({y}, describe("dropout", size, out, in, added),
                     [&](const Kernels& kernels, std::vector<Array>& outputs) {
                       kernels.dropout(outputs[0].out(added), x.in(), dropout, size);
                     });
  });
}

// A pass of several units draws the same random numbers as a separate pass per unit, for any sizes.
TEST(Dropout, CountsTheUnitsOfAStep) {
  for (const int64_t unit : {1, 5, 8, 1027, 4096}) {
    const int64_t size = 3 * unit;
    const Array x = Array::normal(size, DType::f32, 1), y(size, DType::f32);
    Dropout dropout{.probability = 0.3f, .seed = 3, .substream = 5, .step = 7};
    dropout.units = 3;
    dropout.first_unit = 5;
    compare_with_gpu({y}, fmt::format("dropout of 3 units of {}", unit),
                     [&](const Kernels& kernels, std::vector<Array>& outputs) {
                       kernels.dropout(outputs[0].out(), x.in(), dropout, size);
                     });
    Array all(size, DType::f32), alone(size, DType::f32);
    cpu_kernels().dropout(all.out(), x.in(), dropout, size);
    dropout.units = 1;
    for (int64_t u = 0; u < 3; ++u) {
      dropout.first_unit = 5 + u;
      cpu_kernels().dropout({alone.floats() + u * unit},
                            {static_cast<const float*>(x.in().data) + u * unit}, dropout, unit);
    }
    EXPECT_TRUE(alone == all) << unit;
  }
}

TEST(Dropout, DropsTheGivenFraction) {
  constexpr int64_t kSize = 100000;
  const Array x(std::vector<double>(kSize, 1), DType::f32);
  for (float probability : {0.0f, 0.1f, 0.5f, 1.0f}) {
    Array y(kSize, DType::f32);
    cpu_kernels().dropout(y.out(), x.in(), {.probability = probability, .seed = 1}, kSize);
    double dropped = 0;
    for (int64_t i = 0; i < kSize; ++i) {
      dropped += y[i] == 0;
      if (y[i] != 0) {
        ASSERT_FLOAT_EQ(static_cast<float>(y[i]), 1 / (1 - probability));
      }
    }
    EXPECT_NEAR(dropped / kSize, probability, 0.01);
  }
}

TEST(GatedActivation, MatchesTheReference) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const int64_t size : kSizes) {
      for (const Activation kind : {Activation::silu, Activation::gelu, Activation::relu}) {
        const Array x = Array::normal(size, dtype, 1), factor = Array::normal(size, dtype, 2),
                    dy = Array::normal(size, dtype, 3);
        const std::string what = fmt::format("{} of {}", static_cast<int>(kind), size);
        compare_with_gpu({x}, "gated_activation " + what,
                         [&](const Kernels& kernels, std::vector<Array>& outputs) {
                           kernels.gated_activation(outputs[0].out(), x.in(), factor.in(), kind,
                                                    size);
                         });
        for (const bool add : {false, true})
          compare_with_gpu({x, factor}, "gated_activation_backward " + what,
                           [&](const Kernels& kernels, std::vector<Array>& outputs) {
                             kernels.gated_activation_backward(outputs[0].out(add),
                                                               outputs[1].out(add), dy.in(), x.in(),
                                                               factor.in(), kind, size);
                           });
      }
    }
  }
}

TEST(AdamW, MatchesTheReference) {
  for (int64_t size : kSizes) {
    const Array weight = Array::normal(size, DType::f32, 1),
                gradient = Array::normal(size, DType::f32, 2, 1e-3);
    const Array m = Array::normal(size, DType::f32, 3, 1e-3);
    Array v = Array::normal(size, DType::f32, 4, 1e-3);
    for (int64_t i = 0; i < size; ++i) v.floats()[i] *= v.floats()[i];
    const AdamW step{.rate = 1e-2f,
                     .decay = 0.1f,
                     .correction1 = 0.3f,
                     .correction2 = 0.1f,
                     .gradient_scale = 0.7f};
    compare_with_gpu({weight, m, v}, fmt::format("adamw of {}", size),
                     [&](const Kernels& kernels, std::vector<Array>& outputs) {
                       kernels.adamw(outputs[0].out(), outputs[1].out(), outputs[2].out(),
                                     gradient.in(), step, size);
                     });
  }
}

TEST(Sgd, MatchesTheReference) {
  for (int64_t size : kSizes) {
    const Array weight = Array::normal(size, DType::f32, 1), m = Array::normal(size, DType::f32, 2),
                gradient = Array::normal(size, DType::f32, 3);
    for (const bool nesterov : {false, true}) {
      for (const bool keeps : {false, true}) {
        const Sgd step{.rate = 1e-2f,
                       .momentum = 0.9f,
                       .decay = 0.1f,
                       .nesterov = nesterov,
                       .gradient_scale = 0.7f};
        compare_with_gpu({weight, m}, fmt::format("sgd of {}", size),
                         [&](const Kernels& kernels, std::vector<Array>& outputs) {
                           kernels.sgd(outputs[0].out(), keeps ? outputs[1].out() : Out{},
                                       gradient.in(), step, size);
                         });
      }
    }
  }
}

TEST(Lion, MatchesTheReference) {
  for (int64_t size : kSizes) {
    const Array weight = Array::normal(size, DType::f32, 1), m = Array::normal(size, DType::f32, 2);
    Array gradient = Array::normal(size, DType::f32, 3);
    if (size > 0) gradient.floats()[0] = 0;
    const Lion step{.rate = 1e-2f, .beta1 = 0.8f, .decay = 0.1f, .gradient_scale = 0.7f};
    compare_with_gpu({weight, m}, fmt::format("lion of {}", size),
                     [&](const Kernels& kernels, std::vector<Array>& outputs) {
                       kernels.lion(outputs[0].out(), outputs[1].out(), gradient.in(), step, size);
                     });
  }
}

}  // namespace
}  // namespace fovea

#include "tensor/tape.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace fovea {
namespace {

using Floats = std::vector<float>;

// Minimal ops that test the tape: a sum, which passes its gradient on to its inputs; a product,
// which writes the gradients of its inputs; and a dot product with fixed weights, which gives one
// number.
Tensor sum(const Tensor& a, const Tensor& b) {
  Tensor y = empty_like(a);
  kernels(a).add(y, a, b, a.size());
  return record(y, {a, b},
                [a = Saved::slot(a), b = Saved::slot(b)](const Tensor& dy, Gradients& d) {
                  d.pass(a, dy);
                  d.pass(b, dy);
                });
}

Tensor product(const Tensor& a, const Tensor& b) {
  Tensor y = empty_like(a);
  kernels(a).multiply(y, a, b, a.size());
  return record(y, {a, b}, [a = Saved(a), b = Saved(b)](const Tensor& dy, Gradients& d) {
    kernels(dy).multiply(d[a], dy, b.elements(), dy.size());
    kernels(dy).multiply(d[b], dy, a.elements(), dy.size());
  });
}

// An op with the gradients of a + 10 b; its value is not used. The backward function requests both
// gradients before it writes either of them.
Tensor mixture(const Tensor& a, const Tensor& b) {
  return record(copy(a), {a, b}, [=](const Tensor& dy, Gradients& d) {
    const Out da = d[a], db = d[b];
    kernels(dy).scale(db, dy, 10, dy.size());
    kernels(dy).scale(da, dy, 1, dy.size());
  });
}

Tensor negated(const Tensor& x) {
  Tensor y = empty_like(x);
  kernels(x).scale(y, x, -1, x.size());
  y.set_recipe([x = Saved(x)] {
    const Tensor input = x.elements();
    Tensor again = empty_like(input);
    kernels(input).scale(again, input, -1, input.size());
    return again;
  });
  return record(y, {x}, [x = Saved::slot(x)](const Tensor& dy, Gradients& d) {
    kernels(dy).scale(d[x], dy, -1, dy.size());
  });
}

Tensor dot(const Tensor& x, const Floats& weights) {
  float total = 0;
  for (int64_t i = 0; i < x.size(); ++i)
    total += x.data_as<float>()[i] * weights[static_cast<size_t>(i)];
  const Tensor w = tensor_of(weights, x.shape());
  return record(full({1}, total), {x}, [w, x = Saved::slot(x)](const Tensor& dy, Gradients& d) {
    kernels(w).scale(d[x], w, *dy.data_as<float>(), w.size());
  });
}

Tensor leaf(const Floats& values) {
  Tensor x = tensor_of(values, {static_cast<int64_t>(values.size())});
  return x.want_gradient();
}

class TapeTest : public testing::Test {
 protected:
  void TearDown() override { clear_tape(); }
};

TEST_F(TapeTest, SumsTheUsesOfATensor) {
  const Tensor x = leaf({2, 3});
  backward(dot(product(product(x, x), x), {1, 10}));  // x^3
  EXPECT_EQ(to_floats(x.gradient()), (Floats{12, 270}));
}

TEST_F(TapeTest, AddsATensorToItself) {
  const Tensor x = leaf({2, 3});
  const Tensor y = negated(x);                // not a leaf
  backward(dot(sum(sum(y, y), y), {1, 10}));  // -3 x
  EXPECT_EQ(to_floats(x.gradient()), (Floats{-3, -30}));
}

// Both inputs of a sum share the memory of its gradient; an op that writes to this memory must
// write to a copy.
TEST_F(TapeTest, CopiesAPassedGradientBeforeWritingToIt) {
  const Tensor x = leaf({1, 2}), w = leaf({5, 7});
  const Tensor a = negated(x), b = negated(w), c = negated(a);
  backward(dot(sum(sum(a, b), c),
               {1, 10}));  // a + b - a: the gradient of c is added to that of a, not of b
  EXPECT_EQ(to_floats(x.gradient()), (Floats{0, 0}));
  EXPECT_EQ(to_floats(w.gradient()), (Floats{-1, -10}));
}

TEST_F(TapeTest, GivesEachLeafItsOwnGradient) {
  const Tensor x = leaf({1, 2}), w = leaf({5, 7});
  backward(dot(sum(x, w), {1, 10}));
  x.gradient().data_as<float>()[0] = 99;  // in place, as clipping does
  EXPECT_EQ(to_floats(w.gradient()), (Floats{1, 10}));
}

TEST_F(TapeTest, PassesGradientsThroughAResidualStream) {
  const Tensor x = leaf({1, -2});
  Tensor h = x;
  for (int layer = 0; layer < 5; ++layer) h = sum(h, sum(h, h));  // 3 h
  backward(dot(h, {1, 2}));
  EXPECT_EQ(to_floats(x.gradient()), (Floats{243, 486}));
  x.clear_gradient();
  h = x;
  for (int layer = 0; layer < 4; ++layer) h = sum(h, negated(sum(h, negated(h))));  // h
  backward(dot(h, {1, 2}));
  EXPECT_EQ(to_floats(x.gradient()), (Floats{1, 2}));
}

TEST_F(TapeTest, GivesEachInputOfAnOpItsOwnGradient) {
  const Tensor x = leaf({1, 2}), y = leaf({3, 4});
  backward(dot(mixture(x, y), {1, 2}));
  EXPECT_EQ(to_floats(x.gradient()), (Floats{1, 2}));
  EXPECT_EQ(to_floats(y.gradient()), (Floats{10, 20}));
  backward(dot(mixture(x, x.view({2, 1}).view({2})), {1, 2}));
  EXPECT_EQ(to_floats(x.gradient()), (Floats{12, 24}));
  const Tensor z = leaf({1, 2}), inner = negated(z);
  backward(dot(mixture(inner, inner), {1, 2}));
  EXPECT_EQ(to_floats(z.gradient()), (Floats{-11, -22}));
}

TEST_F(TapeTest, AccumulatesLeafGradientsOverCalls) {
  const Tensor x = leaf({2, 3});
  for (int call = 0; call < 3; ++call) backward(dot(sum(x, x), {1, 10}), 0.5f);
  EXPECT_EQ(to_floats(x.gradient()), (Floats{3, 30}));
  x.clear_gradient();
  EXPECT_FALSE(x.gradient());
  backward(dot(x, {1, 10}));
  EXPECT_EQ(to_floats(x.gradient()), (Floats{1, 10}));
  const Tensor number = leaf({4});  // a loss that is itself a leaf
  backward(number, 2);
  backward(number, 3);
  EXPECT_EQ(to_floats(number.gradient()), Floats{5});
}

// The gradients of each use of a leaf are summed over the passes by the tree; the gradient is the
// sum over its uses.
TEST_F(TapeTest, SumsEachUseOfALeafOverThePasses) {
  const Floats numbers = {1, 0x1p-24f, 0x1p-24f, 3, 0x1p-23f, -3, 5};
  const auto tree = [](const Floats& n) {
    return ((n[0] + n[1]) + (n[2] + n[3])) + ((n[4] + n[5]) + n[6]);
  };
  const Tensor x = leaf({2}), once = leaf({1}), rare = leaf({1});
  PassGradients passes;
  Floats first, second;
  for (size_t pass = 0; pass < numbers.size(); ++pass) {
    const float n = numbers[pass];
    first.push_back(n);
    second.push_back(n * 0.3f);
    const Tensor a = dot(x, {n * 0.3f}), b = dot(x, {n});  // backward() reaches b first
    Tensor loss = sum(sum(a, b), dot(once, {n}));
    if (pass == 2 || pass == 5) loss = sum(loss, dot(rare, {n}));
    passes.backward(loss, static_cast<int64_t>(pass));
    EXPECT_FALSE(x.gradient());
  }
  passes.finish();
  EXPECT_EQ(to_floats(x.gradient()), Floats{tree(first) + tree(second)});
  EXPECT_EQ(to_floats(once.gradient()), Floats{tree(numbers)});
  EXPECT_EQ(to_floats(rare.gradient()), Floats{numbers[2] + numbers[5]});
}

// Two passes need one sum of each leaf, and the gradient of one op: not those of a whole pass.
TEST_F(TapeTest, AddsPassesAsSoonAsAnOpHasWritten) {
  constexpr int64_t kSize = 1 << 20;
  const Tensor one = tensor_of({1}, {1});
  std::vector<Tensor> leaves;
  for (int i = 0; i < 8; ++i) leaves.push_back(zeros({kSize}).want_gradient());
  const auto first = [&](const Tensor& x) {  // the first element
    return record(one, {x}, [x = Saved::slot(x)](const Tensor& dy, Gradients& d) {
      d.pass(x, full({kSize}, number_of(dy)));
    });
  };
  const auto peak = [&](int64_t passes) {
    PassGradients gradients;
    reset_peak_memory();
    const size_t before = tensor_memory().live;
    for (int64_t n = 0; n < passes; ++n) {
      Tensor loss = first(leaves[0]);
      for (size_t i = 1; i < leaves.size(); ++i) loss = sum(loss, first(leaves[i]));
      gradients.backward(loss, n);
    }
    const double numbers = static_cast<double>(tensor_memory().peak - before) / sizeof(float);
    gradients.finish();
    for (const Tensor& leaf : leaves) leaf.clear_gradient();
    return numbers / kSize;
  };
  EXPECT_LT(peak(2), 8 + 2.1);
  EXPECT_LT(peak(3), 2 * 8 + 2.1);
  EXPECT_LT(peak(8), 3 * 8 + 2.1);
}

TEST_F(TapeTest, ShapesGradientsLikeTheirTensors) {
  Tensor x = tensor_of({1, 2, 3, 4}, {2, 2});
  x.want_gradient();
  const Tensor y = negated(x.view({4}));
  backward(dot(sum(y.view({1, 4}), y.view({1, 4})).view({4}), {1, 2, 3, 4}));
  EXPECT_EQ(to_floats(x.gradient()), (Floats{-2, -4, -6, -8}));
}

TEST_F(TapeTest, ConvertsGradientsToTheDtypeOfTheirTensors) {
  for (const DType from_type : {DType::f32, DType::bf16, DType::f64}) {
    for (const DType to : {DType::f32, DType::bf16, DType::f64}) {
      Tensor x = tensor_of({1, 2}, {2}, from_type);
      x.want_gradient();
      for (int call = 0; call < 2; ++call) {
        const Tensor y = record(full({1}, 1, to), {x}, [=](const Tensor&, Gradients& d) {
          d.pass(x, tensor_of({3, 4}, {2}, to));
        });
        backward(y);
      }
      EXPECT_EQ(x.gradient().dtype(), from_type);
      EXPECT_EQ(to_floats(x.gradient()), (Floats{6, 8}));
    }
  }
}

TEST_F(TapeTest, RecordsNothingIfNoGradientIsWanted) {
  const Tensor plain = tensor_of({1, 2}, {2}), x = leaf({1, 2});
  EXPECT_FALSE(sum(plain, plain).wants_gradient());
  EXPECT_TRUE(sum(plain, x).wants_gradient());
  clear_tape();
  {
    const NoGradient off;
    EXPECT_FALSE(recording());
    {
      const NoGradient inner;
      EXPECT_FALSE(recording());
    }
    EXPECT_FALSE(recording());
    EXPECT_FALSE(sum(x, x).wants_gradient());
  }
  EXPECT_TRUE(recording());
  backward(dot(product(x, plain), {1, 1}));
  EXPECT_EQ(to_floats(x.gradient()), (Floats{1, 2}));
  EXPECT_FALSE(plain.gradient());
}

TEST_F(TapeTest, SkipsTensorsThatTheLossDoesNotUse) {
  const Tensor x = leaf({1, 2}), unused = leaf({1, 2});
  const Tensor side = product(unused, x);
  backward(dot(x, {1, 1}));
  EXPECT_FALSE(unused.gradient());
  EXPECT_EQ(to_floats(x.gradient()), (Floats{1, 1}));
  EXPECT_FALSE(side.gradient());
}

TEST_F(TapeTest, KeepsGradientsOfLeavesOnly) {
  const Tensor x = leaf({1, 2}), y = negated(x);
  backward(dot(sum(y, x), {1, 1}));
  EXPECT_FALSE(y.gradient());
}

TEST_F(TapeTest, RefusesInvalidLosses) {
  const Tensor x = leaf({1, 2});
  expect_error(ErrorKind::InvalidArgument, {"backward", "[2]", "one element"},
               [&] { backward(sum(x, x)); });
  expect_error(ErrorKind::InvalidArgument, {"backward", "depends on no tensor"},
               [] { backward(full({1}, 1)); });
  clear_tape();
  const Tensor loss = dot(x, {1, 1});
  backward(loss);
  expect_error(ErrorKind::InvalidArgument, {"backward", "nothing is recorded"},
               [&] { backward(loss); });
  EXPECT_EQ(to_floats(x.gradient()), (Floats{1, 1}));
}

TEST_F(TapeTest, IsUsableAfterAnError) {
  const Tensor x = leaf({1, 2});
  const size_t live = tensor_memory().live;
  {
    const Tensor broken =
        record(copy(x), {x}, [](const Tensor&, Gradients&) { check(false, "broken op"); });
    expect_error(ErrorKind::InvalidArgument, {"broken op"},
                 [&] { backward(dot(product(broken, broken), {1, 1})); });
  }
  clear_tape();
  EXPECT_EQ(tensor_memory().live, live);
  EXPECT_TRUE(recording());
  backward(dot(mixture(x, x), {1, 1}));
  EXPECT_EQ(to_floats(x.gradient()), (Floats{11, 11}));
}

TEST_F(TapeTest, FreesItsMemoryAfterBackward) {
  const Tensor x = leaf({1, 2});
  backward(dot(product(x, negated(x)), {1, 1}));
  const size_t live = tensor_memory().live;
  for (int step = 0; step < 3; ++step) {
    backward(dot(product(product(x, negated(x)), sum(x, x)), {1, 1}));
    EXPECT_EQ(tensor_memory().live, live);
  }
  dot(product(x, negated(x)), {1, 1});
  EXPECT_GT(tensor_memory().live, live);
  clear_tape();
  EXPECT_EQ(tensor_memory().live, live);
}

TEST_F(TapeTest, SavesElementsOrARecipe) {
  constexpr size_t kBytes = 64000;
  const Tensor x = zeros({kBytes / 4});
  x.data_as<float>()[7] = 5;
  const size_t live = tensor_memory().live;

  Tensor y = negated(x);
  const Saved recipe(y), viewed(y.view({4, 4000}));
  EXPECT_EQ(tensor_memory().live, live + kBytes);
  y = {};
  EXPECT_EQ(tensor_memory().live, live);  // only the recipe is left
  EXPECT_EQ(to_floats(recipe.elements())[7], -5);
  EXPECT_EQ(viewed.elements().shape(), (Shape{4, 4000}));
  EXPECT_EQ(to_floats(viewed.elements())[7], -5);
  EXPECT_EQ(tensor_memory().live,
            live + kBytes);  // the last result is cached until the tape is cleared
  clear_tape();
  EXPECT_EQ(tensor_memory().live, live);

  y = copy(x);
  const Saved whole(y);
  Tensor slot_only = copy(x);
  slot_only.want_gradient();
  const Saved slot = Saved::slot(slot_only);
  slot_only = {};
  y = {};
  EXPECT_EQ(tensor_memory().live, live + kBytes);  // `whole` keeps its elements allocated
  EXPECT_EQ(to_floats(whole.elements())[7], 5);
  EXPECT_TRUE(static_cast<const Tensor&>(slot).wants_gradient());
}

TEST_F(TapeTest, RecomputesNestedRecipes) {
  const Tensor x = leaf({1, 2});
  backward(dot(product(negated(negated(negated(x))), x), {1, 1}));  // -x^2
  EXPECT_EQ(to_floats(x.gradient()), (Floats{-2, -4}));
}

TEST_F(TapeTest, RecordsALayerAnew) {
  const Tensor x = leaf({1, 2}), w = leaf({5, 7});
  const auto layer = [&](const Tensor& y) {
    const Tensor inner = product(y, w);
    return std::vector<Tensor>{sum(inner, y), negated(inner)};
  };
  const auto gradients = [&](bool again) {
    x.clear_gradient(), w.clear_gradient();
    Tensor y = x, sides;
    for (int n = 0; n < 3; ++n) {
      const auto run = [&layer, y] { return layer(y); };
      const std::vector<Tensor> results = again ? recompute(run) : run();
      y = results[0];
      sides = sides ? sum(sides, results[1]) : results[1];
    }
    backward(dot(sum(y, sides), {1, 10}));
    return std::pair(to_floats(x.gradient()), to_floats(w.gradient()));
  };
  EXPECT_EQ(gradients(true), gradients(false));
  EXPECT_TRUE(recording());
}

TEST_F(TapeTest, KeepsNothingOfALayerThatItRecordsAnew) {
  constexpr size_t kBytes = 64000;
  const Tensor x = zeros({kBytes / 4}).want_gradient();
  const size_t live = tensor_memory().live;
  int runs = 0;
  const std::vector<Tensor> y = recompute([&] {
    ++runs;
    return std::vector<Tensor>{product(product(x, negated(x)), product(x, x))};
  });
  EXPECT_EQ(tensor_memory().live, live + kBytes);
  EXPECT_EQ(runs, 1);
  backward(dot(y[0], Floats(kBytes / 4, 1)));
  EXPECT_EQ(runs, 2);
}

TEST_F(TapeTest, DoesNotRecordALayerWithoutGradients) {
  const Tensor plain = tensor_of({1, 2}, {2});
  const auto layer = [&] { return std::vector<Tensor>{product(plain, plain)}; };
  EXPECT_FALSE(recompute(layer)[0].wants_gradient());
  const NoGradient off;
  const Tensor x = leaf({1, 2});
  EXPECT_FALSE(recompute([&] { return std::vector<Tensor>{negated(x)}; })[0].wants_gradient());
}

}  // namespace
}  // namespace fovea

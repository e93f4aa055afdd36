// The kernels of mixtures of experts.

#include <algorithm>
#include <array>

#include "unit/kernels/compare.h"

namespace fovea {
namespace {

using test::Array;

using Numbers = test::SharedVector<int32_t>;

// Calls run(kernels) with the reference, with the CPU's table on each ISA with 1 to 3 threads, and
// with the GPU device. All results must be equal.
template <class Run>
void same_everywhere(const std::string& what, const Run& run) {
  const auto expected = run(reference_kernels());
  const int threads = thread_count();
  for (const std::string& isa : testable_isas()) {
    for (const int count : {1, 2, 3}) {
      use_isa(isa);
      set_threads(count);
      EXPECT_EQ(run(cpu_kernels()), expected) << what << ", " << isa << ", " << count;
    }
  }
  use_isa("auto");
  set_threads(threads);
  EXPECT_EQ(run(test::gpu_kernels()), expected) << what << ", GPU";
}

struct Size {
  int64_t rows, experts;
  ExpertChoice choice;
};
constexpr Size kSizes[] = {{1, 1, {1, 1, 1}},    {5, 4, {2, 1, 1}},     {67, 5, {5, 1, 1}},
                           {300, 64, {6, 8, 3}}, {3, 65, {7, 13, 2}},   {1000, 8, {2, 2, 1}},
                           {2, 6, {3, 3, 2}},    {130, 257, {8, 1, 1}}, {0, 4, {1, 1, 1}},
                           {9, 12, {12, 3, 3}}};

Numbers chosen(const Kernels& kernels, const Array& scores, const Array* bias, const Size& size) {
  Numbers experts(static_cast<size_t>(size.rows * size.choice.chosen), -1);
  kernels.choose_experts({experts.data(), DType::i32}, scores.in(),
                         bias == nullptr ? In{} : bias->in(), size.choice,
                         {size.rows, size.experts});
  test::wait_for_gpu();
  return experts;
}

TEST(ChooseExperts, MatchesTheReference) {
  for (const Size& size : kSizes) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const Array scores = Array::normal(size.rows * size.experts, dtype, 1),
                  bias = Array::normal(size.experts, dtype, 2);
      const std::string what =
          fmt::format("{} of {} experts, {}", size.choice.chosen, size.experts, name_of(dtype));
      same_everywhere(what, [&](const Kernels& k) { return chosen(k, scores, nullptr, size); });
      if (size.experts > size.choice.groups)
        same_everywhere(what, [&](const Kernels& k) { return chosen(k, scores, &bias, size); });
    }
  }
}

TEST(ChooseExperts, PrefersLowerExpertsAndGroupsInTies) {
  const Array scores(std::vector<double>{1, 2, 2, 1, 2, 0}, DType::f32);
  same_everywhere("ties", [&](const Kernels& k) {
    EXPECT_EQ(chosen(k, scores, nullptr, {1, 6, {4, 1, 1}}), (Numbers{1, 2, 4, 0}));
    EXPECT_EQ(chosen(k, scores, nullptr, {1, 6, {3, 3, 2}}), (Numbers{1, 2, 0}));
    return 0;
  });
}

// A NaN is never larger than another number, but every choice is a different expert.
TEST(ChooseExperts, AcceptsNonFiniteScores) {
  const double nan = std::nan(""), infinity = HUGE_VAL;
  const Array scores({nan, nan, nan, nan, 1, nan, 2, nan, -infinity, infinity, 0, nan}, DType::f32);
  for (const int64_t groups : {1, 2}) {
    const Size size{3, 4, {2, groups, 1}};
    same_everywhere("NaN", [&](const Kernels& k) {
      const Numbers experts = chosen(k, scores, nullptr, size);
      for (size_t i = 0; i < experts.size(); i += 2) {
        EXPECT_TRUE(experts[i] >= 0 && experts[i] < 4);
        EXPECT_TRUE(experts[i + 1] >= 0 && experts[i + 1] < 4 && experts[i + 1] != experts[i]);
      }
      return experts;
    });
  }
}

TEST(GroupByExpert, MatchesTheReference) {
  for (const auto& [rows, k, experts] :
       {std::array<int64_t, 3>{0, 2, 3}, {1, 1, 1}, {5, 2, 4}, {67, 3, 130}, {300, 8, 9}}) {
    Numbers choices(static_cast<size_t>(rows * k));
    for (size_t i = 0; i < choices.size(); ++i)
      choices[i] = static_cast<int32_t>(i * i * 7 % static_cast<size_t>(experts));
    same_everywhere("group_by_expert", [&, r = rows, c = k, e = experts](const Kernels& kernels) {
      Numbers sorted(choices.size()), slots(choices.size());
      std::vector<int64_t> counts(static_cast<size_t>(e), -1);
      kernels.group_by_expert({sorted.data(), DType::i32}, {slots.data(), DType::i32},
                              counts.data(), choices.data(), r, c, e);
      test::wait_for_gpu();
      sorted.insert(sorted.end(), slots.begin(), slots.end());
      sorted.insert(sorted.end(), counts.begin(), counts.end());
      return sorted;
    });
  }
}

TEST(FirstOutside, FindsTheFirst) {
  for (const Kernels* kernels : {&cpu_kernels(), &reference_kernels(), &test::gpu_kernels()}) {
    EXPECT_EQ(kernels->first_outside(Indices(nullptr), 0, 3), -1);
    EXPECT_EQ(kernels->first_outside(Numbers{0, 2, 1}.data(), 3, 3), -1);
    EXPECT_EQ(kernels->first_outside(Numbers{0, 3, -1}.data(), 3, 3), 1);
    EXPECT_EQ(kernels->first_outside(Numbers{0, 1, -1, 7}.data(), 4, 3), 2);
  }
}

TEST(Pick, MatchesTheReference) {
  for (const auto& [count, width, k] :
       {std::array<int64_t, 3>{0, 3, 2}, {1, 1, 1}, {5, 4, 2}, {67, 33, 5}, {300, 130, 8}}) {
    const Rows rows{count, width};
    Numbers columns(static_cast<size_t>(count * k));  // some occur twice in a row
    for (size_t i = 0; i < columns.size(); ++i)
      columns[i] = static_cast<int32_t>(i * i * 3 % static_cast<size_t>(width));
    for (const DType out : {DType::f32, DType::bf16}) {
      for (const DType in : {DType::f32, DType::bf16}) {
        for (const bool added : {false, true}) {
          const Array x = Array::normal(count * width, in, 1), dy = Array::normal(count * k, in, 2);
          test::compare_with_gpu(
              {Array::normal(count * k, out, 3), Array::normal(count * width, out, 4)},
              fmt::format("pick {} of [{}, {}]", k, count, width),
              [&, n = k](const Kernels& kernels, std::vector<Array>& o) {
                kernels.pick(o[0].out(added), x.in(), columns.data(), n, rows);
                kernels.pick_backward(o[1].out(added), dy.in(), columns.data(), n, rows);
              });
        }
      }
    }
  }
}

}  // namespace
}  // namespace fovea

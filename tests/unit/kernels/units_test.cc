// Sums over the units of a batch equal the sums of each unit, added by the tree, in every bit.

#include "unit/kernels/units.h"

#include <numeric>

#include "unit/kernels/compare.h"

namespace fovea {
namespace {

using test::Array;

const Rows kShapes[] = {{30, 7}, {16, 33}, {240, 5}, {1050, 40}, {40, 1}};

In from_row(const Array& x, int64_t row, int64_t width) {
  const auto bytes = static_cast<size_t>(row * width) * size_of(x.dtype());
  return {static_cast<const char*>(x.in().data) + bytes, x.dtype()};
}

// run(sums, begin, rows) sums over rows [begin, begin + rows.count). Its result for all rows, on
// every instruction set and with 1 to 3 threads, must be the tree sum of its results for each unit.
template <class Run>
void expect_tree(int64_t size, Rows rows, const Run& run) {
  const int threads = thread_count();
  for (const test::Divided& divided : test::divisions(rows.count)) {
    rows.units = divided.units();
    std::vector<std::vector<std::optional<float>>> parts(static_cast<size_t>(size));
    for (int64_t unit = 0; unit < divided.count; ++unit) {
      const int64_t begin = rows.units.start(unit, rows.count);
      Array part(size, DType::f32);
      run(part, begin, Rows{rows.units.start(unit + 1, rows.count) - begin, rows.width});
      for (int64_t i = 0; i < size; ++i)
        parts[static_cast<size_t>(i)].emplace_back(part.floats()[i]);
    }
    std::vector<double> sums;
    for (const auto& part : parts) sums.push_back(test::tree_sum(part));
    const Array expected(sums, DType::f32);
    for (const std::string& isa : available_isas()) {
      for (const int count : {1, 2, 3}) {
        use_isa(isa);
        set_threads(count);
        Array all(size, DType::f32);
        run(all, 0, rows);
        EXPECT_TRUE(all == expected) << rows.count << " rows of " << rows.width << ", "
                                     << divided.count << " units, " << isa << ", " << count;
      }
    }
    use_isa("auto");
  }
  set_threads(threads);
}

TEST(Units, AreSummedByTheTreeInSums) {
  for (const Rows& shape : kShapes) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const Array x = Array::normal(shape.count * shape.width, dtype, 1);
      expect_tree(shape.width, shape, [&](Array& sums, int64_t begin, Rows rows) {
        cpu_kernels().sum_rows(sums.out(), from_row(x, begin, rows.width), rows);
      });
    }
  }
}

TEST(Units, AreSummedByTheTreeInNorms) {
  for (const Rows& shape : kShapes) {
    const int64_t size = shape.count * shape.width;
    const Array x = Array::normal(size, DType::bf16, 1), dy = Array::normal(size, DType::f32, 2);
    const Array mean = Array::normal(shape.count, DType::f32, 3),
                scale = Array::normal(shape.count, DType::f32, 4),
                weight = Array::normal(shape.width, DType::f32, 5);
    const auto sums_of = [&](bool centred, Array& sums, int64_t begin, Rows rows) {
      const In own_x = from_row(x, begin, rows.width), own_dy = from_row(dy, begin, rows.width);
      if (!centred) {
        cpu_kernels().rms_norm_backward({}, sums.out(), own_dy, own_x, from_row(scale, begin, 1),
                                        weight.in(), rows);
        return;
      }
      const Out dweight = sums.out(), dbias{sums.floats() + rows.width};
      cpu_kernels().layer_norm_backward({}, dweight, dbias, own_dy, own_x, from_row(mean, begin, 1),
                                        from_row(scale, begin, 1), weight.in(), 1e-5f, rows);
    };
    expect_tree(2 * shape.width, shape,
                [&](Array& sums, int64_t begin, Rows rows) { sums_of(true, sums, begin, rows); });
    expect_tree(shape.width, shape,
                [&](Array& sums, int64_t begin, Rows rows) { sums_of(false, sums, begin, rows); });
  }
}

TEST(Units, AreSummedByTheTreeInDynamicTanh) {
  for (const Rows& shape : kShapes) {
    const int64_t size = shape.count * shape.width, C = shape.width;
    const Array x = Array::normal(size, DType::bf16, 1), dy = Array::normal(size, DType::f32, 2);
    const Array alpha(std::vector<double>{0.6}, DType::f32),
        weight = Array::normal(C, DType::f32, 5);
    expect_tree(2 * C + 1, shape, [&](Array& sums, int64_t begin, Rows rows) {
      const Out dweight = sums.out(), dbias{sums.floats() + C}, dalpha{sums.floats() + 2 * C};
      cpu_kernels().dynamic_tanh_backward({}, dalpha, dweight, dbias, from_row(dy, begin, C),
                                          from_row(x, begin, C), alpha.in(), weight.in(), rows);
    });
  }
}

TEST(Units, AreSummedByTheTreeInEmbeddings) {
  for (const Rows& shape : kShapes) {
    const Array dy = Array::normal(shape.count * shape.width, DType::f32, 1);
    for (const int64_t entries : {1, 5, 300}) {
      std::vector<int32_t> ids;
      for (int64_t i = 0; i < shape.count; ++i)
        ids.push_back(static_cast<int32_t>(i * i % 31 % entries));
      expect_tree(entries * shape.width, shape, [&](Array& sums, int64_t begin, Rows rows) {
        cpu_kernels().embedding_backward(sums.out(), from_row(dy, begin, rows.width),
                                         ids.data() + begin, rows, entries);
      });
    }
  }
}

// The old value is added last.
TEST(Units, AreAddedToTheOldValue) {
  const Rows rows{60, 9, {5}};
  const Array x = Array::normal(60 * 9, DType::f32, 1);
  const std::vector<int32_t> ids(60, 0);
  Array sums = Array::normal(9, DType::f32, 2), plain(9, DType::f32), entry = sums;
  const Array before = sums;
  cpu_kernels().sum_rows(plain.out(), x.in(), rows);
  cpu_kernels().sum_rows(sums.out(true), x.in(), rows);
  cpu_kernels().embedding_backward(entry.out(true), x.in(), ids.data(), rows, 1);
  for (int64_t i = 0; i < 9; ++i) {
    EXPECT_EQ(sums[i], static_cast<float>(before[i]) + static_cast<float>(plain[i]));
    EXPECT_EQ(entry[i], sums[i]);  // units of 12 rows are one block each
  }
}

TEST(Units, MatchTheReference) {
  for (Rows rows : kShapes) {
    const int64_t size = rows.count * rows.width;
    const Array x = Array::normal(size, DType::f32, 1), dy = Array::normal(size, DType::bf16, 2);
    const Array weight = Array::normal(rows.width, DType::f32, 3),
                statistics = Array::normal(rows.count, DType::f32, 4);
    test::SharedVector<int32_t> ids(static_cast<size_t>(rows.count));
    std::iota(ids.begin(), ids.end(), 0);
    for (int32_t& id : ids) id %= 11;
    const Array sums(rows.width, DType::f32), table(11 * rows.width, DType::f32);
    for (const test::Divided& divided : test::divisions(rows.count)) {
      rows.units = divided.units();
      test::compare_with_gpu(
          {sums, sums, sums, sums, table}, fmt::format("{} units", divided.count),
          [&](const Kernels& k, std::vector<Array>& o) {
            k.sum_rows(o[0].out(), dy.in(), rows);
            k.layer_norm_backward({}, o[1].out(), o[2].out(), dy.in(), x.in(), statistics.in(),
                                  statistics.in(), weight.in(), 1e-5f, rows);
            k.rms_norm_backward({}, o[3].out(), dy.in(), x.in(), statistics.in(), weight.in(),
                                rows);
            k.embedding_backward(o[4].out(), dy.in(), ids.data(), rows, 11);
          });
    }
  }
}

}  // namespace
}  // namespace fovea

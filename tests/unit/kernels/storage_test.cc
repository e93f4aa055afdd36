// Kernels that write pages and read packed weights: each table, with any number of threads, gives
// the bytes of the functions for one page and for one row.

#include <gtest/gtest.h>

#include "base/threads.h"
#include "kernels/layout/kv_page.h"
#include "kernels/layout/packed.h"
#include "unit/kernels/compare.h"

namespace fovea {
namespace {

using test::Array;

// Calls f(table, name) for both tables, with 1 to 3 threads.
template <class Check>
void with_every_table(Check&& f) {
  const int before = thread_count();
  for (const int threads : {1, 2, 3}) {
    set_threads(threads);
    f(cpu_kernels(), fmt::format("cpu, {} threads", threads));
    f(reference_kernels(), fmt::format("reference, {} threads", threads));
  }
  set_threads(before);
}

TEST(PutInPages, WritesEachPart) {
  constexpr int64_t kHeads = 3, kPages = 5;
  for (const DType dtype : {DType::f32, DType::bf16, DType::i8}) {
    const PageLayout keys{kHeads, 21, dtype}, values{kHeads, 17, dtype};
    const int64_t page_bytes = keys.page_bytes() + values.page_bytes();
    const Array x = Array::normal(kPageTokens * kHeads * 21, DType::f32, 1);
    using Memory = test::SharedVector<char>;
    Memory expected(static_cast<size_t>(kPages * page_bytes));
    const auto parts_of = [&](Memory& memory) {
      std::vector<PageRows> parts;
      for (int64_t i = 0; i < kPages; ++i) {
        char* page = memory.data() + i * page_bytes;
        parts.push_back(
            {&keys, PagePart::keys, {page, DType::u8}, 3 * i, kPageTokens - 7 * i, x.in()});
        parts.push_back({&values,
                         PagePart::values,
                         {page + keys.page_bytes(), DType::u8},
                         2 * i,
                         1 + i,
                         x.in()});
      }
      return parts;
    };
    for (const PageRows& part : parts_of(expected)) put_in_page(part);
    with_every_table([&](const Kernels& kernels, const std::string& name) {
      Memory actual(expected.size());
      kernels.put_in_pages(parts_of(actual));
      EXPECT_EQ(actual, expected) << name << ", " << name_of(dtype);
    });
    Memory of_gpu(expected.size());
    test::gpu_kernels().put_in_pages(parts_of(of_gpu));
    test::wait_for_gpu();
    EXPECT_EQ(of_gpu, expected) << "GPU, " << name_of(dtype);
  }
}

TEST(UnpackRows, ReturnsTheGivenRowsOrAll) {
  constexpr int64_t kOutputs = 37, kWidth = 65;
  const Array matrix = Array::normal(kOutputs * kWidth, DType::f32, 1);
  for (const WeightFormat format :
       {WeightFormat::f32, WeightFormat::bf16, WeightFormat::int8, WeightFormat::int4}) {
    PackedMatrix w{.format = format, .outputs = kOutputs, .width = kWidth, .group = 32};
    std::vector<char> panels(static_cast<size_t>(panels_of(w) * panel_bytes(w)));
    std::vector<uint16_t> scales(static_cast<size_t>(scale_bytes(w)) / 2);
    pack(w, matrix.in(), panels.data(), scales.data());
    w.panels = panels.data(), w.scales = scales.data();
    const std::vector<int32_t> rows = {36, 0, 5, 5};
    std::vector<float> all(kOutputs * kWidth), some(rows.size() * kWidth);
    for (int64_t n = 0; n < kOutputs; ++n) unpack_row(w, n, all.data() + n * kWidth);
    for (size_t i = 0; i < rows.size(); ++i)
      std::copy_n(all.data() + rows[i] * kWidth, kWidth, some.data() + i * kWidth);
    with_every_table([&](const Kernels& kernels, const std::string& name) {
      std::vector<float> y(all.size()), z(some.size());
      kernels.unpack_rows({y.data()}, w, nullptr, kOutputs);
      kernels.unpack_rows({z.data()}, w, rows.data(), std::ssize(rows));
      EXPECT_EQ(y, all) << name;
      EXPECT_EQ(z, some) << name;
    });
  }
}

}  // namespace
}  // namespace fovea

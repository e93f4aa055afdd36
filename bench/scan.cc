// Speed of the exact search in dense vectors (fovea search): float32, int8 and binary vectors are
// compared with a query, beside the rate at which the same threads read memory.
//   build/release/bench/bench_scan [rows] [width]

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "base/threads.h"
#include "fovea/core/random.h"
#include "plan/speed.h"
#include "search/dense_vectors.h"

namespace {

using namespace fovea;

// Returns the shortest time of several calls in seconds: the others were disturbed.
template <class Work>
double seconds_of(const Work& work) {
  double best = 1e9;
  for (int i = 0; i < 7; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
    best = std::min(best, time.count());
  }
  return best;
}

}  // namespace

int main(int count, char** arguments) {
  const int64_t rows = count > 1 ? std::atoll(arguments[1]) : 1'000'000,
                width = count > 2 ? std::atoll(arguments[2]) : 384;
  Random random(1, Stream::init);
  std::vector<float> pool(static_cast<size_t>(width + 4096));
  for (float& x : pool) x = random.normal();
  std::vector<int32_t> numbers(static_cast<size_t>(rows));
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int32_t>(i);
  const double rate = train::measured_bandwidth(thread_count(), 0.5);
  std::printf("%d threads, %lld vectors of %lld elements; memory is read at %.1f GB/s\n",
              thread_count(), static_cast<long long>(rows), static_cast<long long>(width),
              rate / 1e9);
  const std::span<const float> query(pool.data(), static_cast<size_t>(width));
  struct Form {
    const char* name;
    infer::VectorPrecision precision;
    double bytes;  // per vector, that all are compared by
  };
  const auto elements = static_cast<double>(width);
  for (const Form& form : {Form{"int8", infer::VectorPrecision::int8, elements + 4},
                           Form{"binary", infer::VectorPrecision::binary, elements / 8},
                           Form{"float32", infer::VectorPrecision::float32, elements * 4}}) {
    infer::DenseVectors vectors(rows, width, form.precision);
    for (int64_t i = 0; i < rows; ++i) vectors.set(i, pool.data() + i * 2654435761 % 4096);
    const infer::DenseSearch search(query, infer::Similarity::dot, {{&vectors, numbers}});
    const double seconds = seconds_of([&] { static_cast<void>(search.best(10)); });
    const double reached = form.bytes * static_cast<double>(rows) / seconds;
    std::printf("%-8s %8.1f ms, %5.1f GB/s, %3.0f%% of the rate of memory\n", form.name,
                1000 * seconds, reached / 1e9, 100 * reached / rate);
  }
}

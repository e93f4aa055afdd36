// Measures tokenisation on one core. bench_tokenizers TEXT TOKENIZER... prints MB/s for the entire
// text, line by line, and with offsets, and the milliseconds to load the tokenizer. Times are the
// best of a few runs.

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <vector>

#include "base/files.h"
#include "fovea/text/tokenizer.h"

namespace {

double now() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

template <class Work>
double seconds(Work&& work) {
  double best = 1e9;
  for (int run = 0; run < 5; ++run) {
    const double start = now();
    work();
    best = std::min(best, now() - start);
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::string text = fovea::read_file(argv[1]);
  std::vector<std::string_view> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(std::string_view(text).substr(begin, end - begin));
    begin = end + 1;
  }
  const double megabytes = static_cast<double>(text.size()) / 1e6;
  fmt::print("{:>8} {:>8} {:>8} {:>8}\n", "load ms", "whole", "lines", "offsets");
  for (int i = 2; i < argc; ++i) {
    const double load = seconds([&] { fovea::text::Tokenizer::open(argv[i]); });
    const fovea::text::Tokenizer tokenizer = fovea::text::Tokenizer::open(argv[i]);
    std::vector<int32_t> ids;
    const double whole = seconds([&] {
      ids.clear();
      tokenizer.encode(text, ids);
    });
    const double by_line = seconds([&] {
      for (const std::string_view line : lines) {
        ids.clear();
        tokenizer.encode(line, ids);
      }
    });
    const double placed = seconds([&] { (void)tokenizer.tokens(text); });
    fmt::print("{:8.1f} {:8.1f} {:8.1f} {:8.1f}  {}\n", load * 1e3, megabytes / whole,
               megabytes / by_line, megabytes / placed, argv[i]);
  }
  return 0;
}

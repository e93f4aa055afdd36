// Measures whether repetitive texts take time linear in their length:
// bench_tokenizer_worst_cases TOKENIZER... prints for each kind of text the milliseconds for 0.5, 1
// and 2 million bytes, and their ratios. Times are processor time, the best of a few runs.

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <random>
#include <string>
#include <vector>

#include "fovea/text/tokenizer.h"

namespace {

double now() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

std::string repeated(const std::string& unit, size_t size) {
  std::string text;
  while (text.size() < size) text += unit;
  return text;
}

std::string random_bytes(size_t size) {
  std::mt19937 random(1);
  std::string text(size, ' ');
  for (char& byte : text) byte = static_cast<char>(random() & 255);
  return text;
}

double milliseconds(const fovea::text::Tokenizer& tokenizer, const std::string& text) {
  double best = 1e9;
  std::vector<int32_t> ids;
  for (int run = 0; run < 4; ++run) {
    ids.clear();
    const double start = now();
    tokenizer.encode(text, ids);
    best = std::min(best, now() - start);
  }
  return 1e3 * best;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::pair<const char*, std::string>> units = {
      {"a", "a"},
      {"^", "^"},
      {"spaces", " "},
      {"abab", "ab"},
      {"words", "the "},
      {"lines", "\n"},
      {"ZWJ chain", "\U0001f468\u200d\U0001f469\u200d"},
      {"marks", "\u0301\u0327"},
      {"one marked", "a\u0301"},
      {"Hangul", "\u1112\u1161\u11ab"},
      {"bad bytes", "\xff"},
      {"random", ""}};
  for (int i = 1; i < argc; ++i) {
    const fovea::text::Tokenizer tokenizer = fovea::text::Tokenizer::open(argv[i]);
    fmt::print("{}\n{:>12} {:>8} {:>8} {:>8} {:>6} {:>6}\n", argv[i], "", "0.5 MB", "1 MB", "2 MB",
               "ratio", "ratio");
    for (const auto& [name, unit] : units) {
      double times[3];
      for (size_t n = 0; n < 3; ++n) {
        const size_t size = size_t{500'000} << n;
        times[n] =
            milliseconds(tokenizer, unit.empty() ? random_bytes(size) : repeated(unit, size));
      }
      fmt::print("{:>12} {:8.1f} {:8.1f} {:8.1f} {:6.2f} {:6.2f}\n", name, times[0], times[1],
                 times[2], times[1] / times[0], times[2] / times[1]);
    }
  }
}

#include "fovea/answer.h"

#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea {
namespace {

TEST(CitedNumbers, AreThoseInBrackets) {
  using Numbers = std::vector<int64_t>;
  EXPECT_EQ(cited_numbers("Foxes see [2]. They hear [1][2], and [10]."), (Numbers{1, 2, 10}));
  EXPECT_EQ(cited_numbers("as in [1, 3] and [4,5]"), (Numbers{1, 3, 4, 5}));
  EXPECT_EQ(cited_numbers("[0] [99999999999999999999]"), (Numbers{0, 1'000'000'000}));
  for (const char* text : {"", "none", "[]", "[a]", "[1", "(1)", "[1a]", "[ ]", "[,]"})
    EXPECT_TRUE(cited_numbers(text).empty()) << text;
}

}  // namespace
}  // namespace fovea

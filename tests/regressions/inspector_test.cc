#include "inspector/routes.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "unit/inspector/routes_fixture.h"

namespace fovea::inspector {
namespace {

// Nested JSON in POST /api/run crashed the program, and an object with many keys kept it busy for
// minutes. Nesting and keys now have limits.
TEST_F(RoutesTest, ReadsRunsWithinLimits) {
  const std::string deep = std::string(150'000, '[') + std::string(150'000, ']');
  refused(post(R"({"model":"0","text":"to","x":)" + deep + "}"), 400, "nested");
  std::string keys = R"({"model":"0","text":"to")";
  for (int i = 0; i < 100'000; ++i) keys += ",\"" + std::to_string(i) + "\":0";
  refused(post(keys + "}"), 400, "100000 keys");
}

// The id 1.5 was read as 1, and 2^32 as 0. Ids must be integers of the vocabulary.
TEST_F(RoutesTest, RequiresIntegerIds) {
  for (const char* ids : {"[1.5]", "[4294967296]", "[-1]", "[1e300]", "[18446744073709551615]"}) {
    refused(post(std::string(R"({"ids": )") + ids + "}"), 400, "ids");
    refused(post(std::string(R"({"text": "to", "target_ids": )") + ids + "}"), 400, "target_ids");
  }
  refused(post(R"({"ids": 1})"), 400, "JSON");
  refused(post(R"({"text": "to", "muted": [["self", 0.5, 0]]})"), 400, "muted");
  refused(get("api/texts", {{"model", "0"}, {"ids", "4294967296"}}), 400, "ids");
  EXPECT_EQ(post(R"({"ids": [1, 2]})").status, 200);
}

// An untrusted folder stopped the inspector: nested JSON in its log.jsonl crashed the program, and
// a FIFO of that name blocked both handlers forever, even after SIGTERM.
TEST_F(TrainingLogTest, SurvivesAHostileLog) {
  const std::string deep = std::string(500'000, '[') + std::string(500'000, ']');
  write("{\"step\":1,\"loss\":" + deep + "}\n{\"step\":2,\"loss\":{\"a\":[1]}}\nnull\n[]\n\n\n" +
        "{\"step\":\"" + std::string(1'000'000, 'x') + "\",\"eval_loss\":\"x\"}\n");
  const Json json = log();
  EXPECT_EQ(json["steps"], Json::array({Json({2, nullptr, nullptr, nullptr, nullptr})}));
  EXPECT_LT(json.dump().size(), 1000u);

  std::filesystem::remove(folder_ + "/log.jsonl");
  ASSERT_EQ(mkfifo((folder_ + "/log.jsonl").c_str(), 0600), 0);
  EXPECT_THROW(log(), Error);
  Routes routes(std::vector<std::string>{folder_});
  EXPECT_EQ(routes.respond({"GET", "api/training", {{"model", "0"}}, ""}).status, 400);
}

}  // namespace
}  // namespace fovea::inspector

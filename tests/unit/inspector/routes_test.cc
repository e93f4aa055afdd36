// Requests as sent by the page, and hostile requests.

#include "inspector/routes.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "fovea/error.h"
#include "fovea/model.h"
#include "fovea/train_tokenizer.h"
#include "inspector/page.h"
#include "inspector/save.h"

namespace fovea::inspector {
namespace {

using Json = nlohmann::json;

Model small() {
  const std::string folder = testing::TempDir() + "/inspector_routes" + std::to_string(getpid());
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/text.txt") << "to be, or not to be <b>that</b>\n";
  TokenizerTraining characters;
  characters.kind = TokenizerKind::character;
  const auto trained = train_tokenizer({folder + "/text.txt"}, characters);
  Spec spec;
  spec.vocabulary = 0;
  spec.context = 16;
  spec.width = 16;
  spec.decoder->layers = 2;
  spec.decoder->attention.heads = 2;
  return Model::create(spec, trained->tokenizer, 1);
}

class RoutesTest : public testing::Test {
 protected:
  RoutesTest() : routes_("small", small()) {}

  Answer get(const std::string& path, const std::map<std::string, std::string>& query = {}) {
    return routes_.answer({"GET", path, query, ""});
  }
  Answer post(const std::string& body) { return routes_.answer({"POST", "api/run", {}, body}); }
  Json run(const std::string& text) {
    return Json::parse(post(Json({{"model", "0"}, {"text", text}}).dump()).body);
  }
  void refused(const Answer& answer, int status, const std::string& text) {
    EXPECT_EQ(answer.status, status) << answer.body;
    EXPECT_NE(Json::parse(answer.body)["error"]["message"].get<std::string>().find(text),
              std::string::npos)
        << answer.body;
  }

  Routes routes_;
};

TEST_F(RoutesTest, ReturnsTheTokensOfARunAndReusesIt) {
  const Json first = run("to be");
  EXPECT_EQ(first["tokens"].size(), 5u);
  EXPECT_EQ(first["tokens"][2]["text"], " ");
  EXPECT_EQ(run("to be")["run"], first["run"]);
  EXPECT_NE(run("to be,")["run"], first["run"]);
}

TEST_F(RoutesTest, ReturnsBinaryMapsWithTheirShape) {
  const std::string id = run("to be")["run"];
  const Answer answer =
      get("api/map", {{"run", id}, {"layer", "1"}, {"heads", "0,1"}, {"q", "2-4"}});
  ASSERT_EQ(answer.status, 200) << answer.body;
  int32_t shape[3];
  std::memcpy(shape, answer.body.data(), sizeof shape);
  EXPECT_EQ(shape[0], 2);
  EXPECT_EQ(shape[1], 2);
  EXPECT_EQ(shape[2], 5);
  ASSERT_EQ(answer.body.size(), 12u + 4 * 20);
  float row[5];
  std::memcpy(row, answer.body.data() + 12, sizeof row);
  EXPECT_NEAR(row[0] + row[1] + row[2], 1, 1e-6);
  EXPECT_EQ(row[3], 0);
}

TEST_F(RoutesTest, ServesEveryRoute) {
  const std::string id = run("to be")["run"];
  for (const char* path : {"api/surprise", "api/sizes"})
    EXPECT_EQ(get(path, {{"run", id}}).status, 200);
  for (const char* path : {"api/scores", "api/routing"})
    EXPECT_EQ(get(path, {{"run", id}, {"layer", "0"}}).status, 200) << path;
  EXPECT_EQ(get("api/walk", {{"run", id}, {"layer", "0"}, {"head", "1"}, {"token", "2"}}).status,
            200);
  EXPECT_EQ(get("api/lens", {{"run", id}, {"places", "0-3"}}).status, 200);
  EXPECT_EQ(get("api/strongest", {{"run", id}, {"layer", "0"}, {"heads", "0"}}).status, 200);
  EXPECT_EQ(get("api/induction", {{"model", "0"}}).status, 200);
  EXPECT_EQ(get("api/models").status, 200);
  const Json spec = Json::parse(get("api/spec", {{"model", "0"}}).body);
  EXPECT_EQ(spec["spec"]["decoder"]["layers"], 2);
  EXPECT_EQ(get("api/logits", {{"run", id}, {"place", "4"}}).body.size(),
            spec["spec"]["vocabulary"].get<size_t>() * 4);
  EXPECT_EQ(Json::parse(get("api/texts", {{"model", "0"}, {"ids", "0,1"}}).body).size(), 2u);
}

TEST_F(RoutesTest, NamesInvalidParameters) {
  const std::string id = run("to be")["run"];
  refused(get("api/map", {{"run", id}, {"layer", "2"}, {"heads", "0"}}), 400, "layer 2");
  refused(get("api/map", {{"run", id}, {"layer", "-1"}, {"heads", "0"}}), 400, "a whole number");
  refused(get("api/map", {{"run", id}, {"layer", "0"}}), 400, "heads");
  refused(get("api/map", {{"run", id}, {"layer", "0"}, {"heads", "0"}, {"q", "3-9"}}), 400,
          "query rows");
  refused(get("api/map", {{"run", id}, {"layer", "99999999999999999999"}, {"heads", "0"}}), 400,
          "layer");
  refused(get("api/scores", {{"run", id}, {"layer", "0"}, {"look", "cross"}}), 400, "look");
  refused(get("api/scores", {{"run", id}, {"layer", "0"}, {"look", "out"}}), 400,
          "self, encoder or cross");
  refused(get("api/surprise", {{"run", "r99"}}), 410, "evicted");
  refused(get("api/spec", {{"model", "1"}}), 400, "given at the start");
  refused(get("api/spec", {{"model", "../etc"}}), 400, "a whole number");
  refused(get("api/texts", {{"model", "0"}, {"ids", "100000"}}), 400, "ids: 100000");
  refused(get("../../etc/passwd"), 404, "unknown page");
  refused(post("{"), 400, "JSON");
  refused(post("[]"), 400, "JSON");
  refused(post(R"({"text": 5})"), 400, "JSON");
  refused(post(R"({"text": "to", "muted": [["self"]]})"), 400, "JSON");
  refused(post(R"({"text": "to", "muted": [["self", 0, 7]]})"), 400, "head 7");
  refused(post(R"({"text": ""})"), 400, "no tokens");
  refused(post(Json({{"text", std::string(17, 't')}}).dump()), 400, "at most 16");
  refused(post(Json({{"text", std::string(kInspectedBytes + 1, 't')}}).dump()), 400,
          "bytes; expected");
  refused(post(std::string(size_t{2} << 20, 't')), 413, "expected at most");
  refused(routes_.answer({"DELETE", "api/run", {}, ""}), 405, "GET or POST");
}

TEST_F(RoutesTest, EvictsOldRuns) {
  const std::string first = run("to")["run"];
  for (int i = 0; i < 8; ++i) run("to be" + std::string(static_cast<size_t>(i) + 1, 't'));
  refused(get("api/surprise", {{"run", first}}), 410, "evicted");
}

TEST(Page, IsServedWithoutExternalResources) {
  EXPECT_EQ(page_file("").status, 200);
  EXPECT_EQ(page_file("main.js").type, "text/javascript; charset=utf-8");
  for (const auto& [name, bytes] : page_files()) {
    EXPECT_EQ(bytes.find("innerHTML"), std::string_view::npos) << name;
    EXPECT_EQ(bytes.find("https://"), std::string_view::npos) << name;
  }
}

TEST(Page, EscapesTextInASavedView) {
  InspectInput input;
  input.text = "not </b>";
  const std::string page = saved_view("small", small(), input, Look::self, 1, 0);
  EXPECT_NE(page.find("id=\"captured\""), std::string::npos);
  EXPECT_EQ(page.find("not </b>"), std::string::npos);
  EXPECT_NE(page.find("not \\u003c/b>"), std::string::npos);
}

TEST(Base64, PadsCorrectly) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64(std::string("\xff\x00\x80", 3)), "/wCA");
}

// Nested JSON once crashed the program, and many keys kept it busy for minutes.
TEST_F(RoutesTest, ReadsRunsWithinLimits) {
  const std::string deep = std::string(150'000, '[') + std::string(150'000, ']');
  refused(post(R"({"model":"0","text":"to","x":)" + deep + "}"), 400, "nested");
  std::string keys = R"({"model":"0","text":"to")";
  for (int i = 0; i < 100'000; ++i) keys += ",\"" + std::to_string(i) + "\":0";
  refused(post(keys + "}"), 400, "100000 keys");
}

// 1.5 was once accepted as 1, and 2^32 as 0.
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

class TrainingLogTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/training_log" + std::to_string(getpid());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void write(const std::string& text) { std::ofstream(folder_ + "/log.jsonl") << text; }
  Json log() { return Json::parse(training_log(folder_)); }

  std::string folder_;
};

TEST_F(TrainingLogTest, ThinsLongLogs) {
  EXPECT_EQ(log()["steps"].size(), 0u) << "there is no log";
  std::string text;
  for (int i = 1; i <= 5000; ++i) {
    const std::string step = "{\"step\":" + std::to_string(i);
    text += step + ",\"loss\":2.5,\"grad_norm\":1}\n" + step + ",\"eval_loss\":3}\n";
  }
  write(text + "{\"step\":5001,\"lo");
  const Json json = log();
  for (const char* curve : {"steps", "evaluations"}) {
    EXPECT_GT(json[curve].size(), 500u);
    EXPECT_LE(json[curve].size(), 1001u);
  }
  EXPECT_EQ(json["steps"][0], Json({1, 2.5, 1, nullptr, nullptr}));
  EXPECT_EQ(json["steps"][1][0], 9);
  EXPECT_EQ(json["steps"].back()[0], 5000);
  EXPECT_EQ(json["evaluations"].back()["eval_loss"], 3);
}

// A directory may have any contents: nested JSON crashed the program, and a FIFO blocked both
// handlers forever, even after SIGTERM.
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
  EXPECT_EQ(routes.answer({"GET", "api/training", {{"model", "0"}}, ""}).status, 400);
}

}  // namespace
}  // namespace fovea::inspector

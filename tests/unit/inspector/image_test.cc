#include <gtest/gtest.h>

#include <cstring>

#include "base/files.h"
#include "base/json.h"
#include "fovea/core/read_file.h"
#include "inspector/routes.h"

namespace fovea::inspector {
namespace {

const std::string kImageModels = "tests/goldens/";

Response seen_by(Routes& routes, const std::string& file, const std::string& question = "") {
  return routes.respond({"POST", kImagePath, {{"model", "0"}, {"question", question}}, file});
}

std::string image_bytes() { return read_file("tests/goldens/images/011.jpg"); }

nlohmann::json good(const Response& response) {
  EXPECT_EQ(response.status, 200) << response.body;
  return parse_json(response.body, "answer");
}

TEST(ImageRoute, GivesTheTokensAndPixelsOfAnEncoder) {
  Routes routes({kImageModels + "deit"});
  const nlohmann::json json = good(seen_by(routes, image_bytes()));
  const int64_t side = json.at("side");
  EXPECT_EQ(std::ssize(json.at("pixels").get<std::string>()), (3 * side * side + 2) / 3 * 4);
  const nlohmann::json& grid = json.at("grids").at(0);
  const int64_t patches = grid.at("rows").get<int64_t>() * grid.at("columns").get<int64_t>();
  EXPECT_EQ(std::ssize(grid.at("tokens")), patches);
  const nlohmann::json& tokens = json.at("tokens");
  const int64_t T = std::ssize(tokens);
  EXPECT_EQ(tokens.at(0).at("text"), "class token");
  EXPECT_EQ(tokens.at(grid.at("tokens").at(0).get<size_t>()).at("text"), "row 1, column 1");
  EXPECT_FALSE(json.at("labels").empty());

  const std::string run = json.at("run");
  const Response map = routes.respond(
      {"GET", "api/map", {{"run", run}, {"layer", "0"}, {"heads", "0,1"}, {"q", "1-2"}}, ""});
  EXPECT_EQ(std::ssize(map.body), 12 + 2 * T * 4);
  const Response rollout =
      routes.respond({"GET", "api/rollout", {{"run", run}, {"token", "0"}}, ""});
  ASSERT_EQ(std::ssize(rollout.body), 4 * T);
  float sum = 0;
  for (int64_t t = 0; t < T; ++t) {
    float weight = 0;
    std::memcpy(&weight, rollout.body.data() + 4 * t, 4);
    sum += weight;
  }
  EXPECT_NEAR(sum, 1, 1e-5);
  EXPECT_EQ(routes.respond({"GET", "api/rollout", {{"run", run}, {"token", "99999"}}, ""}).status,
            400);
  const nlohmann::json spec = good(routes.respond({"GET", "api/spec", {{"model", "0"}}, ""}));
  EXPECT_EQ(spec.at("images"), true);
}

// A model without a vocabulary divided by 0, which ended the process.
TEST(ImageRoute, HasNoInductionScores) {
  Routes routes({kImageModels + "deit"});
  const Response response = routes.respond({"GET", "api/induction", {{"model", "0"}}, ""});
  EXPECT_EQ(response.status, 400);
  EXPECT_NE(response.body.find("reads no tokens"), std::string::npos) << response.body;
}

TEST(ImageRoute, AnswersQuestions) {
  Routes routes({kImageModels + "image_text/llava"});
  const nlohmann::json json = good(seen_by(routes, image_bytes(), "What is this?"));
  const int64_t begin = json.at("answer_begin");
  EXPECT_GT(begin, 9);
  EXPECT_LT(begin, std::ssize(json.at("tokens")));
  EXPECT_FALSE(json.at("answer").get<std::string>().empty());
  EXPECT_TRUE(json.at("labels").empty());
  const nlohmann::json spec = good(routes.respond({"GET", "api/spec", {{"model", "0"}}, ""}));
  EXPECT_EQ(spec.at("images"), true);
  EXPECT_EQ(spec.at("tokenizer"), true);
}

TEST(ImageRoute, RefusesWhatIsNoImageAndModelsOfTexts) {
  Routes routes({kImageModels + "deit"});
  // Longer than any text.
  const Response large = seen_by(routes, std::string(2 << 20, 'x'));
  EXPECT_EQ(large.status, 400);
  EXPECT_NE(large.body.find("image: not an image"), std::string::npos) << large.body;
  Routes text({"apps/inspector/course_model"});
  const Response other = seen_by(text, image_bytes(), "What?");
  EXPECT_EQ(other.status, 400);
  EXPECT_NE(other.body.find("it reads no images"), std::string::npos) << other.body;
}

TEST(ImageRoute, BeginsWithAGivenImage) {
  Routes routes({kImageModels + "deit"});
  EXPECT_TRUE(routes.respond({"GET", "api/opening", {}, ""}).body.empty());
  routes.begin_with("bytes");
  EXPECT_EQ(routes.respond({"GET", "api/opening", {}, ""}).body, "bytes");
}

}  // namespace
}  // namespace fovea::inspector

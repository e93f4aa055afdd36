#include "inspector/compare.h"

#include <cmath>
#include <cstring>

#include "unit/inspector/routes_fixture.h"

namespace fovea::inspector {
namespace {

TEST_F(RoutesTest, WritesAnAnswer) {
  const auto ask = [&](const Json& body) {
    return routes_.respond({"POST", "api/generation", {}, body.dump()});
  };
  const Json asked = {{"model", "0"}, {"prompt", "to be"}, {"tokens", 4}};
  const Json answer = Json::parse(ask(asked).body);
  EXPECT_EQ(answer["begin"], 5);
  EXPECT_EQ(answer["ids"].size(), 9u);
  EXPECT_FALSE(answer["chat"]);
  EXPECT_EQ(Json::parse(ask(asked).body), answer);
  const Json again = Json::parse(
      routes_.respond({"POST", "api/run", {}, Json({{"ids", answer["ids"]}}).dump()}).body);
  std::string text;
  for (size_t t = 5; t < 9; ++t) text += again["tokens"][t]["text"].get<std::string>();
  EXPECT_EQ(text, answer["text"].get<std::string>());
  EXPECT_EQ(Json::parse(ask({{"prompt", "to be"}, {"tokens", 64}}).body)["ids"].size(), 16u);
  refused(ask({{"prompt", "to be, or not to be"}}), 400, "19 tokens; expected fewer than 16");
  refused(ask({{"model", "0"}}), 400, "prompt: is empty");
  refused(ask({{"prompt", "a"}, {"tokens", 1000}}), 400,
          "tokens: expected an integer from 1 to 256");
  refused(ask({{"model", "1"}, {"prompt", "a"}}), 400, "model: 1; expected one of the models");
  refused(ask({{"prompt", 3}}), 400, "not the expected JSON");
}

// KL(p || q) of the distributions after each token, from the logits of both runs.
TEST_F(RoutesTest, ComparesTwoRuns) {
  const auto start = [&](const Json& muted) -> std::string {
    return Json::parse(post(Json({{"text", "to be"}, {"muted", muted}}).dump()).body)["run"];
  };
  const std::string one = start(Json::array()), other = start({{"self", 1, 0}});
  const auto compared = [&](const std::string& a, const std::string& b) {
    return get("api/divergence", {{"run", a}, {"other", b}});
  };
  const Json found = Json::parse(compared(one, other).body);
  ASSERT_EQ(found.size(), 5u);
  const auto distribution = [&](const std::string& run) {
    const std::string bytes = get("api/logits", {{"run", run}, {"position", "3"}}).body;
    std::vector<float> logits(bytes.size() / sizeof(float));
    std::memcpy(logits.data(), bytes.data(), bytes.size());
    std::vector<double> p;
    double sum = 0;
    for (const float logit : logits) sum += p.emplace_back(std::exp(double{logit}));
    for (double& each : p) each /= sum;
    return p;
  };
  const std::vector<double> p = distribution(one), q = distribution(other);
  double kl = 0, reverse = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    kl += p[i] * std::log(p[i] / q[i]);
    reverse += q[i] * std::log(q[i] / p[i]);
  }
  EXPECT_GT(kl, 0);
  EXPECT_NEAR(found[3]["kl"].get<double>(), kl, 1e-9);
  EXPECT_NEAR(found[3]["reverse"].get<double>(), reverse, 1e-9);
  for (const Json& place : Json::parse(compared(one, one).body)) EXPECT_EQ(place["kl"], 0);
  refused(compared(one, run("to be,")["run"]), 400, "other: has different tokens");
  refused(compared(one, "r99"), 410, "other: evicted");
}

TEST_F(TrainingLogTest, HasMeasurementsAndSamplesOfReinforcement) {
  write(
      "{\"step\":0,\"reward\":0.25}\n{\"step\":0,\"sample\":\"before\"}\n"
      "{\"step\":1,\"loss\":0.5,\"reward\":0.5,\"kl\":0.125,\"clip_fraction\":0}\n"
      "{\"step\":2,\"loss\":0.25,\"kl\":0.25}\n{\"step\":2,\"sample\":\"between\"}\n"
      "{\"step\":3,\"sample\":\"after\"}\n");
  const Json found = log();
  EXPECT_EQ(found["metrics"]["reward"], Json::parse("[[1, 0.5]]"));
  EXPECT_EQ(found["metrics"]["held_out_reward"], Json::parse("[[0, 0.25]]"));
  EXPECT_EQ(found["metrics"]["kl"], Json::parse("[[1, 0.125], [2, 0.25]]"));
  EXPECT_EQ(found["samples"], Json::parse(R"([{"step": 0, "text": "before"},
                                              {"step": 3, "text": "after"}])"));
  EXPECT_EQ(found["steps"].size(), 2u);
  EXPECT_TRUE(found["evaluations"].empty());
}

}  // namespace
}  // namespace fovea::inspector

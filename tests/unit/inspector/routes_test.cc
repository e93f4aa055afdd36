// Handles requests like those of the page, and hostile ones.

#include "inspector/routes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "fovea/study/explain.h"
#include "inspector/page.h"
#include "inspector/save.h"
#include "support/expect_error.h"
#include "unit/inspector/routes_fixture.h"

namespace fovea::inspector {
namespace {

TEST_F(RoutesTest, ReturnsTheTokensOfARunAndReusesIt) {
  const Json first = run("to be");
  EXPECT_EQ(first["tokens"].size(), 5u);
  EXPECT_EQ(first["tokens"][2]["text"], " ");
  EXPECT_EQ(run("to be")["run"], first["run"]);
  EXPECT_NE(run("to be,")["run"], first["run"]);
}

TEST_F(RoutesTest, ReturnsBinaryMapsWithTheirShape) {
  const std::string id = run("to be")["run"];
  const Response response =
      get("api/map", {{"run", id}, {"layer", "1"}, {"heads", "0,1"}, {"q", "2-4"}});
  ASSERT_EQ(response.status, 200) << response.body;
  int32_t shape[3];
  std::memcpy(shape, response.body.data(), sizeof shape);
  EXPECT_EQ(shape[0], 2);
  EXPECT_EQ(shape[1], 2);
  EXPECT_EQ(shape[2], 5);
  ASSERT_EQ(response.body.size(), 12u + 4 * 20);
  float row[5];
  std::memcpy(row, response.body.data() + 12, sizeof row);
  EXPECT_NEAR(row[0] + row[1] + row[2], 1, 1e-6);
  EXPECT_EQ(row[3], 0);
}

TEST_F(RoutesTest, ReturnsTheVectorsOfATokenInEveryLayer) {
  const std::string id = run("to be")["run"];
  const Response response = get("api/vectors", {{"run", id}, {"token", "1"}});
  ASSERT_EQ(response.status, 200) << response.body;
  int32_t shape[2];
  std::memcpy(shape, response.body.data(), sizeof shape);
  EXPECT_EQ(shape[0], 4);  // before two layers, after them, and after the final norm
  EXPECT_EQ(shape[1], 16);
  EXPECT_EQ(response.body.size(), 8u + 4 * 4 * 16);
  // The residual stream that the walk shows.
  const Json steps = Json::parse(
      get("api/walk",
          {{"run", id}, {"layer", "1"}, {"head", "0"}, {"token", "1"}, {"values", "16"}})
          .body);
  const auto stream = std::find_if(steps.begin(), steps.end(),
                                   [](const Json& step) { return step["name"] == "stream"; });
  float row[16];
  std::memcpy(row, response.body.data() + 8 + 4 * 16, sizeof row);
  for (size_t i = 0; i < 16; ++i) EXPECT_FLOAT_EQ((*stream)["values"][i].get<float>(), row[i]);
  refused(get("api/vectors", {{"run", id}, {"token", "5"}}), 400, "expected 0 to 4");
}

TEST_F(RoutesTest, RefusesAChatPromptWithoutATemplate) {
  EXPECT_EQ(Json::parse(get("api/spec", {{"model", "0"}}).body)["chat"], false);
  refused(routes_.respond({"POST", "api/prompt", {}, R"({"prompt": "hi"})"}), 400,
          "has no chat template");
}

TEST(RouteNames, TellModelsOfOneNameApartByTheirDirectories) {
  Routes routes({"one/model", "two/model/", "two/other"});
  const Json models = Json::parse(routes.respond({"GET", "api/models", {}, ""}).body);
  EXPECT_EQ(models[0]["name"], "one/model");
  EXPECT_EQ(models[1]["name"], "two/model");
  EXPECT_EQ(models[2]["name"], "other");
}

TEST_F(RoutesTest, ServesEveryRoute) {
  const std::string id = run("to be")["run"];
  for (const char* path : {"api/surprise", "api/sizes"})
    EXPECT_EQ(get(path, {{"run", id}}).status, 200);
  for (const char* path : {"api/scores", "api/routing"})
    EXPECT_EQ(get(path, {{"run", id}, {"layer", "0"}}).status, 200) << path;
  EXPECT_EQ(get("api/walk", {{"run", id}, {"layer", "0"}, {"head", "1"}, {"token", "2"}}).status,
            200);
  EXPECT_EQ(get("api/lens", {{"run", id}, {"positions", "0-3"}}).status, 200);
  EXPECT_EQ(get("api/strongest", {{"run", id}, {"layer", "0"}, {"heads", "0"}}).status, 200);
  EXPECT_EQ(get("api/induction", {{"model", "0"}}).status, 200);
  EXPECT_EQ(get("api/models").status, 200);
  const Json spec = Json::parse(get("api/spec", {{"model", "0"}}).body);
  EXPECT_EQ(spec["spec"]["decoder"]["layers"], 2);
  EXPECT_EQ(get("api/logits", {{"run", id}, {"position", "4"}}).body.size(),
            spec["spec"]["vocabulary"].get<size_t>() * 4);
  EXPECT_EQ(Json::parse(get("api/texts", {{"model", "0"}, {"ids", "0,1"}}).body).size(), 2u);
}

TEST_F(RoutesTest, ServesTheCircuitsOfARun) {
  const std::string id = run("to be")["run"], other = run("be to")["run"];
  const Json neurons =
      Json::parse(get("api/neurons", {{"run", id}, {"token", "4"}, {"count", "3"}}).body);
  ASSERT_EQ(neurons.size(), 2u);
  EXPECT_EQ(neurons[1].size(), 3u);
  EXPECT_EQ(neurons[1][0]["promoted"].size(), 6u);
  const Json votes = Json::parse(
      get("api/attribution", {{"run", id}, {"token", "4"}, {"one", "1"}, {"two", "2"}}).body);
  EXPECT_EQ(votes["heads"].size(), 2u);
  const Json patched = Json::parse(
      get("api/patched", {{"run", id}, {"other", other}, {"one", "1"}, {"two", "2"}}).body);
  EXPECT_EQ(patched["patched"][1].size(), 5u);
  const Json ids = Json::parse(
      get("api/steered",
          {{"run", id}, {"other", other}, {"layer", "1"}, {"strength", "-1.5"}, {"tokens", "3"}})
          .body);
  EXPECT_EQ(ids.size(), 3u);
  const Json circuit =
      Json::parse(get("api/circuit", {{"run", id}, {"layer", "0"}, {"head", "1"}}).body);
  EXPECT_EQ(circuit["scores"].size(), 5u);
  EXPECT_EQ(circuit["written"][0].size(), 6u);
  refused(get("api/rotary", {{"run", id}, {"layer", "0"}}), 400, "expected rotary positions");
  refused(get("api/neurons", {{"run", id}, {"token", "5"}}), 400, "token: 5; expected 0 to 4");
  refused(get("api/steered", {{"run", id}, {"other", other}, {"layer", "1"}, {"strength", "nan"}}),
          400, "strength: 'nan'; expected a number");
  refused(get("api/patched", {{"run", id}, {"other", "r99"}, {"one", "1"}, {"two", "2"}}), 410,
          "other: evicted");
  refused(post(R"({"text": "to", "muted_neurons": [["self", 0]]})"), 400, "JSON");
  refused(post(R"({"text": "to", "muted_neurons": [["self", 0, 64]]})"), 400,
          "neuron 64 of layer 0");
  EXPECT_NE(Json::parse(post(R"({"text": "to", "muted_neurons": [["self", 0, 3]]})").body)["run"],
            Json::parse(post(R"({"text": "to"})").body)["run"]);
}

TEST_F(RoutesTest, NamesInvalidParameters) {
  const std::string id = run("to be")["run"];
  refused(get("api/map", {{"run", id}, {"layer", "2"}, {"heads", "0"}}), 400, "layer: 2");
  refused(get("api/map", {{"run", id}, {"layer", "-1"}, {"heads", "0"}}), 400, "an integer of");
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
  refused(get("api/spec", {{"model", "../etc"}}), 400, "an integer of");
  refused(get("api/texts", {{"model", "0"}, {"ids", "100000"}}), 400, "ids: 100000");
  refused(get("../../etc/passwd"), 404, "unknown page");
  refused(post("{"), 400, "JSON");
  refused(post("[]"), 400, "JSON");
  refused(post(R"({"text": 5})"), 400, "JSON");
  refused(post(R"({"text": "to", "muted": [["self"]]})"), 400, "JSON");
  refused(post(R"({"text": "to", "muted": [["self", 0, 7]]})"), 400, "head: 7");
  refused(post(R"({"text": ""})"), 400, "no tokens");
  refused(post(Json({{"text", std::string(17, 't')}}).dump()), 400, "at most 16");
  refused(post(Json({{"text", std::string(study::kInspectedBytes + 1, 't')}}).dump()), 400,
          "bytes; expected");
  refused(post(std::string(size_t{2} << 20, 't')), 413, "expected a text of at most");
  refused(routes_.respond({"DELETE", "api/run", {}, ""}), 405, "GET or POST");
}

// A step of 2^63 - 1 overflowed to a division by 0, which ended the process.
TEST_F(RoutesTest, AnyNumberGivesAnAnswerOrAnError) {
  const std::string id = run("to be")["run"];
  for (const char* path :
       {"map", "strongest", "scores", "lens", "walk", "vectors", "logits", "rollout", "routing",
        "sizes", "neurons", "attribution", "circuit", "rotary", "patched", "steered", "sample"})
    for (const char* name : {"layer", "heads", "head", "q", "k", "step", "count", "positions",
                             "token", "values", "position", "one", "two", "tokens", "strength"})
      for (const std::string number :
           {"0", "2147483648", "9223372036854775806", "9223372036854775807"}) {
        std::map<std::string, std::string> query = {
            {"model", "0"},       {"run", id},   {"other", id},  {"layer", "0"},
            {"heads", "0"},       {"head", "0"}, {"token", "0"}, {"position", "0"},
            {"positions", "0-1"}, {"one", "0"},  {"two", "1"},   {"strength", "1"},
            {"tokens", "1"}};
        const bool span =
            std::string(name).find_first_of("qk") == 0 || name == std::string("positions");
        query[name] = span ? "1-" + number : number;
        const int status = get(std::string("api/") + path, query).status;
        EXPECT_TRUE(status == 200 || status == 400) << path << " " << name << " " << number;
      }
  const Response whole = get(
      "api/map", {{"run", id}, {"layer", "0"}, {"heads", "0"}, {"step", "9223372036854775807"}});
  EXPECT_EQ(whole.body.size(), 4 * sizeof(float)) << "three sizes and one weight";
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

TEST(Page, PreloadsTheModulesOfTheFirstViewOnly) {
  const std::string page = page_file("").body;
  for (const char* name : {"main.js", "overview.js", "dom.js", "roles.js"})
    EXPECT_NE(page.find(std::string("rel=\"modulepreload\" href=\"") + name), page.npos) << name;
  for (const char* name : {"quiz.js", "course.js", "heatmap.js"})
    EXPECT_EQ(page.find(name), page.npos) << name;
}

TEST(Page, EscapesTextInASavedView) {
  study::InspectInput input;
  input.text = "not </b>";
  const std::string page = saved_view("small", small(), input, {model::AttentionKind::self, 1, 0});
  EXPECT_NE(page.find("id=\"captured\""), std::string::npos);
  EXPECT_EQ(page.find("not </b>"), std::string::npos);
  EXPECT_NE(page.find("not \\u003c/b>"), std::string::npos);
}

TEST(Page, IsSavedWithTheMapsOfAllLayersThatHaveThem) {
  study::InspectInput input;
  input.text = "not";
  const model::Model model = small({model::MixerKind::gru, model::MixerKind::latent});
  const std::string page = saved_view("small", model, input, {});
  EXPECT_EQ(page.find("api/map?look=self&layer=0"), std::string::npos);
  EXPECT_NE(page.find("api/map?look=self&layer=1"), std::string::npos);
}

TEST(Page, IsNotSavedWithALayerOrHeadThatDoesNotExist) {
  study::InspectInput input;
  input.text = "not";
  const auto refused = [&](const model::HeadIndex& head, const char* error) {
    expect_error(ErrorKind::InvalidArgument, {error},
                 [&] { saved_view("small", small(), input, head); });
  };
  refused({model::AttentionKind::self, 99, 0}, "layer: 99; expected 0 to 1");
  refused({model::AttentionKind::self, 1, 2}, "head: 2; expected 0 to 1");
  refused({model::AttentionKind::encoder, 0, 0}, "look: encoder and cross need");
}

TEST_F(RoutesTest, ExplainsTheNextToken) {
  const auto explain = [&](const Json& body) {
    return routes_.respond({"POST", "api/explain", {}, body.dump()});
  };
  const Json all = Json::parse(explain({{"text", "to be"}}).body);
  ASSERT_EQ(all["attributions"].size(), 3u);
  EXPECT_EQ(all["tokens"].size(), 5u);
  EXPECT_EQ(all["attributions"][0]["scores"].size(), 5u);
  EXPECT_EQ(all["target"], all["outputs"][0]["name"]);
  const std::string second = "#" + std::to_string(all["outputs"][1]["id"].get<int>());
  const Json other = Json::parse(
      explain({{"text", "to be"}, {"target", second}, {"method", "gradient_input"}}).body);
  ASSERT_EQ(other["attributions"].size(), 1u);
  EXPECT_EQ(other["target"], all["outputs"][1]["name"]);
  EXPECT_LE(other["value"], all["value"]);
  study::InspectInput input;
  input.text = "to be";
  EXPECT_EQ(all["value"], fovea::study::explain(small(), input).at(0).value);

  EXPECT_EQ(all["results"].dump(), Json({{{"target", all["target"]}, {"text", ""}}}).dump());
  refused(explain({{"text", "to"}, {"result", -1}}), 400, "result: expected an integer from 0");
  refused(explain({{"text", "to"}, {"result", 1}}), 400, "result: 1; the text has 1 results");
  refused(explain({{"text", ""}}), 400, "text: no tokens");
  refused(explain({{"text", "to"}, {"model", "7"}}), 400, "model: 7");
  refused(explain({{"text", "to"}, {"target", "#999"}}), 400, "target: #999");
  refused(explain({{"text", "to"}, {"baseline", 3}}), 400, "baseline: expected one of automatic");
  refused(explain({{"text", "to"}, {"integration_steps", 1001}}), 400, "from 0 to 1000");
  refused(explain({{"text", "to"}, {"removed_share", 0}}), 400, "removed_share: expected a number");
  refused(explain({{"text", "to"}, {"seed", -1}}), 400, "seed: expected an integer");
  refused(explain({{"text", "to"}, {"target", 1}}), 400, "target: expected a text");
}

TEST(Base64, PadsCorrectly) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64(std::string("\xff\x00\x80", 3)), "/wCA");
}

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

}  // namespace
}  // namespace fovea::inspector

#include "serve/jobs/tuning_routes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "serve/request/fields.h"
#include "unit/http/fake_exchange.h"
#include "unit/tuning/tuning_fixture.h"

namespace fovea::serve {
namespace {

using tuning::TuningFolder;

class TuningRoutesTest : public testing::Test {
 protected:
  TuningRoutesTest() {
    folder_.set_program(folder_.good_plan(), folder_.good_training());
    add_tuning_routes(router_, tuning_, 1000);
  }

  http::Response ask(const std::string& method, const std::string& path,
                     const std::string& body = "", const std::string& type = "application/json") {
    http::Request request;
    request.method = method;
    const size_t mark = std::min(path.find('?'), path.size());
    request.path = path.substr(0, mark);
    std::string query = path.substr(std::min(mark + 1, path.size()));
    for (size_t end = 0; !query.empty(); query.erase(0, end + 1)) {
      end = std::min(query.find('&'), query.size() - 1);
      const std::string pair = query.substr(0, query.find('&'));
      request.query[pair.substr(0, pair.find('='))] = pair.substr(pair.find('=') + 1);
    }
    request.headers = {{"content-type", type}};
    request.body = body;
    const auto found = router_.find(request);
    const auto exchange = std::make_shared<http::FakeExchange>();
    std::get<const http::Route*>(found)->handler(request, exchange);
    return exchange->response;
  }
  Json get(const std::string& path) { return Json::parse(ask("GET", path).body); }

  // Uploads parts of a form: a name, then its content; "file" has a filename too.
  http::Response upload(const std::vector<std::pair<std::string, std::string>>& parts,
                        const std::string& filename = "; filename=\"chats.jsonl\"") {
    std::string body;
    for (const auto& [name, content] : parts) {
      body += "--x\r\nContent-Disposition: form-data; name=\"" + name + "\"" +
              (name == "file" ? filename : "") + "\r\n\r\n" + content + "\r\n";
    }
    return ask("POST", "/v1/files", body + "--x--", "multipart/form-data; boundary=x");
  }
  std::string uploaded(const std::string& content = "{}\n") {
    return Json::parse(upload({{"purpose", "fine-tune"}, {"file", content}}).body)["id"];
  }
  http::Response create(Json more) {
    more["model"] = "base";
    if (!more.contains("training_file")) more["training_file"] = uploaded();
    return ask("POST", "/v1/fine_tuning/jobs", more.dump());
  }
  Json created(const Json& more = Json::object()) { return Json::parse(create(more).body); }
  static void refused(const http::Response& response, int status, const Json& param,
                      const std::string& text) {
    EXPECT_EQ(response.status, status) << response.body;
    const Json error = Json::parse(response.body)["error"];
    EXPECT_EQ(error["param"], param) << error;
    EXPECT_NE(error["message"].get<std::string>().find(text), std::string::npos) << error;
  }

  TuningFolder folder_;
  tuning::FineTuning tuning_{folder_.options()};
  http::Router router_;
};

TEST_F(TuningRoutesTest, FilesAreUploadedListedReadAndDeleted) {
  const Json file =
      Json::parse(upload({{"purpose", "fine-tune"}, {"file", "{}\n"}}, "; filename=\"../a\"").body);
  EXPECT_EQ(file["object"], "file");
  EXPECT_EQ(file["filename"], "../a");
  EXPECT_EQ(file["bytes"], 3);
  EXPECT_EQ(file["status"], "processed");
  const std::string id = file["id"], second = uploaded();
  EXPECT_EQ(get("/v1/files/" + id), file);
  EXPECT_EQ(ask("GET", "/v1/files/" + id + "/content").body, "{}\n");
  EXPECT_EQ(get("/v1/files")["data"][0]["id"], second) << "newest first";
  EXPECT_EQ(get("/v1/files?order=asc")["data"][0]["id"], id);
  EXPECT_EQ(get("/v1/files?purpose=assistants")["data"], Json::array());
  const Json page = get("/v1/files?limit=1&after=" + second);
  EXPECT_EQ(page["data"], Json::array({file}));
  EXPECT_EQ(page["has_more"], false);
  EXPECT_EQ(get("/v1/files?limit=1")["has_more"], true);
  EXPECT_EQ(Json::parse(ask("DELETE", "/v1/files/" + id).body),
            (Json{{"id", id}, {"object", "file"}, {"deleted", true}}));
  refused(ask("GET", "/v1/files/" + id), 404, "file_id", "no such file");
}

TEST_F(TuningRoutesTest, WrongUploadsAreRefused) {
  refused(upload({{"file", "1"}}), 400, "purpose", "is missing");
  refused(upload({{"purpose", "fine-tune"}}), 400, "file", "is missing");
  refused(upload({{"purpose", "fine-tune"}, {"data", "1"}}), 400, "file", "is missing");
  refused(upload({{"purpose", "vision"}, {"file", "1"}}), 400, "purpose", "expected fine-tune");
  refused(upload({{"purpose", "fine-tune"}, {"file", "1"}, {"file", "2"}}), 400, "file", "twice");
  refused(upload({{"purpose", "fine-tune"}, {"file", "1"}}, ""), 400, "file", "with a name");
  refused(upload({{"purpose", "fine-tune"}, {"file", ""}}), 400, "file", "is empty");
  refused(upload({{"purpose", "fine-tune"}, {"file", "1"}, {"expires_after[seconds]", "9"}}), 400,
          "expires_after", "not supported");
  refused(ask("POST", "/v1/files", "{}"), 400, nullptr, "multipart/form-data");
  EXPECT_EQ(get("/v1/files")["data"], Json::array());
  for (const std::string id : {"../jobs", "a/content", "file-1/../../x"})
    refused(ask("GET", "/v1/files/" + id + "/content"), 404, "file_id", "no such");
}

TEST_F(TuningRoutesTest, JobsHaveTheFormatOfOpenai) {
  const std::string file = uploaded();
  const Json method = {
      {"type", "supervised"},
      {"supervised", {{"hyperparameters", {{"n_epochs", 2}, {"batch_size", "auto"}}}}}};
  const Json job = created({{"training_file", file},
                            {"method", method},
                            {"suffix", "mine"},
                            {"seed", 5},
                            {"metadata", {{"team", "a"}}}});
  EXPECT_EQ(job["object"], "fine_tuning.job");
  EXPECT_EQ(job["status"], "validating_files");
  EXPECT_EQ(job["training_file"], file);
  EXPECT_EQ(job["seed"], 5);
  EXPECT_EQ(job["metadata"], (Json{{"team", "a"}}));
  EXPECT_TRUE(job["fine_tuned_model"].is_null());
  const Json parameters = job["method"]["supervised"]["hyperparameters"];
  EXPECT_EQ(parameters,
            (Json{{"n_epochs", 2}, {"batch_size", 4}, {"learning_rate_multiplier", 1.0}}));
  EXPECT_EQ(job["hyperparameters"], parameters);
  const Json old = created({{"hyperparameters", {{"n_epochs", 5}, {"batch_size", 9}}}});
  EXPECT_EQ(old["hyperparameters"]["n_epochs"], 5);
  EXPECT_EQ(old["hyperparameters"]["batch_size"], 9);
  const std::string path = "/v1/fine_tuning/jobs", id = job["id"];
  tuning_.start({}, {});
  TuningFolder::wait_for(tuning_, id, tuning::JobStatus::succeeded);
  EXPECT_EQ(get(path + "/" + id)["fine_tuned_model"], "ft:base:mine:" + id.substr(6, 12));
  EXPECT_EQ(get(path + "/" + id)["trained_tokens"], 40);
  EXPECT_EQ(get(path + "?limit=1")["data"][0]["id"], old["id"]);
  EXPECT_EQ(get(path + "?after=" + old["id"].get<std::string>())["data"][0]["id"], id);
  const Json events = get(path + "/" + id + "/events?limit=4");
  EXPECT_EQ(events["data"][0]["message"], "The job has successfully completed");
  EXPECT_EQ(events["has_more"], true);
  const Json rest =
      get(path + "/" + id + "/events?limit=100&after=" + events["last_id"].get<std::string>());
  EXPECT_EQ(rest["data"][0]["data"]["full_valid_loss"], 1.25);
  EXPECT_EQ(rest["data"][0]["type"], "metrics");
  const Json checkpoint = get(path + "/" + id + "/checkpoints")["data"][0];
  EXPECT_EQ(checkpoint["step_number"], 4);
  EXPECT_EQ(checkpoint["metrics"],
            (Json{{"step", 4}, {"train_loss", 1.5}, {"full_valid_loss", 1.25}}));
}

TEST_F(TuningRoutesTest, JobsChangeTheirState) {
  const std::string path = "/v1/fine_tuning/jobs/" + created()["id"].get<std::string>();
  refused(ask("POST", path + "/pause"), 400, "fine_tuning_job_id", "the job is validating_files");
  refused(ask("POST", path + "/resume"), 400, "fine_tuning_job_id", "expected a paused job");
  EXPECT_EQ(Json::parse(ask("POST", path + "/cancel").body)["status"], "cancelled");
  EXPECT_GT(get(path)["finished_at"], 0);
  refused(ask("POST", path + "/cancel"), 400, "fine_tuning_job_id", "the job is cancelled");
}

TEST_F(TuningRoutesTest, WrongJobsAreRefusedByField) {
  const auto wrong = [&](const Json& more, const char* param, const std::string& text) {
    refused(create(more), 400, param, text);
  };
  wrong({{"method", {{"type", "ppo"}}}}, "method.type",
        "ppo is not supported; expected supervised, dpo or reinforcement");
  for (const char* method : {"dpo", "reinforcement"}) {
    const std::string name = std::string("method.") + method;
    wrong({{"method", {{method, Json::object()}}}}, name.c_str(),
          "is given with the type supervised");
  }
  wrong({{"training_file", "file-x"}}, "training_file", "no such file");
  wrong({{"validation_file", "/etc/passwd"}}, "validation_file", "no such file");
  wrong({{"suffix", "a b"}}, "suffix", "letters");
  wrong({{"seed", -1}}, "seed", "from 0");
  wrong({{"integrations", {{{"type", "wandb"}}}}}, "integrations", "not supported");
  wrong({{"metadata", {{"a", 1}}}}, "metadata", "expected texts");
  wrong({{"hyperparameters", 1}}, "hyperparameters", "an object");
  wrong({{"hyperparameters", {{"n_epochs", 0}}}}, "hyperparameters.n_epochs", "from 1 to 50");
  wrong({{"hyperparameters", {{"n_epochs", "many"}}}}, "hyperparameters.n_epochs", "an integer");
  const char* const rate = "method.supervised.hyperparameters.learning_rate_multiplier";
  wrong({{"method",
          {{"type", "supervised"},
           {"supervised", {{"hyperparameters", {{"learning_rate_multiplier", 0}}}}}}}},
        rate, "a number");
  refused(ask("POST", "/v1/fine_tuning/jobs", "{\"model\": \"base\"}"), 400, "training_file",
          "is missing");
  refused(ask("POST", "/v1/fine_tuning/jobs", "[]"), 400, nullptr, "JSON object");
  const Json other = {{"model", "gpt-4o"}, {"training_file", uploaded()}};
  refused(ask("POST", "/v1/fine_tuning/jobs", other.dump()), 400, "model", "expected base");
  refused(ask("GET", "/v1/fine_tuning/jobs?limit=0"), 400, "limit", "from 1 to 100");
  refused(ask("GET", "/v1/fine_tuning/jobs?after=x"), 400, "after", "the id");
  refused(ask("GET", "/v1/fine_tuning/jobs/../files"), 404, "fine_tuning_job_id", "no such job");
  EXPECT_TRUE(tuning_.jobs().empty());
}

Json method_of(const char* type, const Json& options) { return {{"type", type}, {type, options}}; }

TEST_F(TuningRoutesTest, JobsLearnPreferences) {
  const Json method = method_of("dpo", {{"hyperparameters", {{"beta", 0.3}, {"n_epochs", 2}}}});
  const Json job = created({{"method", method}});
  EXPECT_EQ(job["method"]["type"], "dpo");
  EXPECT_EQ(
      job["method"]["dpo"]["hyperparameters"],
      (Json{{"n_epochs", 2}, {"batch_size", 4}, {"learning_rate_multiplier", 1.0}, {"beta", 0.3}}));
  EXPECT_EQ(created({{"method", {{"type", "dpo"}}}})["method"]["dpo"]["hyperparameters"]["beta"],
            "auto");
  refused(create({{"method", method_of("dpo", {{"hyperparameters", {{"beta", 0}}}})}}), 400,
          "method.dpo.hyperparameters.beta", "a number");
}

TEST_F(TuningRoutesTest, JobsLearnFromGraders) {
  const Json check = {{"type", "string_check"},
                      {"name", "a"},
                      {"input", "{{sample.output_text}}"},
                      {"reference", "{{item.answer}}"},
                      {"operation", "eq"}};
  const Json grader = {{"type", "multi"},
                       {"graders",
                        {{"same", check},
                         {"short", {{"type", "length"}, {"least", 1}, {"most", 9}}},
                         {"json", {{"type", "json_schema"}, {"schema", {{"type", "object"}}}}},
                         {"judge", {{"type", "reward_model"}, {"model", "judge"}}}}},
                       {"calculate_output", "0.8 * same + short*0.1 + json + judge"}};
  const Json job = created({{"method", method_of("reinforcement", {{"grader", grader}})}});
  EXPECT_EQ(job["method"]["reinforcement"]["grader"], grader);
  EXPECT_EQ(job["method"]["reinforcement"]["hyperparameters"]["compute_multiplier"], "auto");
  const std::string id = job["id"];
  const std::string folder = "jobs/" + id + "/";
  tuning_.start({}, {});
  TuningFolder::wait_for(tuning_, id, tuning::JobStatus::succeeded);
  const Json config =
      Json::parse(read_file(folder_.path("jobs folder/" + folder + "rewards.json")));
  EXPECT_EQ(config["train"]["reward"],
            (Json{"0.8*string_check:eq:{{item.answer}}", "0.1*length:1-9",
                  "1*schema:" + folder + "schema-3.json", "1*model:/models/judge"}));
  EXPECT_EQ(Json::parse(read_file(folder_.path("jobs folder/" + folder + "schema-3.json"))),
            (Json{{"type", "object"}}));
}

// A grader names no program and no path, and is checked before the job exists.
TEST_F(TuningRoutesTest, WrongGradersAreRefused) {
  const auto wrong = [&](const Json& grader, const std::string& text) {
    refused(create({{"method", method_of("reinforcement", {{"grader", grader}})}}), 400,
            "method.reinforcement.grader", text);
  };
  refused(create({{"method", {{"type", "reinforcement"}}}}), 400, "method.reinforcement.grader",
          "is missing");
  wrong(Json::object(), "type is missing");
  for (const char* type : {"python", "score_model", "command", "reward_command", "model", "schema"})
    wrong({{"type", type}, {"model", "/etc"}, {"source", "x"}},
          "is not supported; expected string_");
  wrong({{"type", "reward_model"}, {"model", "/models/judge"}},
        "the model /models/judge gives no rewards here; expected judge");
  wrong({{"type", "reward_model"}, {"model", "base"}}, "the model base gives no rewards here");
  wrong({{"type", "regex"}}, "pattern is missing");
  wrong({{"type", "regex"}, {"pattern", std::string(5000, 'a')}}, "has 5000 bytes");
  wrong({{"type", "length"}, {"least", 1}, {"most", 1.5}}, "most expected an integer");
  wrong({{"type", "numeric"}, {"reference", "42"}}, "reference expected {{item.KEY}}");
  wrong({{"type", "json_schema"}, {"schema", "/etc/passwd"}}, "schema expected an object");
  const auto check = [](const char* input, const char* operation) {
    return Json{
        {"type", "string_check"}, {"input", input}, {"reference", "x"}, {"operation", operation}};
  };
  wrong(check("{{item.answer}}", "eq"), "input expected {{sample.output_text}}");
  wrong(check("{{ sample.output_text }}", "gt"), "operation gt is unknown");
  const auto multi = [&](const char* formula) {
    return Json{{"type", "multi"},
                {"graders", {{"a", check("{{sample.output_text}}", "eq")}, {"b", 3}}},
                {"calculate_output", formula}};
  };
  wrong(multi("a"), "calculate_output does not use the grader b");
  wrong(multi("a + b"), "graders.b. expected an object");
  wrong(multi("a + c"), "calculate_output c is not one of the graders");
  for (const char* formula : {"a +", "2 * 3 * a", "a * b", "min(a, b)", "a - b", "1e999 * a"})
    wrong(multi(formula), "calculate_output ");
  EXPECT_TRUE(tuning_.jobs().empty());
}

TEST(TuningFields, CheckTypesAndLimits) {
  const std::vector<Json> values = {true,
                                    "text",
                                    "",
                                    "auto",
                                    std::string(2000, 'x'),
                                    0,
                                    -1,
                                    1.5,
                                    51,
                                    257,
                                    9223372036854775808ULL,
                                    1e308,
                                    Json::array(),
                                    Json::object(),
                                    {{"a", {1}}},
                                    {1, 2}};
  int accepted = 0, refused = 0;
  for (const FieldInfo& field : fields_of_route(FineTuningRequest::kPath)) {
    for (const Json& value : values) {
      Json body = {{"model", "base"}, {"training_file", "file-1"}};
      std::string pointer = "/" + field.name;
      std::replace(pointer.begin(), pointer.end(), '.', '/');
      body[Json::json_pointer(pointer)] = value;
      FineTuningRequest request;
      try {
        read_fields(body, 0, request);
        ++accepted;
      } catch (const ApiError& error) {
        ++refused;
        EXPECT_EQ(error.status, 400);
        EXPECT_EQ(error.param, field.name);
        EXPECT_LT(error.message.size(), 2200u);
      }
    }
  }
  EXPECT_GT(accepted, 20);
  EXPECT_GT(refused, 200);
}

}  // namespace
}  // namespace fovea::serve

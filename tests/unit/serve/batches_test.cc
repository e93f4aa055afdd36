#include "serve/jobs/batches.h"

#include <gtest/gtest.h>

#include <chrono>
#include <sstream>

#include "base/files.h"
#include "serve/jobs/batch_routes.h"
#include "support/temporary_folder.h"
#include "unit/http/fake_exchange.h"

namespace fovea::serve {
namespace {

// Batches over a route that answers with a status that the prompt names, or keeps its requests.
class BatchesTest : public testing::Test {
 protected:
  void SetUp() override { open(); }
  void TearDown() override { close(); }

  void open() {
    files_ = std::make_unique<tuning::FileStore>(folder_ / "files");
    batches_ = std::make_unique<Batches>(*files_, folder_.path(), most_bytes_, 16);
    http::Route route = {"POST", "/v1/completions"};
    route.handler = [this](const http::Request& request, std::shared_ptr<http::Exchange> exchange) {
      const std::lock_guard lock(mutex_);
      if (holding_) {
        held_.push_back(std::move(exchange));
        return;
      }
      const Json body = Json::parse(request.body);
      exchange->send({body["prompt"] == "bad" ? 400 : 200, "", {}, "{\"a\":1}"});
    };
    http::Router router;
    router.add(route);
    routes_ = http::Router();
    add_batch_routes(routes_, *batches_);
    batches_->start(router, [this](const std::string& warning) { warnings_ += warning; });
  }
  void close() {
    batches_.reset();
    held_.clear();
  }

  static std::string line(int id, const std::string& prompt = "a",
                          const std::string& url = "/v1/completions") {
    const Json json = {{"custom_id", std::to_string(id)},
                       {"method", "POST"},
                       {"url", url},
                       {"body", {{"prompt", prompt}}}};
    return json.dump() + "\n";
  }
  std::pair<int, Json> ask(const std::string& method, const std::string& path,
                           const Json& body = {}) {
    http::Request request;
    request.method = method;
    request.path = path;
    request.body = body.dump();
    const auto exchange = std::make_shared<http::FakeExchange>();
    const auto found = routes_.find(request);
    std::get<const http::Route*>(found)->handler(request, exchange);
    return {exchange->response.status, Json::parse(exchange->response.body)};
  }
  std::string uploaded(const std::string& content, const std::string& purpose = "batch") {
    return files_->add("in.jsonl", content, purpose).id;
  }
  Json create(const std::string& content) {
    const auto [status, json] = ask("POST", "/v1/batches",
                                    {{"input_file_id", uploaded(content)},
                                     {"endpoint", "/v1/completions"},
                                     {"completion_window", "24h"},
                                     {"metadata", {{"a", "b"}}}});
    EXPECT_EQ(status, 200) << json;
    return json;
  }
  Json get(const Json& batch) {
    return ask("GET", "/v1/batches/" + batch["id"].get<std::string>()).second;
  }
  Json wait_for(const Json& batch, const std::string& status) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    Json now = get(batch);
    while (now["status"] != status && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      now = get(batch);
    }
    EXPECT_EQ(now["status"], status) << now << warnings_;
    return now;
  }
  std::vector<Json> lines_of(const Json& file) const {
    std::vector<Json> all;
    std::istringstream text(files_->content(file.get<std::string>()));
    for (std::string each; std::getline(text, each);) all.push_back(Json::parse(each));
    return all;
  }
  size_t held() {
    const std::lock_guard lock(mutex_);
    return held_.size();
  }
  void wait_until_held(size_t count) {
    for (int i = 0; i < 5000 && held() < count; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    EXPECT_EQ(held(), count);
  }

  const TemporaryFolder folder_;
  std::unique_ptr<tuning::FileStore> files_;
  std::unique_ptr<Batches> batches_;
  http::Router routes_;
  std::string warnings_;
  uint64_t most_bytes_ = 1 << 20;
  std::mutex mutex_;
  bool holding_ = false;
  std::vector<std::shared_ptr<http::Exchange>> held_;
};

TEST_F(BatchesTest, AnswersAreDividedFromErrors) {
  std::string all;
  for (int i = 0; i < 30; ++i) all += line(i, i % 10 == 3 ? "bad" : "a");
  const Json created = create(all);
  EXPECT_EQ(created["object"], "batch");
  EXPECT_EQ(created["metadata"], (Json{{"a", "b"}}));
  const Json done = wait_for(created, "completed");
  EXPECT_EQ(done["request_counts"], (Json{{"total", 30}, {"completed", 27}, {"failed", 3}}));
  EXPECT_EQ(done["errors"], Json());
  const auto good = lines_of(done["output_file_id"]), bad = lines_of(done["error_file_id"]);
  ASSERT_EQ(good.size(), 27u);
  ASSERT_EQ(bad.size(), 3u);
  EXPECT_EQ(good[3]["custom_id"], "4");
  EXPECT_EQ(bad[1]["custom_id"], "13");
  EXPECT_EQ(bad[1]["response"]["status_code"], 400);
  EXPECT_GE(done["completed_at"], done["created_at"]);
  EXPECT_EQ(files_->find(done["output_file_id"])->purpose, "batch_output");
  EXPECT_EQ(list_files(folder_ / "batches/" + done["id"].get<std::string>()),
            std::vector<std::string>{"batch.json"});
  close();
  open();
  EXPECT_EQ(get(done), done) << "after a restart";
  EXPECT_EQ(ask("GET", "/v1/batches").second["data"], Json::array({done}));
}

TEST_F(BatchesTest, WrongLinesFailABatch) {
  const Json failed = wait_for(
      create(line(1) + "\n" + line(1) + line(2, "a", "/v1/responses") + line(3)), "failed");
  const Json data = failed["errors"]["data"];
  ASSERT_EQ(data.size(), 3u);
  EXPECT_EQ(data[0]["line"], 2);
  EXPECT_EQ(data[0]["message"].get<std::string>().find(failed["input_file_id"].get<std::string>() +
                                                       ": line 2: "),
            0u);
  EXPECT_EQ(data[1]["code"], "duplicate_custom_id");
  EXPECT_EQ(data[2]["param"], "url");
  EXPECT_EQ(failed["output_file_id"], Json());
  const Json binary = wait_for(create(line(1) + "\xff\n"), "failed");
  const std::string message = binary["errors"]["data"][0]["message"];
  EXPECT_EQ(message.find("file-"), 0u) << message;
}

TEST_F(BatchesTest, FewRequestsAreInProgressAndABatchIsCancelled) {
  holding_ = true;
  std::string all;
  for (int i = 0; i < 30; ++i) all += line(i);
  const Json first = create(all), second = create(all);
  wait_until_held(16 / Batches::kShare);
  EXPECT_EQ(get(first)["status"], "in_progress");
  EXPECT_EQ(get(second)["status"], "validating");
  EXPECT_THROW(batches_->check_unused(first["input_file_id"]), Error);
  const std::string id = first["id"];
  EXPECT_EQ(ask("POST", "/v1/batches/" + id + "/cancel").second["status"], "cancelling");
  EXPECT_EQ(ask("POST", "/v1/batches/" + id + "/cancel").first, 400);
  {
    const std::lock_guard lock(mutex_);
    holding_ = false;
    for (const auto& exchange : held_) exchange->send({200, "", {}, "{}"});
  }
  const Json cancelled = wait_for(first, "cancelled");
  EXPECT_EQ(cancelled["request_counts"], (Json{{"total", 30}, {"completed", 4}, {"failed", 0}}));
  EXPECT_EQ(lines_of(cancelled["output_file_id"]).size(), 4u);
  EXPECT_NO_THROW(batches_->check_unused(first["input_file_id"]));
  EXPECT_EQ(wait_for(second, "completed")["request_counts"]["completed"], 30);
}

TEST_F(BatchesTest, ContinueAfterARestart) {
  holding_ = true;
  std::string all;
  for (int i = 0; i < 12; ++i) all += line(i);
  const Json created = create(all);
  wait_until_held(4);
  held_[0]->send({200, "", {}, "{\"first\":true}"});
  wait_until_held(5);
  close();
  holding_ = false;
  open();
  const Json done = wait_for(created, "completed");
  const auto lines = lines_of(done["output_file_id"]);
  ASSERT_EQ(lines.size(), 12u);
  EXPECT_EQ(done["request_counts"]["completed"], 12);
  for (size_t i = 0; i < lines.size(); ++i) EXPECT_EQ(lines[i]["custom_id"], std::to_string(i));
}

TEST_F(BatchesTest, TakeLimitedStorage) {
  std::string all;
  for (int i = 0; i < 30; ++i) all += line(i);
  close();
  most_bytes_ = all.size() + 2000;
  open();
  const Json failed = wait_for(create(all), "failed");
  EXPECT_EQ(failed["errors"]["data"][0]["code"], "insufficient_storage");
  EXPECT_EQ(list_files(folder_ / "batches/" + failed["id"].get<std::string>()),
            std::vector<std::string>{"batch.json"});
  most_bytes_ = 1 << 20;
}

TEST_F(BatchesTest, WrongRequestsAreRefused) {
  const auto refused = [&](const Json& body, const std::string& param, const std::string& text) {
    const auto [status, json] = ask("POST", "/v1/batches", body);
    EXPECT_EQ(status, 400) << json;
    EXPECT_EQ(json["error"]["param"], param) << json;
    EXPECT_NE(json["error"]["message"].get<std::string>().find(text), std::string::npos) << json;
  };
  const std::string file = uploaded(line(1)), tuning = uploaded(line(1), "fine-tune");
  const Json good = {{"input_file_id", file}, {"endpoint", "/v1/completions"}};
  const auto with = [&](const char* key, const Json& value) {
    Json body = good;
    body[key] = value;
    return body;
  };
  refused(with("input_file_id", "file-1"), "input_file_id", "no such file");
  refused(with("input_file_id", tuning), "input_file_id", "expected one for batch");
  refused(with("endpoint", "/v1/files"), "endpoint", "expected /v1/chat/completions");
  refused(with("completion_window", "1h"), "completion_window", "expected 24h");
  refused(with("metadata", Json{{"a", 1}}), "metadata", "expected texts");
  refused(with("output_expires_after", Json{{"seconds", 9}}), "output_expires_after",
          "is not supported");
  refused({{"endpoint", "/v1/completions"}}, "input_file_id", "is missing");
  EXPECT_EQ(ask("GET", "/v1/batches/batch_1").first, 404);
  EXPECT_EQ(ask("POST", "/v1/batches/batch_1/cancel").first, 404);
  EXPECT_EQ(ask("GET", "/v1/batches").second["data"], Json::array());
}

}  // namespace
}  // namespace fovea::serve

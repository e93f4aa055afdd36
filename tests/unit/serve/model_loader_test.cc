#include "serve/models/model_loader.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/stop.h"
#include "serve/request/api_error.h"
#include "serve/routes/handlers.h"
#include "support/temporary_folder.h"

namespace fovea::serve {
namespace {

bool never() { return false; }

int status_of_error(const std::function<void()>& call) {
  try {
    call();
  } catch (const ApiError& error) {
    return error.status;
  }
  return 200;
}

// A folder with three models of 100 bytes, of which two may be loaded.
class ModelLoaderTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"a", "b", "c"}) write(std::string(name) + ".gguf", 100);
  }

  void write(const std::string& name, size_t bytes) const {
    std::ofstream(folder_.path() + "/" + name) << std::string(bytes, 'x');
  }

  ModelLoader::Options options() {
    ModelLoader::Options options{.folder = folder_.path(), .memory = 250, .kept = {"base"}};
    options.open = [this](const std::string& name, const std::string&) {
      ++opened_;
      auto model = std::make_shared<ServedModel>();
      model->facts.name = name;
      return ModelList::Models{model};
    };
    return options;
  }

  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& model : list_.all()) names.push_back(model->facts.name);
    return names;
  }

  using Names = std::vector<std::string>;
  TemporaryFolder folder_;
  ModelList list_{{}};
  int opened_ = 0;
};

TEST_F(ModelLoaderTest, UnloadsTheModelWhoseLastUseIsLongestAgo) {
  ModelLoader loader(list_, options());
  loader.load("a", never);
  loader.load("b", never);
  loader.load("b", never);  // is loaded
  EXPECT_EQ(opened_, 2);
  list_.mark_use(*list_.find("a"));
  loader.load("c", never);
  EXPECT_EQ(names(), (Names{"a", "c"}));
  const auto running = list_.find("a");  // "a" is older than "c", but has a request
  list_.mark_use(*list_.find("c"));
  loader.load("b", never);
  EXPECT_EQ(names(), (Names{"a", "b"}));
  EXPECT_EQ(loader.states().at("c"), ModelLoader::State::unloaded);
  EXPECT_EQ(loader.states().at("a"), ModelLoader::State::loaded);
}

TEST_F(ModelLoaderTest, KeepsModelsThatItHasNotLoaded) {
  for (const char* name : {"base", "other"}) {
    auto model = std::make_shared<ServedModel>();
    model->facts.name = name;
    list_.add(model);
  }
  ModelLoader loader(list_, options());
  for (const char* name : {"a", "b", "c"}) loader.load(name, never);
  EXPECT_EQ(names(), (Names{"base", "other", "b", "c"}));
  EXPECT_EQ(status_of_error([&] { loader.unload("base", never); }), 409);
  loader.unload("other", never);
  EXPECT_EQ(names(), (Names{"base", "b", "c"}));
}

TEST_F(ModelLoaderTest, RefusesUnknownAndLargeModels) {
  write("large.gguf", 251);
  ModelLoader loader(list_, options());
  loader.load("a", never);
  EXPECT_EQ(status_of_error([&] { loader.load("d", never); }), 404);
  EXPECT_EQ(status_of_error([&] { loader.load("large", never); }), 503);
  EXPECT_EQ(names(), (Names{"a"})) << "a model that is too large unloads no other";
  EXPECT_EQ(status_of_error([&] { loader.unload("b", never); }), 404);
}

TEST_F(ModelLoaderTest, KeepsABusyModelIfNobodyWaits) {
  ModelLoader loader(list_, options());
  loader.load("a", never);
  const auto running = list_.find("a");
  EXPECT_THROW(loader.unload("a", [] { return true; }), Stopped);
  EXPECT_THROW(loader.load("b", [] { return true; }), Stopped);
  EXPECT_EQ(names(), (Names{"a"}));
}

TEST_F(ModelLoaderTest, UnloadsAModelThatIsIdleForTooLong) {
  using std::chrono::milliseconds;
  ModelLoader loader(list_, options());
  loader.load("a", never);
  loader.load("b", never);
  EXPECT_FALSE(loader.keep("c", milliseconds(1))) << "is not loaded";
  EXPECT_FALSE(loader.time_left("a"));
  auto running = list_.find("a");
  EXPECT_TRUE(loader.keep("a", milliseconds(1)));
  EXPECT_TRUE(loader.keep("b", milliseconds(1)));
  EXPECT_TRUE(loader.keep("b", milliseconds(-1)));  // undone
  std::this_thread::sleep_for(milliseconds(300));
  EXPECT_EQ(names(), (Names{"a", "b"})) << "a request uses it";
  EXPECT_TRUE(loader.time_left("a"));
  running = nullptr;
  for (int i = 0; i < 1000 && list_.find("a"); ++i) std::this_thread::sleep_for(milliseconds(10));
  EXPECT_EQ(names(), (Names{"b"}));
  EXPECT_EQ(loader.states().at("a"), ModelLoader::State::unloaded);
  EXPECT_FALSE(loader.time_left("a"));
  loader.load("a", never);
  EXPECT_FALSE(loader.time_left("a")) << "a new load has no limit";
}

TEST_F(ModelLoaderTest, CountsAllPartsOfAModel) {
  write("parts-00001-of-00002.gguf", 200);
  write("parts-00002-of-00002.gguf", 51);
  write("mmproj-a.gguf", 1);
  ModelLoader loader(list_, options());
  EXPECT_EQ(loader.paths().size(), 4);
  EXPECT_EQ(status_of_error([&] { loader.load("parts", never); }), 503);
}

// The client of a request.
class Client : public http::Exchange {
 public:
  void send(http::Response response) override {
    const std::lock_guard lock(mutex_);
    response_ = std::move(response);
    changed_.notify_all();
  }
  void begin(http::Response) override {}
  bool write(std::string_view) override { return true; }
  void finish() override {}
  void abort() override {}
  bool gone() const override { return false; }
  bool hold(int64_t) override { return true; }
  void on_gone(std::function<void()>) override {}

  http::Response response() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return response_.has_value(); });
    return *response_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<http::Response> response_;
};

http::Request request_for(const std::string& model) {
  http::Request request;
  request.method = "POST";
  request.path = "/";
  request.body = model;
  return request;
}

TEST_F(ModelLoaderTest, ARequestWaitsForItsModel) {
  ModelLoader loader(list_, options());
  const http::Route route = guarded_route(
      "POST", "/", [&](http::Request& request, const std::shared_ptr<http::Exchange>& exchange) {
        if (!list_.find(request.body)) throw MustLoad{&loader, request.body};
        exchange->send({200, "text/plain", {}, std::move(request.body)});
      });
  for (const char* name : {"a", "b", "c", "a"}) {
    const auto client = std::make_shared<Client>();
    route.handler(request_for(name), client);
    EXPECT_EQ(client->response().body, name);
  }
  const auto client = std::make_shared<Client>();
  route.handler(request_for("d"), client);
  EXPECT_EQ(client->response().status, 404);
  EXPECT_EQ(opened_, 4);
}

}  // namespace
}  // namespace fovea::serve

#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "fovea/core/error.h"
#include "fovea/model/model.h"
#include "fovea/train/train_tokenizer.h"
#include "inspector/routes.h"
#include "support/small_spec.h"

namespace fovea::inspector {

using Json = nlohmann::json;

inline model::Model small(std::vector<model::MixerKind> mixers = {}) {
  const std::string folder = testing::TempDir() + "/inspector_routes" + std::to_string(getpid());
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/text.txt") << "to be, or not to be <b>that</b>\n";
  text::TokenizerTraining characters;
  characters.kind = text::TokenizerKind::character;
  const auto trained = train::train_tokenizer({folder + "/text.txt"}, characters);
  model::Spec spec = test::small_decoder({.vocabulary = 0, .context = 16, .width = 16});
  spec.decoder->mixers = std::move(mixers);
  return model::Model::create(spec, trained->tokenizer, 1);
}

class RoutesTest : public testing::Test {
 protected:
  RoutesTest() : routes_("small", small()) {}

  Response get(const std::string& path, const std::map<std::string, std::string>& query = {}) {
    return routes_.respond({"GET", path, query, ""});
  }
  Response post(const std::string& body) { return routes_.respond({"POST", "api/run", {}, body}); }
  Json run(const std::string& text) {
    return Json::parse(post(Json({{"model", "0"}, {"text", text}}).dump()).body);
  }
  void refused(const Response& response, int status, const std::string& text) {
    EXPECT_EQ(response.status, status) << response.body;
    EXPECT_NE(Json::parse(response.body)["error"]["message"].get<std::string>().find(text),
              std::string::npos)
        << response.body;
  }

  Routes routes_;
};

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

}  // namespace fovea::inspector

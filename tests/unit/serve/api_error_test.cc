#include "serve/request/api_error.h"

#include <gtest/gtest.h>

namespace fovea::serve {
namespace {

TEST(ApiErrors, HaveTheFormatOfOpenAI) {
  const auto error = nlohmann::json::parse(openai_error({429, "bu\xffsy", "n", ""}))["error"];
  EXPECT_EQ(error["type"].get<std::string>(), "rate_limit_error");
  EXPECT_EQ(error["param"].get<std::string>(), "n");
  EXPECT_TRUE(error["code"].is_null());
}

TEST(ApiErrors, HaveTheFormatOfTheirRoute) {
  const http::Refusal refusal{503, "too many requests are waiting", "overloaded"};
  const auto body = [&](ErrorShape shape) {
    return nlohmann::json::parse(error_format(shape)(refusal).body);
  };
  EXPECT_EQ(body(ErrorShape::openai)["error"]["code"].get<std::string>(), "overloaded");
  EXPECT_EQ(body(ErrorShape::embeddings)["error_type"].get<std::string>(), "Unhealthy");
  EXPECT_EQ(body(ErrorShape::translate)["error"].get<std::string>(), refusal.message);
}

}  // namespace
}  // namespace fovea::serve

#include "http/router.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "http/access.h"

namespace fovea::http {
namespace {

Request request(const std::string& method, const std::string& path) {
  Request made;
  made.method = method;
  made.path = path;
  return made;
}

Router some_routes() {
  Router router;
  router.add({"GET", "/health", false, {}});
  router.add({"GET", "/v1/models", true, {}});
  router.add({"GET", "/v1/models/{id}", true, {}});
  router.add({"POST", "/tokenize", true, {}});
  router.add({"GET", "/v1/files/{id}/content", true, {}});
  router.add({"GET", "/v1/files/{id}", true, {}});
  router.add({"DELETE", "/v1/files/{id}", true, {}});
  return router;
}

std::string found(Request asked) {
  const Router router = some_routes();
  const auto result = router.find(asked);
  if (const auto* route = std::get_if<const Route*>(&result)) {
    return (*route)->path + " " + asked.rest;
  }
  const auto shown = [](const auto& response) {
    std::string allow;
    for (const auto& [name, value] : response.headers) allow += name + "=" + value;
    return std::to_string(response.status) + " " + allow;
  };
  const auto* refusal = std::get_if<Refusal>(&result);
  return refusal != nullptr ? shown(*refusal) : shown(std::get<Response>(result));
}

TEST(Router, FindsRoutes) {
  EXPECT_EQ(found(request("GET", "/health")), "/health ");
  EXPECT_EQ(found(request("HEAD", "/health")), "/health ");
  EXPECT_EQ(found(request("GET", "/v1/models")), "/v1/models ");
  EXPECT_EQ(found(request("GET", "/v1/models/org/name")), "/v1/models/{id} org/name");
  EXPECT_EQ(found(request("GET", "/v1/models/")), "/v1/models ");
  EXPECT_EQ(found(request("GET", "/v1/models//")), "404 ");
  EXPECT_EQ(found(request("GET", "/../health")), "404 ");
  EXPECT_EQ(found(request("POST", "/health")), "405 Allow=OPTIONS, GET, HEAD");
  EXPECT_EQ(found(request("TRACE", "/tokenize")), "405 Allow=OPTIONS, POST");
  EXPECT_EQ(found(request("OPTIONS", "/tokenize")), "204 Allow=OPTIONS, POST");
  EXPECT_EQ(found(request("OPTIONS", "*")), "204 Allow=OPTIONS, DELETE, GET, HEAD, POST");
}

TEST(Router, FindsRoutesWithTextAfterTheBraces) {
  EXPECT_EQ(found(request("GET", "/v1/files/a/content")), "/v1/files/{id}/content a");
  EXPECT_EQ(found(request("GET", "/v1/files/../b/content")), "/v1/files/{id}/content ../b");
  EXPECT_EQ(found(request("GET", "/v1/files/content")), "/v1/files/{id} content");
  EXPECT_EQ(found(request("GET", "/v1/files//content")), "/v1/files/{id} /content");
  EXPECT_EQ(found(request("DELETE", "/v1/files/a")), "/v1/files/{id} a");
  EXPECT_EQ(found(request("POST", "/v1/files/a")), "405 Allow=OPTIONS, DELETE, GET, HEAD");
}

Request with(std::vector<std::pair<std::string, std::string>> headers) {
  Request made = request("POST", "/");
  made.headers = std::move(headers);
  return made;
}

int status(const Access& access, const Request& asked, bool needs_key = true) {
  const auto refused = access.refuse(asked, needs_key);
  return refused ? refused->status : 200;
}

TEST(Access, RequiresTheKey) {
  Access access;
  access.keys = {"first", "secret"};
  EXPECT_EQ(status(access, with({})), 401);
  EXPECT_EQ(status(access, with({}), false), 200);
  EXPECT_EQ(status(access, with({{"authorization", "Bearer secret"}})), 200);
  EXPECT_EQ(status(access, with({{"authorization", "Bearer first"}})), 200);
  EXPECT_EQ(status(access, with({{"x-api-key", "secret"}})), 200);
  for (const char* wrong : {"Bearer ", "Bearer secre", "Bearer secretsecret", "secret",
                            "Bearer SECRET", "Basic secret", "Bearer  secret"}) {
    EXPECT_EQ(status(access, with({{"authorization", wrong}})), 401) << wrong;
  }
  EXPECT_FALSE(equal_in_constant_time("", "a"));
  EXPECT_FALSE(equal_in_constant_time("a", ""));
  EXPECT_FALSE(equal_in_constant_time("aa", "a"));
  EXPECT_TRUE(equal_in_constant_time("ab", "ab"));
}

TEST(Access, ChecksTheHostOnLoopback) {
  Access access;
  access.host = "127.0.0.2";
  for (const char* host :
       {"localhost", "localhost:8080", "127.0.0.1:1", "[::1]:8080", "127.0.0.2:80"}) {
    EXPECT_EQ(status(access, with({{"host", host}})), 200) << host;
  }
  for (const char* host : {"evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80",
                           "[::2]:80", "[", "10.0.0.1"}) {
    EXPECT_EQ(status(access, with({{"host", host}})), 403) << host;
  }
  access.loopback = false;
  EXPECT_EQ(status(access, with({{"host", "evil.example"}})), 200)
      << "other addresses are protected by the key";
}

TEST(Access, AllowsConfiguredOrigins) {
  Access access;
  const auto from = [](const std::string& origin) {
    return with({{"host", "localhost:8080"}, {"origin", origin}});
  };
  EXPECT_EQ(status(access, from("https://evil.example")), 403);
  EXPECT_EQ(status(access, from("null")), 403);
  for (const char* own : {"http://localhost:8080", "https://localhost:8080"})
    EXPECT_EQ(status(access, from(own)), 200) << "the page of the server itself, perhaps with TLS";
  EXPECT_EQ(status(access, from("ftp://localhost:8080")), 403);
  access.origins = {"https://good.example"};
  EXPECT_EQ(status(access, from("https://good.example")), 200);
  EXPECT_EQ(status(access, from("https://evil.example")), 403);
  Response response;
  access.add_cors_headers(from("https://evil.example"), response);
  EXPECT_TRUE(response.headers.empty());
  access.add_cors_headers(from("https://good.example"), response);
  EXPECT_EQ(response.headers[0].second, "https://good.example");
}

// An image of a foreign page sends no Origin, and could make the inspector compute.
TEST(Access, RefusesRequestsOfOtherSites) {
  Access access;
  const auto from = [](const std::string& site) {
    Request asked = with({{"host", "localhost:8080"}, {"sec-fetch-site", site}});
    asked.method = "GET";
    return asked;
  };
  for (const char* own : {"same-origin", "none"}) EXPECT_EQ(status(access, from(own)), 200) << own;
  for (const char* other : {"cross-site", "same-site", "other"})
    EXPECT_EQ(status(access, from(other)), 403) << other;
  access.origins = {"https://good.example"};
  Request allowed = from("cross-site");
  EXPECT_EQ(status(access, allowed), 403);
  allowed.headers.emplace_back("origin", "https://good.example");
  EXPECT_EQ(status(access, allowed), 200);
  access.origins = {"*"};
  EXPECT_EQ(status(access, from("cross-site")), 200);
}

TEST(Errors, HaveAMessage) {
  const Response response = plain_error({404, "bu\xffsy"});
  EXPECT_EQ(response.status, 404);
  EXPECT_EQ(response.body, "{\"error\":{\"message\":\"bu\xEF\xBF\xBDsy\"}}");
}

}  // namespace
}  // namespace fovea::http

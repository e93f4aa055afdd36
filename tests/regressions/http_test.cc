#include <gtest/gtest.h>

#include "http/access.h"
#include "http/request_head.h"
#include "unit/http/server_fixture.h"

namespace fovea::http {
namespace {

// Two slow requests occupied both handlers, so /health did not respond. /health now needs no
// handler.
TEST_F(HttpServerTest, RespondsWhileAllHandlersAreBusy) {
  const uint16_t port = open();
  Client first(port), second(port), third(port), healthy(port);
  first.say(post("/work", ""));
  second.say(post("/work", ""));
  EXPECT_TRUE(wait([this] { return at_work_ == 2; }));
  third.say(post("/echo", "waits"));
  healthy.say("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_NE(healthy.hear("well").find("200 OK"), std::string::npos);
  {
    const std::lock_guard lock(mutex_);
    work_ends_ = true;
    changed_.notify_all();
  }
  EXPECT_NE(first.hear("worked").find("worked"), std::string::npos);
  EXPECT_NE(third.hear("waits").find("waits"), std::string::npos);
}

// 21 MB of empty lines before a request occupied the thread of all connections for six seconds: any
// number was accepted, and each piece that arrived was searched again from the first line. Only a
// few are now accepted.
TEST(HttpRequests, RefuseManyLeadingEmptyLines) {
  const std::string request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  std::string lines;
  for (int i = 0; i < 8; ++i) {
    lines += "\r\n";
    EXPECT_FALSE(read_head(lines, Limits()));
    EXPECT_EQ(read_head(lines + request, Limits())->bytes, lines.size() + request.size());
  }
  lines += "\r\n";
  for (const std::string& bytes : {lines, lines + request}) {
    try {
      read_head(bytes, Limits());
      ADD_FAILURE() << "accepted";
    } catch (const Refusal& refusal) {
      EXPECT_EQ(refusal.status, 400);
    }
  }
}

// "Authorization: bearer KEY" in lower case gave status 401. The name of the scheme is
// case-insensitive (RFC 9110, 11.1).
TEST(HttpRequests, MayNameTheSchemeOfTheKeyInAnyCase) {
  Access access;
  access.keys = {"secret"};
  for (const char* value : {"Bearer secret", "bearer secret", "BEARER secret"}) {
    Request request;
    request.headers = {{"authorization", value}};
    EXPECT_FALSE(access.refuse(request, true)) << value;
  }
}

}  // namespace
}  // namespace fovea::http

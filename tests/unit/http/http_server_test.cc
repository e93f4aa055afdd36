#include "http/http_server.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "support/temporary_folder.h"
#include "unit/http/server_fixture.h"

namespace fovea::http {
namespace {

using namespace std::chrono_literals;

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

const std::string kClose = "Connection: close\r\n";

TEST_F(HttpServerTest, RespondsAndKeepsTheConnection) {
  Client client(open());
  client.say("GET /health HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: my-1\r\n\r\n");
  const std::string first = client.hear("well");
  EXPECT_EQ(first.substr(0, 17), "HTTP/1.1 200 OK\r\n");
  EXPECT_NE(first.find("X-Request-Id: my-1\r\n"), std::string::npos);
  client.say(post("/echo", "again", kClose));
  const std::string second = client.hear();
  EXPECT_NE(second.find("Connection: close"), std::string::npos);
  EXPECT_EQ(second.substr(second.size() - 5), "again");
}

TEST_F(HttpServerTest, ARouteMayAcceptLargerBodies) {
  const uint16_t port = open();
  const auto status = [&](const std::string& path, size_t bytes) {
    Client client(port);
    client.say(post(path, std::string(bytes, 'x'), kClose));
    return client.hear().substr(9, 3);
  };
  EXPECT_EQ(status("/echo", 2'000'001), "413");
  EXPECT_EQ(status("/large", 2'000'001), "200");
  EXPECT_EQ(status("/large", 4'000'001), "413");
}

TEST_F(HttpServerTest, FewLargeBodiesAreReadAtTheSameTime) {
  options_.held = 9'000'000;
  const uint16_t port = open();
  const std::string whole(2'000'001, 'x');  // more than other routes accept
  const std::string head =
      "POST /large HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: "
      "2000001\r\n" +
      kClose + "\r\n";
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 4; ++i) {
    clients.push_back(std::make_unique<Client>(port));
    clients.back()->say(head);
    clients.back()->hear("100 Continue\r\n\r\n");
  }
  Client fifth(port);
  fifth.say(head);
  EXPECT_EQ(fifth.hear().substr(9, 3), "503");
  Client small(port);  // a small body is always accepted
  small.say(post("/large", "small", kClose));
  EXPECT_EQ(small.hear().substr(9, 3), "200");
  clients[0]->leave();  // a client that disconnects makes room
  for (int i = 1; i < 4; ++i) {
    clients[i]->say(whole);
    EXPECT_EQ(clients[i]->hear().substr(9, 3), "200");
  }
  Client next(port);
  next.say(post("/large", whole, kClose));
  EXPECT_EQ(next.hear().substr(9, 3), "200");
}

// Regression: 60 responses of 44 MB to clients that read nothing took 2.6 GB.
TEST_F(HttpServerTest, FewLargeResponsesWaitForTheirClients) {
  options_.held = 40'000'000;
  const uint16_t port = open();
  std::vector<std::unique_ptr<Client>> slow;
  for (int i = 0; i < 8; ++i) {
    slow.push_back(std::make_unique<Client>(port));
    slow.back()->say(post("/big", "", kClose));
  }
  int whole = 0, refused = 0;
  for (const auto& client : slow) {
    const std::string heard = client->hear();
    whole += heard.size() > 10'000'000;
    refused += heard.substr(9, 3) == "503";
  }
  EXPECT_EQ(whole + refused, 8);
  EXPECT_GE(whole, 3);
  EXPECT_GE(refused, 1);
  Client next(port);
  next.say(post("/big", "", kClose));
  EXPECT_GT(next.hear().size(), 10'000'000u);
}

TEST_F(HttpServerTest, RespondsToPipelinedRequestsInOrder) {
  Client client(open());
  client.say(post("/echo", "<1>") + post("/stream", "") + post("/echo", "<3>", kClose));
  const std::string heard = client.hear();
  EXPECT_EQ(count_of(heard, "HTTP/1.1 200"), 3u) << heard;
  EXPECT_LT(heard.find("<1>"), heard.find("three"));
  EXPECT_LT(heard.find("three"), heard.find("<3>"));
}

TEST_F(HttpServerTest, StreamsInChunksExceptToHttp10Clients) {
  const uint16_t port = open();
  Client client(port);
  client.say(post("/stream", "", kClose));
  const std::string heard = client.hear();
  EXPECT_NE(heard.find("\r\n\r\n4\r\none \r\n4\r\ntwo \r\n5\r\nthree\r\n0\r\n\r\n"),
            std::string::npos)
      << heard;
  Client old(port);
  old.say("POST /stream HTTP/1.0\r\nContent-Length: 0\r\n\r\n");
  const std::string plain = old.hear();
  EXPECT_NE(plain.find("\r\n\r\none two three"), std::string::npos) << plain;
}

TEST_F(HttpServerTest, ReadsChunkedBodiesAndSends100Continue) {
  Client client(open());
  client.say(
      "POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nExpect: "
      "100-continue\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(client.hear("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.say("3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n");
  EXPECT_NE(client.hear().find("\r\n\r\nabcdef"), std::string::npos);
}

TEST_F(HttpServerTest, OmitsTheBodyOfAHeadResponse) {
  Client client(open());
  client.say("HEAD /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  const std::string heard = client.hear();
  EXPECT_NE(heard.find("Content-Length: 4\r\n"), std::string::npos);
  EXPECT_EQ(heard.find("well"), std::string::npos);
}

TEST_F(HttpServerTest, ReadsNothingAfterARefusedRequest) {
  const uint16_t port = open();
  for (const std::string& head :
       {std::string("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n"
                    "Transfer-Encoding: chunked\r\n\r\n"),
        std::string("POST /none HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n"),
        std::string("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999999\r\n\r\n"),
        std::string("POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
                    "-2\r\n")}) {
    Client client(port);
    client.say(head + post("/echo", "hidden"));
    const std::string heard = client.hear();
    EXPECT_EQ(count_of(heard, "HTTP/1.1 4"), 1u) << heard;
    EXPECT_EQ(count_of(heard, "HTTP/1.1 "), 1u) << heard;
  }
}

TEST_F(HttpServerTest, ChecksTheKeyBeforeReadingTheBody) {
  options_.access.keys = {"secret"};
  Client client(open());
  client.say("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n");
  const std::string heard = client.hear();
  EXPECT_EQ(heard.substr(0, 12), "HTTP/1.1 401");
  EXPECT_EQ(heard.find("secret"), std::string::npos);
}

TEST_F(HttpServerTest, ReturnsStatus500IfAHandlerThrows) {
  const uint16_t port = open();
  for (const char* path : {"/drop", "/throw"}) {
    Client client(port);
    client.say(post(path, "", kClose));
    EXPECT_EQ(client.hear().substr(0, 12), "HTTP/1.1 500") << path;
  }
}

TEST_F(HttpServerTest, NoticesADisconnect) {
  const uint16_t port = open();
  {
    Client client(port);
    client.say(post("/hold", ""));
    ASSERT_TRUE(held());
  }
  EXPECT_TRUE(wait([this] { return gone_; }));
  EXPECT_TRUE(held_->gone());
  EXPECT_FALSE(held_->write("x"));
  held_.reset();
  EXPECT_TRUE(wait([this] { return log_.find("/hold 499 cut") != std::string::npos; })) << log_;
}

TEST_F(HttpServerTest, RespondsToAHalfClosedClient) {
  Client client(open());
  client.say(post("/echo", "half"));
  client.half_close();
  EXPECT_NE(client.hear().find("half"), std::string::npos);
}

TEST_F(HttpServerTest, AllowsAResponseFromAnotherThread) {
  Client client(open());
  client.say(post("/hold", ""));
  const auto exchange = held();
  ASSERT_TRUE(exchange);
  std::thread other([&] {
    exchange->begin({200, "text/plain", {}, "a"});
    for (int i = 0; i < 1000; ++i) exchange->write("<b>");
    exchange->finish();
  });
  other.join();
  EXPECT_EQ(count_of(client.hear("\r\n0\r\n\r\n"), "<b>"), 1000u);
}

TEST_F(HttpServerTest, CancelsAResponseAfterTheTimeLimit) {
  options_.times.response = 100ms;
  Client client(open());
  client.say(post("/hold", ""));
  const std::string heard = client.hear("--max-time");
  EXPECT_EQ(heard.substr(0, 12), "HTTP/1.1 503");
  EXPECT_TRUE(wait([this] { return gone_; })) << "the handler is notified";
  EXPECT_TRUE(held()->gone());
  held_->send({200, "text/plain", {}, "too late"});
  client.say(post("/echo", "next", kClose));
  EXPECT_EQ(client.hear().find("too late"), std::string::npos);
}

TEST_F(HttpServerTest, DropsARequestThatWaitedTooLong) {
  options_.times.response = 200ms;
  options_.handlers = 1;
  const uint16_t port = open();
  Client busy(port), waiting(port);
  busy.say(post("/work", ""));
  EXPECT_TRUE(wait([this] { return at_work_ == 1; }));
  waiting.say(post("/work", ""));
  EXPECT_EQ(waiting.hear("--max-time").substr(0, 12), "HTTP/1.1 503");
  {
    const std::lock_guard lock(mutex_);
    work_ends_ = true;
    changed_.notify_all();
  }
  Client other(port);
  other.say(post("/echo", "again", kClose));
  EXPECT_NE(other.hear().find("again"), std::string::npos);
  EXPECT_EQ(at_work_, 1);
}

TEST_F(HttpServerTest, LetsAStartedStreamFinish) {
  options_.times.response = 100ms;
  Client client(open());
  client.say(post("/hold", ""));
  const auto exchange = held();
  ASSERT_TRUE(exchange);
  exchange->begin({200, "text/plain", {}, "begun,"});
  std::this_thread::sleep_for(300ms);
  EXPECT_TRUE(exchange->write("done"));
  exchange->finish();
  EXPECT_NE(client.hear("\r\n0\r\n\r\n").find("done"), std::string::npos);
}

TEST_F(HttpServerTest, FormatsErrorsLikeTheRoute) {
  options_.handlers = 1;
  options_.waiting = 0;
  Client client(open());
  client.say(post("/plain", "", kClose));
  const std::string heard = client.hear();
  EXPECT_EQ(heard.substr(0, 12), "HTTP/1.1 503");
  EXPECT_NE(heard.find("\r\n\r\nplainly: too many requests"), std::string::npos) << heard;
}

TEST_F(HttpServerTest, DisconnectsSlowClients) {
  options_.times = {100ms, 100ms, 100ms, 100ms};
  const uint16_t port = open();
  for (const std::string& start :
       {std::string(""), std::string("GET /hea"),
        std::string("POST /echo HTTP/1.1\r\nHost: localhost\r\n"
                    "Content-Length: 10\r\n\r\nabc"),
        std::string("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")}) {
    Client client(port);
    client.say(start);
    EXPECT_EQ(client.hear().find("<no more data>"), std::string::npos) << start;
  }
}

TEST_F(HttpServerTest, DisconnectsAClientThatReadsNothing) {
  options_.times.write = 200ms;
  Client client(open());
  client.say(post("/hold", ""));
  const auto exchange = held();
  ASSERT_TRUE(exchange);
  exchange->begin({200, "text/plain", {}, ""});
  const std::string piece(size_t{1} << 20, 'x');
  bool taken = true;
  for (int i = 0; i < 64 && taken; ++i) taken = exchange->write(piece);
  EXPECT_FALSE(taken) << "64 MB were buffered for the client";
  EXPECT_TRUE(wait([this] { return gone_; }));
}

TEST_F(HttpServerTest, RefusesTooManyConnections) {
  options_.connections = 2;
  const uint16_t port = open();
  Client first(port), second(port);
  const std::string ask = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
  first.say(ask);
  first.hear("well");
  second.say(ask);
  second.hear("well");
  Client third(port);
  const std::string heard = third.hear();
  EXPECT_EQ(heard.substr(0, 12), "HTTP/1.1 503");
  EXPECT_NE(heard.find("Retry-After: 1"), std::string::npos);
  first.say(ask);
  EXPECT_NE(first.hear("well").find("200 OK"), std::string::npos) << "other connections continue";
}

TEST_F(HttpServerTest, FinishesResponsesBeforeStopping) {
  const uint16_t port = open();
  Client idle(port), busy(port);
  busy.say(post("/hold", ""));
  const auto exchange = held();
  ASSERT_TRUE(exchange);
  exchange->begin({200, "text/plain", {}, "begun,"});
  std::thread stopping([this] { server_->stop(10s); });
  EXPECT_EQ(idle.hear(), "") << "idle connections are closed immediately";
  EXPECT_FALSE(Client(port).connected());
  exchange->write("done");
  exchange->finish();
  EXPECT_NE(busy.hear().find("done"), std::string::npos);
  stopping.join();
}

TEST_F(HttpServerTest, StopsAfterTheGracePeriod) {
  const uint16_t port = open();
  Client busy(port);
  busy.say(post("/hold", ""));
  ASSERT_TRUE(held());
  server_->stop(50ms);
  EXPECT_TRUE(gone_);
  EXPECT_EQ(busy.hear(), "");
}

TEST_F(HttpServerTest, ReplacesItsRoutes) {
  Client client(open());
  const std::string ask = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
  client.say(ask);
  client.hear("well");
  Router router;
  router.add({"GET", "/health", false, [](Request, std::shared_ptr<Exchange> exchange) {
                exchange->send({503, "text/plain", {}, "ill"});
              }});
  server_->replace_routes(std::move(router));
  client.say(ask);
  EXPECT_NE(client.hear("ill").find("503"), std::string::npos);
}

class UnixSocket : public HttpServerTest {
 protected:
  void SetUp() override {
    HttpServerTest::SetUp();
    options_.socket = folder_ / "socket";
  }
  bool answers() const {
    Client client(options_.socket);
    client.say("GET /health HTTP/1.1\r\nHost: any.example\r\nConnection: close\r\n\r\n");
    return client.hear().find("well") != std::string::npos;
  }
  std::string refusal() const {
    try {
      const Server other(Router(), options_);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::InvalidArgument);
      return error.what();
    }
    return "";
  }
  mode_t mode() const {
    struct stat status = {};
    return lstat(options_.socket.c_str(), &status) == 0 ? status.st_mode : 0;
  }

  TemporaryFolder folder_;
};

TEST_F(UnixSocket, ServesItsOwnerAndGroupAndIsRemoved) {
  options_.access.loopback = false;
  EXPECT_EQ(open(), 0);
  EXPECT_TRUE(answers());
  EXPECT_EQ(mode() & 07777, 0660u);
  server_->stop(1s);
  EXPECT_EQ(mode(), 0u);
}

TEST_F(UnixSocket, ReplacesTheSocketOfAnEndedServerOnly) {
  options_.access.loopback = false;
  const int stale = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  options_.socket.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(stale, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  close(stale);
  open();
  EXPECT_TRUE(answers());
  EXPECT_NE(refusal().find("a server listens there"), std::string::npos);
  EXPECT_TRUE(answers()) << "the refused server leaves the socket";
}

TEST_F(UnixSocket, LeavesASocketThatHasReplacedItsOwn) {
  open();
  ASSERT_EQ(unlink(options_.socket.c_str()), 0);
  const Server other(Router(), options_);
  server_->stop(1s);
  EXPECT_TRUE(S_ISSOCK(mode()));
}

TEST_F(UnixSocket, ReportsAnUnusablePath) {
  const std::string path = options_.socket;
  std::ofstream(path) << "a file";
  EXPECT_NE(refusal().find("no socket"), std::string::npos);
  EXPECT_TRUE(S_ISREG(mode()));
  options_.socket = path + "/below";
  EXPECT_NE(refusal().find("Not a directory"), std::string::npos);
  options_.socket = path + "-none/socket";
  EXPECT_NE(refusal().find("No such file"), std::string::npos);
  options_.socket = path + std::string(100, 'x');
  EXPECT_NE(refusal().find("at most 107 bytes"), std::string::npos);
}

TEST_F(HttpServerTest, ReportsAnUnusableAddress) {
  options_.port = open();
  const std::pair<const char*, const char*> cases[] = {
      {"127.0.0.1", "in use"}, {"nowhere", "not an IP address"}, {"192.0.2.1", "cannot listen"}};
  for (const auto& [host, why] : cases) {
    ServerOptions options = options_;
    options.host = host;
    try {
      const Server other(Router(), options);
      ADD_FAILURE() << host;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::InvalidArgument);
      EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace fovea::http

#include "http/request_head.h"

#include <gtest/gtest.h>

#include "http/body_reader.h"

namespace fovea::http {
namespace {

const Limits kLimits;

int status_of(const std::string& bytes) {
  try {
    return read_head(bytes, kLimits) ? 200 : 0;
  } catch (const Refusal& refusal) {
    return refusal.status;
  }
}

std::string head_with(const std::string& headers) {
  return "POST / HTTP/1.1\r\nHost: a\r\n" + headers + "\r\n";
}

TEST(RequestHead, ParsesARequest) {
  const std::string bytes =
      "\r\nPOST /v1/a%20b?x=1+2&y=%41&z HTTP/1.1\r\nHOST: here:80\r\nX-Two:  \tv w \r\n"
      "Content-Length: 12\r\nConnection: close\r\nExpect: 100-Continue\r\n\r\nbody";
  const auto head = read_head(bytes, kLimits);
  ASSERT_TRUE(head);
  EXPECT_EQ(head->request.method, "POST");
  EXPECT_EQ(head->request.path, "/v1/a b");
  EXPECT_EQ(head->request.query.at("x"), "1 2");
  EXPECT_EQ(head->request.query.at("y"), "A");
  EXPECT_EQ(head->request.query.at("z"), "");
  EXPECT_EQ(head->request.header("x-two"), "v w");
  EXPECT_EQ(head->body_bytes, 12u);
  EXPECT_FALSE(head->keep_alive);
  EXPECT_TRUE(head->expects_continue);
  EXPECT_EQ(bytes.substr(head->bytes), "body");
}

TEST(RequestHead, WaitsForTheEntireHead) {
  const std::string whole = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_EQ(status_of(whole.substr(0, length)), 0) << length;
  }
  EXPECT_EQ(status_of(whole), 200);
}

TEST(RequestHead, FollowsTheVersionsKeepAliveRules) {
  EXPECT_TRUE(read_head(head_with(""), kLimits)->keep_alive);
  EXPECT_FALSE(read_head(head_with("Connection: Upgrade, CLOSE\r\n"), kLimits)->keep_alive);
  EXPECT_FALSE(read_head("GET / HTTP/1.0\r\n\r\n", kLimits)->keep_alive);
  EXPECT_TRUE(read_head("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", kLimits)->keep_alive);
}

TEST(RequestHead, RefusesAmbiguousHeaders) {
  for (const char* headers : {"Content-Length: 5\r\nContent-Length: 5\r\n",
                              "Content-Length: 5, 5\r\n",
                              "Content-Length: +5\r\n",
                              "Content-Length: 5x\r\n",
                              "Content-Length: -1\r\n",
                              "Content-Length:\r\n",
                              "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
                              "Transfer-Encoding: gzip\r\n",
                              "Transfer-Encoding: chunked, gzip\r\n",
                              "Transfer-Encoding: gzip, chunked\r\n",
                              "Transfer-Encoding: xchunked\r\n",
                              "X-A: b\r\n c\r\n",
                              "X-A : b\r\n",
                              ": b\r\n",
                              "X-A\r\n",
                              "X A: b\r\n",
                              "X-\xc3\xa9: b\r\n",
                              "X-A: b\rc\r\n",
                              "X-A: b\nX-C: d\r\n",
                              "X-A: \x01\r\n",
                              "Host: b\r\n"}) {
    EXPECT_EQ(status_of(head_with(headers)), 400) << headers;
  }
  EXPECT_EQ(status_of(head_with(std::string("X-A: b") + '\0' + "\r\n")), 400);
  EXPECT_EQ(status_of(head_with("Content-Length: 99999999999999999999\r\n")), 413);
  EXPECT_EQ(status_of(head_with("Expect: 200-maybe\r\n")), 417);
}

TEST(RequestHead, RefusesMalformedRequestLines) {
  for (const char* line :
       {"GET /", "GET  / HTTP/1.1", "GET / HTTP/1.1 ", " GET / HTTP/1.1", "GET / / HTTP/1.1",
        "GET / http/1.1", "GET / HTTP/11", "GET ftp://a/ HTTP/1.1", "GET http:///x HTTP/1.1",
        "GET a HTTP/1.1", "GET * HTTP/1.1", "G\x01T / HTTP/1.1", "GET /%4 HTTP/1.1",
        "GET /%zz HTTP/1.1", "GET /%00 HTTP/1.1", "GET /\xc3\xa9 HTTP/1.1",
        "CONNECT a:1 HTTP/1.1"}) {
    EXPECT_EQ(status_of(std::string(line) + "\r\nHost: a\r\n\r\n"), 400) << line;
  }
  EXPECT_EQ(status_of("GET / HTTP/1.1\nHost: a\n\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(status_of("PRI * HTTP/2.0\r\n\r\n"), 505);
  EXPECT_EQ(status_of("GET / HTTP/2.0\r\nHost: a\r\n\r\n"), 505);
  EXPECT_EQ(status_of("GET / HTTP/1.2\r\nHost: a\r\n\r\n"), 505);
}

// A proxy's form (RFC 9112, 3.2.2), whose host replaces that of the header.
TEST(RequestHead, TakesTargetsInAbsoluteForm) {
  const auto head = read_head("GET HTTP://a:1/b?c=d HTTP/1.1\r\nHost: x\r\n\r\n", kLimits);
  ASSERT_TRUE(head);
  EXPECT_EQ(head->request.path, "/b");
  EXPECT_EQ(head->request.query.at("c"), "d");
  EXPECT_EQ(head->request.header("host"), "a:1");
  EXPECT_EQ(status_of("GET http://a HTTP/1.1\r\nHost: a\r\n\r\n"), 200);
  // Regression: "a NUL byte" was said of a compressed body.
  EXPECT_EQ(status_of(head_with("Content-Encoding: gzip\r\n")), 415);
  EXPECT_EQ(status_of(head_with("Content-Encoding: Identity\r\n")), 200);
}

TEST(RequestHead, EnforcesItsLimits) {
  const auto line = [](size_t length) {
    return "GET /" + std::string(length - 14, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n";
  };
  EXPECT_EQ(status_of(line(kLimits.request_line)), 200);
  EXPECT_EQ(status_of(line(kLimits.request_line + 1)), 414);
  EXPECT_EQ(status_of(std::string(kLimits.request_line + 2, 'a')), 414) << "refused before its end";
  const auto header = [](size_t length) {
    return head_with("A: " + std::string(length - 3, 'a') + "\r\n");
  };
  EXPECT_EQ(status_of(header(kLimits.header_line)), 200);
  EXPECT_EQ(status_of(header(kLimits.header_line + 1)), 431);
  const auto many = [](size_t count) {
    std::string headers;
    for (size_t i = 1; i < count; ++i) headers += "A: b\r\n";
    return head_with(headers);
  };
  EXPECT_EQ(status_of(many(kLimits.headers)), 200);
  EXPECT_EQ(status_of(many(kLimits.headers + 1)), 431);
  std::string wide;
  for (int i = 0; i < 9; ++i) wide += "A: " + std::string(4000, 'a') + "\r\n";
  EXPECT_EQ(status_of(head_with(wide)), 431);
}

std::string gathered(const std::string& bytes, size_t step, size_t most = 100) {
  BodyReader reader(0, true, most);
  std::string rest;
  for (size_t i = 0; i < bytes.size(); i += step) {
    const std::string piece = rest + bytes.substr(i, step);
    rest = piece.substr(reader.take(piece));
  }
  return reader.done() ? reader.body() + "|" + rest : "not done";
}

TEST(BodyReader, JoinsChunksSplitAnywhere) {
  const std::string bytes =
      "4;a=b\r\nwiki\r\n5\r\npedia\r\nE\r\n in\r\n\r\nchunks.\r\n0\r\nT: x\r\n\r\nnext";
  for (size_t step = 1; step <= bytes.size(); ++step) {
    EXPECT_EQ(gathered(bytes, step), "wikipedia in\r\n\r\nchunks.|next") << step;
  }
}

TEST(BodyReader, ReadsABodyOfKnownLength) {
  BodyReader reader(4, false, 4);
  EXPECT_EQ(reader.take("ab"), 2u);
  EXPECT_FALSE(reader.done());
  EXPECT_EQ(reader.take("cdef"), 2u);
  EXPECT_TRUE(reader.done());
  EXPECT_EQ(reader.body(), "abcd");
  EXPECT_TRUE(BodyReader(0, false, 4).done());
  EXPECT_THROW(BodyReader(5, false, 4), Refusal);
}

int chunk_status(const std::string& bytes) {
  try {
    gathered(bytes, bytes.size(), 10);
    return 200;
  } catch (const Refusal& refusal) {
    return refusal.status;
  }
}

TEST(BodyReader, RefusesMalformedChunks) {
  for (const char* bytes : {"-2\r\n", "+5\r\n", "0x10\r\n", "\r\n", " 5\r\n", "5 \r\n", "g\r\n",
                            "5\nhello\r\n", "2\r\nabc\r\n", "2\r\nab\n0\r\n\r\n"}) {
    EXPECT_EQ(chunk_status(bytes), 400) << bytes;
  }
  EXPECT_EQ(chunk_status("5;" + std::string(1000, 'a')), 400);
  EXPECT_EQ(chunk_status("FFFFFFFFFFFFFFFF\r\n"), 413);
  EXPECT_EQ(chunk_status("FFFFFFFFFFFFFFFFF\r\n"), 413);
  EXPECT_EQ(chunk_status("a\r\n0123456789\r\n0\r\n\r\n"), 200);
  EXPECT_EQ(chunk_status("b\r\n"), 413);
  EXPECT_EQ(chunk_status("5\r\n01234\r\n6\r\n"), 413);
  std::string trailers = "0\r\n";
  for (int i = 0; i < 100; ++i) trailers += "T: " + std::string(100, 'a') + "\r\n";
  EXPECT_EQ(chunk_status(trailers), 431);
}

}  // namespace
}  // namespace fovea::http

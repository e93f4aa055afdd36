// A protocol is one GenerationFormat: here a plain one, in which each event is a line.

#include "serve/generation/generation_format.h"

#include <fmt/format.h>

#include <numeric>

#include "api_fixture.h"
#include "serve/generation/generation.h"

namespace fovea::serve {
namespace {

class LineFormat : public GenerationFormat {
 public:
  LineFormat() : GenerationFormat(LogprobStyle::chat, ErrorShape::translate, "text/plain") {}

  std::string begin_choice(size_t choice, LogprobList&) override {
    return fmt::format("begin {}\n", choice);
  }
  std::string piece(const TextPiece& piece) override {
    return fmt::format("piece {} {}\n", piece.choice, piece.text);
  }
  std::string end_choice(ChoiceEnd end) override {
    return fmt::format("end {} {} calls\n", end.choice, end.message.calls.size());
  }
  std::string end_stream(const GenerationTotals& totals) override {
    return fmt::format("{} tokens\n", totals.counts.generated);
  }
  std::string stream_error(const ApiError& error) override { return error.message + "\n"; }
  std::string whole_choice(ChoiceEnd end) override { return end.message.content + "\n"; }
  std::string whole(std::vector<std::string> choices, const GenerationTotals& totals) override {
    return std::accumulate(choices.begin(), choices.end(), std::string()) + end_stream(totals);
  }
};

class FormatTest : public ApiTest {
 protected:
  std::shared_ptr<http::FakeExchange> run(bool stream) {
    GenerationRequest request;
    request.options.generations = 2;
    request.stream = stream;
    const auto exchange = std::make_shared<http::FakeExchange>();
    std::make_shared<GenerationJob>(request, std::make_unique<LineFormat>(), model_, exchange,
                                    api_.metrics())
        ->start({.ids = {{1, 2}}});
    for (const auto& next : pending_) next();
    return exchange;
  }
};

TEST_F(FormatTest, WritesABody) {
  EXPECT_EQ(run(false)->response.body, "Hello\nHello\n6 tokens\n");
}

TEST_F(FormatTest, WritesAStream) {
  const auto exchange = run(true);
  EXPECT_EQ(exchange->response.content_type, "text/plain");
  EXPECT_EQ(std::accumulate(exchange->pieces.begin(), exchange->pieces.end(), std::string()),
            "begin 0\npiece 0 Hel\npiece 0 lo\nend 0 0 calls\n"
            "begin 1\npiece 1 Hel\npiece 1 lo\nend 1 0 calls\n6 tokens\n");
}

TEST_F(FormatTest, WritesAnErrorInItsShape) {
  error_ = "broken";
  error_kind_ = ErrorKind::Unsupported;
  EXPECT_EQ(run(false)->response.body, "{\"error\":\"broken\"}");
  pending_.clear();
  const auto exchange = run(true);
  EXPECT_EQ(exchange->pieces.back(), "broken\n");
}

}  // namespace
}  // namespace fovea::serve

// The routes /translate and /languages.

#include "serve/protocols/translation.h"

#include <algorithm>

#include "api_fixture.h"
#include "support/small_spec.h"

namespace fovea::serve {
namespace {

// Every result of the fake engine is "Hello".
class TranslationTest : public ApiTest {
 protected:
  void SetUp() override {
    ApiTest::SetUp();
    generator().translator->directions = {{"de", "en", ""}};
  }
  static Json about(const Json& q, Json more = Json::object()) {
    more.update({{"q", q}, {"source", "de"}, {"target", "en"}});
    return more;
  }
  std::shared_ptr<http::FakeExchange> translated(const Json& body) {
    return post("/translate", body);
  }
  std::string source(size_t i) const { return {prompts_[i].begin(), prompts_[i].end()}; }
};

TEST_F(TranslationTest, RespondsInLibreTranslatesFormat) {
  EXPECT_EQ(parsed(translated(about("Hallo"))), (Json{{"translatedText", "Hello"}}));
  EXPECT_EQ(source(0), "Hallo");
  EXPECT_EQ(parsed(translated(about({"Hallo", "Du"}))),
            (Json{{"translatedText", {"Hello", "Hello"}}}));
  Json body = about("Hallo");
  body["source"] = "auto";
  EXPECT_EQ(parsed(translated(body))["detectedLanguage"],
            (Json{{"confidence", 0.0}, {"language", "de"}}));
  body["q"] = {"Hallo"};
  EXPECT_EQ(parsed(translated(body))["detectedLanguage"].size(), 1u);
}

TEST_F(TranslationTest, TranslatesLineByLine) {
  EXPECT_EQ(parsed(translated(about("Hallo\r\n\n Du\n")))["translatedText"], "Hello\n\nHello\n");
  EXPECT_EQ(prompts_.size(), 2u);
  EXPECT_EQ(source(1), " Du");
  std::string many;
  for (int i = 0; i < 200; ++i) many += "x\n";
  const std::string text = parsed(translated(about(many)))["translatedText"];
  EXPECT_EQ(std::count(text.begin(), text.end(), 'H'), 200);
  EXPECT_EQ(parsed(translated(about("\n")))["translatedText"], "\n");
}

TEST_F(TranslationTest, ReturnsDistinctAlternatives) {
  holding_ = true;
  const auto exchange = translated(about("Hallo", {{"alternatives", 3}}));
  infer::Generation whole;
  const std::vector<std::string> texts = {"Hello", "Hi", "Hello", "Hey"};
  for (size_t i = 0; i < texts.size(); ++i) {
    whole.text = texts[i];
    infer::Event event;
    event.generation = static_cast<int64_t>(i);
    event.finished = &whole;
    sinks_[0](event);
  }
  EXPECT_EQ(parsed(exchange), (Json{{"translatedText", "Hello"}, {"alternatives", {"Hi", "Hey"}}}));
}

TEST_F(TranslationTest, AcceptsForms) {
  const auto form = [&](const std::string& body) {
    return ask("POST", "/translate", body, "application/x-www-form-urlencoded; charset=utf-8");
  };
  EXPECT_EQ(parsed(form("q=Gr%C3%BC%C3%9Fe+an+alle&source=de&target=en&alternatives=1")),
            (Json{{"translatedText", "Hello"}, {"alternatives", Json::array()}}));
  EXPECT_EQ(source(0),
            "Gr\xc3\xbc\xc3\x9f"
            "e an alle");
  EXPECT_EQ(form(about("Hallo").dump())->response.status, 200) << "curl -d declares JSON as a form";
  refused_plainly(form("q=%zz&source=de&target=en"), 400, "hexadecimal");
  refused_plainly(form("q=a&source=de&target=en&alternatives=x"), 400, "alternatives");
}

TEST_F(TranslationTest, RefusesUnsupportedRequests) {
  refused_plainly(translated({{"source", "de"}, {"target", "en"}}), 400, "q: is missing");
  refused_plainly(translated({{"q", "a"}, {"target", "en"}}), 400, "source");
  refused_plainly(translated({{"q", "a"}, {"source", "de"}}), 400, "target");
  refused_plainly(translated({{"q", "a"}, {"source", "fr"}, {"target", "en"}}), 400, "/languages");
  refused_plainly(translated({{"q", "a"}, {"source", "de"}, {"target", "fr"}}), 400, "/languages");
  refused_plainly(translated(about("a", {{"format", "html"}})), 400, "format");
  refused_plainly(translated(about("a", {{"alternatives", 16}})), 400, "alternatives");
  generator().translator->most_hypotheses = 3;
  refused_plainly(translated(about("a", {{"alternatives", 3}})), 400, "at most 2");
  EXPECT_EQ(translated(about("a", {{"alternatives", 2}}))->response.status, 200);
  error_ = "numbers are not finite";
  refused_plainly(translated(about("a")), 500, "numbers");
  generator().translator.reset();
  refused_plainly(translated(about("a")), 400, "no translation model");
}

TEST_F(TranslationTest, ReturnsStatus429OnlyIfNoLineIsRunning) {
  most_taken_ = 1;
  EXPECT_EQ(translated(about("a"))->response.status, 200);
  refused_plainly(translated(about("b")), 429, "too many");
  most_taken_ = 3;
  const auto exchange = translated(about("a\nb"));
  refused_plainly(exchange, 429, "too many");
  EXPECT_EQ(exchange->response.headers[0].first, "Retry-After");
}

TEST_F(TranslationTest, CancelsWhenTheClientDisconnects) {
  holding_ = true;
  const auto exchange = translated(about("a\nb"));
  exchange->leave();
  EXPECT_EQ(cancelled_, (std::vector<uint64_t>{1, 2}));
  EXPECT_FALSE(sinks_[0](infer::Event{}));
}

TEST_F(TranslationTest, SelectsTheModelByLanguages) {
  EXPECT_EQ(parsed(ask("GET", "/languages")),
            (Json{{{"code", "de"}, {"name", "German"}, {"targets", {"en"}}},
                  {{"code", "en"}, {"name", "English"}, {"targets", Json::array()}}}));
  TextGenerator& other = other_->part.emplace<TextGenerator>();
  other.engine = generator().engine;
  other.translator = generator().translator;
  generator().translator->directions[0].source_prefix = "1 ";
  other.translator->directions = {{"en", "de", "2 "}};
  const auto chosen = [&](const std::string& from, const std::string& into,
                          const std::string& name = "") {
    prompts_.clear();
    translated({{"q", "x"}, {"source", from}, {"target", into}, {"model", name}});
    return source(0);
  };
  EXPECT_EQ(chosen("en", "de"), "2 x");
  EXPECT_EQ(chosen("auto", "de"), "2 x");
  EXPECT_EQ(chosen("de", "en"), "1 x");
  generator().translator->directions = {{"", "", "1 "}};
  EXPECT_EQ(chosen("en", "de"), "1 x") << "a model without language codes accepts any";
  EXPECT_EQ(chosen("en", "de", "second/model"), "2 x");
}

TEST_F(TranslationTest, SupportsManyDirectionsPerModel) {
  generator().translator->directions = {{"en", "de", "to German: "}, {"en", "fr", "to French: "}};
  EXPECT_EQ(parsed(ask("GET", "/languages"))[1],
            (Json{{"code", "en"}, {"name", "English"}, {"targets", {"de", "fr"}}}));
  translated({{"q", "x"}, {"source", "en"}, {"target", "fr"}});
  translated({{"q", "x\ny"}, {"source", "auto"}, {"target", "de"}});
  EXPECT_EQ(source(0), "to French: x");
  EXPECT_EQ(source(2), "to German: y");
  const auto refused = translated({{"q", "x"}, {"source", "en"}, {"target", "it"}});
  EXPECT_EQ(refused->response.status, 400);
}

TEST(TranslationDirections, AreReadFromLanguageCodes) {
  const text::Tokenizer tokenizer = text::Tokenizer::open("tests/goldens/translation_tokenizers");
  const model::Spec spec =
      test::small_encoder_decoder({.vocabulary = 0, .context = 8, .width = 8, .layers = 1});
  const model::Model model = model::Model::create(spec, tokenizer, 1);
  const auto directions = infer::translation_directions(model);
  ASSERT_EQ(directions.size(), 2u);
  EXPECT_EQ(directions[0].source + directions[0].target, "engdeu");
  EXPECT_EQ(directions[1].source_prefix, ">>nld<< ");
}

}  // namespace
}  // namespace fovea::serve

// Translators of many languages and models that summarise, compared with transformers: see
// tools/goldens/make_translators.py.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <utility>

#include <nlohmann/json.hpp>

#include "fovea/infer/translate.h"
#include "fovea/model/model.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea::infer {
namespace {

using Json = nlohmann::json;

std::string folder_of(const std::string& name) { return "tests/goldens/translators/" + name; }

Json expected(const std::string& name) {
  std::ifstream file(folder_of(name) + "/expected.json");
  return Json::parse(file);
}

void expect_best(const std::vector<Generation>& best, const Json& reference) {
  ASSERT_EQ(best.size(), reference.size());
  for (size_t i = 0; i < best.size(); ++i) {
    EXPECT_EQ(Json(best[i].ids), reference[i].at("ids"));
    EXPECT_EQ(best[i].text, reference[i].at("text").get<std::string>());
    EXPECT_NEAR(best[i].score, reference[i].at("score").get<float>(), 2e-5f);
  }
}

std::vector<Generation> translated(const model::Model& model, const TranslateOptions& options,
                                   const std::string& line) {
  bool read = false;
  std::vector<Generation> best;
  translate(
      model, options,
      [&]() -> std::optional<std::string> {
        if (std::exchange(read, true)) return std::nullopt;
        return line;
      },
      [&](const Translation& translation) {
        best = translation.best;
        return true;
      });
  return best;
}

class Translators : public testing::TestWithParam<const char*> {};

TEST_P(Translators, GiveTheBeamsOfTransformers) {
  const model::Model model = model::Model::open(folder_of(GetParam()));
  for (const Json& each : expected(GetParam()).at("cases")) {
    TranslateOptions options;
    options.beams = 4;
    options.best = 3;
    options.max_tokens = 12;
    options.min_tokens = 3;
    options.source_language = each.at("source");
    options.target_language = each.at("target");
    const std::string line = each.at("text");
    SCOPED_TRACE(each.dump());
    EXPECT_EQ(Json(translation_request(model, options, line).source), each.at("ids"));
    expect_best(translated(model, options, line), each.at("best"));
  }
}

INSTANTIATE_TEST_SUITE_P(All, Translators, testing::Values("nllb", "m2m_100", "mbart50"));

class Summarisers : public testing::TestWithParam<const char*> {};

TEST_P(Summarisers, GiveTheBeamsOfTheirGenerationSettings) {
  const model::Model model = model::Model::open(folder_of(GetParam()));
  GenerateOptions options = generation_defaults(model);
  options.generations = 3;
  for (const Json& each : expected(GetParam()).at("cases")) {
    const std::string text = each.at("text");
    EXPECT_EQ(Json(prompt_ids(model, text)), each.at("ids"));
    expect_best(generate(model, text, options), each.at("best"));
  }
}

INSTANTIATE_TEST_SUITE_P(All, Summarisers, testing::Values("pegasus", "bart"));

TEST(TranslatorLanguages, AreCodesOrTags) {
  const model::Model model = model::Model::open(folder_of("nllb"));
  const auto source = [&](const std::string& from, const std::string& into) {
    TranslateOptions options;
    options.source_language = from;
    options.target_language = into;
    const TranslationRequest request = translation_request(model, options, "the sea");
    return std::pair(request.source.front(), request.options.forced);
  };
  EXPECT_EQ(source("en-US", "zh-TW"), source("eng_Latn", "zho_Hant"));
  EXPECT_EQ(source("de", "zh"), source("deu_Latn", "zho_Hans"));
  EXPECT_NE(source("de", "zh"), source("en", "zh"));
  EXPECT_EQ(translation_languages(model).size(), 7u);
}

TEST(TranslatorLanguages, UnknownAndMissingOnesAreRefused) {
  const model::Model model = model::Model::open(folder_of("nllb"));
  const auto refused = [&](const std::string& from, const std::string& into,
                           const std::string& message) {
    TranslateOptions options;
    options.source_language = from;
    options.target_language = into;
    expect_error(ErrorKind::InvalidArgument, {message},
                 [&] { translation_request(model, options, "a"); });
  };
  refused("en", "", "target_language: not given; expected a language of the model: ");
  refused("en", "it", "target_language: the model has no language it; expected ");
  refused("ace", "en", "source_language: ace is ace_Arab or ace_Latn in this model");
}

TEST(TranslatorLanguages, AFollowingCodeIsReplacedWhereItIs) {
  const Json legacy = expected("nllb").at("legacy");
  const TemporaryFolder folder;
  const std::filesystem::path copy = folder / "legacy";
  std::filesystem::copy(folder_of("nllb"), copy);
  Json config = Json::parse(std::ifstream(copy / "tokenizer_config.json"));
  config["legacy_behaviour"] = true;
  std::ofstream(copy / "tokenizer_config.json") << config.dump();
  TranslateOptions options;
  options.source_language = legacy.at("source");
  options.target_language = "en";
  const model::Model model = model::Model::open(copy.string());
  EXPECT_EQ(Json(translation_request(model, options, legacy.at("text")).source), legacy.at("ids"));
}

}  // namespace
}  // namespace fovea::infer

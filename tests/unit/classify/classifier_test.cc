// Labels, entities, answers and masked tokens equal those of transformers, and do not depend on
// other texts; options, texts and models that do not fit are refused.

#include "fovea/infer/classify.h"

#include <cmath>
#include <future>

#include "base/json.h"
#include "classify/classifier_parts.h"
#include "support/expect_error.h"
#include "support/golden_folder.h"

namespace fovea::infer {
namespace {

constexpr double kWithin = 1e-5;

std::string folder_of(const std::string& name) { return "tests/goldens/classifiers/" + name; }
nlohmann::json expected_of(const std::string& name) {
  return read_json(folder_of(name) + "/expected.json");
}
Classifier opened(const std::string& name) { return Classifier::open(folder_of(name)); }

std::vector<TextInput> inputs_of(const nlohmann::json& texts) {
  std::vector<TextInput> inputs;
  for (const auto& text : texts) inputs.push_back({text, {}});
  return inputs;
}

// Expects the labels of a text, best first, with their scores.
void expect_labels(const Classifications& result, int64_t text, const nlohmann::json& wanted) {
  const std::vector<size_t> order = result.order(text);
  ASSERT_EQ(order.size(), wanted.size());
  for (size_t i = 0; i < order.size(); ++i) {
    EXPECT_EQ(result.labels[order[i]], wanted[i]["label"].get<std::string>());
    EXPECT_NEAR(result.row(text)[order[i]], wanted[i]["score"].get<double>(), kWithin);
  }
}

class LabelsOfTexts : public testing::TestWithParam<const char*> {};

TEST_P(LabelsOfTexts, EqualThoseOfTransformers) {
  const Classifier classifier = opened(GetParam());
  const auto expected = expected_of(GetParam());
  const auto result = classifier.classify(inputs_of(expected["texts"]));
  for (size_t i = 0; i < expected["texts"].size(); ++i)
    expect_labels(result, static_cast<int64_t>(i), expected["labels"][i]);
  const auto& texts = expected["texts"];
  expect_labels(classifier.classify({{texts[0], texts[1].get<std::string>()}}), 0,
                expected["pair"]);
}

INSTANTIATE_TEST_SUITE_P(Heads, LabelsOfTexts,
                         testing::Values("texts", "several", "regression", "decoder",
                                         "encoder_decoder"));

TEST(Classifier, GivesTheSameBitsAloneAndInABatch) {
  for (const char* name : {"texts", "decoder", "encoder_decoder"}) {
    const Classifier classifier = opened(name);
    const auto inputs = inputs_of(expected_of(name)["texts"]);
    const auto together = classifier.classify(inputs);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto alone = classifier.classify({inputs[i]});
      for (size_t label = 0; label < alone.labels.size(); ++label)
        EXPECT_EQ(alone.scores[label], together.row(static_cast<int64_t>(i))[label]) << name;
    }
  }
}

TEST(Classifier, ChoosesAmongCandidateLabels) {
  const Classifier classifier = opened("texts");
  const auto expected = expected_of("texts");
  ClassifyOptions options;
  options.labels = expected["candidates"].get<std::vector<std::string>>();
  expect_labels(classifier.classify_by({expected["texts"][0]}, options), 0, expected["one"]);
  options.multi_label = true;
  expect_labels(classifier.classify_by({expected["texts"][0]}, options), 0, expected["several"]);
}

TEST(Classifier, RefusesCandidatesThatDoNotFit) {
  ClassifyOptions options;
  expect_error(ErrorKind::InvalidArgument, {"labels", "at least one"},
               [&] { opened("texts").classify_by({"a"}, options); });
  options.labels = {"night"};
  expect_error(ErrorKind::InvalidArgument, {"calm, loud, old", "entail"},
               [&] { opened("several").classify_by({"a"}, options); });
  options.hypothesis = "no place";
  expect_error(ErrorKind::InvalidArgument, {"hypothesis", "no place", "{}"},
               [&] { opened("texts").classify_by({"a"}, options); });
}

TEST(Classifier, JoinsEntitiesLikeTransformers) {
  const Classifier classifier = opened("words");
  const auto expected = expected_of("words");
  const std::vector<std::string> texts = expected["texts"];
  const char* const names[] = {"none", "simple", "first", "average", "max"};
  for (int joining = 0; joining < 5; ++joining) {
    ClassifyOptions options;
    options.joining = static_cast<EntityJoining>(joining);
    const auto found = classifier.find_entities(texts, options);
    for (size_t i = 0; i < texts.size(); ++i) {
      const auto& wanted = expected[names[joining]][i];
      ASSERT_EQ(found[i].size(), wanted.size()) << names[joining] << ": " << texts[i];
      for (size_t j = 0; j < wanted.size(); ++j) {
        EXPECT_EQ(found[i][j].label, wanted[j]["label"].get<std::string>());
        EXPECT_EQ(found[i][j].span.begin, wanted[j]["start"].get<int64_t>());
        EXPECT_EQ(found[i][j].span.end, wanted[j]["end"].get<int64_t>());
        EXPECT_NEAR(found[i][j].score, wanted[j]["score"].get<double>(), kWithin);
      }
    }
  }
}

TEST(Classifier, ReadsLongTextsInWindows) {
  const Classifier classifier = opened("words");
  std::string text;
  for (int i = 0; i < 40; ++i) text += "the fox sees Anna ";
  ClassifyOptions options;
  options.joining = EntityJoining::none;
  const auto entities = classifier.find_entities({text}, options)[0];
  ASSERT_FALSE(entities.empty());
  EXPECT_GT(entities.back().span.end, 600) << "the last window is read";
  for (size_t i = 1; i < entities.size(); ++i)
    EXPECT_GE(entities[i].span.begin, entities[i - 1].span.end) << "each token once";
  EXPECT_TRUE(classifier.find_entities({"  "}, options)[0].empty());
}

TEST(Windows, CoverAllTokens) {
  const auto windows = windows_over(10, 4, 2);
  ASSERT_EQ(windows.size(), 4u);
  EXPECT_EQ(windows.back().begin, 6);
  EXPECT_EQ(windows.back().end, 10);
  EXPECT_EQ(windows_over(0, 4, 2).size(), 1u);
  EXPECT_EQ(windows_over(4, 4, 2).size(), 1u);
}

TEST(Classifier, FindsAnswersLikeTransformers) {
  const Classifier classifier = opened("answers");
  const auto expected = expected_of("answers");
  for (const char* kind : {"best", "three"}) {
    ClassifyOptions options;
    options.top = kind == std::string("three") ? 3 : 1;
    options.null_answer = options.top == 3;
    for (size_t i = 0; i < expected["contexts"].size(); ++i) {
      const auto answers =
          classifier.answer({{expected["question"], expected["contexts"][i]}}, options)[0];
      const auto& wanted = expected[kind][i];
      ASSERT_EQ(answers.size(), wanted.size());
      for (size_t j = 0; j < wanted.size(); ++j) {
        EXPECT_EQ(answers[j].text, wanted[j]["answer"].get<std::string>());
        EXPECT_EQ(answers[j].span.begin, wanted[j]["start"].get<int64_t>());
        EXPECT_NEAR(answers[j].score, wanted[j]["score"].get<double>(), kWithin);
      }
    }
  }
}

TEST(Classifier, RefusesQuestionsWithoutRoomOrText) {
  const Classifier classifier = opened("answers");
  std::string long_question;
  for (int i = 0; i < 40; ++i) long_question += "the ";
  expect_error(ErrorKind::InvalidArgument, {"text 1", "the question has 40 tokens", "at most 28"},
               [&] { classifier.answer({{long_question, "the fox"}}); });
  expect_error(ErrorKind::InvalidArgument, {"text 2", "context has no tokens"},
               [&] { classifier.answer({{"who?", "a"}, {"who?", ""}}); });
  expect_error(ErrorKind::InvalidArgument, {"question has no tokens"},
               [&] { classifier.answer({{"", "a"}}); });
}

TEST(Classifier, FillsMasksLikeTransformers) {
  const Classifier classifier = opened("masks");
  const auto expected = expected_of("masks");
  EXPECT_EQ(classifier.mask_token(), "[MASK]");
  ClassifyOptions options;
  options.top = 3;
  const auto filled = classifier.fill_masks(expected["texts"], options);
  for (size_t i = 0; i < filled.size(); ++i) {
    const auto& wanted = expected["masks"][i];
    ASSERT_EQ(filled[i].size(), wanted.size());
    for (size_t mask = 0; mask < wanted.size(); ++mask) {
      for (size_t j = 0; j < 3; ++j) {
        const MaskCandidate& candidate = filled[i][mask][j];
        EXPECT_EQ(candidate.id, wanted[mask][j]["token"].get<int32_t>());
        EXPECT_EQ(candidate.token, wanted[mask][j]["token_str"].get<std::string>());
        EXPECT_EQ(candidate.text, wanted[mask][j]["sequence"].get<std::string>());
        EXPECT_NEAR(candidate.score, wanted[mask][j]["score"].get<double>(), kWithin);
      }
    }
  }
}

TEST(Classifier, ReadsOnlyMasksAsSpecialTokens) {
  const Classifier classifier = opened("masks");
  const std::string text = classifier.fill_masks({"[SEP] a [MASK] [MASK]"})[0][0][0].text;
  EXPECT_NE(text.find("[UNK]"), std::string::npos) << "plain text, not a special token: " << text;
}

TEST(Classifier, FindsMasksThatIncludeTheSpaceBeforeThem) {
  const GoldenFolder folder("classifiers/masks");
  nlohmann::json tokenizer = folder.read("tokenizer.json");
  for (auto& token : tokenizer["added_tokens"]) token["lstrip"] = token["content"] == "[MASK]";
  folder.write("tokenizer.json", tokenizer);
  const auto filled =
      Classifier::open(folder.path()).fill_masks({"the [MASK] sees [MASK]", "[MASK]"});
  EXPECT_EQ(filled[0].size(), 2u);
  EXPECT_EQ(filled[1].size(), 1u);
}

TEST(Classifier, RefusesTextsWithoutMasks) {
  const Classifier classifier = opened("masks");
  expect_error(ErrorKind::InvalidArgument, {"text 2", "no mask token", "[MASK]"},
               [&] { classifier.fill_masks({"[MASK]", "[mask] ASK]"}); });
  std::string text;
  for (int i = 0; i < 40; ++i) text += "the ";
  expect_error(ErrorKind::InvalidArgument, {"text 1", "outside the 30 tokens that are kept"},
               [&] { classifier.fill_masks({text + "[MASK]"}); });
}

TEST(Classifier, RefusesModelsWithoutAHead) {
  expect_error(ErrorKind::Unsupported, {"sentence_model", "no classification head", "fovea embed"},
               [] { Classifier::open("tests/goldens/sentence_model"); });
  expect_error(ErrorKind::Unsupported, {"gpt2_bf16", "no classification head", "fovea generate"},
               [] { Classifier::open("tests/goldens/gpt2_bf16"); });
  expect_error(ErrorKind::InvalidArgument, {"predicts labels of texts, not answers"},
               [] { opened("texts").answer({{"a", "b"}}); });
}

TEST(Classifier, TruncatesOrRefusesLongTexts) {
  const Classifier classifier = opened("texts");
  std::string text;
  for (int i = 0; i < 40; ++i) text += "the ";
  EXPECT_EQ(classifier.classify({{text, {}}}).cut[0], 10);
  ClassifyOptions options;
  options.truncate = false;
  expect_error(ErrorKind::InvalidArgument, {"text 1", "42 tokens", "at most 32"},
               [&] { classifier.classify({{text, {}}}, options); });
  expect_error(ErrorKind::InvalidArgument, {"text 1: has no tokens"},
               [] { opened("decoder").classify({{"", {}}}); });
}

TEST(Classifier, ReadsProblemTypeAndLabels) {
  const GoldenFolder folder("classifiers/texts");
  EXPECT_EQ(Classifier::open(folder.path()).score_function(), ScoreFunction::softmax);
  folder.set("config.json", "problem_type", "multi_label_classification");
  EXPECT_EQ(Classifier::open(folder.path()).score_function(), ScoreFunction::sigmoid);
  folder.set("config.json", "problem_type", "none of these");
  expect_error(ErrorKind::Unsupported, {"problem_type", "none of these"},
               [&] { Classifier::open(folder.path()); });
}

TEST(Classifier, ReportsScoresThatAreNotFinite) {
  const GoldenFolder folder("classifiers/texts");
  const std::string path = folder / "model.safetensors";
  const SafeTensors file(path);
  std::map<std::string, Tensor> tensors;
  for (const StoredTensor& tensor : file.stored())
    tensors[tensor.name] = copy(file.tensor(tensor.name));
  tensors.at("classifier.bias").data_as<float>()[0] = NAN;
  write_safetensors(path, tensors);
  expect_error(ErrorKind::Failed, {"text 1", "not finite"},
               [&] { Classifier::open(folder.path()).classify({{"the fox", {}}}); });
}

TEST(ClassifyQueue, GivesTheSameBits) {
  const Classifier classifier = opened("texts");
  const auto inputs = inputs_of(expected_of("texts")["texts"]);
  ClassifyQueue queue(classifier);
  std::promise<Classifications> result;
  ASSERT_NE(
      queue.submit(inputs, {},
                   [&](const Classifications* done, const Error*) { result.set_value(*done); }),
      0u);
  EXPECT_EQ(result.get_future().get().scores, classifier.classify(inputs).scores);
  expect_error(ErrorKind::InvalidArgument, {"predicts answers"},
               [] { ClassifyQueue(opened("answers")); });
}

}  // namespace
}  // namespace fovea::infer

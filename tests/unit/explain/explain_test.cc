// Attributions equal those of PyTorch, closed forms and finite differences, and do not depend on
// threads and other texts; requests that do not fit are refused.

#include "fovea/study/explain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/json.h"
#include "base/threads.h"
#include "explain/deletion.h"
#include "explain/gradients.h"
#include "explain/outputs.h"
#include "explain/rollout.h"
#include "open/model_parts.h"
#include "support/expect_error.h"
#include "support/small_spec.h"
#include "tensor/tape.h"
#include "transformer/token_vectors.h"

namespace fovea::study {
namespace {

constexpr double kRelative = 1e-4;  // to the largest magnitude of a list

using Json = nlohmann::json;

std::string classifier_folder(const std::string& name) {
  return "tests/goldens/classifiers/" + name;
}

void expect_close(const std::vector<double>& found, const Json& wanted, const std::string& what) {
  ASSERT_EQ(found.size(), wanted.size()) << what;
  double most = 0;
  for (const auto& value : wanted) most = std::max(most, std::abs(value.get<double>()));
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], wanted[i].get<double>(), kRelative * most) << what << ", token " << i;
}

// Opens the model of a golden and explains its text.
Explanation explained_golden(const Json& golden) {
  ExplainOptions options;
  options.target = golden.value("target", "");
  options.integration_steps = golden["steps"];
  options.baseline =
      golden["baseline"] == "zero" ? IntegrationBaseline::zero : IntegrationBaseline::padding;
  options.removed_share = golden["removed_share"];
  options.random_choices = 3;
  const std::string folder = golden["folder"], kind = golden["kind"];
  if (kind == "similarity")
    return explain(infer::Embedder::open(folder), {golden["text"]}, golden["other"], options)[0];
  if (kind == "token") {
    InspectInput input;
    input.ids = golden["ids"].get<std::vector<int32_t>>();
    return explain(model::Model::open(folder), input, options).at(0);
  }
  infer::TextInput input{golden["text"], {}};
  if (golden.contains("pair")) input.pair = golden["pair"].get<std::string>();
  if (kind == "result") {
    infer::ClassifyOptions joined;
    joined.joining = infer::EntityJoining::simple;  // as the reference joins
    return explain_results(infer::Classifier::open(folder), {input}, options, joined)[0].at(
        golden["result"]);
  }
  return explain(infer::Classifier::open(folder), {input}, options)[0];
}

TEST(Explain, EqualsPyTorch) {
  const Json goldens = read_json("tests/goldens/explanations.json");
  ASSERT_GE(goldens.size(), 6u);
  for (const Json& golden : goldens) {
    const std::string name = golden["name"];
    const Explanation found = explained_golden(golden);
    ASSERT_EQ(found.attributions.size(), 3u) << name;
    if (golden.contains("found")) {
      EXPECT_EQ(found.target, golden["found"].get<std::string>()) << name;
    }
    const double value = golden["value"];
    EXPECT_NEAR(found.value, value, kRelative * std::abs(value)) << name;
    const Attribution& gradient = found.attributions[0];
    const Attribution& integrated = found.attributions[1];
    expect_close(gradient.scores, golden["gradient_input"], name + " gradient");
    expect_close(integrated.scores, golden["integrated_gradients"], name + " integrated");
    expect_close(found.attributions[2].scores, golden["rollout"], name + " rollout");
    EXPECT_NEAR(integrated.baseline_value.value(), golden["baseline_value"].get<double>(),
                kRelative * std::max(1.0, std::abs(value)))
        << name;
    for (size_t i = 0; i < 3; ++i) {
      const DeletionTest& deletion = found.attributions[i].deletion.value();
      const Json& wanted = golden["deletions"][i];
      EXPECT_EQ(Json(deletion.removed), wanted["removed"]) << name << " method " << i;
      EXPECT_NEAR(deletion.change, wanted["change"].get<double>(),
                  kRelative * std::max(1.0, std::abs(value)))
          << name;
    }
  }
}

TEST(Explain, HasCompletenessErrorThatShrinksWithTheSteps) {
  for (const char* name : {"texts", "decoder", "encoder_decoder"}) {
    const infer::Classifier classifier = infer::Classifier::open(classifier_folder(name));
    ExplainOptions options;
    options.method = AttributionMethods::integrated_gradients;
    std::vector<double> errors;
    for (const int64_t steps : {4, 32, 256}) {
      options.integration_steps = steps;
      const Explanation found =
          explain(classifier, {{"the fox sees Anna Lee in Paris.", {}}}, options)[0];
      const Attribution& a = found.attributions.at(0);
      const double sum = std::accumulate(a.scores.begin(), a.scores.end(), 0.0);
      EXPECT_DOUBLE_EQ(a.completeness_error.value(),
                       std::abs(sum - (found.value - a.baseline_value.value())));
      errors.push_back(a.completeness_error.value());
    }
    // The error of the midpoint rule falls with the square of the number of steps.
    EXPECT_LT(errors[1], errors[0] / 8 + 1e-5) << name;
    EXPECT_LT(errors[2], errors[1] / 8 + 1e-5) << name;
    EXPECT_LT(errors[2], 1e-3) << name;
  }
}

// A result states the steps that it needed, or that they were not enough.
TEST(Explain, TakesStepsUntilTheScoresAddUp) {
  const infer::Classifier classifier = infer::Classifier::open(classifier_folder("texts"));
  ExplainOptions options;
  options.method = AttributionMethods::integrated_gradients;
  const auto found = [&](int64_t steps) {
    options.integration_steps = steps;
    return explain(classifier, {{"the fox sees Anna Lee in Paris.", {}}}, options)[0]
        .attributions.at(0);
  };
  const Attribution automatic = found(0);
  EXPECT_TRUE(automatic.converged);
  EXPECT_EQ(automatic.integration_steps, 64);
  EXPECT_EQ(automatic.scores, found(64).scores);
  const Attribution one = found(1);
  EXPECT_EQ(one.integration_steps, 1);
  EXPECT_GT(one.completeness_error.value(), automatic.completeness_error.value());
}

// An output that is linear in the embeddings: the sum over the tokens of w . x_t.
ExplainedOutput linear_output(const ExactModel& model, const Tensor& w) {
  const auto values = [model, w](const infer::TokenBatch& batch, const model::Probe* probe) {
    Tensor x =
        model::token_vectors(*model, batch.sequence.ids, model->token_embedding);  // [B, T, C]
    if (probe != nullptr && probe->see) probe->see({model::ProbePoint::What::embedding}, x);
    const int64_t B = x.dim(0), T = x.dim(1);
    const Tensor products = linear(x, w).view({B, T});
    return linear(products, full({1, T}, 1.0));
  };
  return {model, values, [](int64_t rows) { return pooled_rows(model::Pooling::mean, rows); }};
}

ExactModel small_model() {
  model::Transformer model(
      model::validated(test::small_decoder({.vocabulary = 11, .context = 16, .width = 8})));
  model::initialise(model, 3);
  return exact_copy(model);
}

ExplainedText text_of(std::vector<int32_t> ids) {
  const size_t count = ids.size();
  return {{std::move(ids), {}, 0}, std::vector<uint8_t>(count, 1)};
}

TEST(Gradients, OfALinearOutputAreExact) {
  const ExactModel model = small_model();
  const Tensor w = tensor_of({1, -2, 3, 0.5f, -1, 2, 0, 1}, {1, 8});
  const ExplainedOutput answer = linear_output(model, w);
  ExplainedText text = text_of({1, 5, 7, 2});
  text.own[0] = 0;
  const std::vector<float> table = to_floats(model->token_embedding.value);
  const auto product = [&](int32_t id) {
    double sum = 0;
    for (size_t c = 0; c < 8; ++c)
      sum += double{table[static_cast<size_t>(id) * 8 + c]} * double{to_floats(w)[c]};
    return sum;
  };
  const auto gradient = gradient_input(answer, text);
  const auto integrated = integrated_gradients(answer, text, 4, 1);
  for (size_t t = 0; t < 4; ++t) {
    const int32_t id = text.tokens.ids[t];
    EXPECT_NEAR(gradient[t], product(id), 1e-7);
    EXPECT_NEAR(integrated.scores[t], t == 0 ? 0 : product(id) - product(4), 1e-7);
  }
  EXPECT_NEAR(integrated.baseline_value, product(1) + 3 * product(4), 1e-6);
}

// Compares with the slope of the answer along the embedding of each token.
TEST(Gradients, EqualFiniteDifferences) {
  const ExactModel model = small_model();
  const ExplainedOutput answer = token_output(model, 6);
  const ExplainedText text = text_of({1, 5, 7, 2, 9});
  const auto gradient = gradient_input(answer, text);
  const auto value = [&](size_t token, float factor) {
    const model::Probe probe{.see = [&](const model::ProbePoint& point, Tensor& x) {
      if (point.what != model::ProbePoint::What::embedding) return;
      x = copy(x);
      for (int64_t c = 0; c < x.dim(2); ++c)
        x.data_as<float>()[static_cast<int64_t>(token) * x.dim(2) + c] *= factor;
    }};
    const NoGradient off;
    return double{to_floats(answer.values(infer::token_batch({text.tokens}, {0}), &probe))[0]};
  };
  double most = 0;
  for (const double score : gradient) most = std::max(most, std::abs(score));
  ASSERT_GT(most, 1e-3);
  for (size_t t = 0; t < gradient.size(); ++t)
    EXPECT_NEAR(gradient[t], (value(t, 1.05f) - value(t, 0.95f)) / 0.1, 0.01 * most) << t;
}

// Rollout as the product of matrices (Abnar and Zuidema 2020, eq. 1), instead of row by row.
TEST(Rollout, IsTheProductOfTheLayers) {
  const ExactModel model = small_model();
  const ExplainedText text = text_of({1, 5, 7, 2, 9});
  const size_t T = 5;
  std::vector<double> product(T * T, 0.0);
  for (size_t t = 0; t < T; ++t) product[t * T + t] = 1;
  const model::Probe probe{
      .see =
          [&](const model::ProbePoint& point, const Tensor& w) {
            if (point.what != model::ProbePoint::What::attention) return;
            const auto H = static_cast<size_t>(w.dim(1));
            std::vector<double> next(T * T, 0.0);
            for (size_t t = 0; t < T; ++t)
              for (size_t s = 0; s < T; ++s) {
                double a = t == s ? 0.5 : 0;
                for (size_t h = 0; h < H; ++h)
                  a += 0.5 / static_cast<double>(H) *
                       double{w.data_as<float>()[(h * T + t) * T + s]};
                for (size_t c = 0; c < T; ++c) next[t * T + c] += a * product[s * T + c];
              }
            product = next;
          },
      .wants_weights =
          [](const model::ProbePoint& p) { return p.what == model::ProbePoint::What::attention; }};
  const ExplainedOutput answer = token_output(model, 6);
  answer.values(infer::token_batch({text.tokens}, {0}), &probe);
  clear_tape();
  const auto found = rollout(answer, text);
  double sum = 0;
  for (size_t c = 0; c < T; ++c) {
    EXPECT_NEAR(found[c], product[(T - 1) * T + c], 1e-9);
    sum += found[c];
  }
  EXPECT_NEAR(sum, 1, 1e-6);
}

// An answer that depends on one token only: 5 if the text has token 7, else 1.
ExplainedOutput one_token_output(const ExactModel& model) {
  const auto values = [](const infer::TokenBatch& batch, const model::Probe*) {
    const Tensor y = empty({batch.sequence.ids.dim(0), 1});
    const int64_t T = batch.sequence.ids.dim(1);
    for (int64_t b = 0; b < y.dim(0); ++b) {
      const int32_t* row = batch.sequence.ids.data_as<int32_t>() + b * T;
      y.data_as<float>()[b] = std::find(row, row + T, 7) != row + T ? 5.0f : 1.0f;
    }
    return y;
  };
  return {model, values, [](int64_t rows) { return pooled_rows(model::Pooling::last, rows); }};
}

TEST(DeletionTests, ComparesTheBestTokensWithRandomOnes) {
  const ExplainedOutput answer = one_token_output(small_model());
  ExplainedText text = text_of({1, 5, 7, 2, 9, 3});
  text.own[0] = 0;  // 5 own tokens
  ExplainOptions options;
  options.random_choices = 400;
  const DeletionTests tests(answer, text, 5, options);
  const DeletionTest good = tests.of({9, 0, 1, 0, 0, 0}).value();  // token 0 cannot be removed
  EXPECT_EQ(good.removed, std::vector<int64_t>({2}));
  EXPECT_EQ(good.change, -4);
  EXPECT_NEAR(good.random_change, -4.0 / 5, 0.25) << "token 7 is one of five";
  const double p = -good.random_change / 4;
  EXPECT_NEAR(good.random_deviation, 4 * std::sqrt(p * (1 - p)), 1e-9);
  const DeletionTest bad = tests.of({0, 0, -1, 0, 0, 0}).value();
  EXPECT_EQ(bad.removed, std::vector<int64_t>({1})) << "of equal scores, the first token";
  EXPECT_EQ(bad.change, 0);
  EXPECT_EQ(bad.random_change, good.random_change) << "the same random choices";

  options.removed_share = 0.5;  // rounded up
  EXPECT_EQ(DeletionTests(answer, text, 5, options).of({0, 1, 2, 3, 4, 5})->removed,
            std::vector<int64_t>({5, 4, 3}));
  options.removed_share = 1;  // one token stays
  EXPECT_EQ(DeletionTests(answer, text, 5, options).of({0, 1, 2, 3, 4, 5})->removed.size(), 4u);
  options.seed = 1;
  options.removed_share = 0.2;
  EXPECT_NE(DeletionTests(answer, text, 5, options).of({0, 0, 1, 0, 0, 0})->random_change,
            good.random_change)
      << "another seed";
  text.own = {0, 0, 1, 0, 0, 0};
  EXPECT_FALSE(DeletionTests(answer, text, 5, options).of({0, 0, 1, 0, 0, 0}));
}

void expect_same_bits(const Explanation& a, const Explanation& b) {
  EXPECT_EQ(a.value, b.value);
  ASSERT_EQ(a.attributions.size(), b.attributions.size());
  for (size_t i = 0; i < a.attributions.size(); ++i) {
    EXPECT_EQ(a.attributions[i].scores, b.attributions[i].scores);
    EXPECT_EQ(a.attributions[i].baseline_value, b.attributions[i].baseline_value);
    EXPECT_EQ(a.attributions[i].deletion->change, b.attributions[i].deletion->change);
    EXPECT_EQ(a.attributions[i].deletion->random_change, b.attributions[i].deletion->random_change);
  }
}

TEST(Explain, GivesTheSameBitsAloneInABatchAndForAnyThreads) {
  const infer::Classifier classifier = infer::Classifier::open(classifier_folder("texts"));
  const std::vector<infer::TextInput> texts = {{"night and day", {}},
                                               {"the fox sees Anna", "a bird"}};
  const auto together = explain(classifier, texts);
  const int before = thread_count();
  set_threads(1);
  const auto alone = explain(classifier, {texts[1]});
  set_threads(3);
  const auto threads = explain(classifier, {texts[1]});
  set_threads(before);
  expect_same_bits(together[1], alone[0]);
  expect_same_bits(together[1], threads[0]);
}

TEST(Explain, ReadsAClassifierThatWasOpenedAsAModel) {
  const std::string folder = classifier_folder("texts");
  InspectInput input;
  input.text = "the fox sees Anna";
  const Explanation a = explain(model::Model::open(folder), input).at(0);
  const Explanation b = explain(infer::Classifier::open(folder), {{input.text, {}}})[0];
  expect_same_bits(a, b);
  EXPECT_EQ(a.target, b.target);
  ASSERT_EQ(a.outputs.size(), 3u);
  EXPECT_EQ(a.outputs[0].name, a.target);
  EXPECT_GE(a.outputs[0].score, a.outputs[1].score);
  EXPECT_TRUE(a.tokens.front().special);
  EXPECT_FALSE(a.tokens[1].special);
}

TEST(Explain, ExplainsTheTargetThatIsAsked) {
  const infer::Classifier classifier = infer::Classifier::open(classifier_folder("several"));
  ExplainOptions options;
  options.target = "old";
  options.method = AttributionMethods::gradient_input;
  const Explanation found = explain(classifier, {{"the fox sees Anna", {}}}, options)[0];
  EXPECT_EQ(found.target, "old");
  ASSERT_EQ(found.attributions.size(), 1u);
  infer::ClassifyOptions raw;
  raw.raw = true;
  const infer::Classifications logits = classifier.classify({{"the fox sees Anna", {}}}, raw);
  EXPECT_NEAR(found.value, double{logits.row(0)[2]}, 1e-5);
}

TEST(Explain, ExplainsCandidateLabels) {
  const infer::Classifier classifier = infer::Classifier::open(classifier_folder("texts"));
  infer::ClassifyOptions candidates;
  candidates.labels = {"sport", "night"};
  ExplainOptions options;
  options.target = "night";
  const Explanation found =
      explain(classifier, {{"the fox sees Anna", {}}}, options, candidates)[0];
  EXPECT_EQ(found.target, "night");
  EXPECT_EQ(found.outputs.size(), 2u);
  infer::ClassifyOptions raw;
  raw.raw = true;
  const infer::Classifications logits =
      classifier.classify({{"the fox sees Anna", "This example is night."}}, raw);
  EXPECT_NEAR(found.value, double{logits.row(0)[2]}, 1e-5) << "entailment of the pair";
  const auto own = std::count_if(found.tokens.begin(), found.tokens.end(),
                                 [](const InspectedToken& token) { return !token.special; });
  EXPECT_EQ(own, std::ssize(classifier.tokenizer().encode("the fox sees Anna")));
  EXPECT_FALSE(found.tokens[1].special);
  expect_error(ErrorKind::InvalidArgument, {"text 1", "two texts"},
               [&] { explain(classifier, {{"a", "b"}}, options, candidates); });
}

TEST(Explain, CountsTheUnknownTokenAsATokenOfTheText) {
  const infer::Classifier classifier = infer::Classifier::open(classifier_folder("texts"));
  ExplainOptions options;
  options.method = AttributionMethods::rollout;
  const Explanation found = explain(classifier, {{"zebra fox", {}}}, options)[0];
  ASSERT_EQ(found.tokens.size(), 4u);
  EXPECT_EQ(found.tokens[1].id, classifier.tokenizer().unknown_id());
  EXPECT_FALSE(found.tokens[1].special);
}

TEST(Explain, RefusesWhatDoesNotFit) {
  const infer::Classifier texts = infer::Classifier::open(classifier_folder("texts"));
  ExplainOptions options;
  options.target = "sport";
  expect_error(ErrorKind::InvalidArgument,
               {"target", "sport", "contradiction, neutral, entailment"},
               [&] { explain(texts, {{"a", {}}}, options); });
  options = {};
  options.integration_steps = -1;
  expect_error(ErrorKind::InvalidArgument, {"integration_steps", "-1", "0 to 100000"},
               [&] { explain(texts, {{"a", {}}}, options); });
  expect_error(ErrorKind::InvalidArgument, {"labels of words", "labels of texts"},
               [&] { explain(infer::Classifier::open(classifier_folder("words")), {{"a", {}}}); });
  expect_error(ErrorKind::InvalidArgument, {"text 1", "no tokens"},
               [&] { explain(infer::Classifier::open(classifier_folder("decoder")), {{"", {}}}); });
}

TEST(Explain, RefusesRolloutOfRecurrentLayers) {
  model::Spec spec = test::small_decoder({.vocabulary = 11, .context = 16, .width = 8});
  spec.decoder->mixers = {model::MixerKind::attention, model::MixerKind::gru};
  model::Transformer transformer(model::validated(spec));
  model::initialise(transformer, 3);
  const ExactModel model = exact_copy(transformer);
  EXPECT_FALSE(has_rollout(*model));
  expect_error(ErrorKind::Unsupported, {"method", "layer 1 is recurrent", "gradient_input"},
               [&] { rollout(token_output(model, 1), text_of({1, 2, 3})); });
}

TEST(Explain, NamesTokensByTextOrId) {
  const text::Tokenizer tokenizer = text::Tokenizer::open(classifier_folder("texts"));
  EXPECT_EQ(token_named("fox", &tokenizer, 50), tokenizer.id_of("fox"));
  EXPECT_EQ(token_named("12", &tokenizer, 50), tokenizer.unknown_id()) << "a text";
  EXPECT_EQ(token_named("#12", &tokenizer, 50), 12);
  EXPECT_EQ(token_named("12", nullptr, 50), 12);
  expect_error(ErrorKind::InvalidArgument, {"target", "the fox", "2 tokens", "#ID"},
               [&] { token_named("the fox", &tokenizer, 50); });
  expect_error(ErrorKind::InvalidArgument, {"target", "fox", "no tokenizer", "0 to 49"},
               [&] { token_named("fox", nullptr, 50); });
  expect_error(ErrorKind::InvalidArgument, {"target", "#50", "0 to 49"},
               [&] { token_named("#50", &tokenizer, 50); });
  expect_error(ErrorKind::InvalidArgument, {"target", "50", "0 to 49"},
               [&] { token_named("50", nullptr, 50); });
}

}  // namespace
}  // namespace fovea::study

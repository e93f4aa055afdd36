#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "data/train_tokenizer.h"
#include "loop/evaluation.h"
#include "open/directory.h"
#include "start/prepare.h"
#include "support/chats.h"
#include "support/expect_error.h"
#include "support/runs.h"
#include "tasks/packed_examples.h"
#include "tensor/tape.h"

namespace fovea::train {
namespace {

TEST_F(Chats, LearnAnswers) {
  TrainOptions o = options("out");
  o.epochs = 30;
  o.sample_every = -1;
  o.sample_tokens = 8;
  TrainPlan plan;
  std::string sample;
  double first = 0;
  const TrainResult result = train(
      {}, o,
      [&](const TrainPlan& told) {
        plan = told;
        return true;
      },
      [&](const TrainProgress& progress) {
        if (progress.step == 1) first = progress.loss;
        if (!progress.sample.empty()) sample = progress.sample;
        return true;
      });
  EXPECT_EQ(plan.objective, Objective::chats);
  EXPECT_EQ(plan.training_sequences, 18);
  EXPECT_EQ(plan.validation_sequences, 2);
  EXPECT_EQ(result.step, plan.steps);
  EXPECT_NEAR(plan.epochs, 30, 0.2);
  EXPECT_LT(result.best_loss, 0.5 * first);
  EXPECT_FALSE(sample.empty());
  // The files of the model: its template, and the token that ends answers.
  const text::Tokenizer tokenizer = text::Tokenizer::open(o.out);
  EXPECT_NE(read_file(o.out + "/chat_template.jinja").find("<|im_start|>"), std::string::npos);
  const nlohmann::json ends = read_json(o.out + "/generation_config.json")["eos_token_id"];
  EXPECT_EQ(ends, nlohmann::json({*tokenizer.eos_id(), *tokenizer.id_of("<|im_end|>")}));
  // A second run uses the template of the model.
  TrainOptions next = options("next");
  next.from = o.out;
  next.chat_template.clear();
  next.steps = 1;
  next.learning_rate = 0;
  EXPECT_NEAR(train({}, next).best_loss, result.best_loss, 1e-6);
}

TEST_F(Chats, EvaluateOnSeparateFiles) {
  TrainOptions o = options("out");
  o.steps = 2;
  write("validation.jsonl", chat("the cat", "sat on") + chat("the dog", "ran"));
  o.validation_chats = {runs_ / "validation.jsonl"};
  const TrainPlan plan = plan_of(o);
  EXPECT_EQ(plan.training_sequences, 20) << "nothing else is held out";
  EXPECT_EQ(plan.validation_sequences, 2);
  EXPECT_GT(train({}, o).best_loss, 0);
  // A run whose validation data changes is another run.
  write("validation.jsonl", chat("the cat", "sat on"));
  o.steps = 4;
  expect_error(ErrorKind::InvalidArgument, {"data"}, [&] { train({}, o); });
  write("validation.jsonl", "{\"messages\": []}\n");
  expect_error(ErrorKind::BadFile, {"validation.jsonl:1: messages is"}, [&] { plan_of(o); });
  o = options("out");
  o.data = {runs_ / "text.txt"};
  o.chat_template.clear();
  o.validation_chats = {runs_ / "chats.jsonl"};
  expect_error(ErrorKind::InvalidArgument, {"validation_chats: given without conversations"},
               [&] { plan_of(o); });
}

TEST_F(Chats, GiveTheSameBitsAfterAResume) {
  TrainOptions o = options("whole"), resumed = options("resumed");
  o.steps = resumed.steps = 8;
  resumed.save_every = 3;
  train({}, o);
  train({}, resumed, {}, stop_after(5));
  train({}, resumed);
  EXPECT_EQ(state_bytes(o, 8), state_bytes(resumed, 8));
  resumed.train_on = TrainOn::last;
  expect_error(ErrorKind::InvalidArgument, {"train_on was \"all\" and is \"last\""},
               [&] { train({}, resumed); });
}

TEST_F(Chats, CountTextsThatAreTooLongOrHaveNothingToTrain) {
  write("chats.jsonl", chat("a", "b") + chat(std::string(300, 'z'), "b") +
                           R"({"messages": [{"role": "user", "content": "a"}]})" + "\n" +
                           chat("a", std::string(90, 'z')));
  TrainOptions o = options("out");
  o.validation = 0;
  o.length = 40;
  o.steps = 1;
  const TrainPlan cut = plan_of(o);
  EXPECT_TRUE(says(cut, "2 texts with more than 40 tokens are truncated"));
  EXPECT_TRUE(says(cut, "2 texts without a trained token are skipped"));
  EXPECT_EQ(cut.training_sequences, 2);
  o.too_long = TooLong::skip;
  const TrainPlan skipped = plan_of(o);
  EXPECT_TRUE(says(skipped, "2 texts with more than 40 tokens are skipped"));
  EXPECT_EQ(skipped.training_sequences, 1);
  o.length = 2;
  expect_error(ErrorKind::BadFile, {"contains no text with a trained token"}, [&] { plan_of(o); });
}

TEST_F(Chats, RefuseWhatDoesNotFit) {
  TrainOptions o = options("out");
  o.chat_template = "alpaca";
  expect_error(ErrorKind::InvalidArgument, {"chat_template: alpaca is not a file", "chatml"},
               [&] { plan_of(o); });
  o.chat_template.clear();
  expect_error(ErrorKind::InvalidArgument,
               {"chat_template: not given, but ", "chats.jsonl:1 is a conversation"},
               [&] { plan_of(o); });
  o = options("out");
  o.from.clear();
  expect_error(ErrorKind::InvalidArgument, {"from: not given", "holds conversations"},
               [&] { plan_training(small_spec(), o); });
  o = options("out");
  o.data = {runs_ / "text.txt"};
  expect_error(ErrorKind::InvalidArgument, {"chat_template: given without conversations"},
               [&] { plan_of(o); });
  write("chats.jsonl", chat("a", "b") + "{\"messages\": [{\"role\": \"user\"}]}\n");
  expect_error(ErrorKind::BadFile, {"chats.jsonl:2: messages[0].content is missing"},
               [&] { plan_of(options("out")); });
}

TEST_F(Chats, RefuseModelsThatAreNoDecodersWithAttentionOnly) {
  model::Spec recurrent = small_spec();
  recurrent.decoder->mixers = {model::MixerKind::lstm};
  TrainOptions base = runs_.options("recurrent");
  base.tokenizer = runs_ / "tokenizer";
  base.steps = 1;
  train(recurrent, base);
  TrainOptions o = options("out");
  o.from = base.out;
  expect_error(ErrorKind::InvalidArgument, {"from: chats does not suit recurrent layers"},
               [&] { plan_of(o); });
}

TEST_F(Chats, AddTheSpecialTokensOfABuiltinTemplate) {
  TrainOptions o = options("whole"), resumed = options("resumed");
  o.chat_template = resumed.chat_template = "gemma";
  o.steps = resumed.steps = 4;
  std::vector<std::string> notes;
  train({}, o, [&](const TrainPlan& plan) {
    notes = plan.notes;
    return true;
  });
  EXPECT_NE(std::find(notes.begin(), notes.end(),
                      "special tokens are added: <start_of_turn>, <end_of_turn>"),
            notes.end());
  const text::Tokenizer before = text::Tokenizer::open(o.from),
                        after = text::Tokenizer::open(o.out);
  ASSERT_EQ(after.size(), before.size() + 2);
  EXPECT_TRUE(after.is_special(*after.id_of("<end_of_turn>")));
  EXPECT_EQ(after.encode("the cat"), before.encode("the cat"));
  EXPECT_EQ(model::open_model_files(o.out, model::Weights::mapped).model.spec.vocabulary,
            after.size());
  train({}, resumed, {}, stop_after(2));
  train({}, resumed);
  EXPECT_EQ(state_bytes(o, 4), state_bytes(resumed, 4));
}

TEST_F(Chats, RepeatFilesByTheirWeights) {
  TrainOptions o = options("out");
  o.validation = 0;
  const int64_t once = plan_of(o).training_tokens;
  o.data = {runs_ / "chats.jsonl:2.5"};
  EXPECT_NEAR(static_cast<double>(plan_of(o).training_tokens), 2.5 * static_cast<double>(once), 1);
}

TEST_F(Chats, ShowAnExample) {
  const std::vector<ExamplePart> parts = training_example(options(""));
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0].text, "<|im_start|>user\nthe cat 0<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(parts[1].text, "sat on<|im_end|>");
  EXPECT_TRUE(parts[1].trained);
  EXPECT_FALSE(parts[0].trained || parts[2].trained);
  TrainOptions text = options("");
  text.data = {runs_ / "text.txt"};
  expect_error(ErrorKind::InvalidArgument, {"data: holds no conversations"},
               [&] { training_example(text); });
}

// Returns texts of these lengths, in which the last third of the tokens is trained.
LabelledSequences texts_of(const std::vector<int64_t>& lengths) {
  LabelledSequences texts;
  for (size_t n = 0; n < lengths.size(); ++n) {
    std::vector<int32_t> ids, labels(static_cast<size_t>(lengths[n]), -1);
    for (int64_t i = 0; i < lengths[n]; ++i)
      ids.push_back(static_cast<int32_t>(
          philox(9, Stream::init, static_cast<uint32_t>(n), static_cast<uint64_t>(i))[0] % 31));
    for (size_t i = labels.size() * 2 / 3; i + 1 < labels.size(); ++i) labels[i] = ids[i + 1];
    texts.ids.add(ids);
    texts.labels.add(labels);
  }
  return texts;
}

TEST(PackedExamplesTest, GiveEachTextTheLogitsOfTheTextAlone) {
  const LabelledSequences texts = texts_of({30, 64, 65, 6, 100});
  model::Transformer model(model::validated(
      test::small_llama({.vocabulary = 31, .context = 256, .width = 24, .layers = 2}, 48)));
  model::initialise(model, 1);
  const PackedExamples packed(texts, texts, {{0, 5, 1}}, {.length = 256, .batch = 8, .padding = 5});
  ASSERT_EQ(packed.validation_batches(), 1);
  const Batch batch = packed.validation(0);
  EXPECT_EQ(*batch.documents, (DocumentStarts{{0, 64, 128}, {0, 64, 192}}));
  EXPECT_EQ(batch.tokens, 265);
  const NoGradient off;
  std::vector<float> alone;
  double loss = 0;
  int64_t predictions = 0;
  for (int64_t i = 0; i < texts.ids.count(); ++i) {
    Batch one;
    one.target.ids = texts.ids.rows({i}, texts.ids.length(i), 0);
    one.labels = texts.labels.rows({i}, texts.ids.length(i), -1);
    for (int64_t t = 0; t < one.labels.size(); ++t)
      one.predictions += one.labels.data_as<int32_t>()[t] >= 0;
    const std::vector<float> logits = to_floats(all_logits(model, one, {}));
    alone.insert(alone.end(), logits.begin(), logits.end());
    loss += number_of(label_loss(model, one, {}, 1));
    predictions += one.predictions;
  }
  EXPECT_EQ(batch.predictions, predictions);
  EXPECT_EQ(to_floats(all_logits(model, batch, {})), alone);
  EXPECT_NEAR(number_of(label_loss(model, batch, {}, 1)), loss, 1e-9 * loss);
}

TEST(PackedExamplesTest, VisitEachTextOncePerEpoch) {
  const LabelledSequences texts = texts_of({30, 64, 65, 6, 100, 12, 40});
  const PackedExamples packed(texts, {}, {{0, 7, 1}}, {.length = 128, .batch = 1, .seed = 4});
  EXPECT_EQ(packed.validation_batches(), 0);
  int64_t tokens = 0;
  for (int64_t pass = 0; pass < std::llround(packed.passes_per_epoch()); ++pass) {
    const Batch batch = packed.training(pass);
    EXPECT_EQ(batch.target.ids.shape(), (Shape{1, 128}));
    tokens += batch.tokens;
  }
  EXPECT_EQ(tokens, packed.learnt.tokens);
}

}  // namespace
}  // namespace fovea::train

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "data/train_tokenizer.h"
#include "families/directory.h"
#include "families/model_parts.h"
#include "fovea/chat.h"
#include "fovea/evaluate.h"
#include "support/expect_error.h"
#include "support/runs.h"
#include "tensor/tape.h"
#include "train/evaluation.h"
#include "train/prepare.h"
#include "train/tasks/packed_examples.h"

namespace fovea {
namespace {

std::string chat(const std::string& question, const std::string& answer) {
  return R"({"messages": [{"role": "user", "content": ")" + question +
         R"("}, {"role": "assistant", "content": ")" + answer + "\"}]}\n";
}

// A small model with the special tokens of chatml, and conversations.
class Chats : public testing::Test {
 protected:
  Chats() {
    TokenizerTraining training;
    training.vocabulary = 290;
    training.special_tokens = {"<|im_start|>", "<|im_end|>"};
    train_tokenizer({runs_ / "text.txt"}, training)->tokenizer.save(make_folder("tokenizer"));
    TrainOptions o = runs_.options("base");
    o.tokenizer = runs_ / "tokenizer";
    o.steps = 1;
    Spec spec = test::small_llama({.vocabulary = 0, .context = 192, .width = 24, .layers = 1}, 48);
    train(spec, o);
    std::string lines;
    for (int i = 0; i < 20; ++i)
      lines += chat("the cat " + std::to_string(i), i % 2 == 0 ? "sat on" : "a mat");
    write("chats.jsonl", lines);
  }

  std::string make_folder(const std::string& name) const {
    make_directories(runs_ / name);
    return runs_ / name;
  }
  void write(const std::string& name, const std::string& text) const {
    write_file_atomically(runs_ / name, text);
  }
  TrainOptions options(const std::string& out) const {
    TrainOptions o = runs_.options(out);
    o.data = {runs_ / "chats.jsonl"};
    o.from = runs_ / "base";
    o.chat_template = "chatml";
    o.learning_rate = 1e-2;
    o.batch = 2;
    return o;
  }
  // Evaluates a model on a file; a model without a template uses chatml.
  Evaluation evaluated(const Model& model, const std::string& name,
                       TrainOn train_on = TrainOn::all) const {
    EvaluationData data;
    data.text = {runs_ / name};
    if (!ModelChat::has_template(model.parts().path)) data.chat_template = "chatml";
    data.train_on = train_on;
    return evaluate(model, data);
  }
  static TrainPlan plan_of(const TrainOptions& o) { return plan_training({}, o); }
  static bool says(const TrainPlan& plan, const std::string& what) {
    return std::any_of(plan.notes.begin(), plan.notes.end(), [&](const std::string& note) {
      return note.find(what) != std::string::npos;
    });
  }

  Runs runs_;
};

TEST_F(Chats, LearnAnswers) {
  TrainOptions o = options("out");
  o.epochs = 30;
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
  EXPECT_EQ(plan.objective, "chats");
  EXPECT_EQ(plan.training_sequences, 18);
  EXPECT_EQ(plan.validation_sequences, 2);
  EXPECT_EQ(result.step, plan.steps);
  EXPECT_NEAR(plan.epochs, 30, 0.2);
  EXPECT_LT(result.best_loss, 0.5 * first);
  EXPECT_FALSE(sample.empty());
  // The files of the model: its template, and the token that ends answers.
  const Tokenizer tokenizer = Tokenizer::open(o.out);
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

TEST_F(Chats, AreEvaluated) {
  TrainOptions o = options("out");
  o.epochs = 30;
  o.validation = 0;
  train({}, o);
  const Model model = Model::open(o.out);
  // Each record once, with the template of the model.
  const Evaluation all = evaluated(model, "chats.jsonl");
  EXPECT_EQ(all.objective, "chats");
  EXPECT_EQ(all.sequences, 20);
  EXPECT_NEAR(all.perplexity, std::exp(all.loss), 1e-9);
  EXPECT_GT(value_of(all.metrics, "accuracy").value(), 0.9);
  double loss = 0;
  int64_t tokens = 0, right = 0;
  for (int i = 0; i < 20; ++i) {
    write("one.jsonl", chat("the cat " + std::to_string(i), i % 2 == 0 ? "sat on" : "a mat"));
    const Evaluation one = evaluated(model, "one.jsonl");
    EXPECT_EQ(one.sequences, 1);
    loss += one.loss * static_cast<double>(one.tokens);
    tokens += one.tokens;
    right +=
        std::llround(value_of(one.metrics, "accuracy").value() * static_cast<double>(one.tokens));
  }
  EXPECT_EQ(all.tokens, tokens);
  EXPECT_NEAR(all.loss, loss / static_cast<double>(tokens), 1e-6);
  EXPECT_NEAR(value_of(all.metrics, "accuracy").value(),
              static_cast<double>(right) / static_cast<double>(tokens), 1e-9);
}

// Every shape of a record that training accepts; `last` predicts fewer answers.
TEST_F(Chats, AreEvaluatedInEveryShape) {
  const Model base = Model::open(runs_ / "base");
  write("turns.jsonl",
        R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},)"
        R"( {"role": "user", "content": "c"}, {"role": "assistant", "content": "d"}]})"
        "\n"
        R"({"prompt": "the", "completion": "cat"})"
        "\n"
        R"({"instruction": "sit", "input": "on", "output": "a mat"})"
        "\n"
        R"({"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]})"
        "\n");
  const Evaluation turns = evaluated(base, "turns.jsonl");
  EXPECT_EQ(turns.sequences, 4);
  EXPECT_GT(turns.tokens, evaluated(base, "turns.jsonl", TrainOn::last).tokens);
  // The base model lacks a template, and its tokenizer the special tokens of llama3.
  EvaluationData data;
  data.text = {runs_ / "chats.jsonl"};
  expect_error(ErrorKind::InvalidArgument, {"chat_template: not given"},
               [&] { evaluate(base, data); });
  data.chat_template = "chatml";
  EXPECT_EQ(evaluate(base, data).sequences, 20);
  data.chat_template = "llama3";
  expect_error(ErrorKind::InvalidArgument, {"chat_template: the tokenizer lacks"},
               [&] { evaluate(base, data); });
  data.text = {runs_ / "text.txt"};
  expect_error(ErrorKind::InvalidArgument, {"chat_template: given without conversations"},
               [&] { evaluate(base, data); });
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
  Spec recurrent = small_spec();
  recurrent.decoder->mixers = {MixerKind::lstm};
  TrainOptions base = runs_.options("recurrent");
  base.tokenizer = runs_ / "tokenizer";
  base.steps = 1;
  train(recurrent, base);
  TrainOptions o = options("out");
  o.from = base.out;
  expect_error(ErrorKind::InvalidArgument, {"objective: chats does not suit recurrent layers"},
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
  const Tokenizer before = Tokenizer::open(o.from), after = Tokenizer::open(o.out);
  ASSERT_EQ(after.size(), before.size() + 2);
  EXPECT_TRUE(after.is_special(*after.id_of("<end_of_turn>")));
  EXPECT_EQ(after.encode("the cat"), before.encode("the cat"));
  EXPECT_EQ(open_model_files(o.out, Weights::mapped).model.spec.vocabulary, after.size());
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
  Transformer model(validated(
      test::small_llama({.vocabulary = 31, .context = 256, .width = 24, .layers = 2}, 48)));
  initialise(model, 1);
  const PackedExamples packed(texts, texts, {{0, 5, 1}}, {.length = 256, .batch = 8, .padding = 5});
  ASSERT_EQ(packed.validation_batches(), 1);
  const Batch batch = packed.validation(0);
  EXPECT_EQ(*batch.documents, (DocumentStarts{{0, 64, 128}, {0, 64, 192}}));
  EXPECT_EQ(batch.tokens, 265);
  const NoGradient off;
  std::vector<float> alone;
  double loss = 0;
  int64_t asked = 0;
  for (int64_t i = 0; i < texts.ids.count(); ++i) {
    Batch one;
    one.target.ids = texts.ids.rows({i}, texts.ids.length(i), 0);
    one.labels = texts.labels.rows({i}, texts.ids.length(i), -1);
    for (int64_t t = 0; t < one.labels.size(); ++t)
      one.asked += one.labels.data_as<int32_t>()[t] >= 0;
    const std::vector<float> logits = to_floats(all_logits(model, one, {}));
    alone.insert(alone.end(), logits.begin(), logits.end());
    loss += number_of(label_loss(model, one, {}, 1));
    asked += one.asked;
  }
  EXPECT_EQ(batch.asked, asked);
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
}  // namespace fovea

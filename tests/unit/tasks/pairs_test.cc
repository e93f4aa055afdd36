#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <utility>

#include "loop/evaluation.h"
#include "loop/stepper.h"
#include "open/directory.h"
#include "optim/weight_average.h"
#include "start/prepare.h"
#include "support/expect_error.h"
#include "support/runs.h"
#include "tensor/tape.h"

namespace fovea::train {
namespace {

constexpr const char* kWords[] = {"red", "dog", "sun", "tree", "book", "moon", "star", "hill"};

// Lines of words, and the same words in reverse order.
struct Reversal {
  std::string sources, targets;
  Reversal(int count, uint32_t stream, int most_words) {
    for (int i = 0; i < count; ++i) {
      std::string line, reverse;
      const auto at = static_cast<uint64_t>(i) << 8;
      const uint32_t words = 1 + philox(9, Stream::shuffle, stream, at)[0] % most_words;
      for (uint32_t w = 0; w < words; ++w) {
        const std::string word =
            kWords[philox(9, Stream::shuffle, stream, at + 1 + w)[0] % std::size(kWords)];
        line += (w > 0 ? " " : "") + word;
        reverse = word + (w > 0 ? " " : "") + reverse;
      }
      sources += line + "\n";
      targets += reverse + "\n";
    }
  }
};

model::Spec small_translator(float dropout = 0) {
  model::Spec spec =
      test::scaled_down(model::preset("translate-tiny"),
                        {.vocabulary = 0, .context = 32, .width = 32, .layers = 1}, 32);
  spec.dropout = {dropout, 0, dropout};
  return spec;
}

class Pairs : public testing::Test {
 protected:
  Pairs() {
    write("train.de", Reversal(600, 20, 3).sources);
    write("train.en", Reversal(600, 20, 3).targets);
    write("val.de", Reversal(40, 21, 3).sources);
    write("val.en", Reversal(40, 21, 3).targets);
  }
  void write(const std::string& name, const std::string& content) const {
    write_file_atomically(runs_ / name, content);
  }
  TrainOptions options(const std::string& out) const {
    TrainOptions o = runs_.options(out);
    o.data.clear();
    o.pairs = {runs_ / "train.de", runs_ / "train.en"};
    o.validation_pairs = {runs_ / "val.de", runs_ / "val.en"};
    o.tokenizer = "bpe:300";
    o.batch_tokens = 96;
    o.label_smoothing = 0.1;
    return o;
  }

  Runs runs_;
};

// Conversations of one message and its answer are pairs of texts, in each form of their records.
TEST_F(Pairs, MayBeConversations) {
  const Reversal some(60, 20, 3);
  write("few.de", some.sources);
  write("few.en", some.targets);
  std::string chats;
  size_t source = 0, target = 0;
  for (int i = 0; i < 60; ++i) {
    const auto line = [](const std::string& text, size_t& at) {
      const size_t begin = std::exchange(at, text.find('\n', at) + 1);
      return text.substr(begin, at - begin - 1);
    };
    const std::string a = line(some.sources, source), b = line(some.targets, target);
    chats += i % 2 == 0 ? R"({"prompt": ")" + a + R"(", "completion": ")" + b + "\"}\n"
                        : R"({"messages": [{"role": "user", "content": ")" + a +
                              R"("}, {"role": "assistant", "content": ")" + b + "\"}]}\n";
  }
  write("chats.jsonl", chats);
  TrainOptions pairs = options("pairs"), talks = options("chats");
  pairs.pairs = {runs_ / "few.de", runs_ / "few.en"};
  pairs.validation_pairs.clear();
  talks.pairs.clear();
  talks.validation_pairs.clear();
  talks.data = {runs_ / "chats.jsonl"};
  for (TrainOptions* o : {&pairs, &talks}) {
    o->steps = 3;
    train(small_translator(), *o);
  }
  EXPECT_EQ(read_file(talks.out + "/model.safetensors"),
            read_file(pairs.out + "/model.safetensors"));
  talks.out = runs_ / "other";
  write("chats.jsonl",
        chats + R"({"instruction": "a", "output": "b", "system": "c"})" + std::string("\n"));
  expect_error(ErrorKind::BadFile,
               {"chats.jsonl:61: has 3 messages; expected one of a user and its answer"},
               [&] { train(small_translator(), talks); });
}

TEST_F(Pairs, TrainATranslator) {
  TrainOptions o = options("out");
  o.steps = 160;
  o.batch_tokens = 512;
  o.learning_rate = 1e-2;
  o.warmup = 20;
  o.label_smoothing = 0;
  const TrainResult result = train(small_translator(), o);
  EXPECT_LT(result.best_loss, 0.5);  // 5.7 before training; 0.8 with the right words in any order
  EXPECT_GT(result.bits_per_byte, 0);
  ASSERT_EQ(result.metrics.size(), 3u);
  EXPECT_EQ(result.metrics[0].first, "bleu");
  EXPECT_GT(result.metrics[0].second, 50);
  EXPECT_EQ(result.metrics[1].first, "chrf");
  EXPECT_LT(result.metrics[1].second, 100.1);
  EXPECT_EQ(result.metrics[2].first, "rouge_l");
  EXPECT_LT(result.metrics[2].second, 100.1);

  const model::ModelFiles files = model::open_model_files(o.out, model::Weights::mapped);
  EXPECT_STREQ(files.origin.family->model_type, "marian");
  EXPECT_EQ(model::special_id(files.origin, "decoder_start_token_id"), 0);
  EXPECT_EQ(files.end_ids, (std::vector<int32_t>{1}));
  const text::Tokenizer tokenizer = text::Tokenizer::open(o.out);
  EXPECT_EQ(tokenizer.encoding("red dog").ids.back(), 1);
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("red dog")), "red dog");
}

TEST_F(Pairs, GiveTheSameBitsForAnyThreadsAndAcrossAResume) {
  TrainOptions o = options("once");
  o.accumulate = 2;
  o.average = 3;
  o.evaluate_every = 3;
  const model::Spec spec = small_translator(0.2f);
  train(spec, o);
  const std::string state = state_bytes(o, 20), model = read_file(o.out + "/model.safetensors");

  o.out = runs_ / "stopped";
  EXPECT_TRUE(train(spec, o, {}, stop_after(8)).interrupted);
  const TrainResult resumed = train(spec, o);
  EXPECT_EQ(resumed.step, 20);
  EXPECT_EQ(state_bytes(o, 20), state);
  EXPECT_EQ(read_file(o.out + "/model.safetensors"), model);
}

// BLEU selects the weights that are kept. A resumed run has the same BLEU and the same order of the
// best weights.
TEST_F(Pairs, SelectTheBestWeightsByBleu) {
  TrainOptions o = options("once");
  o.steps = 60;
  o.batch_tokens = 256;
  o.learning_rate = 1e-2;
  o.average = 2;
  o.average_of = Averaged::best;
  o.evaluate_every = 6;
  double best = -1;
  const TrainResult whole = train(small_translator(), o, {}, [&](const TrainProgress& progress) {
    for (const auto& [name, value] : progress.metrics)
      if (name == "bleu") best = std::max(best, value);
    return true;
  });
  EXPECT_DOUBLE_EQ(whole.metrics.at(0).second, best);
  const std::string state = state_bytes(o, 60), model = read_file(o.out + "/model.safetensors");
  EXPECT_NE(read_file(o.out + "/loss.svg").find("BLEU"), std::string::npos);
  EXPECT_NE(read_file(o.out + "/log.jsonl").find("\"bleu\":"), std::string::npos);

  o.out = runs_ / "stopped";
  EXPECT_TRUE(train(small_translator(), o, {}, stop_after(33)).interrupted);
  EXPECT_EQ(train(small_translator(), o).metrics, whole.metrics);
  EXPECT_EQ(state_bytes(o, 60), state);
  EXPECT_EQ(read_file(o.out + "/model.safetensors"), model);

  o = options("other");
  o.best_by = "accuracy";
  expect_error(ErrorKind::InvalidArgument,
               {"best_by: ", "accuracy is not measured", "bleu or chrf or rouge_l or loss"},
               [&] { train(small_translator(), o); });
}

TEST_F(Pairs, DoNotDependOnPadding) {
  const Job job = prepare(small_translator(), options("out"), true, [](const std::string&) {});
  const NoGradient off;
  model::Pass pass;
  const Batch batch = examples_of(job).training(0);
  ASSERT_FALSE(batch.source_valid.empty());
  const double together = *label_loss(job.model, batch, pass, 1).data_as<double>();
  double alone = 0;
  const int64_t B = batch.labels.dim(0), S = batch.source.ids.dim(1), T = batch.labels.dim(1);
  EXPECT_GT(B, 2);
  for (int64_t b = 0; b < B; ++b) {
    Batch one;
    const int64_t read = batch.source_valid[static_cast<size_t>(b)].end;
    int64_t predicted = 0;
    while (predicted < T && batch.labels.data_as<int32_t>()[b * T + predicted] >= 0) ++predicted;
    one.predictions = predicted;
    const auto part = [&](const Tensor& ids, int64_t from, int64_t count) {
      return ids.view({ids.size()}).rows(from, from + count).view({1, count});
    };
    one.source.ids = part(batch.source.ids, b * S, read);
    one.target.ids = part(batch.target.ids, b * T, predicted);
    one.labels = part(batch.labels, b * T, predicted);
    alone += *label_loss(job.model, one, pass, 1).data_as<double>();
  }
  EXPECT_NEAR(together, alone, 1e-4 * alone);
}

TEST_F(Pairs, SkipAndCountEmptyAndLongSides) {
  std::string longer;
  for (int i = 0; i < 60; ++i) longer += "x y ";
  write("odd.tsv", "red\tdog\n\tdog\nsun\tsun\n" + longer + "\tred\n");
  TrainOptions o = options("out");
  o.pairs = {runs_ / "odd.tsv"};
  std::vector<std::string> notes;
  const Job job = prepare(small_translator(), o, true,
                          [&](std::string note) { notes.push_back(std::move(note)); });
  EXPECT_EQ(job.plan.training_sequences, 2);
  ASSERT_EQ(notes.size(), 3u);
  EXPECT_EQ(notes[0], "the first pair is \"red\" and its target \"dog\"");
  EXPECT_EQ(notes[1], "1 pairs with an empty side are skipped");
  EXPECT_EQ(notes[2], "1 pairs longer than 32 tokens (the context) are skipped");
}

TEST_F(Pairs, CanHoldOutTheirLastPart) {
  TrainOptions o = options("out");
  o.validation_pairs.clear();
  o.validation = 0.2;
  const Job job = prepare(small_translator(), o, true, [](const std::string&) {});
  EXPECT_EQ(job.plan.training_sequences, 480);
  EXPECT_EQ(job.plan.validation_sequences, 120);
}

TEST_F(Pairs, RequireAnEncoderDecoder) {
  expect_error(ErrorKind::InvalidArgument, {"pairs: ", "encoder-decoder", "preset translate"},
               [&] { train(small_spec(), options("out")); });
  TrainOptions o = options("out");
  o.data = {runs_ / "text.txt"};
  expect_error(ErrorKind::InvalidArgument, {"data: ", "expected only one of"},
               [&] { train(small_translator(), o); });
  o = options("out");
  o.objective = Objective::masked;
  expect_error(ErrorKind::InvalidArgument, {"objective: ", "does not match the data"},
               [&] { train(small_translator(), o); });
  o = options("out");
  o.pairs.clear();
  expect_error(ErrorKind::InvalidArgument, {"data: no file"},
               [&] { train(small_translator(), o); });
  EXPECT_FALSE(std::filesystem::exists(o.out));
}

TEST(WeightAverage, IsTheMeanOfTheBestWeights) {
  model::Spec spec = small_spec();
  spec.vocabulary = 4;
  model::Transformer model(model::validated(spec));
  model::initialise(model, 1);
  model::Parameter& table = model.token_embedding;
  const auto mean_of_two = [&](const std::vector<double>& ranks) {
    WeightAverage average(model, 2);
    size_t i = 0;
    for (const float value : {9.0f, 1.0f, 4.0f}) {
      std::fill_n(table.value.data_as<float>(), table.value.size(), value);
      average.add(ranks[i++]);
    }
    EXPECT_EQ(average.ranks().size(), 2u);
    return *average.mean().token_embedding.value.data_as<float>();
  };
  EXPECT_EQ(mean_of_two({1, 2, 3}), 2.5f);
  EXPECT_EQ(mean_of_two({3, 2, 1}), 5.0f);
  EXPECT_EQ(*table.value.data_as<float>(), 4.0f);
}

TEST(LearningRate, DecaysWithTheSquareRootOfTheStep) {
  TrainOptions o;
  o.schedule = Schedule::inverse_root;
  o.learning_rate = 1;
  o.warmup = 99;
  EXPECT_DOUBLE_EQ(learning_rate(rate_schedule(o), 0), 0.01);
  EXPECT_DOUBLE_EQ(learning_rate(rate_schedule(o), 99), 1);
  EXPECT_DOUBLE_EQ(learning_rate(rate_schedule(o), 399), 0.5);
}

}  // namespace
}  // namespace fovea::train

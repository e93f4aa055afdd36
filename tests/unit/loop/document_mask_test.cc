// Rows that hold several documents: TrainOptions::document_mask.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "data/train_tokenizer.h"
#include "kernels/isa.h"
#include "loop/evaluation.h"
#include "start/prepare.h"
#include "support/expect_error.h"
#include "support/random_parameters.h"
#include "support/runs.h"
#include "tensor/tape.h"

namespace fovea::train {
namespace {

struct Case {
  std::string name;
  model::Spec spec;
};

model::Spec decoder(model::PositionKind kind,
                    model::DistanceBias bias = model::DistanceBias::none) {
  model::Spec spec =
      test::small_decoder({.vocabulary = 31, .context = 200, .width = 24, .layers = 2, .heads = 2});
  spec.decoder->position.kind = kind;
  spec.decoder->position.bias = bias;
  return spec;
}

std::vector<Case> cases() {
  std::vector<Case> all = {
      {"learned", decoder(model::PositionKind::learned)},
      {"sinusoidal", decoder(model::PositionKind::sinusoidal)},
      {"rotary", decoder(model::PositionKind::rotary)},
      {"dynamic", decoder(model::PositionKind::rotary)},
      {"alibi", decoder(model::PositionKind::none, model::DistanceBias::alibi)},
      {"relative", decoder(model::PositionKind::none, model::DistanceBias::relative)},
      {"windows", decoder(model::PositionKind::rotary)},
      {"latent", decoder(model::PositionKind::rotary)},
      {"encoder", decoder(model::PositionKind::learned)}};
  const auto find = [&](const std::string& name) -> model::Spec& {
    return std::find_if(all.begin(), all.end(), [&](const Case& c) { return c.name == name; })
        ->spec;
  };
  model::RotarySpec& dynamic = find("dynamic").decoder->position.rotary;
  dynamic.scaling = model::RotaryScaling::dynamic;
  dynamic.factor = 2;
  dynamic.original_context = 32;
  find("windows").decoder->attention.windows = {9, 0};
  find("windows").decoder->attention.global = 2;
  find("latent").decoder->mixers = {model::MixerKind::latent};
  find("encoder").encoder.swap(find("encoder").decoder);
  for (Case& c : all) c.spec = model::validated(c.spec);
  return all;
}

Tensor ids_of(int64_t count) {
  Tensor ids = empty({1, count}, DType::i32);
  for (int64_t i = 0; i < count; ++i)
    ids.data_as<int32_t>()[i] =
        static_cast<int32_t>(philox(5, Stream::init, 0, static_cast<uint64_t>(i))[0] % 31);
  return ids;
}

// A row of documents, or one document if `starts` is empty, with the next token as label.
Batch batch_of(const model::Spec& spec, const Tensor& ids, const Tensor& labels,
               const std::vector<int64_t>& starts) {
  Batch batch;
  (spec.decoder ? batch.target : batch.source).ids = ids;
  batch.labels = labels;
  batch.predictions = batch.tokens = ids.size();
  batch.units = 1;
  if (!starts.empty())
    batch.documents = std::make_shared<const DocumentStarts>(DocumentStarts{starts});
  return batch;
}

class DocumentMask : public testing::TestWithParam<Case> {
 protected:
  static constexpr int64_t kTokens = 170;

  DocumentMask() {
    test::randomise(model_, 1);
    for (int64_t i = 0; i < kTokens; ++i)
      labels_.data_as<int32_t>()[i] = ids_.data_as<int32_t>()[(i + 1) % kTokens];
  }

  Batch row(const std::vector<int64_t>& starts) const {
    return batch_of(GetParam().spec, ids_, labels_, starts);
  }
  Batch alone(int64_t begin, int64_t end) const {
    const auto part = [&](const Tensor& of) {
      return of.view({kTokens}).rows(begin, end).view({1, end - begin});
    };
    return batch_of(GetParam().spec, part(ids_), part(labels_), {});
  }
  // Calls check(logits in the row, logits alone) for each document.
  template <class Check>
  void each(const std::vector<int64_t>& starts, DType compute, const Check& check) const {
    const NoGradient off;
    model::Pass pass;
    pass.compute = compute;
    const std::vector<float> all = to_floats(all_logits(model_, row(starts), pass));
    const int64_t V = model_.spec.vocabulary;
    for (size_t i = 0; i < starts.size(); ++i) {
      const int64_t begin = starts[i], end = i + 1 < starts.size() ? starts[i + 1] : kTokens;
      check(std::vector<float>(all.begin() + begin * V, all.begin() + end * V),
            to_floats(all_logits(model_, alone(begin, end), pass)));
    }
  }

  model::Transformer model_{GetParam().spec};
  Tensor ids_ = ids_of(kTokens), labels_ = empty({1, kTokens}, DType::i32);
};

// The tiles of attention begin at multiples of 64.
TEST_P(DocumentMask, GivesTheBitsOfDocumentsAloneIfTheyBeginAtATile) {
  for (const std::string& isa : testable_isas()) {
    use_isa(isa);
    for (const DType compute : {DType::f32, DType::bf16})
      each({0, 64, 128}, compute, [&](const auto& in_row, const auto& alone) {
        EXPECT_EQ(in_row, alone) << isa << ' ' << name_of(compute);
      });
  }
  use_isa("auto");
}

TEST_P(DocumentMask, GivesTheLogitsOfDocumentsAlone) {
  each({0, 1, 30, 95, 111}, DType::f32, [](const auto& in_row, const auto& alone) {
    ASSERT_EQ(in_row.size(), alone.size());
    for (size_t i = 0; i < alone.size(); ++i) ASSERT_NEAR(in_row[i], alone[i], 1e-4) << i;
  });
}

TEST_P(DocumentMask, GivesTheGradientsOfDocumentsAlone) {
  const auto gradients = [&](const std::vector<Batch>& batches) {
    std::vector<float> all;
    model_.each([](const std::string&, model::Parameter& p) { p.value.clear_gradient(); });
    double loss = 0;
    for (const Batch& batch : batches) {
      const Tensor sum = label_loss(model_, batch, {}, kTokens);
      loss += number_of(sum);
      backward(sum);
    }
    model_.each([&](const std::string&, model::Parameter& p) {
      if (!p.value.gradient()) return;
      const std::vector<float> own = to_floats(p.value.gradient());
      all.insert(all.end(), own.begin(), own.end());
    });
    all.push_back(static_cast<float>(loss));
    return all;
  };
  model_.each([](const std::string&, model::Parameter& p) { p.value.want_gradient(); });
  const auto in_row = gradients({row({0, 40, 100})});
  const auto each_alone = gradients({alone(0, 40), alone(40, 100), alone(100, kTokens)});
  ASSERT_EQ(in_row.size(), each_alone.size());
  for (size_t i = 0; i < in_row.size(); ++i)
    ASSERT_NEAR(in_row[i], each_alone[i], 1e-4 * std::max(1.0f, std::abs(each_alone[i]))) << i;
}

INSTANTIATE_TEST_SUITE_P(Positions, DocumentMask, testing::ValuesIn(cases()),
                         [](const auto& c) { return c.param.name; });

class DocumentRuns : public testing::Test {
 protected:
  DocumentRuns() {
    std::string lines;
    for (int i = 0; i < 60; ++i) lines += R"({"text": ")" + text(i) + "\"}\n";
    write_file_atomically(runs_ / "texts.jsonl", lines);
  }
  static std::string text(int i) {
    std::string text;
    for (int n = 0; n <= i % 7; ++n) text += n % 2 == 0 ? "the cat sat " : "on a mat ";
    return text;
  }
  TrainOptions options(const std::string& out) const {
    TrainOptions o = runs_.options(out);
    o.data = {runs_ / "texts.jsonl"};
    o.document_mask = true;
    return o;
  }
  void refuse(const model::Spec& spec, const TrainOptions& o, const std::string& why) const {
    expect_error(ErrorKind::InvalidArgument, {"document_mask: ", why}, [&] { train(spec, o); });
  }

  Runs runs_;
};

TEST_F(DocumentRuns, BeginDocumentsAtTheEndOfTextToken) {
  const Job job = prepare(small_spec(), options("out"), true, [](const std::string&) {});
  const Examples& examples = examples_of(job);
  ASSERT_GT(examples.validation_batches(), 0);
  Corpus corpus({runs_ / "texts.jsonl"});
  const text::Tokenizer tokenizer = make_tokenizer(corpus, "char");
  ASSERT_TRUE(tokenizer.eos_id().has_value());
  int64_t found = 0;
  for (const Batch& batch : {examples.training(0), examples.training(3), examples.validation(0)}) {
    ASSERT_NE(batch.documents, nullptr);
    const int64_t B = batch.target.ids.dim(0), T = batch.target.ids.dim(1);
    ASSERT_EQ(std::ssize(*batch.documents), B);
    for (int64_t b = 0; b < B; ++b) {
      std::vector<int64_t> expected = {0};
      for (int64_t t = 1; t < T; ++t)
        if (batch.target.ids.data_as<int32_t>()[b * T + t] == tokenizer.eos_id())
          expected.push_back(t);
      EXPECT_EQ((*batch.documents)[static_cast<size_t>(b)], expected);
      found += std::ssize(expected) - 1;
    }
  }
  EXPECT_GT(found, 0);
}

TEST_F(DocumentRuns, ResumeWithTheSameMaskAndTheSameBits) {
  const TrainOptions stopped = options("stopped"), straight = options("straight");
  train(small_spec(0.1f), stopped, {}, stop_after(8));
  TrainOptions other = stopped;
  other.document_mask = false;
  expect_error(ErrorKind::InvalidArgument, {"document_mask was true and is false"},
               [&] { train(small_spec(0.1f), other); });
  train(small_spec(0.1f), stopped);
  train(small_spec(0.1f), straight);
  EXPECT_EQ(state_bytes(stopped, 20), state_bytes(straight, 20));
  other.out = runs_ / "other";
  train(small_spec(0.1f), other);
  EXPECT_NE(state_bytes(other, 20), state_bytes(straight, 20));
}

TEST_F(DocumentRuns, GiveTheSameBitsForAnySplitIntoPasses) {
  TrainOptions whole = options("whole"), split = options("split");
  split.batch = 1;
  split.accumulate = 4;
  train(small_spec(0.1f), whole);
  train(small_spec(0.1f), split);
  EXPECT_EQ(state_bytes(whole, 20), state_bytes(split, 20));
}

TEST_F(DocumentRuns, AreRefusedIfTheOptionDoesNotSuit) {
  TrainOptions single = options("out");
  single.data = {runs_ / "text.txt"};
  refuse(small_spec(), single, "the data is one document");
  model::Spec recurrent = small_spec();
  recurrent.decoder->layers = 2;
  recurrent.decoder->mixers = {model::MixerKind::attention, model::MixerKind::lstm};
  refuse(recurrent, options("out"), "does not suit recurrent layers");
  TrainOptions spans = options("out");
  spans.tokenizer = "bpe:400";
  refuse(small_t5(), spans, "has no effect in this run");
  TrainOptions pairs = options("out");
  pairs.data.clear();
  pairs.pairs = {runs_ / "text.txt", runs_ / "text.txt"};
  refuse(small_t5(), pairs, "has no effect in this run");
}

}  // namespace
}  // namespace fovea::train

#include "fovea/core/options.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "base/fields.h"
#include "fovea/answer.h"
#include "fovea/bench.h"
#include "fovea/evaluate.h"
#include "fovea/evaluate_tasks.h"
#include "fovea/infer/classify.h"
#include "fovea/infer/embed.h"
#include "fovea/infer/engine.h"
#include "fovea/infer/evaluate_retrieval.h"
#include "fovea/infer/search.h"
#include "fovea/infer/transcribe.h"
#include "fovea/infer/translate.h"
#include "fovea/model/convert.h"
#include "fovea/study/evaluate_sentences.h"
#include "fovea/study/explain.h"
#include "fovea/study/inspect.h"
#include "fovea/study/linear_probe.h"
#include "fovea/study/trace.h"
#include "fovea/train/plan.h"
#include "fovea/train/train_embedder.h"
#include "fovea/train/train_tokenizer.h"
#include "lab/lab.h"
#include "lab/scale.h"
#include "support/expect_error.h"

namespace fovea {
namespace {

// Collects the fields of a description, and sets the field `wanted` to a value beyond its range.
class Survey : public OptionVisitor {
 public:
  explicit Survey(std::string wanted = {}) : wanted_(std::move(wanted)) {}
  std::vector<std::string> names, bounded;
  std::string expected;  // the range of the wanted field

  void integer(const Field& f, int64_t& value, int64_t least, int64_t most) override {
    look(f, least <= most, range_text(least, most));
    const bool has_most = most < std::numeric_limits<int64_t>::max();
    if (f.name == wanted_) value = has_most ? most + 1 : least - 1;
  }
  void list(const Field& f, const List& list) override {
    const auto* const integers = std::get_if<Integers>(&list);
    if (integers == nullptr) {
      if (std::holds_alternative<Texts>(list)) look(f);
      return;
    }
    const auto [values, least, most] = *integers;
    look(f, least <= most, range_text(least, most));
    if (f.name == wanted_) values = {least, least - 1};
  }
  void number(const Field& f, double& value, double least, double most) override {
    look(f, least < most && std::isfinite(least) && std::isfinite(most), range_text(least, most));
    if (f.name == wanted_) value = std::numeric_limits<double>::quiet_NaN();
  }
  void boolean(const Field& f, bool&) override { look(f); }
  void choice(const Field& f, int& value, const Names& choices) override {
    look(f, std::set<std::string>(choices.begin(), choices.end()).size() == choices.size(),
         range_text(int64_t{0}, std::ssize(choices) - 1));
    if (f.name == wanted_) value = static_cast<int>(choices.size());
  }
  void text(const Field& f, std::string&) override { look(f); }
  void unsigned_integer(const Field& f, uint64_t&, Unit) override { look(f); }
  void optional(const Field&, bool& present, Part) override { present = true; }

 private:
  void look(const Field& f, bool sane = true, const std::string& range = {}) {
    EXPECT_TRUE(sane) << f.name;
    EXPECT_FALSE(f.name.empty());
    EXPECT_EQ(f.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789"), f.name.npos);
    EXPECT_FALSE(f.help.empty() || f.help.ends_with('.') || f.help.find("--") != f.help.npos)
        << f.name << ": " << f.help;
    names.push_back(f.name);
    if (!range.empty()) bounded.push_back(f.name);
    if (f.name == wanted_) expected = range;
  }
  std::string wanted_;
};

template <class Options>
class Descriptions : public testing::Test {};
using All = testing::Types<train::TrainOptions, train::DistillationOptions, train::EmbedderTraining,
                           infer::GenerateOptions, infer::EngineOptions, infer::TranslateOptions,
                           infer::TranscribeOptions, infer::EmbedOptions, infer::RerankOptions,
                           infer::ClassifyOptions, train::PlanOptions, EvaluationData, BenchOptions,
                           model::ConvertOptions, infer::SearchBuildOptions, infer::SearchOptions,
                           infer::ClusterOptions, AnswerOptions, text::TokenizerTraining,
                           study::TraceOptions, study::InspectInput, model::HeadIndex,
                           study::ExplainOptions, study::ProbeOptions, LabOptions, ScaleOptions,
                           TaskData, infer::RetrievalData, study::SentenceData>;
TYPED_TEST_SUITE(Descriptions, All);

TYPED_TEST(Descriptions, HaveUniqueNamesAndDefaultsInRange) {
  TypeParam options;
  Survey survey;
  visit(options, survey);
  EXPECT_FALSE(survey.names.empty());
  EXPECT_EQ(std::set<std::string>(survey.names.begin(), survey.names.end()).size(),
            survey.names.size());
  check_fields(options);
}

// The library refuses a value beyond the range that the help shows, and names this range.
TYPED_TEST(Descriptions, AreCheckedByTheLibrary) {
  TypeParam options;
  Survey survey;
  visit(options, survey);
  for (const std::string& name : survey.bounded) {
    TypeParam wrong;
    Survey beyond(name);
    visit(wrong, beyond);
    try {
      check_fields(wrong);
      ADD_FAILURE() << name;
    } catch (const FieldError& error) {
      EXPECT_EQ(error.field(), name);
      EXPECT_TRUE(std::string(error.what()).starts_with(name + ": ")) << error.what();
      EXPECT_TRUE(std::string(error.what()).ends_with("; expected " + beyond.expected))
          << error.what();
    }
  }
}

// The checks beyond a range, and functions that refuse an option before they read a file.
TEST(Functions, NameTheField) {
  const auto wrong = [](std::initializer_list<std::string> texts, const auto& call) {
    expect_error(ErrorKind::InvalidArgument, texts, call);
  };
  wrong({"group: 48; expected 32, 64 or, with int8, 0"},
        [] { model::convert_model("m", "new", {.group = 48}); });
  wrong({"group: 64; expected 32, "}, [] { model::convert_model("m", "new.gguf", {.group = 64}); });
  wrong({"overlap_tokens: -2; expected -1 to "},
        [] { infer::build_search_index("text", "m", "new", {.overlap_tokens = -2}); });
  wrong({"steps: 0; expected 1 to "}, [] { bench_training({.steps = 0}); });
  wrong({"alphabet: -1; expected 0 to "},
        [] { train::train_tokenizer({"README.md"}, {.alphabet = -1}); });
}

TEST(Descriptions, OfPresetsAreInRange) {
  for (const std::string& name : model::preset_names())
    EXPECT_NO_THROW(check_fields(train::preset_training(name)));
}

TEST(OptionVisitors, KeepTheBitsOfFloats) {
  class Unchanged : public OptionVisitor {};
  Unchanged nothing;
  for (float value :
       {0.95f, 1e-5f, 3.4028235e38f, std::numeric_limits<float>::denorm_min(), 0.1f}) {
    const float before = value;
    static_cast<OptionVisitor&>(nothing).number({"x", "x"}, value, 0, 1);
    EXPECT_EQ(value, before);
  }
}

}  // namespace
}  // namespace fovea

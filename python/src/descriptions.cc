// The options of each call, as Python's documentation shows them.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nanobind/stl/string.h>

#include <limits>
#include <map>

#include "fovea/answer.h"
#include "fovea/evaluate.h"
#include "fovea/evaluate_tasks.h"
#include "fovea/infer/classify.h"
#include "fovea/infer/embed.h"
#include "fovea/infer/engine.h"
#include "fovea/infer/evaluate_retrieval.h"
#include "fovea/infer/mine_negatives.h"
#include "fovea/infer/search.h"
#include "fovea/infer/transcribe.h"
#include "fovea/infer/translate.h"
#include "fovea/model/convert.h"
#include "fovea/study/evaluate_sentences.h"
#include "fovea/study/explain.h"
#include "fovea/study/linear_probe.h"
#include "fovea/study/trace.h"
#include "fovea/text/tokenizer_training.h"
#include "fovea/train/plan.h"
#include "fovea/train/train_embedder.h"
#include "keywords.h"

namespace nb = nanobind;

namespace fovea::python {
namespace {

// Collects a dictionary for each field: name, type (as annotated in stubs), default, range, help.
class FieldDescriber : public OptionVisitor {
 public:
  nb::list found;

  void integer(const Field& f, int64_t& value, int64_t least, int64_t most) override {
    add(f, "int", nb::cast(value), range(least, most));
  }
  void number(const Field& f, double& value, double least, double most) override {
    add(f, "float", nb::cast(value), range(least, most));
  }
  void boolean(const Field& f, bool& value) override { add(f, "bool", nb::cast(value)); }
  void text(const Field& f, std::string& value) override {
    add(f, "str | os.PathLike[str]", nb::cast(value));
  }
  void unsigned_integer(const Field& f, uint64_t& value, Unit unit) override {
    add(f, "int", nb::cast(value), unit == Unit::bytes ? "bytes" : "");
  }
  void choice(const Field& f, int& value, const Names& names) override {
    add(f, fmt::format("Literal[\"{}\"]", fmt::join(names, "\", \"")),
        nb::cast(names[static_cast<size_t>(value)]));
  }
  void list(const Field& f, const List& list) override {
    static constexpr const char* kTypes[] = {"int | Sequence[int]", "float | Sequence[float]",
                                             "Texts"};
    add(f, kTypes[list.index()], nb::list());
  }
  void optional(const Field& f, bool& present, Part part) override {
    if (part == Part::group)
      add(f, "bool", nb::cast(present));
    else
      unset_ = !present;
    present = true;
  }

 private:
  template <class Number>
  static std::string range(Number least, Number most) {
    constexpr Number kMost = std::numeric_limits<Number>::max();
    if (least == std::numeric_limits<Number>::lowest()) return "";
    const bool open = most == kMost || most >= static_cast<Number>(1e18);
    return open ? fmt::format("at least {}", least) : fmt::format("{} to {}", least, most);
  }
  void add(const Field& f, const std::string& type, const nb::object& value,
           const std::string& range = "") {
    nb::dict field;
    field["name"] = f.name;
    field["type"] = type;
    field["default"] = unset_ ? nb::none() : value;
    field["range"] = range;
    field["help"] = f.help;
    found.append(field);
    unset_ = false;
  }

  bool unset_ = false;  // the next field has no value
};

template <class... Options>
nb::list described(Options... options) {
  FieldDescriber describer;
  (visit(options, describer), ...);
  return describer.found;
}

const std::map<std::string, nb::list (*)()>& all() {
  static const std::map<std::string, nb::list (*)()> table = {
      {"generate", [] { return described(infer::GenerateOptions()); }},
      {"engine", [] { return described(infer::EngineOptions()); }},
      {"translate", [] { return described(infer::TranslateOptions()); }},
      {"transcribe", [] { return described(infer::TranscribeOptions()); }},
      {"embed", [] { return described(infer::EmbedOptions()); }},
      {"rerank", [] { return described(infer::RerankOptions()); }},
      {"classify", [] { return described(infer::ClassifyOptions()); }},
      {"images", [] { return described(infer::ImageOptions()); }},
      {"build_index", [] { return described(infer::SearchBuildOptions()); }},
      {"search", [] { return described(infer::SearchOptions()); }},
      {"cluster", [] { return described(infer::ClusterOptions()); }},
      {"answer", [] { return described(AnswerOptions()); }},
      {"trace", [] { return described(study::TraceOptions()); }},
      {"explain", [] { return described(study::ExplainOptions()); }},
      {"probe", [] { return described(study::ProbeOptions()); }},
      {"train", [] { return described(train::TrainOptions(), model::Spec()); }},
      {"train_embedder", [] { return described(train::EmbedderTraining()); }},
      {"mine_negatives", [] { return described(infer::MiningOptions()); }},
      {"train_tokenizer", [] { return described(text::TokenizerTraining()); }},
      {"plan", [] { return described(train::PlanOptions()); }},
      {"spec", [] { return described(model::Spec()); }},
      {"convert", [] { return described(model::ConvertOptions()); }},
      {"evaluate", [] { return described(EvaluationData()); }},
      {"evaluate_tasks", [] { return described(TaskData()); }},
      {"evaluate_retrieval", [] { return described(infer::RetrievalData()); }},
      {"evaluate_sentences", [] { return described(study::SentenceData()); }},
  };
  return table;
}

}  // namespace

void add_descriptions(nb::module_& module) {
  module.def("describe_options", [](const std::string& call) {
    const auto found = all().find(call);
    if (found == all().end()) throw nb::key_error(call.c_str());
    return found->second();
  });
  module.def("described_calls", [] {
    nb::list names;
    for (const auto& [name, describe] : all()) names.append(name);
    return names;
  });
}

}  // namespace fovea::python

// Losses, metrics, and linear probes.

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "call.h"
#include "fovea/evaluate.h"
#include "fovea/evaluate_tasks.h"
#include "fovea/infer/embed.h"
#include "fovea/infer/evaluate_retrieval.h"
#include "fovea/infer/mine_negatives.h"
#include "fovea/infer/translation_scores.h"
#include "fovea/study/evaluate_sentences.h"
#include "fovea/study/linear_probe.h"
#include "keywords.h"
#include "values.h"

namespace nb = nanobind;

namespace fovea::python {
namespace {

using infer::Evaluation;
using study::ProbeEstimate;
using study::ProbeResult;
using study::ProbeScores;

void add_evaluate(nb::module_& module) {
  nb::class_<Evaluation>(module, "Evaluation", "The loss and the metrics of a model on data.")
      .def_ro("objective", &Evaluation::objective)
      .def_ro("loss", &Evaluation::loss, "The mean of -log p per predicted token, in nats.")
      .def_ro("perplexity", &Evaluation::perplexity)
      .def_ro("bits_per_byte", &Evaluation::bits_per_byte)
      .def_ro("tokens", &Evaluation::tokens)
      .def_ro("bytes", &Evaluation::bytes)
      .def_ro("sequences", &Evaluation::sequences)
      .def_ro("unknown", &Evaluation::unknown)
      .def_prop_ro("metrics", [](const Evaluation& e) { return dict_of(e.metrics); })
      .def_prop_ro(
          "labels",
          [](const Evaluation& e) {
            return e.labels ? parsed(infer::label_json(*e.labels)) : nb::none();
          },
          "Of classifiers: the scores of each label, and the confusion matrix.")
      .def_ro("notes", &Evaluation::notes)
      .def("__repr__", [](const Evaluation& e) {
        return fmt::format("Evaluation({}, loss {:.4f}, {} tokens)", e.objective, e.loss, e.tokens);
      });
  module.def(
      "evaluate",
      [](const model::Model& model, const std::optional<int64_t>& beams, const nb::kwargs& given) {
        EvaluationData data = options_from<EvaluationData>(given);
        if (beams) data.translation.emplace().beams = *beams;
        return call([=] { return evaluate(model, data); });
      },
      nb::arg("model"), nb::arg("beams") = nb::none(), nb::arg("options"));
  module.def(
      "evaluate_images",
      [](const infer::ImageModel& model, const std::vector<std::string>& images) {
        return call([=] { return evaluate_images(model, images); });
      },
      nb::arg("model"), nb::arg("images"));
  nb::class_<TaskEvaluation>(module, "TaskEvaluation", "Metrics of a task.")
      .def_ro("records", &TaskEvaluation::records)
      .def_ro("choices", &TaskEvaluation::choices)
      .def_ro("generated", &TaskEvaluation::generated)
      .def_ro("cut", &TaskEvaluation::cut)
      .def_prop_ro("metrics", [](const TaskEvaluation& e) { return dict_of(e.metrics); });
  module.def(
      "evaluate_tasks",
      [](const model::Model& model, const nb::kwargs& given) {
        return call(
            [model, data = options_from<TaskData>(given)] { return evaluate_tasks(model, data); });
      },
      nb::arg("model"), nb::arg("options"));
  module.def("task_names", &task_names, "Returns the names of tasks of lm-evaluation-harness.");
}

void add_translation_scores(nb::module_& module) {
  module.def(
      "score_translations",
      [](const std::vector<std::string>& hypotheses, const std::vector<std::string>& references,
         const std::string& tokenizer) {
        using enum infer::BleuTokenizer;
        const auto how = one_of<infer::BleuTokenizer>(
            "tokenizer", tokenizer,
            {{"13a", mteval_13a}, {"zh", zh}, {"char", characters}, {"none", none}});
        return dict_of(infer::score_translations(hypotheses, references, how));
      },
      nb::arg("hypotheses"), nb::arg("references"), nb::arg("tokenizer") = "13a",
      "Returns BLEU, chrF2, chrF2++ and TER as sacrebleu computes them, and ROUGE-1, -2 and -L.");
}

void add_similarity(nb::module_& module) {
  module.def(
      "evaluate_similarity",
      [](const infer::Embedder& embedder, const std::string& file, const nb::kwargs& given) {
        const auto found = call([=, options = options_from<infer::EmbedOptions>(given)] {
          return infer::evaluate_similarity(embedder, file, options);
        });
        nb::dict metrics = dict_of(found.metrics);
        metrics["pairs"] = found.pairs;
        return metrics;
      },
      nb::arg("embedder"), nb::arg("file"), nb::arg("options"));
  module.def(
      "evaluate_poolings",
      [](const infer::Embedder& embedder, const std::string& file, const nb::kwargs& given) {
        nb::dict by_name;
        for (const auto& each : call([=, options = options_from<infer::EmbedOptions>(given)] {
               return infer::evaluate_poolings(embedder, file, options);
             }))
          by_name[each.pooling.c_str()] = dict_of(each.result.metrics);
        return by_name;
      },
      nb::arg("embedder"), nb::arg("file"), nb::arg("options"));
}

nb::dict dict_of_estimates(const std::vector<std::pair<std::string, infer::Estimate>>& metrics) {
  nb::dict by_name;
  for (const auto& [name, estimate] : metrics) by_name[name.c_str()] = estimate;
  return by_name;
}

using Scorer = std::function<std::vector<float>(const std::string& query,
                                                const std::vector<std::string>& texts)>;
Scorer scorer_of(const infer::Reranker* reranker) {
  if (reranker == nullptr) return {};
  return [reranker = *reranker](const std::string& query, const std::vector<std::string>& texts) {
    return reranker.score(query, texts);
  };
}

template <class Model>
infer::RetrievalEvaluation retrieval_of(const Model& model, const infer::Reranker* reranker,
                                        const nb::kwargs& given) {
  auto data = options_from<infer::RetrievalData>(given);
  data.reranker = scorer_of(reranker);
  return call([model, data] { return infer::evaluate_retrieval(model, data); });
}

// The functions for each kind of vectors have one name.
template <class Model>
void add_retrieval_of(nb::module_& module) {
  module.def("evaluate_retrieval", &retrieval_of<Model>, nb::arg("model"),
             nb::arg("reranker").none(), nb::arg("options"));
}

void add_data_sets(nb::module_& module) {
  using infer::RetrievalEvaluation;
  nb::class_<RetrievalEvaluation>(module, "RetrievalEvaluation",
                                  "How well a model finds documents for queries.")
      .def_ro("queries", &RetrievalEvaluation::queries)
      .def_ro("documents", &RetrievalEvaluation::documents)
      .def_prop_ro("metrics",
                   [](const RetrievalEvaluation& e) { return dict_of_estimates(e.metrics); })
      .def_ro("notes", &RetrievalEvaluation::notes);
  add_retrieval_of<infer::Embedder>(module);
  add_retrieval_of<infer::SparseEmbedder>(module);
  add_retrieval_of<infer::MultiVectorEmbedder>(module);
  using study::SentenceScores;
  nb::class_<SentenceScores>(module, "SentenceScores", "Metrics of vectors on a file of sentences.")
      .def_ro("file", &SentenceScores::file)
      .def_ro("task", &SentenceScores::task)
      .def_ro("records", &SentenceScores::records)
      .def_prop_ro("metrics", [](const SentenceScores& s) { return dict_of_estimates(s.metrics); });
  using study::SentenceEvaluation;
  nb::class_<SentenceEvaluation>(module, "SentenceEvaluation", "Metrics of vectors of sentences.")
      .def_ro("scores", &SentenceEvaluation::scores)
      .def_ro("notes", &SentenceEvaluation::notes);
  module.def(
      "evaluate_sentences",
      [](const infer::Embedder& embedder, const nb::kwargs& given) {
        return call([embedder, data = options_from<study::SentenceData>(given)] {
          return study::evaluate_sentences(embedder, data);
        });
      },
      nb::arg("embedder"), nb::arg("options"));
}

infer::MinedNegatives mined_negatives(const infer::Embedder& embedder,
                                      const std::vector<std::string>& corpus,
                                      const infer::Reranker* reranker, const nb::kwargs& given) {
  auto options = options_from<infer::MiningOptions>(given);
  options.corpus = corpus;
  options.reranker = scorer_of(reranker);
  return call([embedder, options] { return infer::mine_negatives(embedder, options); });
}

void add_mining(nb::module_& module) {
  using infer::MinedNegatives, infer::MinedPair;
  nb::class_<MinedPair>(module, "MinedPair", "A pair of texts and its hard negatives.")
      .def_ro("anchor", &MinedPair::anchor)
      .def_ro("positive", &MinedPair::positive)
      .def_ro("negatives", &MinedPair::negatives, "By descending score.")
      .def_ro("scores", &MinedPair::scores, "Those of the positive and of the negatives.");
  nb::class_<MinedNegatives>(module, "MinedNegatives", "Pairs with their hard negatives.")
      .def_ro("pairs", &MinedNegatives::pairs)
      .def_ro("incomplete", &MinedNegatives::incomplete, "Pairs with too few negatives.")
      .def_ro("by_margin", &MinedNegatives::by_margin, "Candidates that the margin left out.")
      .def_ro("by_relative_margin", &MinedNegatives::by_relative_margin)
      .def_ro("by_max_score", &MinedNegatives::by_max_score);
  module.def("mine_negatives", &mined_negatives, nb::arg("embedder"), nb::arg("corpus"),
             nb::arg("reranker").none(), nb::arg("options"));
}

void add_probe(nb::module_& module) {
  nb::class_<ProbeEstimate>(module, "ProbeEstimate", "A metric and its 95% interval.")
      .def_ro("value", &ProbeEstimate::value)
      .def_ro("low", &ProbeEstimate::low)
      .def_ro("high", &ProbeEstimate::high)
      .def("__float__", [](const ProbeEstimate& e) { return e.value; })
      .def("__repr__", [](const ProbeEstimate& e) {
        return fmt::format("{:.4f} ({:.4f} to {:.4f})", e.value, e.low, e.high);
      });
  nb::class_<ProbeScores>(module, "ProbeScores")
      .def_ro("accuracy", &ProbeScores::accuracy)
      .def_ro("f1", &ProbeScores::f1)
      .def_ro("r2", &ProbeScores::r2)
      .def_ro("pearson", &ProbeScores::pearson)
      .def_ro("predicted", &ProbeScores::predicted)
      .def_ro("numbers", &ProbeScores::numbers)
      .def_ro("fold_scores", &ProbeScores::fold_scores)
      .def_ro("c", &ProbeScores::c);
  using Vectors = ProbeResult::Vectors;
  nb::class_<Vectors>(module, "ProbedVectors")
      .def_ro("layer", &Vectors::layer)
      .def_ro("width", &Vectors::width)
      .def_ro("scores", &Vectors::scores)
      .def_ro("gain", &Vectors::gain);
  nb::class_<ProbeResult>(module, "ProbeResult", "What linear models read from vectors.")
      .def_ro("labels", &ProbeResult::labels)
      .def_ro("labelled", &ProbeResult::labelled)
      .def_ro("numbers", &ProbeResult::numbers)
      .def_ro("fold", &ProbeResult::fold)
      .def_ro("majority", &ProbeResult::majority)
      .def_ro("tfidf", &ProbeResult::tfidf)
      .def_ro("vectors", &ProbeResult::vectors)
      .def_ro("notes", &ProbeResult::notes);
  module.def(
      "linear_probe",
      [](const infer::Embedder& embedder, const nb::kwargs& given) {
        return call([embedder, options = options_from<study::ProbeOptions>(given)] {
          return study::linear_probe(embedder, options);
        });
      },
      nb::arg("embedder"), nb::arg("options"));
}

}  // namespace

nb::dict dict_of(const infer::MetricValues& metrics) {
  nb::dict by_name;
  for (const auto& [name, value] : metrics) by_name[name.c_str()] = value;
  return by_name;
}

nb::object parsed(const std::string& json) {
  return nb::module_::import_("json").attr("loads")(json);
}

void add_evaluation(nb::module_& module) {
  add_evaluate(module);
  add_translation_scores(module);
  add_similarity(module);
  add_probe(module);
  add_data_sets(module);
  add_mining(module);
}

}  // namespace fovea::python

// Labels of texts, entities, answers and masked words.

#include "fovea/infer/classify.h"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <variant>

#include "arrays.h"
#include "bindings.h"
#include "call.h"
#include "keywords.h"
#include "values.h"

namespace nb = nanobind;

namespace fovea::python {
namespace {

using infer::Classifications;
using infer::Classifier;
using infer::ClassifyOptions;

using Text = std::variant<std::string, std::pair<std::string, std::string>>;

std::vector<infer::TextInput> inputs_of(const std::vector<Text>& texts) {
  std::vector<infer::TextInput> inputs;
  for (const Text& text : texts) {
    if (const auto* const pair = std::get_if<1>(&text))
      inputs.push_back({pair->first, pair->second});
    else
      inputs.push_back({std::get<0>(text)});
  }
  return inputs;
}

// The labels of a text with their scores, the greatest first.
std::vector<std::pair<std::string, float>> ranked(const Classifications& c, int64_t text) {
  std::vector<std::pair<std::string, float>> pairs;
  for (const size_t i : c.order(text)) pairs.emplace_back(c.labels[i], c.row(text)[i]);
  return pairs;
}

void add_labels(nb::module_& module) {
  nb::class_<Classifications>(module, "Classifications", "The scores of the labels of texts.")
      .def_ro("labels", &Classifications::labels)
      .def_prop_ro(
          "scores",
          [](const Classifications& c) {
            return array_of(std::vector<float>(c.scores),
                            {static_cast<size_t>(c.count), c.labels.size()});
          },
          nb::rv_policy::automatic, "float32 [texts, labels]")
      .def_ro("tokens", &Classifications::tokens)
      .def_ro("cut", &Classifications::cut)
      .def("__len__", [](const Classifications& c) { return c.count; })
      .def(
          "__getitem__",
          [](const Classifications& c, int64_t text) {
            if (text < 0) text += c.count;
            if (text < 0 || text >= c.count) throw nb::index_error("no such text");
            return ranked(c, text);
          },
          "Returns the labels of a text with their scores, the greatest first.")
      .def_prop_ro(
          "best",
          [](const Classifications& c) {
            std::vector<std::string> labels;
            for (int64_t i = 0; i < c.count; ++i) labels.push_back(c.labels[c.order(i)[0]]);
            return labels;
          },
          "The best label of each text.")
      .def("__repr__", [](const Classifications& c) {
        std::string text =
            fmt::format("Classifications({} texts, {} labels)", c.count, c.labels.size());
        for (int64_t i = 0; i < std::min<int64_t>(c.count, 10); ++i) {
          const auto [label, score] = ranked(c, i)[0];
          text += fmt::format("\n  {}: {} {:.4f}", i, label, score);
        }
        return text;
      });
}

void add_parts_of_texts(nb::module_& module) {
  using infer::Entity;
  nb::class_<Entity>(module, "Entity", "A part of a text with its label.")
      .def_ro("text", &Entity::text)
      .def_ro("label", &Entity::label)
      .def_ro("score", &Entity::score)
      .def_prop_ro(
          "begin", [](const Entity& e) { return e.span.begin; }, "In characters.")
      .def_prop_ro(
          "end", [](const Entity& e) { return e.span.end; }, "In characters.")
      .def("__repr__", [](const Entity& e) {
        return fmt::format("Entity({} {}..{} {} {:.4f})", e.label, e.span.begin, e.span.end, e.text,
                           e.score);
      });
  using infer::ExtractedAnswer;
  nb::class_<ExtractedAnswer>(module, "ExtractedAnswer", "A part of a context, or an empty text.")
      .def_ro("text", &ExtractedAnswer::text)
      .def_ro("score", &ExtractedAnswer::score)
      .def_prop_ro("begin", [](const ExtractedAnswer& a) { return a.span.begin; })
      .def_prop_ro("end", [](const ExtractedAnswer& a) { return a.span.end; })
      .def("__repr__", [](const ExtractedAnswer& a) {
        return fmt::format("ExtractedAnswer({} {:.4f})", a.text, a.score);
      });
  using infer::MaskCandidate;
  nb::class_<MaskCandidate>(module, "MaskCandidate", "A candidate for a mask token.")
      .def_ro("id", &MaskCandidate::id)
      .def_ro("score", &MaskCandidate::score)
      .def_ro("token", &MaskCandidate::token)
      .def_ro("text", &MaskCandidate::text)
      .def("__repr__", [](const MaskCandidate& m) {
        return fmt::format("MaskCandidate({} {:.4f})", m.token, m.score);
      });
}

void add_facts(nb::class_<Classifier>& c) {
  c.def(
       "__init__",
       [](Classifier* self, const std::string& path, const std::string& precision,
          const Adapters& adapters) {
         new (self)
             Classifier(call([path, how = precision_of(precision), uses = uses_of(adapters)] {
               return Classifier::open(path, how, uses);
             }));
       },
       nb::arg("path"), nb::arg("precision") = "stored", nb::arg("adapters") = Adapters())
      .def_static(
          "of", [](const model::Model& model) { return Classifier::of(model); }, nb::arg("model"),
          "Returns the classifier that a model is; it shares the weights.")
      .def_prop_ro(
          "task",
          [](const Classifier& c) {
            static constexpr const char* kNames[] = {"texts", "words", "answers", "masks"};
            return kNames[static_cast<size_t>(c.task())];
          },
          "What it labels: texts, words, answers or masks.")
      .def_prop_ro("labels", [](const Classifier& c) { return c.labels(); })
      .def_prop_ro("max_tokens", &Classifier::max_tokens)
      .def_prop_ro("mask_token", &Classifier::mask_token)
      .def_prop_ro("tokenizer", [](const Classifier& c) { return c.tokenizer(); })
      .def_prop_ro("warnings", [](const Classifier& c) { return c.warnings(); })
      .def_prop_ro("spec", [](const Classifier& c) { return c.spec(); });
}

void add_predictions_of(nb::class_<Classifier>& c) {
  c.def(
       "classify",
       [](const Classifier& c, const std::vector<Text>& texts, const nb::kwargs& given) {
         return call(
             [c, inputs = inputs_of(texts), options = options_from<ClassifyOptions>(given)] {
               if (options.labels.empty()) return c.classify(inputs, options);
               std::vector<std::string> alone;
               for (const infer::TextInput& input : inputs) alone.push_back(input.text);
               return c.classify_by(alone, options);
             });
       },
       nb::arg("texts"), nb::arg("options"),
       "Returns the scores of the labels of texts, or of pairs of texts. With `labels`, a model "
       "of natural language inference scores these.")
      .def(
          "find_entities",
          [](const Classifier& c, const std::vector<std::string>& texts, const nb::kwargs& given) {
            return call([c, texts, o = options_from<ClassifyOptions>(given)] {
              return c.find_entities(texts, o);
            });
          },
          nb::arg("texts"), nb::arg("options"), "Returns the entities of each text, in order.")
      .def(
          "answer",
          [](const Classifier& c, const std::vector<std::pair<std::string, std::string>>& pairs,
             const nb::kwargs& given) {
            std::vector<infer::Question> questions;
            for (const auto& [question, context] : pairs) questions.push_back({question, context});
            return call([c, questions, o = options_from<ClassifyOptions>(given)] {
              return c.answer(questions, o);
            });
          },
          nb::arg("questions"), nb::arg("options"),
          "Returns the best answers to each pair (question, context), best first.")
      .def(
          "fill_masks",
          [](const Classifier& c, const std::vector<std::string>& texts, const nb::kwargs& given) {
            return call([c, texts, o = options_from<ClassifyOptions>(given)] {
              return c.fill_masks(texts, o);
            });
          },
          nb::arg("texts"), nb::arg("options"),
          "Returns for each mask token of each text the most probable tokens, best first.");
}

}  // namespace

void add_classifier(nb::module_& module) {
  add_labels(module);
  add_parts_of_texts(module);
  nb::class_<Classifier> c(module, "Classifier",
                           "Predicts labels of texts, entities, answers or masked tokens.");
  add_facts(c);
  add_predictions_of(c);
}

}  // namespace fovea::python

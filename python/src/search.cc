// Search by meaning in text files.

#include "fovea/infer/search.h"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "call.h"
#include "fovea/answer.h"
#include "keywords.h"

namespace nb = nanobind;

namespace fovea::python {
namespace {

using infer::FoundPassage;
using infer::SearchBuild;
using infer::SearchIndex;

void add_passages(nb::module_& module) {
  using infer::GraphRecall;
  nb::class_<GraphRecall>(module, "GraphRecall",
                          "The share of the nearest passages that are found.")
      .def_ro("candidates", &GraphRecall::candidates)
      .def_ro("recall", &GraphRecall::recall);
  nb::class_<SearchBuild>(module, "SearchBuild", "What SearchIndex.build() has done.")
      .def_ro("files", &SearchBuild::files)
      .def_ro("skipped", &SearchBuild::skipped)
      .def_ro("links_out", &SearchBuild::links_out)
      .def_ro("unread", &SearchBuild::unread)
      .def_ro("passages", &SearchBuild::passages)
      .def_ro("duplicates", &SearchBuild::duplicates)
      .def_ro("embedded", &SearchBuild::embedded)
      .def_ro("cut", &SearchBuild::cut)
      .def_ro("limit", &SearchBuild::limit)
      .def_ro("recall", &SearchBuild::recall)
      .def("__repr__", [](const SearchBuild& b) {
        return fmt::format("SearchBuild({} files, {} passages, {} embedded)", b.files, b.passages,
                           b.embedded);
      });
  nb::class_<FoundPassage>(module, "FoundPassage", "A passage, with its place in its file.")
      .def_ro("file", &FoundPassage::file)
      .def_ro("line", &FoundPassage::line)
      .def_ro("last_line", &FoundPassage::last_line)
      .def_ro("text", &FoundPassage::text)
      .def_ro("score", &FoundPassage::score)
      .def_ro("similarity", &FoundPassage::similarity)
      .def_prop_ro(
          "fields",
          [](const FoundPassage& p) {
            return nb::module_::import_("json").attr("loads")(p.fields.empty() ? "{}" : p.fields);
          })
      .def("__str__", [](const FoundPassage& p) { return p.text; })
      .def("__repr__", [](const FoundPassage& p) {
        return fmt::format("FoundPassage({}:{}, score={:.4f})", p.file, p.line, p.score);
      });
  using infer::PassageCluster;
  nb::class_<PassageCluster>(module, "PassageCluster", "Passages of similar meaning.")
      .def_ro("passages", &PassageCluster::passages)
      .def_ro("cohesion", &PassageCluster::cohesion)
      .def_ro("typical", &PassageCluster::typical);
  using infer::WordMatch;
  nb::class_<WordMatch>(module, "WordMatch", "A word of a query and its match in a passage.")
      .def_ro("query", &WordMatch::query)
      .def_ro("passage", &WordMatch::passage)
      .def_ro("line", &WordMatch::line)
      .def_ro("similarity", &WordMatch::similarity);
}

// Calls work(options), which Ctrl-C or an exception of `progress` stops.
template <class Work>
SearchBuild call_with_progress(infer::SearchBuildOptions options, const nb::object& progress,
                               const Work& work) {
  const auto stopped = std::make_shared<std::atomic<bool>>(false);
  const Shared receiver = progress.is_none() ? nullptr : shared(progress);
  options.progress = [stopped, receiver](int64_t embedded, int64_t passages) {
    if (receiver) {
      const nb::gil_scoped_acquire locked;
      (*receiver)(embedded, passages);
    }
    return !*stopped;
  };
  return call([=] { return work(options); }, {.interrupt = [stopped] { *stopped = true; }});
}

SearchBuild built_index(const std::string& folder, const std::string& model,
                        const std::string& index, const nb::object& progress,
                        const nb::kwargs& given) {
  return call_with_progress(options_from<infer::SearchBuildOptions>(given), progress,
                            [=](const infer::SearchBuildOptions& options) {
                              return infer::build_search_index(folder, model, index, options);
                            });
}

SearchBuild extended_index(const std::string& index, const std::vector<std::string>& files,
                           const std::string& model, const nb::object& progress) {
  return call_with_progress({}, progress, [=](const infer::SearchBuildOptions& options) {
    return infer::add_to_search_index(index, files, model, options);
  });
}

void add_answers(nb::module_& module) {
  nb::class_<PassageAnswer>(module, "PassageAnswer", "An answer with its sources.")
      .def_ro("answered", &PassageAnswer::answered)
      .def_ro("supported", &PassageAnswer::supported)
      .def_ro("text", &PassageAnswer::text)
      .def_ro("sources", &PassageAnswer::sources)
      .def_ro("cited", &PassageAnswer::cited)
      .def_ro("unknown", &PassageAnswer::unknown)
      .def_ro("score", &PassageAnswer::score)
      .def("__str__", [](const PassageAnswer& a) { return a.text; });
  module.def(
      "answer_from_passages",
      [](const model::Model& model, const std::string& folder, const std::string& question,
         const std::vector<FoundPassage>& passages, const nb::kwargs& given) {
        infer::GenerateOptions generation = infer::generation_defaults(model);
        AnswerOptions options;
        Keywords(given).into(generation).into(options).refuse_others();
        return call([=] {
          const auto chat = text::chat_format(folder, "", model.tokenizer());
          return answer_from_passages(model, chat, question, passages, generation, options);
        });
      },
      nb::arg("model"), nb::arg("folder"), nb::arg("question"), nb::arg("passages"),
      nb::arg("options"));
  module.def(
      "answer_from_passages",
      [](const infer::Classifier& model, const std::string& question,
         const std::vector<FoundPassage>& passages, const nb::kwargs& given) {
        const auto options = options_from<AnswerOptions>(given);
        return call([=] { return answer_from_passages(model, question, passages, options); });
      },
      nb::arg("model"), nb::arg("question"), nb::arg("passages"), nb::arg("options"));
}

}  // namespace

void add_search(nb::module_& module) {
  add_passages(module);
  nb::class_<SearchIndex>(module, "SearchIndex",
                          "An index of the text files in a folder, searched by meaning.")
      .def(
          "__init__",
          [](SearchIndex* self, const std::string& index, const std::string& model) {
            new (self) SearchIndex(call([=] { return SearchIndex::open(index, model); }));
          },
          nb::arg("index"), nb::arg("model") = "")
      .def_static("build", &built_index, nb::arg("folder"), nb::arg("model"), nb::arg("index"),
                  nb::arg("progress") = nb::none(), nb::arg("options"),
                  "Splits the text files in a folder into passages and writes an index of their "
                  "words and vectors. progress(embedded, passages) is called meanwhile.")
      .def_static("add", &extended_index, nb::arg("index"), nb::arg("files"), nb::arg("model") = "",
                  nb::arg("progress") = nb::none(),
                  "Adds files below the indexed folder to an index, or reads them again. An opened "
                  "index does not change; open it again.")
      .def_static(
          "delete",
          [](const std::string& index, const std::vector<std::string>& files) {
            return call([=] { return infer::delete_from_search_index(index, files); });
          },
          nb::arg("index"), nb::arg("files"),
          "Removes files from an index and returns their number. An opened index does not change.")
      .def(
          "search",
          [](const SearchIndex& i, const std::string& query, int64_t count,
             const nb::kwargs& given) {
            const auto options = options_from<infer::SearchOptions>(given);
            return call([=] { return i.search(query, count, options); });
          },
          nb::arg("query"), nb::arg("count") = 10, nb::arg("options"),
          "Returns the best passages for the query, best first. hybrid: also by words (BM25); "
          "where: conditions such as [\"file=docs/*.md\", \"date>=2026-01\"].")
      .def(
          "cluster",
          [](const SearchIndex& i, const nb::kwargs& given) {
            const auto options = options_from<infer::ClusterOptions>(given);
            return call([=] { return i.cluster(options); });
          },
          nb::arg("options"), "Groups the passages by meaning, the largest group first.")
      .def(
          "explain",
          [](const SearchIndex& i, const std::string& query, const FoundPassage& passage) {
            return call([=] { return i.explain(query, passage); });
          },
          nb::arg("query"), nb::arg("passage"), "Returns the best match of each word of the query.")
      .def_prop_ro("folder", [](const SearchIndex& i) { return i.folder(); })
      .def_prop_ro("warnings", [](const SearchIndex& i) { return i.warnings(); })
      .def("__len__", &SearchIndex::passages);
  add_answers(module);
}

}  // namespace fovea::python

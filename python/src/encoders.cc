// Vectors of texts, and scores of pairs.

#include <fmt/format.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays.h"
#include "bindings.h"
#include "call.h"
#include "fovea/core/error.h"
#include "fovea/infer/embed.h"
#include "fovea/infer/retrieval.h"
#include "keywords.h"
#include "values.h"

namespace nb = nanobind;

namespace fovea::python {
namespace {

using infer::Embedder;
using infer::EmbedOptions;
using infer::MultiVectorEmbedder;
using infer::Reranker;
using infer::SparseEmbedder;
using infer::TextRole;

TextRole role_of(const std::string& name) {
  return one_of<TextRole>("role", name,
                          {{"document", TextRole::document}, {"query", TextRole::query}});
}

std::vector<size_t> shape_of(int64_t rows, int64_t columns) {
  return {static_cast<size_t>(rows), static_cast<size_t>(columns)};
}

// The tokens of a text: their bytes in it, and their vectors [tokens, width].
nb::tuple tokens_of(const std::vector<infer::EmbeddedToken>& tokens) {
  std::vector<std::pair<size_t, size_t>> bytes;
  std::vector<float> values;
  for (const infer::EmbeddedToken& token : tokens) {
    bytes.emplace_back(token.begin, token.end);
    values.insert(values.end(), token.vector.begin(), token.vector.end());
  }
  const size_t width = tokens.empty() ? 0 : tokens[0].vector.size();
  return nb::make_tuple(bytes, array_of(std::move(values), {tokens.size(), width}));
}

template <class Opened>
auto opener() {
  return [](Opened* self, const std::string& path, const std::string& precision,
            const Adapters& adapters) {
    new (self) Opened(call([path, how = precision_of(precision), uses = uses_of(adapters)] {
      return Opened::open(path, how, uses);
    }));
  };
}

using Vectors = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

std::span<const float> row_of(const Vectors& vectors, size_t row) {
  return {vectors.data() + row * vectors.shape(1), vectors.shape(1)};
}

// Returns the similarity of each vector of `a` and each of `b` -> [a, b].
Array<float> similarities(const Embedder& embedder, const Vectors& a, const Vectors& b) {
  std::vector<float> values(a.shape(0) * b.shape(0));
  {
    const nb::gil_scoped_release unlocked;
    for (size_t i = 0; i < a.shape(0); ++i)
      for (size_t j = 0; j < b.shape(0); ++j)
        values[i * b.shape(0) + j] = embedder.similarity(row_of(a, i), row_of(b, j));
  }
  return array_of(std::move(values), {a.shape(0), b.shape(0)});
}

void add_embedder(nb::module_& module) {
  nb::class_<Embedder>(module, "Embedder", "Computes vectors of texts; see fovea.Encoder.")
      .def("__init__", opener<Embedder>(), nb::arg("path"), nb::arg("precision") = "stored",
           nb::arg("adapters") = Adapters())
      .def(
          "embed",
          [](const Embedder& e, const std::vector<std::string>& texts, const nb::kwargs& given) {
            infer::Embeddings made = call([e, texts, options = options_from<EmbedOptions>(given)] {
              return e.embed(texts, options);
            });
            return array_of(std::move(made.values), shape_of(made.count, made.width));
          },
          nb::arg("texts"), nb::arg("options"))
      .def(
          "embed_tokens",
          [](const Embedder& e, const std::string& text, const nb::kwargs& given) {
            return tokens_of(call([e, text, options = options_from<EmbedOptions>(given)] {
              return e.embed_tokens(text, options);
            }));
          },
          nb::arg("text"), nb::arg("options"))
      .def("similarity", &similarities, nb::arg("a"), nb::arg("b"))
      .def_prop_ro("width", &Embedder::width)
      .def_prop_ro("max_tokens", &Embedder::max_tokens)
      .def_prop_ro("pooling", &Embedder::pooling)
      .def_prop_ro("similarity_name", [](const Embedder& e) { return e.similarity_name(); })
      .def_prop_ro("prompts", [](const Embedder& e) { return e.prompts(); })
      .def_prop_ro("tokenizer", [](const Embedder& e) { return e.tokenizer(); })
      .def_prop_ro("warnings", [](const Embedder& e) { return e.warnings(); })
      .def_prop_ro("spec", [](const Embedder& e) { return e.spec(); })
      .def_prop_ro("fingerprint", &Embedder::fingerprint);
  module.def(
      "quantise_vectors",
      [](const Vectors& vectors, const std::string& precision) -> nb::object {
        using enum infer::VectorPrecision;
        const auto how = one_of<infer::VectorPrecision>("precision", precision,
                                                        {{"float32", float32},
                                                         {"int8", int8},
                                                         {"uint8", uint8},
                                                         {"binary", binary},
                                                         {"ubinary", ubinary}});
        const infer::CompactVectors made = infer::quantise_vectors(
            {vectors.data(),
             {static_cast<int64_t>(vectors.shape(0)), static_cast<int64_t>(vectors.shape(1))},
             DType::f32},
            how);
        Tensor tensor = empty({made.shape[0], made.shape[1]}, made.dtype);
        std::copy(made.bytes.begin(), made.bytes.end(), static_cast<uint8_t*>(tensor.data()));
        return array_of(tensor);
      },
      nb::arg("vectors"), nb::arg("precision"),
      "Converts vectors float32 [count, width] to int8, uint8, binary or ubinary.");
}

void add_reranker(nb::module_& module) {
  nb::class_<Reranker>(module, "Reranker", "Scores how well texts answer a query.")
      .def("__init__", opener<Reranker>(), nb::arg("path"), nb::arg("precision") = "stored",
           nb::arg("adapters") = Adapters())
      .def(
          "score",
          [](const Reranker& r, const std::string& query, const std::vector<std::string>& texts,
             const nb::kwargs& given) {
            const auto options = options_from<infer::RerankOptions>(given);
            return array_of(
                call([r, query, texts, options] { return r.score(query, texts, options); }));
          },
          nb::arg("query"), nb::arg("texts"), nb::arg("options"),
          "Returns the scores of texts, float32 [texts]; greater = better.")
      .def_prop_ro("max_tokens", &Reranker::max_tokens)
      .def_prop_ro("spec", [](const Reranker& r) { return r.spec(); })
      .def_prop_ro("warnings", [](const Reranker& r) { return r.warnings(); });
}

void add_sparse(nb::module_& module) {
  using infer::SparseVectors;
  nb::class_<SparseVectors>(module, "SparseVectors",
                            "Compressed sparse rows: scipy.sparse.csr_array((v.values, v.indices, "
                            "v.starts), (v.count, v.width)).")
      .def_ro("count", &SparseVectors::count)
      .def_ro("width", &SparseVectors::width)
      .def_prop_ro(
          "starts", [](const SparseVectors& v) { return array_of(std::vector<int64_t>(v.starts)); },
          nb::rv_policy::automatic)
      .def_prop_ro(
          "indices",
          [](const SparseVectors& v) { return array_of(std::vector<int32_t>(v.indices)); },
          nb::rv_policy::automatic)
      .def_prop_ro(
          "values", [](const SparseVectors& v) { return array_of(std::vector<float>(v.values)); },
          nb::rv_policy::automatic)
      .def(
          "save", [](const SparseVectors& v, const std::string& p) { infer::write_vectors(v, p); },
          nb::arg("path"), "Writes a file of safetensors.")
      .def("__len__", [](const SparseVectors& v) { return v.count; });
  nb::class_<SparseEmbedder>(module, "SparseEncoder",
                             "Computes sparse vectors of texts over the vocabulary (SPLADE).")
      .def("__init__", opener<SparseEmbedder>(), nb::arg("path"), nb::arg("precision") = "stored",
           nb::arg("adapters") = Adapters())
      .def(
          "encode",
          [](const SparseEmbedder& e, const std::vector<std::string>& texts,
             const std::string& role, int64_t most, const nb::kwargs& given) {
            return call(
                [e, texts, as = role_of(role), most, options = options_from<EmbedOptions>(given)] {
                  return e.embed(texts, as, options, most);
                });
          },
          nb::arg("texts"), nb::arg("role") = "document", nb::arg("most") = 0, nb::arg("options"),
          "Returns a vector for each text, of which the `most` largest elements are kept; 0 = as "
          "the model's files say.")
      .def_prop_ro("width", &SparseEmbedder::width)
      .def_prop_ro("max_tokens", &SparseEmbedder::max_tokens)
      .def_prop_ro("similarity_name", [](const SparseEmbedder& e) { return e.similarity_name(); })
      .def_prop_ro("prompts", [](const SparseEmbedder& e) { return e.prompts(); })
      .def_prop_ro("fingerprint", &SparseEmbedder::fingerprint)
      .def_prop_ro("warnings", [](const SparseEmbedder& e) { return e.warnings(); })
      .def_prop_ro("tokenizer", [](const SparseEmbedder& e) { return e.tokenizer(); });
}

void add_multi_vector(nb::module_& module) {
  using infer::MultiVectors;
  nb::class_<MultiVectorEmbedder>(module, "MultiVectorEncoder",
                                  "Computes a vector for each token of a text (ColBERT).")
      .def("__init__", opener<MultiVectorEmbedder>(), nb::arg("path"),
           nb::arg("precision") = "stored", nb::arg("adapters") = Adapters())
      .def(
          "encode",
          [](const MultiVectorEmbedder& e, const std::vector<std::string>& texts,
             const std::string& role, const nb::kwargs& given) {
            const MultiVectors made =
                call([e, texts, as = role_of(role), options = options_from<EmbedOptions>(given)] {
                  return e.embed(texts, as, options);
                });
            nb::list rows;
            for (int64_t i = 0; i < made.count; ++i) {
              const ArrayView row = made.rows(i);
              const auto values = row.elements<float>();
              rows.append(array_of(std::vector<float>(values.begin(), values.end()),
                                   shape_of(row.shape[0], row.shape[1])));
            }
            return rows;
          },
          nb::arg("texts"), nb::arg("role") = "document", nb::arg("options"),
          "Returns the vectors of each text, float32 [tokens, width].")
      .def(
          "score",
          [](const MultiVectorEmbedder& e, const std::string& query,
             const std::vector<std::string>& texts, const nb::kwargs& given) {
            return array_of(call([e, query, texts, options = options_from<EmbedOptions>(given)] {
              return e.score(query, texts, options);
            }));
          },
          nb::arg("query"), nb::arg("texts"), nb::arg("options"),
          "Returns the similarity of each text to the query, float32 [texts].")
      .def(
          "encode_tokens",
          [](const MultiVectorEmbedder& e, const std::string& text, const std::string& role) {
            return tokens_of(
                call([e, text, as = role_of(role)] { return e.embed_tokens(text, as); }));
          },
          nb::arg("text"), nb::arg("role") = "document")
      .def_prop_ro("width", &MultiVectorEmbedder::width)
      .def(
          "max_tokens",
          [](const MultiVectorEmbedder& e, const std::string& role) {
            return e.max_tokens(role_of(role));
          },
          nb::arg("role") = "document")
      .def_prop_ro("averages", &MultiVectorEmbedder::averages)
      .def_prop_ro("prompts", [](const MultiVectorEmbedder& e) { return e.prompts(); })
      .def_prop_ro("fingerprint", &MultiVectorEmbedder::fingerprint)
      .def_prop_ro("warnings", [](const MultiVectorEmbedder& e) { return e.warnings(); })
      .def_prop_ro("tokenizer", [](const MultiVectorEmbedder& e) { return e.tokenizer(); })
      .def_prop_ro("spec", [](const MultiVectorEmbedder& e) { return e.spec(); });
}

}  // namespace

void add_encoders(nb::module_& module) {
  add_embedder(module);
  add_reranker(module);
  add_sparse(module);
  add_multi_vector(module);
}

}  // namespace fovea::python

// Texts to token ids and back.

#include "fovea/text/tokenizer.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <filesystem>

#include "arrays.h"
#include "bindings.h"
#include "call.h"
#include "fovea/train/train_tokenizer.h"
#include "keywords.h"

namespace nb = nanobind;

namespace fovea::python {
namespace {

using text::Encoding;
using text::SpecialTokens;
using text::Tokenizer;

std::vector<std::pair<uint32_t, uint32_t>> pairs_of(const std::vector<text::Offsets>& offsets) {
  std::vector<std::pair<uint32_t, uint32_t>> pairs;
  for (const text::Offsets& each : offsets) pairs.emplace_back(each.begin, each.end);
  return pairs;
}

void add_encoding(nb::module_& module) {
  nb::class_<Encoding>(module, "Encoding",
                       "The encoding of a text, as in the library tokenizers: each list has one "
                       "entry per token.")
      .def_ro("ids", &Encoding::ids)
      .def_ro("type_ids", &Encoding::type_ids)
      .def_prop_ro("tokens", [](const Encoding& e) { return e.tokens.list(); })
      .def_prop_ro(
          "offsets", [](const Encoding& e) { return pairs_of(e.offsets); },
          "The beginning and the end of each token in the text, in characters.")
      .def_prop_ro(
          "byte_offsets", [](const Encoding& e) { return pairs_of(e.byte_offsets); },
          "The beginning and the end of each token in the text, in bytes of UTF-8.")
      .def_ro("special_tokens_mask", &Encoding::special_mask)
      .def_ro("attention_mask", &Encoding::attention_mask)
      .def_ro("overflowing", &Encoding::overflowing)
      .def("__len__", [](const Encoding& e) { return e.ids.size(); })
      .def("__repr__", [](const Encoding& e) {
        return "Encoding(" + std::to_string(e.ids.size()) + " tokens)";
      });
}

text::EncodingOptions encoding_options(bool add_special_tokens, bool parse_special, bool truncate) {
  return {add_special_tokens, parse_special ? SpecialTokens::parsed : SpecialTokens::as_text,
          truncate};
}

Tokenizer opened_tokenizer(const std::string& path) {
  return call([path] { return Tokenizer::open(path); });
}

// Returns a tokenizer that is trained on files.
Tokenizer trained_tokenizer(const std::vector<std::string>& files, const std::string& out,
                            const nb::kwargs& given) {
  const auto training = options_from<text::TokenizerTraining>(given);
  const auto stopped = std::make_shared<std::atomic<bool>>(false);
  const auto made = call(
      [files, training, stopped] {
        return train::train_tokenizer({files.begin(), files.end()}, training,
                                      [stopped](const auto&) { return !*stopped; });
      },
      {.interrupt = [stopped] { *stopped = true; }});
  if (!made) throw nb::python_error();
  if (!out.empty()) {
    std::filesystem::create_directories(out);
    made->tokenizer.save(out);
  }
  return made->tokenizer;
}

void add_encode(nb::class_<Tokenizer>& c) {
  c.def(
       "__init__",
       [](Tokenizer* self, const std::string& path) {
         new (self) Tokenizer(opened_tokenizer(path));
       },
       nb::arg("path"))
      .def(
          "encode",
          [](const Tokenizer& t, const std::string& text, bool add_special_tokens,
             bool parse_special) {
            const nb::gil_scoped_release unlocked;
            return t.encoding(text, encoding_options(add_special_tokens, parse_special, false)).ids;
          },
          nb::arg("text"), nb::kw_only(), nb::arg("add_special_tokens") = false,
          nb::arg("parse_special") = false,
          "Returns the ids of a text. parse_special: names of special tokens in the text are read "
          "as such; not for texts of users.")
      .def(
          "encoding",
          [](const Tokenizer& t, const std::string& text, const std::optional<std::string>& pair,
             bool add_special_tokens, bool parse_special, bool truncate_and_pad) {
            const nb::gil_scoped_release unlocked;
            const auto how = encoding_options(add_special_tokens, parse_special, truncate_and_pad);
            return pair ? t.encoding(text, *pair, how) : t.encoding(text, how);
          },
          nb::arg("text"), nb::arg("pair") = nb::none(), nb::kw_only(),
          nb::arg("add_special_tokens") = true, nb::arg("parse_special") = false,
          nb::arg("truncate_and_pad") = true,
          "Returns the complete encoding of a text or a pair of texts, with offsets.")
      .def(
          "encode_batch",
          [](const Tokenizer& t, const std::vector<std::string>& texts, bool add_special_tokens,
             bool parse_special, bool truncate_and_pad) {
            return call(
                [t, texts,
                 how = encoding_options(add_special_tokens, parse_special, truncate_and_pad)] {
                  return t.encodings(texts, how);
                });
          },
          nb::arg("texts"), nb::kw_only(), nb::arg("add_special_tokens") = true,
          nb::arg("parse_special") = false, nb::arg("truncate_and_pad") = true,
          "Returns the encodings of several texts, on all threads.");
}

void add_decode(nb::class_<Tokenizer>& c) {
  c.def(
       "decode",
       [](const Tokenizer& t, const std::vector<int32_t>& ids, bool skip_special) {
         const nb::gil_scoped_release unlocked;
         return t.decode(ids, skip_special);
       },
       nb::arg("ids"), nb::arg("skip_special") = false,
       "Returns the text of ids; special tokens are written by name, or skipped.")
      .def(
          "decode_batch",
          [](const Tokenizer& t, const std::vector<std::vector<int32_t>>& rows, bool skip_special) {
            const nb::gil_scoped_release unlocked;
            std::vector<std::string> texts;
            for (const std::vector<int32_t>& ids : rows)
              texts.push_back(t.decode(ids, skip_special));
            return texts;
          },
          nb::arg("rows"), nb::arg("skip_special") = false, "Returns the texts of lists of ids.");
}

void add_vocabulary(nb::class_<Tokenizer>& c) {
  c.def(
       "text_of", [](const Tokenizer& t, int32_t id) { return std::string(t.text_of(id)); },
       nb::arg("id"), "Returns a token as written in the vocabulary.")
      .def(
          "bytes_of",
          [](const Tokenizer& t, int32_t id) {
            const std::string bytes = t.bytes_of(id);
            return nb::bytes(bytes.data(), bytes.size());
          },
          nb::arg("id"), "Returns the bytes that a token represents within a text.")
      .def(
          "id_of", [](const Tokenizer& t, const std::string& text) { return t.id_of(text); },
          nb::arg("token"), "Returns the id of a token, or None.")
      .def("is_special", &Tokenizer::is_special, nb::arg("id"))
      .def(
          "unknown",
          [](const Tokenizer& t, const std::string& text) {
            const nb::gil_scoped_release unlocked;
            return t.unknown(text);
          },
          nb::arg("text"), "Returns the distinct parts of a text that the vocabulary lacks.")
      .def(
          "save", [](const Tokenizer& t, const std::string& folder) { t.save(folder); },
          nb::arg("folder"), "Writes tokenizer.json and tokenizer_config.json.")
      .def_prop_ro("bos_id", &Tokenizer::bos_id)
      .def_prop_ro("eos_id", &Tokenizer::eos_id)
      .def_prop_ro("unknown_id", &Tokenizer::unknown_id)
      .def_prop_ro("hash", &Tokenizer::hash, "A hash of everything that determines the ids.")
      .def("__len__", &Tokenizer::size)
      .def("__repr__",
           [](const Tokenizer& t) { return "Tokenizer(" + std::to_string(t.size()) + " tokens)"; });
}

}  // namespace

void add_tokenizer(nb::module_& module) {
  add_encoding(module);
  nb::class_<Tokenizer> c(module, "Tokenizer",
                          "Converts texts to token ids and back, as a tokenizer.json specifies.");
  add_encode(c);
  add_decode(c);
  add_vocabulary(c);
  module.def("train_tokenizer", &trained_tokenizer, nb::arg("files"), nb::arg("out"),
             nb::arg("options"));
}

}  // namespace fovea::python

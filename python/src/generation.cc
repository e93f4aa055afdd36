// Text from language models.

#include "generation.h"

#include <fmt/format.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <map>
#include <random>

#include "arrays.h"
#include "bindings.h"
#include "call.h"
#include "fovea/core/error.h"
#include "fovea/infer/translate.h"
#include "fovea/text/chat.h"
#include "fovea/text/grammar.h"
#include "images.h"
#include "keywords.h"

namespace nb = nanobind;

namespace fovea::python {
namespace {

using infer::GenerateOptions;
using infer::Generation;
using infer::TokenLogprob;
using model::Model;

// Takes an argument that is no field.
nb::object take(nb::dict& given, const char* name) {
  if (!given.contains(name)) return nb::none();
  const nb::object value = given[name];
  nb::del(given[name]);
  return value;
}

// Returns a function that lets Python change the logits of the next token, in place.
text::Constraint constraint_of(const nb::object& function,
                               const std::shared_ptr<std::exception_ptr>& thrown) {
  const Shared kept = shared(function);
  return [kept, thrown](std::span<const int32_t> ids, std::span<float> logits) {
    const nb::gil_scoped_acquire locked;
    const Array<float> array = array_of(std::vector<float>(logits.begin(), logits.end()));
    try {
      (*kept)(std::vector<int32_t>(ids.begin(), ids.end()), array);
    } catch (...) {
      *thrown = std::current_exception();
      throw;
    }
    std::copy_n(array.data(), logits.size(), logits.data());
  };
}

}  // namespace

GenerationRequest generation_request(const Model& model, const nb::kwargs& arguments) {
  GenerationRequest request;
  GenerateOptions& options = request.options;
  options = infer::generation_defaults(model);
  nb::dict given;
  given.update(arguments);
  options.sampling.seed = std::random_device{}();
  const nb::object draft = take(given, "draft"), logits = take(given, "logits"),
                   bias = take(given, "logit_bias"), stopping = take(given, "keep_special");
  for (const char* kind : {"schema", "gbnf", "regex"})
    if (const nb::object text = take(given, kind); !text.is_none())
      request.grammar = {kind, nb::cast<std::string>(text)};
  const nb::object choices = take(given, "choices");
  if (!choices.is_none()) request.choices = nb::cast<std::vector<std::string>>(choices);
  Keywords keywords(given);
  keywords.into(options);
  keywords.refuse_others();
  if (!draft.is_none()) request.draft = nb::cast<Model>(draft);
  if (!logits.is_none()) options.constrain = constraint_of(logits, request.thrown);
  if (!stopping.is_none()) options.keep_special = nb::cast<bool>(stopping);
  if (!bias.is_none())
    for (const auto& [id, value] : nb::cast<std::map<int32_t, float>>(bias))
      options.sampling.logit_bias.emplace_back(id, value);
  return request;
}

GenerateOptions GenerationRequest::options_for(const Model& model) const {
  GenerateOptions own = options;
  if (!grammar && choices.empty()) return own;
  const auto vocabulary =
      std::make_shared<text::JsonVocabulary>(model.tokenizer(), infer::end_ids(model));
  if (!choices.empty()) {
    own.constrain = text::choice_constraint(vocabulary, choices, own.max_tokens);
    return own;
  }
  const auto& [kind, text] = *grammar;
  own.constrain = kind == "schema" ? text::json_constraint(vocabulary, text, own.max_tokens)
                  : kind == "gbnf" ? text::gbnf_constraint(vocabulary, text, own.max_tokens)
                                   : text::regex_constraint(vocabulary, text, own.max_tokens);
  return own;
}

infer::ImagePrompt prompt_of(const Model& model, const PromptText& prompt,
                             const std::vector<media::Image>& images, bool parse_special) {
  const auto special = parse_special ? text::SpecialTokens::parsed : text::SpecialTokens::as_text;
  if (const auto* const ids = std::get_if<std::vector<int32_t>>(&prompt)) return {*ids};
  const std::string& text = std::get<std::string>(prompt);
  if (images.empty()) return {infer::prompt_ids(model, text, special)};
  std::string marked = text;
  if (infer::image_marks(model, text) == 0)
    for (size_t i = 0; i < images.size(); ++i) marked = infer::image_mark(model) + "\n" + marked;
  return infer::image_prompt(
      model, marked, images.size(), [&](size_t i) { return images[i]; },
      text::SpecialTokens::parsed);
}

namespace {

std::vector<Generation> generated_texts(const Model& model, const PromptText& prompt,
                                        const nb::list& images, const nb::object& on_text,
                                        bool parse_special, const nb::kwargs& given) {
  const GenerationRequest request = generation_request(model, given);
  const Shared receiver = on_text.is_none() ? nullptr : shared(on_text);
  return call([=, given_images = images_of(images)] {
    infer::TextSink sink;
    if (receiver)
      sink = [&](std::string_view piece) {
        const nb::gil_scoped_acquire locked;
        const nb::object answer = (*receiver)(nb::str(piece.data(), piece.size()));
        return answer.is_none() || nb::cast<bool>(answer);
      };
    return request.rethrowing([&] {
      return infer::generate(model, prompt_of(model, prompt, given_images, parse_special),
                             request.options_for(model), sink,
                             request.draft ? &*request.draft : nullptr);
    });
  });
}

nb::list tops_of(const std::vector<TokenLogprob>& logprobs) {
  nb::list all;
  for (const TokenLogprob& each : logprobs) all.append(nb::cast(each.top));
  return all;
}

Array<float> values_of(const std::vector<TokenLogprob>& logprobs) {
  std::vector<float> values;
  for (const TokenLogprob& each : logprobs) values.push_back(each.logprob);
  return array_of(std::move(values));
}

void add_generation_class(nb::module_& module) {
  nb::class_<Generation>(module, "Generation", "A generated text; str(generation) is its text.")
      .def_ro("text", &Generation::text, "The text, without a stop string.")
      .def_ro("ids", &Generation::ids, "The generated tokens, without an end token.")
      .def_prop_ro(
          "finish", [](const Generation& g) { return std::string(name_of(g.finish)); },
          "Why it ended: length, end, stop or cancelled.")
      .def_prop_ro(
          "logprobs", [](const Generation& g) { return values_of(g.logprobs); },
          nb::rv_policy::automatic,
          "The log-probabilities of `ids`, float32; empty unless `logprobs` was given.")
      .def_prop_ro(
          "top_logprobs", [](const Generation& g) { return tops_of(g.logprobs); },
          "For each of `ids` the most likely tokens, as pairs (id, log-probability).")
      .def_ro("score", &Generation::score, "Of a beam search.")
      .def_ro("prompt_tokens", &Generation::prompt_tokens)
      .def_ro("dropped_tokens", &Generation::dropped_tokens)
      .def_ro("cached_tokens", &Generation::cached_tokens)
      .def_ro("speculative_tokens", &Generation::speculative_tokens)
      .def_ro("accepted_tokens", &Generation::accepted_tokens)
      .def_ro("prompt_seconds", &Generation::prompt_seconds)
      .def_ro("generation_seconds", &Generation::generation_seconds)
      .def("__str__", [](const Generation& g) { return g.text; })
      .def("__repr__", [](const Generation& g) {
        return fmt::format("Generation({}, {} tokens, finish={})",
                           nb::cast<std::string>(nb::repr(nb::cast(g.text))), g.ids.size(),
                           name_of(g.finish));
      });
}

// Returns the log-probabilities of a text or of ids, and the most likely tokens at each position.
nb::tuple scored(const Model& model, const PromptText& text, int64_t alternatives) {
  const auto scores = call(
      [=] { return infer::score(model, prompt_of(model, text, {}, false).ids, alternatives); });
  return nb::make_tuple(values_of(scores), tops_of(scores));
}

std::vector<infer::Translation> translated(const Model& model,
                                           const std::vector<std::string>& lines,
                                           const nb::kwargs& given) {
  const auto options = options_from<infer::TranslateOptions>(given);
  return call([=] {
    std::vector<infer::Translation> found;
    size_t next = 0;
    infer::translate(
        model, options,
        [&]() -> std::optional<std::string> {
          if (next == lines.size()) return {};
          return lines[next++];
        },
        [&](const infer::Translation& translation) {
          found.push_back(translation);
          return true;
        });
    return found;
  });
}

void add_translation(nb::module_& module) {
  using infer::Translation;
  nb::class_<Translation>(module, "Translation", "A translated line; str() is the best text.")
      .def_prop_ro("text",
                   [](const Translation& t) { return t.best.empty() ? "" : t.best[0].text; })
      .def_ro("best", &Translation::best, "The best hypotheses, best first.")
      .def_ro("cut", &Translation::cut, "Whether the source was truncated.")
      .def_ro("alignment", &Translation::alignment,
              "Pairs (source word, target word), if `alignment` was given.")
      .def("__str__", [](const Translation& t) { return t.best.empty() ? "" : t.best[0].text; })
      .def("__repr__", [](const Translation& t) {
        return "Translation(" +
               nb::cast<std::string>(nb::repr(nb::cast(t.best.empty() ? "" : t.best[0].text))) +
               ")";
      });
  module.def("translate", &translated, nb::arg("model"), nb::arg("lines"), nb::arg("options"));
  module.def(
      "translation_directions",
      [](const Model& model) {
        std::vector<std::pair<std::string, std::string>> pairs;
        const std::vector<std::string> codes = infer::translation_languages(model);
        for (const std::string& source : codes)
          for (const std::string& target : codes)
            if (source != target) pairs.emplace_back(source, target);
        for (const auto& each : infer::translation_directions(model))
          pairs.emplace_back(each.source, each.target);
        return pairs;
      },
      nb::arg("model"), "Returns the pairs of languages of a translation model.");
}

}  // namespace

void add_generation(nb::module_& module) {
  add_generation_class(module);
  module.def("generate", &generated_texts, nb::arg("model"), nb::arg("prompt"), nb::arg("images"),
             nb::arg("on_text").none(), nb::arg("parse_special"), nb::arg("options"));
  module.def("score", &scored, nb::arg("model"), nb::arg("text"), nb::arg("alternatives") = 0);
  module.def(
      "prompt_ids",
      [](const Model& model, const std::string& prompt) {
        return infer::prompt_ids(model, prompt);
      },
      nb::arg("model"), nb::arg("prompt"));
  module.def("end_ids", [](const Model& model) { return infer::end_ids(model); }, nb::arg("model"));
  module.def("perplexity", &infer::perplexity, nb::arg("logprob"), nb::arg("tokens"),
             "Returns exp(-logprob / tokens).");
  module.def("probabilities", &infer::probabilities, nb::arg("logprobs"),
             "Returns the softmax of the log-probabilities of texts.");
  module.def(
      "render_chat",
      [](const Model& model, const std::string& folder, const std::string& chat_template,
         const std::string& messages, const std::string& tools, const std::string& variables) {
        const auto format = text::chat_format(folder, chat_template, model.tokenizer());
        if (!format)
          throw Error(ErrorKind::Unsupported,
                      folder + ": has no chat template; expected `chat_template`");
        text::ChatRequest request;
        request.messages = text::ChatValue::parse(messages, "messages");
        request.tools = text::ChatValue::parse(tools, "tools");
        request.variables = text::ChatValue::parse(variables, "variables");
        return format->render(request);
      },
      nb::arg("model"), nb::arg("folder"), nb::arg("chat_template"), nb::arg("messages"),
      nb::arg("tools"), nb::arg("variables"));
  add_translation(module);
}

}  // namespace fovea::python

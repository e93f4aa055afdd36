// The fields of requests in the format of llama.cpp's server, and of /decode.

#include <fmt/format.h>

#include <algorithm>

#include "serve/request/api_error.h"
#include "serve/request/described_field.h"
#include "serve/request/field_values.h"
#include "serve/request/foreign_fields.h"

namespace fovea::serve {
namespace {

using Llama = LlamaCompletionRequest;

// Does not change the text, which is the same for the same request.
Field<Llama> harmless_field(const std::string& name, const std::string& help) {
  return {{name, FieldType::any, 0, 0, "none", help + "; has no effect"},
          [](const Json&, Llama&) {}};
}

Field<Llama> warned_field(const std::string& name, const std::string& help) {
  return {{name, FieldType::any, 0, 0, "none", help + "; ignored"},
          [name](const Json& value, Llama& request) {
            if (!is_neutral(value) && value != 0) request.warnings.push_back(name + " is ignored");
          }};
}

Field<Llama> unsupported_field(const std::string& name, const std::string& help,
                               const std::string& expected) {
  return {{name, FieldType::any, 0, 0, "none", help + "; refused"},
          [name, expected](const Json& value, Llama&) {
            if (!is_neutral(value) && value != 0) refuse_value(name, expected);
          }};
}

// A list of names, or a text with ";" between them. llama.cpp has a shorter name of one filter.
void put_llama_samplers(const Json& value, Llama& request) {
  const std::string field = "samplers";
  constexpr size_t kMost = 32;
  if (value.is_string()) {
    request.options.sampling.samplers = value;
    return;
  }
  if (!value.is_array() || value.size() > kMost) refuse_value(field, "an array of names");
  std::string names;
  for (const Json& name : value) {
    if (!name.is_string()) refuse_value(field, "an array of names");
    names += (names.empty() ? "" : ";") + (name == "typ_p" ? "typical_p" : name.get<std::string>());
  }
  request.options.sampling.samplers = names;
}

template <class Request>
void replace_field(Fields<Request>& fields, Field<Request> by) {
  const auto same = [&](const Field<Request>& field) { return field.info.name == by.info.name; };
  *std::find_if(fields.begin(), fields.end(), same) = std::move(by);
}

Fields<Llama> llama_fields() {
  constexpr double kMostProbs = 20, kMostCompletions = 16;
  Fields<Llama> all = joined<Llama>(
      {}, fields_of<CompletionRequest>(),
      {
          {{"n_probs", FieldType::integer, 0, kMostProbs, "0",
            "return the log-probabilities of this many tokens at each position; 0 = none"},
           [](const Json& v, Llama& r) {
             r.options.logprobs = v == 0 ? int64_t{-1} : v.get<int64_t>();
           }},
          {{"return_tokens", FieldType::boolean, 0, 0, "false", "return the generated token ids"},
           [](const Json& v, Llama& r) { r.return_ids = v; }},
          {{"n_cmpl", FieldType::integer, 1, kMostCompletions, "1",
            "number of independent choices"},
           [](const Json& v, Llama& r) { r.options.generations = v; }},
          penalty_window_field("repeat_last_n"),
          harmless_field("cache_prompt", "common prefixes of prompts are always kept"),
          harmless_field("id_slot", "requests have no slots"),
          warned_field("n_keep", "tokens kept when the context is full"),
          warned_field("n_discard", "tokens dropped when the context is full"),
          warned_field("n_cache_reuse", "parts of the cache that are moved"),
          warned_field("timings_per_token", "times in each piece of a stream"),
          warned_field("return_progress", "the progress of a prompt in a stream"),
          warned_field("sse_ping_interval", "seconds between comments in a stream"),
          warned_field("response_fields", "the members of the response"),
          warned_field("dynatemp_exponent", "of dynatemp_range"),
          unsupported_field("dynatemp_range", "a range of temperatures", "0"),
          unsupported_field("min_keep", "the least number of tokens that filters keep", "0"),
          unsupported_field("post_sampling_probs", "probabilities after the filters", "false"),
          unsupported_field("lora", "weights of adapters",
                            "none; an adapter is a model, which the field model names"),
      });
  replace_field<Llama>(all, {{"samplers", FieldType::any, 0, 0, "model",
                              "the filters in their order, as an array of names"},
                             put_llama_samplers});
  const FieldInfo& seed = std::find_if(all.begin(), all.end(), [](const auto& f) {
                            return f.info.name == "seed";
                          })->info;
  replace_field<Llama>(all, {seed, put_seed_or_random});
  return all;
}

void put_files(const Json& value, InfillRequest& request) {
  for (const Json& file : value) {
    const bool good = file.is_object() && file.value("text", Json()).is_string() &&
                      file.value("filename", Json("")).is_string();
    if (!good) refuse_value("input_extra", "objects with filename and text");
  }
  request.files = value;
}

void put_norm(const Json& value, LlamaEmbedRequest& request) {
  constexpr int64_t kNone = -1, kEuclidean = 2;
  if (value != kNone && value != kEuclidean) refuse_value("embd_normalize", "2, or -1 = none");
  request.options.normalise = true;
  if (value == kNone) request.options.normalise.reset();
}

Field<LlamaEmbedRequest> texts_field(const char* name, const char* help) {
  return {{name, FieldType::prompts, 1, kMostInputs, "", help},
          [name](const Json& v, LlamaEmbedRequest& r) {
            r.inputs = prompts_of(v);
            r.field = name;
          }};
}

}  // namespace

template <>
const Fields<LlamaCompletionRequest>& fields_of() {
  static const Fields<LlamaCompletionRequest> all = llama_fields();
  return all;
}

template <>
const Fields<InfillRequest>& fields_of() {
  const auto make = [] {
    Fields<InfillRequest> all =
        joined<InfillRequest>({}, llama_fields(),
                              {{{"input_prefix", FieldType::text, 0, kMostText, "none",
                                 "the text before the generated one"},
                                [](const Json& v, InfillRequest& r) { r.before = v; }},
                               {{"input_suffix", FieldType::text, 0, kMostText, "none",
                                 "the text after the generated one"},
                                [](const Json& v, InfillRequest& r) { r.after = v; }},
                               {{"input_extra", FieldType::array, 0, 256, "none",
                                 "other files, which precede: objects with filename and text"},
                                put_files}});
    replace_field<InfillRequest>(all, {{"prompt", FieldType::text, 0, kMostText, "none",
                                        "the beginning of the generated text"},
                                       [](const Json& v, InfillRequest& r) { r.beginning = v; }});
    std::erase_if(all, [](const auto& field) {
      return field.info.name == "suffix" || field.info.name == "echo";
    });
    return all;
  };
  static const Fields<InfillRequest> all = make();
  return all;
}

template <>
const Fields<ApplyTemplateRequest>& fields_of() {
  static const Fields<ApplyTemplateRequest> all =
      joined<ApplyTemplateRequest>({}, fields_of<ChatRequest>(), {});
  return all;
}

template <>
const Fields<LlamaEmbedRequest>& fields_of() {
  static const Fields<LlamaEmbedRequest> all = {
      model_field(),
      texts_field("content", "a text or token ids, or an array of them"),
      texts_field("input", "alias of content"),
      {{"embd_normalize", FieldType::integer, -1, 2147483647, "2",
        "2 = the length of a vector is 1; -1 = as the model computes it"},
       put_norm}};
  return all;
}

template <>
const Fields<DecodeRequest>& fields_of() {
  static const Fields<DecodeRequest> all = {
      model_field(),
      {{"ids", FieldType::prompts, 1, kMostInputs, "", "token ids, or an array of lists of them",
        true},
       [](const Json& v, DecodeRequest& r) {
         r.ids = prompts_of(v);
         for (const Prompt& prompt : r.ids)
           if (std::holds_alternative<std::string>(prompt)) refuse_value("ids", "token ids");
       }},
      {{"skip_special_tokens", FieldType::boolean, 0, 0, "true", "skip special tokens"},
       [](const Json& v, DecodeRequest& r) { r.skip_special = v; }}};
  return all;
}

}  // namespace fovea::serve

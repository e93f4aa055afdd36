#include "serve/info.h"

#include <fmt/format.h>

#include "fovea/core/machine.h"
#include "serve/answer_limits.h"

namespace fovea::serve {
namespace {

Json label_maps(const std::vector<std::string>& labels) {
  Json names = Json::object(), numbers = Json::object();
  for (size_t i = 0; i < labels.size(); ++i) {
    names[std::to_string(i)] = labels[i];
    numbers[labels[i]] = i;
  }
  return {{"id2label", names}, {"label2id", numbers}};
}

Json kind_of(const ServedModel& model) {
  if (model.classifier)
    return {
        {model.rerank_queue ? "reranker" : "classifier", label_maps(model.classifier->labels())}};
  if (model.embedder) return {{"embedding", {{"width", model.facts.width}}}};
  if (model.sparse_embedder) return {{"embedding", {{"pooling", "splade"}}}};
  if (model.multi_vector_embedder)
    return {{"embedding", {{"width", model.facts.width}, {"pooling", "none"}}}};
  return {{"generation", {{"chat", model.chat.has_value()}}}};
}

}  // namespace

Json info_json(const ServedModel& model) {
  constexpr int64_t kMostTexts = 2048;  // of one request
  return {{"model_id", model.facts.name},
          {"served_model_name", model.facts.name},
          {"model_type", kind_of(model)},
          {"max_input_length", model.facts.context},
          {"max_client_batch_size", kMostTexts},
          {"auto_truncate", true},
          {"version", version()}};
}

std::string token_lists(const ApiRequest& request, const text::Tokenizer& tokenizer) {
  text::EncodingOptions options;
  options.add_special_tokens = request.with_special;
  options.truncate_and_pad = false;
  options.special = request.special(true);
  std::string body = "[";
  for (const std::string& text : request.text_list) {
    const text::Encoding found = tokenizer.encoding(text, options);
    body += body.size() > 1 ? ",[" : "[";
    for (size_t i = 0; i < found.ids.size(); ++i) {
      const bool added = found.special_mask[i] != 0;
      const auto place = [&](uint32_t at) { return added ? "null" : std::to_string(at); };
      body += fmt::format("{}{{\"id\":{},\"text\":{},\"special\":{},\"start\":{},\"stop\":{}}}",
                          i > 0 ? "," : "", found.ids[i], json_line(std::string(found.tokens[i])),
                          added, place(found.offsets[i].begin), place(found.offsets[i].end));
      check_answer_bytes(std::ssize(body), "inputs", "with shorter texts");
    }
    body += ']';
  }
  return body + "]\n";
}

}  // namespace fovea::serve

#include "serve/protocols/info.h"

#include <fmt/format.h>

#include "fovea/core/machine.h"
#include "serve/routes/response_limits.h"

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

const char* name_of(infer::ClassifierTask task) {
  switch (task) {
    case infer::ClassifierTask::texts: return "text-classification";
    case infer::ClassifierTask::words: return "token-classification";
    case infer::ClassifierTask::answers: return "question-answering";
    case infer::ClassifierTask::masks: return "fill-mask";
  }
  return "";
}

Json kind_of(const ServedModel& model) {
  if (const auto* tagger = model.find<ServedTagger>()) {
    const bool labelled = tagger->model.task() == infer::ClassifierTask::words;
    return {{name_of(tagger->model.task()),
             labelled ? label_maps(tagger->model.labels()) : Json::object()}};
  }
  if (const auto* labels = model.find<ServedClassifier>())
    return {{model.find<ServedReranker>() ? "reranker" : "classifier",
             label_maps(labels->model.labels())}};
  if (model.find<ServedEmbedder>()) return {{"embedding", {{"width", model.facts.width}}}};
  if (model.find<ServedSparseEmbedder>()) return {{"embedding", {{"pooling", "splade"}}}};
  if (model.find<ServedMultiVectorEmbedder>())
    return {{"embedding", {{"width", model.facts.width}, {"pooling", "none"}}}};
  const auto* const generator = model.find<TextGenerator>();
  return {{"generation", {{"chat", generator != nullptr && generator->chat.has_value()}}}};
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

Json tokenizer_info_json(const ServedModel& model) {
  const text::Tokenizer& tokenizer = model.needs_tokenizer();
  Json json = {{"tokenizer_class", "fovea"},
               {"vocab_size", tokenizer.size()},
               {"model_max_length", model.facts.context}};
  const auto add = [&](const char* key, std::optional<int32_t> id) {
    json[key] = id ? Json(std::string(tokenizer.text_of(*id))) : Json();
  };
  add("bos_token", tokenizer.bos_id());
  add("eos_token", tokenizer.eos_id());
  add("unk_token", tokenizer.unknown_id());
  json["pad_token"] = nullptr;
  for (const char* key : {"tokenizer_class", "pad_token", "sep_token", "cls_token", "mask_token"}) {
    Json value = model.tokenizer_config.value(key, Json());
    if (value.is_object()) value = value.value("content", Json());
    if (value.is_string()) json[key] = value;
  }
  const auto* const generator = model.find<TextGenerator>();
  const bool chat = generator != nullptr && generator->chat;
  json["chat_template"] = chat ? Json(generator->chat->source) : Json();
  return json;
}

Json decoded_texts(const DecodeRequest& request, const text::Tokenizer& tokenizer) {
  Json texts = Json::array();
  int64_t bytes = 0;
  for (const Prompt& prompt : request.ids) {
    const auto& ids = std::get<std::vector<int32_t>>(prompt);
    for (const int32_t id : ids) bytes += std::ssize(tokenizer.text_of(id));
    check_response_bytes(bytes, "ids", "with fewer tokens");
    texts.push_back(tokenizer.decode(ids, request.skip_special));
  }
  return texts;
}

std::string token_lists(const TokenizeRequest& request, const text::Tokenizer& tokenizer) {
  text::EncodingOptions options;
  options.add_special_tokens = request.special_of_inputs;
  options.truncate_and_pad = false;
  options.special = request.special;
  std::string body = "[";
  for (const std::string& text : request.inputs) {
    const text::Encoding found = tokenizer.encoding(text, options);
    body += body.size() > 1 ? ",[" : "[";
    for (size_t i = 0; i < found.ids.size(); ++i) {
      const bool added = found.special_mask[i] != 0;
      const auto offset_text = [&](uint32_t at) { return added ? "null" : std::to_string(at); };
      body += fmt::format("{}{{\"id\":{},\"text\":{},\"special\":{},\"start\":{},\"stop\":{}}}",
                          i > 0 ? "," : "", found.ids[i], json_line(std::string(found.tokens[i])),
                          added, offset_text(found.offsets[i].begin),
                          offset_text(found.offsets[i].end));
      check_response_bytes(std::ssize(body), "inputs", "with shorter texts");
    }
    body += ']';
  }
  return body + "]\n";
}

}  // namespace fovea::serve

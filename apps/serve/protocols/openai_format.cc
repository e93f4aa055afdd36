#include "serve/protocols/openai_format.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <utility>

#include "fovea/core/machine.h"
#include "serve/generation/custom_tools.h"
#include "serve/generation/tool_calls.h"
#include "serve/routes/response_ids.h"

namespace fovea::serve {
namespace {

std::string new_id(const char* prefix, ResponseIds ids) {
  const uint64_t first = ids.next();
  return fmt::format("{}-{:016x}{:08x}", prefix, first, static_cast<uint32_t>(ids.next()));
}

const char* finish_reason(infer::FinishReason finish) {
  return finish == infer::FinishReason::length ? "length" : "stop";
}

// What chats and completions share: the objects around the choices.
class OpenAIFormat : public GenerationFormat {
 public:
  OpenAIFormat(LogprobStyle style, const GenerationRequest& request, std::string model,
               const char* id, const char* kind, const char* chunk)
      : GenerationFormat(style, ErrorShape::openai, "text/event-stream; charset=utf-8"),
        id_(new_id(id, ResponseIds(request.identity))),
        model_(std::move(model)),
        kind_(kind),
        chunk_(chunk),
        created_(ResponseIds(request.identity).now()),
        include_usage_(request.include_usage) {}

  std::string end_stream(const GenerationTotals& totals) override {
    std::string events;
    if (include_usage_) {
      Json object = head(chunk_);
      object["choices"] = Json::array();
      object["usage"] = totals.counts.json();
      if (!totals.timings.is_null()) object["timings"] = totals.timings;
      events = sse_event(json_line(object));
    }
    return events + sse_event("[DONE]");
  }

  std::string stream_error(const ApiError& error) override {
    return sse_event(openai_error(error));
  }

  std::string whole(std::vector<std::string> choices, const GenerationTotals& totals) override {
    Json object = head(kind_);
    object["usage"] = totals.counts.json();
    if (!totals.timings.is_null()) object["timings"] = totals.timings;
    size_t bytes = 2;
    for (const std::string& choice : choices) bytes += choice.size() + 1;
    Members members;
    std::string& list = members.emplace_back("choices", "[").second;
    list.reserve(bytes);
    for (std::string& choice : choices) {
      if (list.size() > 1) list += ',';
      list += std::exchange(choice, {});
    }
    list += ']';
    return json_object(object, members);
  }

 protected:
  // An event of a stream with one choice, given as JSON.
  std::string chunk(const std::string& choice) const {
    Json object = head(chunk_);
    if (include_usage_) object["usage"] = nullptr;
    return sse_event(json_object(object, {{"choices", "[" + choice + "]"}}));
  }

 private:
  Json head(const char* kind) const {
    return {{"id", id_},
            {"object", kind},
            {"created", created_},
            {"model", model_},
            {"system_fingerprint", "fovea-" + version()}};
  }

  const std::string id_, model_;
  const char *const kind_, *const chunk_;  // of the objects
  const int64_t created_;
  const bool include_usage_;
};

class OpenAIChat : public OpenAIFormat {
 public:
  OpenAIChat(const ChatRequest& request, const std::string& model)
      : OpenAIFormat(LogprobStyle::chat, request, model, "chatcmpl", "chat.completion",
                     "chat.completion.chunk"),
        functions_(request.functions),
        custom_tools_(request.custom_tools) {}

  std::string begin_choice(size_t choice, LogprobList&) override {
    return chunk(json_line({{"index", choice},
                            {"delta", {{"role", "assistant"}, {"content", ""}}},
                            {"logprobs", nullptr},
                            {"finish_reason", nullptr}}));
  }

  std::string piece(const TextPiece& piece) override {
    const Json json = {
        {"index", piece.choice}, {"delta", delta(piece)}, {"finish_reason", nullptr}};
    return chunk(json_object(json, piece.extras));
  }

  std::string end_choice(ChoiceEnd end) override {
    std::string events;
    for (auto& [at, input] : inputs_) {
      if (at.first != end.choice) continue;
      const std::string rest = input.finish();
      if (rest.empty()) continue;
      const Json call = {{"index", at.second}, {"custom", {{"input", rest}}}};
      events += chunk(json_line({{"index", end.choice},
                                 {"delta", {{"tool_calls", Json::array({call})}}},
                                 {"finish_reason", nullptr}}));
    }
    const Json json = {{"index", end.choice},
                       {"delta", Json::object()},
                       {"finish_reason", reason(end.finish, !end.message.calls.empty())}};
    return events + chunk(json_object(json, end.extras));
  }

  std::string whole_choice(ChoiceEnd end) override {
    Message& generated = end.message;
    const bool calls = !generated.calls.empty();
    const bool none = calls && generated.content.empty();
    Json message = {{"role", "assistant"},
                    {"content", none ? Json() : Json(std::move(generated.content))},
                    {"refusal", nullptr}};
    if (!generated.reasoning.empty()) message["reasoning_content"] = std::move(generated.reasoning);
    if (calls && functions_)
      message["function_call"] = calls_json(generated.calls)[0]["function"];
    else if (calls)
      message["tool_calls"] = calls_json(generated.calls, custom_tools_);
    const Json choice = {{"index", end.choice},
                         {"message", std::move(message)},
                         {"finish_reason", reason(end.finish, calls)}};
    return json_object(choice, end.extras);
  }

 private:
  // The id and the name of a call are in its first part only: clients join the strings of all
  // parts. With `functions`, there is one call, in the older form.
  Json delta(const TextPiece& piece) {
    if (piece.kind == text::MessagePart::content) return {{"content", piece.text}};
    if (piece.kind == text::MessagePart::reasoning) return {{"reasoning_content", piece.text}};
    const bool custom = custom_tools_.contains(piece.call->name);
    Json content = Json::object();
    if (piece.begins_call) content["name"] = piece.call->name;
    if (custom)
      content["input"] = inputs_[{piece.choice, piece.call_index}].add(piece.text);
    else
      content["arguments"] = piece.text;
    if (functions_)
      return piece.call_index == 0 ? Json{{"function_call", content}} : Json::object();
    const char* const type = custom ? "custom" : "function";
    Json call = {{"index", piece.call_index}};
    if (piece.begins_call) {
      call["id"] = piece.call->id;
      call["type"] = type;
    }
    call[type] = std::move(content);
    return {{"tool_calls", Json::array({call})}};
  }

  const char* reason(infer::FinishReason finish, bool calls) const {
    if (!calls || finish == infer::FinishReason::length) return finish_reason(finish);
    return functions_ ? "function_call" : "tool_calls";
  }

  const bool functions_;
  const std::set<std::string> custom_tools_;
  std::map<std::pair<size_t, size_t>, CustomInput> inputs_;  // of custom tools, by choice and call
};

class OpenAICompletion : public OpenAIFormat {
 public:
  OpenAICompletion(const CompletionRequest& request, const std::string& model,
                   std::vector<std::string> echoed)
      : OpenAIFormat(LogprobStyle::completion, request, model, "cmpl", "text_completion",
                     "text_completion"),
        echoed_(std::move(echoed)) {}

  std::string begin_choice(size_t choice, LogprobList& prompt) override {
    if (echoed_[choice].empty()) return {};
    const Json json = {{"index", choice}, {"text", echoed_[choice]}, {"finish_reason", nullptr}};
    return chunk(json_object(json, {{"logprobs", prompt.take()}}));
  }

  std::string piece(const TextPiece& piece) override {
    const Json json = {{"index", piece.choice}, {"text", piece.text}, {"finish_reason", nullptr}};
    return chunk(json_object(json, piece.extras));
  }

  std::string end_choice(ChoiceEnd end) override {
    const Json json = {
        {"index", end.choice}, {"text", ""}, {"finish_reason", finish_reason(end.finish)}};
    return chunk(json_object(json, end.extras));
  }

  std::string whole_choice(ChoiceEnd end) override {
    const Json choice = {{"index", end.choice},
                         {"text", echoed_[end.choice] + end.message.content},
                         {"finish_reason", finish_reason(end.finish)}};
    return json_object(choice, end.extras);
  }

 private:
  const std::vector<std::string> echoed_;
};

}  // namespace

std::unique_ptr<GenerationFormat> openai_chat(const ChatRequest& request,
                                              const std::string& model) {
  return std::make_unique<OpenAIChat>(request, model);
}

std::unique_ptr<GenerationFormat> openai_completion(const CompletionRequest& request,
                                                    const std::string& model,
                                                    std::vector<std::string> echoed) {
  return std::make_unique<OpenAICompletion>(request, model, std::move(echoed));
}

}  // namespace fovea::serve

// Responses in OpenAI's format.

#include <fmt/format.h>

#include "serve/custom_input.h"
#include "serve/response_ids.h"
#include "serve/responses.h"
#include "serve/vectors.h"

namespace fovea::serve {
namespace {

using Kind = text::MessagePart::Kind;

class ResponsesFormat : public GenerationFormat {
 public:
  ResponsesFormat(const ResponsesRequest& request, const std::string& model)
      : GenerationFormat(LogprobStyle::list, ErrorShape::openai,
                         "text/event-stream; charset=utf-8"),
        ids_(request.identity),
        summary_(request.summary),
        encrypted_(request.encrypted),
        namespaces_(request.namespaces),
        custom_(request.custom) {
    const auto& sampling = request.options.sampling;
    const Json format =
        request.text_format.is_null() ? Json{{"type", "text"}} : request.text_format;
    response_ = {
        {"id", new_id("resp")},
        {"object", "response"},
        {"created_at", ids_.now()},
        {"status", "in_progress"},
        {"background", false},
        {"error", nullptr},
        {"incomplete_details", nullptr},
        {"instructions", request.instructions},
        {"max_output_tokens", request.max_tokens_given ? Json(request.options.max_tokens) : Json()},
        {"model", model},
        {"output", Json::array()},
        {"parallel_tool_calls", request.parallel_calls},
        {"previous_response_id", nullptr},
        {"reasoning", request.reasoning.is_null() ? Json{{"effort", nullptr}, {"summary", nullptr}}
                                                  : request.reasoning},
        {"store", false},
        {"temperature", sampling.temperature},
        {"text", {{"format", format}}},
        {"tool_choice", request.given_choice.is_null() ? Json("auto") : request.given_choice},
        {"tools", request.given_tools},
        {"top_p", sampling.top_p},
        {"truncation", "disabled"},
        {"usage", nullptr},
        {"metadata", request.metadata.is_null() ? Json::object() : request.metadata}};
  }

  std::string begin_choice(size_t, LogprobList&) override {
    std::string events = event("response.created", {{"response", response_}});
    events += event("response.in_progress", {{"response", response_}});
    return events;
  }

  std::string piece(const TextPiece& piece) override {
    std::string events;
    if (!item_ || piece.kind != kind_ || piece.begins_call) {
      events = end_item("completed");
      events += begin_item(piece);
    }
    const std::string text = is_custom() ? input_.add(piece.text) : piece.text;
    return text.empty() ? events : events + delta(text);
  }

  std::string end_choice(ChoiceEnd end) override {
    set_status(end.finish);
    return end_item(cut_ ? "incomplete" : "completed");
  }

  std::string end_stream(const GenerationTotals& totals) override {
    response_["usage"] = usage(totals.counts);
    return event(cut_ ? "response.incomplete" : "response.completed", {{"response", response_}});
  }

  std::string stream_error(const ApiError& error) override {
    response_["status"] = "failed";
    response_["error"] = {{"code", error.status == 429 ? "rate_limit_exceeded" : "server_error"},
                          {"message", error.message}};
    return event("response.failed", {{"response", response_}});
  }

  std::string whole_choice(ChoiceEnd end) override {
    set_status(end.finish);
    const char* const status = cut_ ? "incomplete" : "completed";
    Json& output = response_["output"];
    const Message& message = end.message;
    if (!message.reasoning.empty())
      output.push_back(reasoning_item(new_id("rs"), message.reasoning));
    if (!message.content.empty() || message.calls.empty())
      output.push_back(message_item(new_id("msg"), message.content, status));
    for (const Call& call : message.calls)
      output.push_back(call_item(
          new_id(custom_.contains(call.name) ? "ctc" : "fc"), call,
          custom_.contains(call.name) ? custom_input(call.arguments) : call.arguments, status));
    return {};
  }

  std::string whole(std::vector<std::string>, const GenerationTotals& totals) override {
    response_["usage"] = usage(totals.counts);
    return json_line(response_);
  }

 private:
  std::string new_id(const char* prefix) {
    const uint64_t first = ids_.next();
    return fmt::format("{}_{:016x}{:016x}", prefix, first, ids_.next());
  }

  std::string event(const char* type, const Json& data) {
    Json all = {{"type", type}, {"sequence_number", sequence_++}};
    all.update(data);
    return fmt::format("event: {}\ndata: {}\n\n", type, json_line(all));
  }

  void set_status(infer::FinishReason finish) {
    cut_ = finish == infer::FinishReason::length;
    response_["status"] = cut_ ? "incomplete" : "completed";
    if (cut_) response_["incomplete_details"] = {{"reason", "max_output_tokens"}};
  }

  static Json usage(const TokenCounts& counts) {
    return {{"input_tokens", counts.prompt},
            {"input_tokens_details", {{"cached_tokens", counts.cached}}},
            {"output_tokens", counts.generated},
            {"output_tokens_details", {{"reasoning_tokens", counts.reasoning}}},
            {"total_tokens", counts.prompt + counts.generated}};
  }

  Json reasoning_item(const std::string& id, const std::string& text) const {
    const Json summary = {{"type", "summary_text"}, {"text", text}};
    Json item = {{"id", id}, {"type", "reasoning"}, {"summary", Json::array()}};
    if (summary_ && !text.empty()) item["summary"].push_back(summary);
    if (!summary_) item["content"] = Json::array({{{"type", "reasoning_text"}, {"text", text}}});
    item["encrypted_content"] = encrypted_ && !text.empty() ? Json(base64(text)) : Json();
    return item;
  }

  static Json text_part(const std::string& text) {
    return {{"type", "output_text"},
            {"text", text},
            {"annotations", Json::array()},
            {"logprobs", Json::array()}};
  }

  static Json message_item(const std::string& id, const std::string& text, const char* status) {
    return {{"id", id},
            {"type", "message"},
            {"status", status},
            {"role", "assistant"},
            {"content", Json::array({text_part(text)})}};
  }

  // `text`: the arguments, or the input of a custom tool.
  Json call_item(const std::string& id, const Call& call, const std::string& text,
                 const char* status) const {
    const bool custom = custom_.contains(call.name);
    Json item = {{"id", id},          {"type", custom ? "custom_tool_call" : "function_call"},
                 {"status", status},  {"call_id", call.id},
                 {"name", call.name}, {custom ? "input" : "arguments", text}};
    if (const auto found = namespaces_.find(call.name); found != namespaces_.end())
      item["namespace"] = found->second;
    return item;
  }

  Json position() const { return {{"item_id", id_}, {"output_index", response_["output"].size()}}; }

  std::string begin_item(const TextPiece& piece) {
    item_ = true;
    kind_ = piece.kind;
    text_.clear();
    input_ = {};
    if (piece.call != nullptr) call_ = {piece.call->id, piece.call->name, ""};
    id_ = new_id(kind_ == Kind::content ? "msg"
                 : is_custom()          ? "ctc"
                 : kind_ == Kind::call  ? "fc"
                                        : "rs");
    Json item = this->item("in_progress");
    if (kind_ == Kind::content) item["content"] = Json::array();
    if (kind_ == Kind::reasoning && !summary_) item["content"] = Json::array();
    std::string events = event("response.output_item.added",
                               {{"output_index", response_["output"].size()}, {"item", item}});
    if (kind_ != Kind::call) events += part_event("added", "");
    return events;
  }

  bool is_custom() const { return kind_ == Kind::call && custom_.contains(call_.name); }

  // The event of more of the item's text.
  std::string delta(const std::string& text) {
    text_ += text;
    Json data = position();
    data["delta"] = text;
    switch (kind_) {
      case Kind::content:
        data["content_index"] = 0;
        data["logprobs"] = Json::array();
        return event("response.output_text.delta", data);
      case Kind::call:
        return event(is_custom() ? "response.custom_tool_call_input.delta"
                                 : "response.function_call_arguments.delta",
                     data);
      case Kind::reasoning: break;
    }
    data[summary_ ? "summary_index" : "content_index"] = 0;
    return event(
        summary_ ? "response.reasoning_summary_text.delta" : "response.reasoning_text.delta", data);
  }

  Json item(const char* status) const {
    if (kind_ == Kind::content) return message_item(id_, text_, status);
    if (kind_ == Kind::call) return call_item(id_, call_, text_, status);
    return reasoning_item(id_, text_);
  }

  // The events of the one part of an item: content, or a summary.
  std::string part_event(const char* what, const std::string& text) {
    Json data = position();
    if (kind_ == Kind::reasoning && summary_) {
      data["summary_index"] = 0;
      data["part"] = {{"type", "summary_text"}, {"text", text}};
      return event(fmt::format("response.reasoning_summary_part.{}", what).c_str(), data);
    }
    data["content_index"] = 0;
    data["part"] =
        kind_ == Kind::content ? text_part(text) : Json{{"type", "reasoning_text"}, {"text", text}};
    return event(fmt::format("response.content_part.{}", what).c_str(), data);
  }

  std::string end_item(const char* status) {
    if (!item_) return {};
    item_ = false;
    std::string events;
    if (is_custom())
      if (const std::string rest = input_.finish(); !rest.empty()) events = delta(rest);
    Json data = position();
    if (is_custom()) {
      data["input"] = text_;
      events += event("response.custom_tool_call_input.done", data);
    } else if (kind_ == Kind::call) {
      data["name"] = call_.name;
      data["arguments"] = text_;
      events = event("response.function_call_arguments.done", data);
    } else {
      data["text"] = text_;
      const bool summary = kind_ == Kind::reasoning && summary_;
      data[summary ? "summary_index" : "content_index"] = 0;
      if (kind_ == Kind::content) data["logprobs"] = Json::array();
      events = event(kind_ == Kind::content ? "response.output_text.done"
                     : summary              ? "response.reasoning_summary_text.done"
                                            : "response.reasoning_text.done",
                     data);
      events += part_event("done", text_);
    }
    const Json done = item(status);
    events += event("response.output_item.done",
                    {{"output_index", response_["output"].size()}, {"item", done}});
    response_["output"].push_back(done);
    return events;
  }

  ResponseIds ids_;
  const bool summary_, encrypted_;
  const std::map<std::string, std::string> namespaces_;
  const std::set<std::string> custom_;
  Json response_;
  int64_t sequence_ = 0;
  bool cut_ = false;   // at the maximum number of tokens
  bool item_ = false;  // an item is in progress
  Kind kind_ = Kind::content;
  std::string id_, text_;
  Call call_;
  CustomInput input_;  // of the call, if its tool is a custom one
};

}  // namespace

std::unique_ptr<GenerationFormat> responses_format(const ResponsesRequest& request,
                                                   const std::string& model) {
  return std::make_unique<ResponsesFormat>(request, model);
}

}  // namespace fovea::serve

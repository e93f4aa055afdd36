// Responses in OpenAI's format.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "serve/generation/custom_tools.h"
#include "serve/protocols/responses.h"
#include "serve/protocols/vectors.h"
#include "serve/routes/response_ids.h"

namespace fovea::serve {
namespace {

using Kind = text::MessagePart::Kind;

class ResponsesFormat : public GenerationFormat {
 public:
  ResponsesFormat(const ResponsesRequest& request, const std::string& model)
      : GenerationFormat(LogprobStyle::content, ErrorShape::openai,
                         "text/event-stream; charset=utf-8"),
        ids_(request.identity),
        summary_(request.summary),
        encrypted_(request.encrypted),
        namespaces_(request.namespaces),
        custom_(request.custom_tools) {
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
    if (request.logprobs)
      response_["top_logprobs"] = std::max<int64_t>(0, request.options.logprobs);
  }

  std::string begin_choice(size_t, LogprobList&) override {
    std::string events = response_event("response.created");
    events += response_event("response.in_progress");
    return events;
  }

  std::string piece(const TextPiece& piece) override {
    std::string events;
    if (!item_ || piece.kind != kind_ || piece.begins_call) {
      events = end_item("completed");
      events += begin_item(piece);
    }
    const std::string text = is_custom() ? input_.add(piece.text) : piece.text;
    return text.empty() ? events : events + delta(text, entries(piece.extras));
  }

  std::string end_choice(ChoiceEnd end) override {
    set_status(end.finish);
    return end_item(cut_ ? "incomplete" : "completed");
  }

  std::string end_stream(const GenerationTotals& totals) override {
    response_["usage"] = usage(totals.counts);
    return response_event(cut_ ? "response.incomplete" : "response.completed");
  }

  std::string stream_error(const ApiError& error) override {
    response_["status"] = "failed";
    response_["error"] = {{"code", error.status == 429 ? "rate_limit_exceeded" : "server_error"},
                          {"message", error.message}};
    return response_event("response.failed");
  }

  std::string whole_choice(ChoiceEnd end) override {
    set_status(end.finish);
    const char* const status = cut_ ? "incomplete" : "completed";
    const Message& message = end.message;
    if (!message.reasoning.empty())
      output_.push_back(reasoning_item(new_id("rs"), message.reasoning));
    if (!message.content.empty() || message.calls.empty())
      output_.push_back(
          message_item(new_id("msg"), text_part(message.content, entries(end.extras)), status));
    for (const Call& call : message.calls)
      output_.push_back(call_item(
          new_id(custom_.contains(call.name) ? "ctc" : "fc"), call,
          custom_.contains(call.name) ? custom_input(call.arguments) : call.arguments, status));
    return {};
  }

  std::string whole(std::vector<std::string>, const GenerationTotals& totals) override {
    response_["usage"] = usage(totals.counts);
    return response();
  }

 private:
  std::string new_id(const char* prefix) {
    const uint64_t first = ids_.next();
    return fmt::format("{}_{:016x}{:016x}", prefix, first, ids_.next());
  }

  std::string event(const std::string& type, const Json& data, const Members& members = {}) {
    Json all = {{"type", type}, {"sequence_number", sequence_++}};
    all.update(data);
    return fmt::format("event: {}\ndata: {}\n\n", type, json_object(all, members));
  }

  std::string response() const {
    return json_object(response_, {{"output", fmt::format("[{}]", fmt::join(output_, ","))}});
  }
  std::string response_event(const char* type) {
    return event(type, Json::object(), {{"response", response()}});
  }

  // The log-probabilities of the tokens of a text, without the brackets of the list.
  static std::string entries(const Members& extras) {
    const std::string& list = extras.at(0).second;
    return list == "null" ? "" : list.substr(1, list.size() - 2);
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

  std::string reasoning_item(const std::string& id, const std::string& text) const {
    const Json part = {{"type", summary_ ? "summary_text" : "reasoning_text"}, {"text", text}};
    Json item = {{"id", id}, {"type", "reasoning"}, {"summary", Json::array()}};
    if (!summary_) item["content"] = Json::array();
    if (!text.empty()) item[summary_ ? "summary" : "content"].push_back(part);
    item["encrypted_content"] = encrypted_ && !text.empty() ? Json(base64(text)) : Json();
    return json_line(item);
  }

  static std::string text_part(const std::string& text, const std::string& logprobs) {
    return json_object({{"type", "output_text"}, {"text", text}, {"annotations", Json::array()}},
                       {{"logprobs", "[" + logprobs + "]"}});
  }

  static std::string message_item(const std::string& id, const std::string& parts,
                                  const char* status) {
    return json_object({{"id", id}, {"type", "message"}, {"status", status}, {"role", "assistant"}},
                       {{"content", "[" + parts + "]"}});
  }

  // `text`: the arguments, or the input of a custom tool.
  std::string call_item(const std::string& id, const Call& call, const std::string& text,
                        const char* status) const {
    const bool custom = custom_.contains(call.name);
    Json item = {{"id", id},          {"type", custom ? "custom_tool_call" : "function_call"},
                 {"status", status},  {"call_id", call.id},
                 {"name", call.name}, {custom ? "input" : "arguments", text}};
    if (const auto found = namespaces_.find(call.name); found != namespaces_.end())
      item["namespace"] = found->second;
    return json_line(item);
  }

  Json position() const { return {{"item_id", id_}, {"output_index", output_.size()}}; }

  std::string begin_item(const TextPiece& piece) {
    item_ = true;
    kind_ = piece.kind;
    text_.clear();
    logprobs_.clear();
    input_ = {};
    if (piece.call != nullptr) call_ = {piece.call->id, piece.call->name, ""};
    id_ = new_id(kind_ == Kind::content ? "msg"
                 : is_custom()          ? "ctc"
                 : kind_ == Kind::call  ? "fc"
                                        : "rs");
    std::string events = item_event("response.output_item.added", item("in_progress"));
    if (kind_ != Kind::call) events += part_event("added");
    return events;
  }

  bool is_custom() const { return kind_ == Kind::call && custom_.contains(call_.name); }

  const char* text_name() const {
    if (kind_ == Kind::content) return "output_text";
    if (kind_ == Kind::call)
      return is_custom() ? "custom_tool_call_input" : "function_call_arguments";
    return summary_ ? "reasoning_summary_text" : "reasoning_text";
  }

  // An event of the item's text, which is the member `key`.
  std::string text_event(const char* what, const char* key, const std::string& text,
                         const std::string& logprobs) {
    const bool content = kind_ == Kind::content;
    Json data = position();
    if (std::string_view(key) == "arguments") data["name"] = call_.name;
    data[key] = text;
    if (kind_ != Kind::call) data[!content && summary_ ? "summary_index" : "content_index"] = 0;
    return event(fmt::format("response.{}.{}", text_name(), what), data,
                 content ? Members{{"logprobs", "[" + logprobs + "]"}} : Members());
  }

  // The event of more of the item's text, and of the log-probabilities of its tokens.
  std::string delta(const std::string& text, const std::string& logprobs = {}) {
    text_ += text;
    if (!logprobs_.empty() && !logprobs.empty()) logprobs_ += ',';
    logprobs_ += logprobs;
    return text_event("delta", "delta", text, logprobs);
  }

  std::string item(const char* status) const {
    if (kind_ == Kind::content)
      return message_item(id_, text_.empty() ? "" : text_part(text_, logprobs_), status);
    if (kind_ == Kind::call) return call_item(id_, call_, text_, status);
    return reasoning_item(id_, text_);
  }

  // The events of the one part of an item: content, or a summary.
  std::string part_event(const char* what) {
    const bool summary = kind_ == Kind::reasoning && summary_;
    const Json reasoning = {{"type", summary ? "summary_text" : "reasoning_text"}, {"text", text_}};
    Json data = position();
    data[summary ? "summary_index" : "content_index"] = 0;
    const std::string part =
        kind_ == Kind::content ? text_part(text_, logprobs_) : json_line(reasoning);
    return event(
        fmt::format("response.{}.{}", summary ? "reasoning_summary_part" : "content_part", what),
        data, {{"part", part}});
  }

  std::string item_event(const char* type, const std::string& item) {
    return event(type, {{"output_index", output_.size()}}, {{"item", item}});
  }

  std::string end_item(const char* status) {
    if (!item_) return {};
    item_ = false;
    std::string events;
    if (is_custom())
      if (const std::string rest = input_.finish(); !rest.empty()) events = delta(rest);
    const bool call = kind_ == Kind::call;
    events += text_event("done",
                         is_custom() ? "input"
                         : call      ? "arguments"
                                     : "text",
                         text_, logprobs_);
    if (!call) events += part_event("done");
    const std::string done = item(status);
    events += item_event("response.output_item.done", done);
    output_.push_back(done);
    return events;
  }

  ResponseIds ids_;
  const bool summary_, encrypted_;
  const std::map<std::string, std::string> namespaces_;
  const std::set<std::string> custom_;
  Json response_;
  std::vector<std::string> output_;  // items as JSON, since lists of log-probabilities are large
  int64_t sequence_ = 0;
  bool cut_ = false;   // at the maximum number of tokens
  bool item_ = false;  // an item is in progress
  Kind kind_ = Kind::content;
  std::string id_, text_, logprobs_;
  Call call_;
  CustomInput input_;  // of the call, if its tool is a custom one
};

}  // namespace

std::unique_ptr<GenerationFormat> responses_format(const ResponsesRequest& request,
                                                   const std::string& model) {
  return std::make_unique<ResponsesFormat>(request, model);
}

}  // namespace fovea::serve

// Messages in Anthropic's format.

#include <fmt/format.h>

#include "serve/generation/tool_calls.h"
#include "serve/protocols/anthropic.h"
#include "serve/protocols/vectors.h"
#include "serve/routes/response_ids.h"

namespace fovea::serve {
namespace {

std::string named_event(const char* name, const Json& data) {
  return fmt::format("event: {}\ndata: {}\n\n", name, json_line(data));
}

// Clients give it back with the reasoning. It says that the text is the server's own, and is not
// checked.
std::string signature_of(const std::string& reasoning) {
  return base64("fovea:" + short_call_id(reasoning));
}

class AnthropicFormat : public GenerationFormat {
 public:
  AnthropicFormat(const AnthropicRequest& request, std::string model, int64_t prompt_tokens)
      : GenerationFormat(LogprobStyle::list, ErrorShape::anthropic,
                         "text/event-stream; charset=utf-8"),
        model_(std::move(model)),
        prompt_tokens_(prompt_tokens),
        with_reasoning_(request.shows_reasoning) {
    ResponseIds ids(request.identity);
    const uint64_t first = ids.next();
    id_ = fmt::format("msg_{:016x}{:08x}", first, static_cast<uint32_t>(ids.next()));
  }

  std::string begin_choice(size_t, LogprobList&) override {
    Json message = head();
    message["content"] = Json::array();
    message["usage"] = usage({.prompt = prompt_tokens_});
    return named_event("message_start", {{"type", "message_start"}, {"message", message}}) +
           named_event("ping", {{"type", "ping"}});
  }

  std::string piece(const TextPiece& piece) override {
    const bool reasoning = piece.kind == text::MessagePart::reasoning;
    if (reasoning && !with_reasoning_) return {};
    std::string events = begin_block(piece);
    if (reasoning) reasoning_ += piece.text;
    const Json delta = reasoning ? Json{{"type", "thinking_delta"}, {"thinking", piece.text}}
                       : piece.kind == text::MessagePart::content
                           ? Json{{"type", "text_delta"}, {"text", piece.text}}
                           : Json{{"type", "input_json_delta"}, {"partial_json", piece.text}};
    if (!piece.text.empty()) events += block_delta(delta);
    return events;
  }

  std::string end_choice(ChoiceEnd end) override {
    std::string events = end_block();
    set_end(end);
    return events;
  }

  std::string end_stream(const GenerationTotals& totals) override {
    return named_event("message_delta",
                       {{"type", "message_delta"},
                        {"delta", {{"stop_reason", stop_reason_}, {"stop_sequence", stop_}}},
                        {"usage", usage(totals.counts)}}) +
           named_event("message_stop", {{"type", "message_stop"}});
  }

  std::string stream_error(const ApiError& error) override {
    return "event: error\ndata: " + anthropic_error(error) + "\n\n";
  }

  std::string whole_choice(ChoiceEnd end) override {
    set_end(end);
    Json content = Json::array();
    const Message& message = end.message;
    if (!message.reasoning.empty() && with_reasoning_)
      content.push_back({{"type", "thinking"},
                         {"thinking", message.reasoning},
                         {"signature", signature_of(message.reasoning)}});
    if (!message.content.empty()) content.push_back({{"type", "text"}, {"text", message.content}});
    for (const Call& call : message.calls) {
      Json input = json_or_discarded(call.arguments);
      if (!input.is_object()) input = Json::object();  // it was cut off
      content.push_back({{"type", "tool_use"},
                         {"id", "toolu_" + call.id},
                         {"name", call.name},
                         {"input", input}});
    }
    return json_line(content);
  }

  std::string whole(std::vector<std::string> choices, const GenerationTotals& totals) override {
    Json object = head();
    object["stop_reason"] = stop_reason_;
    object["stop_sequence"] = stop_;
    object["usage"] = usage(totals.counts);
    return json_object(object, {{"content", choices.at(0)}});
  }

 private:
  enum class Block { none, reasoning, text, call };

  Json head() const {
    return {{"id", id_},       {"type", "message"},     {"role", "assistant"},
            {"model", model_}, {"stop_reason", Json()}, {"stop_sequence", Json()}};
  }

  static Json usage(const TokenCounts& counts) {
    return {{"input_tokens", counts.prompt - counts.cached},
            {"cache_creation_input_tokens", 0},
            {"cache_read_input_tokens", counts.cached},
            {"output_tokens", counts.generated}};
  }

  void set_end(const ChoiceEnd& end) {
    stop_ = end.stop.empty() ? Json() : Json(end.stop);
    stop_reason_ = end.finish == infer::FinishReason::length ? "max_tokens"
                   : !end.stop.empty()                       ? "stop_sequence"
                   : !end.message.calls.empty()              ? "tool_use"
                                                             : "end_turn";
  }

  // Ends the block in progress if the piece belongs to another one, and begins that.
  std::string begin_block(const TextPiece& piece) {
    const Block block = piece.kind == text::MessagePart::reasoning ? Block::reasoning
                        : piece.kind == text::MessagePart::content ? Block::text
                                                                   : Block::call;
    if (block == block_ && !(block == Block::call && piece.begins_call)) return {};
    std::string events = end_block();
    block_ = block;
    Json content;
    if (block == Block::reasoning)
      content = {{"type", "thinking"}, {"thinking", ""}, {"signature", ""}};
    else if (block == Block::text)
      content = {{"type", "text"}, {"text", ""}};
    else
      content = {{"type", "tool_use"},
                 {"id", "toolu_" + piece.call->id},
                 {"name", piece.call->name},
                 {"input", Json::object()}};
    return events + named_event("content_block_start", {{"type", "content_block_start"},
                                                        {"index", index_},
                                                        {"content_block", content}});
  }

  std::string block_delta(const Json& delta) const {
    return named_event("content_block_delta",
                       {{"type", "content_block_delta"}, {"index", index_}, {"delta", delta}});
  }

  std::string end_block() {
    if (block_ == Block::none) return {};
    std::string events;
    if (block_ == Block::reasoning)
      events = block_delta({{"type", "signature_delta"}, {"signature", signature_of(reasoning_)}});
    block_ = Block::none;
    return events +
           named_event("content_block_stop", {{"type", "content_block_stop"}, {"index", index_++}});
  }

  std::string id_;
  const std::string model_;
  const int64_t prompt_tokens_;
  const bool with_reasoning_;
  Block block_ = Block::none;
  size_t index_ = 0;  // of the block
  std::string reasoning_;
  Json stop_;
  std::string stop_reason_;
};

}  // namespace

std::unique_ptr<GenerationFormat> anthropic_format(const AnthropicRequest& request,
                                                   const std::string& model,
                                                   int64_t prompt_tokens) {
  return std::make_unique<AnthropicFormat>(request, model, prompt_tokens);
}

}  // namespace fovea::serve

#include "serve/protocols/ollama_format.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <utility>

#include "serve/generation/tool_calls.h"

namespace fovea::serve {
namespace {

int64_t nanoseconds_of(const Json& timings, const char* key) {
  constexpr double kPerMillisecond = 1e6;
  return static_cast<int64_t>(timings.value(key, 0.0) * kPerMillisecond);
}

// A call whose arguments were cut off has no object of arguments.
std::optional<Json> object_call(const Call& call, size_t index) {
  Json arguments = json_or_discarded(call.arguments.empty() ? "{}" : call.arguments);
  if (!arguments.is_object()) return std::nullopt;
  return Json{
      {"id", call.id},
      {"function", {{"index", index}, {"name", call.name}, {"arguments", std::move(arguments)}}}};
}

// What chats and generated texts share. A request has one choice.
class OllamaFormat : public GenerationFormat {
 public:
  explicit OllamaFormat(std::string model)
      : GenerationFormat(LogprobStyle::list, ErrorShape::translate, "application/x-ndjson"),
        model_(std::move(model)) {}

  std::string begin_choice(size_t, LogprobList&) override { return {}; }

  std::string end_stream(const GenerationTotals& totals) override {
    Json object = head();
    object.update(text_of(Message()));
    finish(object, totals);
    return line(object, logprobs_);
  }

  std::string stream_error(const ApiError& error) override {
    return json_line({{"error", error.message}}) + "\n";
  }

  std::string whole_choice(ChoiceEnd end) override {
    keep(end);
    return json_line(text_of(end.message));
  }

  std::string whole(std::vector<std::string> choices, const GenerationTotals& totals) override {
    Json object = head();
    finish(object, totals);
    std::string text = json_object(object, logprobs_);
    if (choices.empty()) return text + "\n";
    text.back() = ',';  // the members of the choice follow
    return text + choices[0].substr(1) + "\n";
  }

 protected:
  // The members with the text of a message.
  virtual Json text_of(const Message& message) const = 0;

  // A line of a stream with these members.
  std::string line_of(const Json& members, const Members& extras) const {
    Json object = head();
    object.update(members);
    object["done"] = false;
    return line(object, given(extras));
  }

  // Keeps what the last object says about the choice.
  void keep(const ChoiceEnd& end) {
    finish_ = end.finish;
    logprobs_ = given(end.extras);
  }

 private:
  static std::string line(const Json& object, const Members& members) {
    return json_object(object, members) + "\n";
  }

  static Members given(const Members& extras) {
    Members members;
    for (const auto& [name, value] : extras)
      if (value != "null") members.emplace_back(name, value);
    return members;
  }

  Json head() const { return {{"model", model_}, {"created_at", rfc3339_now()}}; }

  void finish(Json& object, const GenerationTotals& totals) const {
    const auto total = std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::steady_clock::now() - began_);
    object["done"] = true;
    object["done_reason"] = finish_ == infer::FinishReason::length ? "length" : "stop";
    object["total_duration"] = total.count();
    object["load_duration"] = 0;  // the model is loaded before the server accepts requests
    object["prompt_eval_count"] = totals.counts.prompt;
    object["prompt_eval_duration"] = nanoseconds_of(totals.timings, "prompt_ms");
    object["eval_count"] = totals.counts.generated;
    object["eval_duration"] = nanoseconds_of(totals.timings, "predicted_ms");
  }

  const std::string model_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  infer::FinishReason finish_ = infer::FinishReason::end;
  Members logprobs_;
};

Json message_member(const Message& message, Json calls) {
  Json json = {{"role", "assistant"}, {"content", message.content}};
  if (!message.reasoning.empty()) json["thinking"] = message.reasoning;
  if (!calls.empty()) json["tool_calls"] = std::move(calls);
  return {{"message", std::move(json)}};
}

class OllamaChat : public OllamaFormat {
 public:
  using OllamaFormat::OllamaFormat;

  std::string piece(const TextPiece& piece) override {
    if (piece.kind == text::MessagePart::reasoning)
      return send_call() + line_of(message_member({piece.text, ""}, {}), piece.extras);
    if (piece.kind == text::MessagePart::content)
      return send_call() + line_of(message_member({"", piece.text}, {}), piece.extras);
    std::string lines;
    if (piece.begins_call) {
      lines = send_call();
      open_ = *piece.call;
      index_ = piece.call_index;
    } else if (open_) {
      open_->arguments += piece.text;
    }
    const bool logprobs = !piece.extras.empty() && piece.extras[0].second != "null";
    return logprobs ? lines + line_of(message_member({}, {}), piece.extras) : lines;
  }

  std::string end_choice(ChoiceEnd end) override {
    keep(end);
    return send_call();
  }

 protected:
  Json text_of(const Message& message) const override {
    Json calls = Json::array();
    for (size_t i = 0; i < message.calls.size(); ++i)
      if (auto call = object_call(message.calls[i], i)) calls.push_back(std::move(*call));
    return message_member(message, std::move(calls));
  }

 private:
  // A call is sent when its arguments are complete.
  std::string send_call() {
    if (!open_) return {};
    const std::optional<Json> call = object_call(*open_, index_);
    open_.reset();
    return call ? line_of(message_member({}, Json::array({*call})), {}) : "";
  }

  std::optional<Call> open_;
  size_t index_ = 0;
};

class OllamaGenerate : public OllamaFormat {
 public:
  using OllamaFormat::OllamaFormat;

  std::string piece(const TextPiece& piece) override {
    const bool reasoning = piece.kind == text::MessagePart::reasoning;
    return line_of(text_of({reasoning ? piece.text : "", reasoning ? "" : piece.text}),
                   piece.extras);
  }

  std::string end_choice(ChoiceEnd end) override {
    keep(end);
    return {};
  }

 protected:
  Json text_of(const Message& message) const override {
    Json json = {{"response", message.content}};
    if (!message.reasoning.empty()) json["thinking"] = message.reasoning;
    return json;
  }
};

}  // namespace

std::unique_ptr<GenerationFormat> ollama_chat(std::string model) {
  return std::make_unique<OllamaChat>(std::move(model));
}

std::unique_ptr<GenerationFormat> ollama_generate(std::string model) {
  return std::make_unique<OllamaGenerate>(std::move(model));
}

Json ollama_loaded(const std::string& model, bool chat, bool unload) {
  Json json = {{"model", model}, {"created_at", rfc3339_now()}};
  if (chat)
    json["message"] = {{"role", "assistant"}, {"content", ""}};
  else
    json["response"] = "";
  json["done"] = true;
  json["done_reason"] = unload ? "unload" : "load";
  return json;
}

std::string rfc3339(int64_t seconds, int64_t nanoseconds) {
  const std::chrono::sys_seconds time{std::chrono::seconds(seconds)};
  return fmt::format("{:%FT%T}.{:09}Z", time, nanoseconds);
}

std::string rfc3339_now() {
  constexpr int64_t kPerSecond = 1'000'000'000;
  const int64_t now = std::chrono::duration_cast<std::chrono::nanoseconds>(
                          std::chrono::system_clock::now().time_since_epoch())
                          .count();
  return rfc3339(now / kPerSecond, now % kPerSecond);
}

}  // namespace fovea::serve

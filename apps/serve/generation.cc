#include "serve/generation.h"
#include "base/ordered_json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ctime>
#include <random>

#include "base/stop.h"
#include "serve/api_error.h"

namespace fovea::serve {
namespace {

std::string new_id(const char* prefix) {
  thread_local std::mt19937_64 generator{std::random_device{}()};
  return fmt::format("{}-{:016x}{:08x}", prefix, generator(), static_cast<uint32_t>(generator()));
}

}  // namespace

GenerationJob::GenerationJob(ApiRequest request, bool chat, std::shared_ptr<ServedModel> model,
                             std::shared_ptr<http::Exchange> exchange, Metrics& metrics)
    : request_(std::move(request)),
      model_(std::move(model)),
      exchange_(std::move(exchange)),
      metrics_(metrics),
      submissions_(std::make_shared<Submissions>([served = model_](uint64_t number) {
        if (served->engine) served->engine->cancel(number);
      })) {
  head_.id = new_id(chat ? "chatcmpl" : "cmpl");
  head_.created = std::time(nullptr);
  head_.model = model_->facts.name;
  head_.chat = chat;
}

void GenerationJob::start(const PreparedPrompts& prepared) {
  const auto& prompts = prepared.ids;
  calls_ = prepared.calls;
  // In an encoder-decoder, the encoder reads the prompt; the decoder begins with a token of empty
  // text.
  const std::vector<int32_t> start = {-1};
  open_ = prompts.size() * static_cast<size_t>(request_.options.answers);
  for (size_t i = 0; i < open_; ++i) {
    const auto& prompt = prompts[i / static_cast<size_t>(request_.options.answers)];
    choices_.push_back({LogprobList(model_->tokenizer, head_.chat),
                        AttentionTraceList(request_.trace, model_->tokenizer,
                                           model_->facts.encoder ? start : prompt)});
  }
  whole_.resize(open_);
  submissions_->follow(*exchange_);
  if (!request_.echo || !wants_logprobs()) return submit_all(prepared);
  const auto work = [self = shared_from_this(), prepared] { self->score_and_submit(prepared); };
  if (!model_->worker->run(work)) throw too_busy();
}

// Called on the model's worker, since scoring long prompts would keep a handler from other clients.
void GenerationJob::score_and_submit(const PreparedPrompts& prepared) {
  const StopScope scope([this] { return exchange_->gone() || model_->worker->stopping(); });
  try {
    score_prompts(prepared.ids);
    submit_all(prepared);
  } catch (...) {
    fail(api_error(std::current_exception()));
  }
}

void GenerationJob::submit_all(const PreparedPrompts& prepared) {
  const auto& prompts = prepared.ids;
  try {
    for (size_t i = 0; i < prompts.size(); ++i) {
      if (!submit(i, {prompts[i], prepared.images})) return;
    }
  } catch (...) {
    submissions_->cancel();
    throw;
  }
}

// Returns false if the client has disconnected.
bool GenerationJob::submit(size_t number, const infer::ImagePrompt& prompt) {
  const uint64_t submitted = model_->needs_engine().submit(
      prompt, request_.options,
      [self = shared_from_this(), number](const infer::Event& event) {
        return self->take(number, event);
      },
      request_.trace);
  if (submitted == 0) throw too_busy();
  return submissions_->add(submitted);
}

double GenerationJob::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
}

bool GenerationJob::take(size_t prompt, const infer::Event& event) {
  if (failed_ || submissions_->cancelled() || exchange_->gone()) return false;
  if (event.error != nullptr) {
    fail({status_of(event.error->kind()), event.error->what(), "", ""});
    return false;
  }
  if (model_->most_seconds > 0 && seconds() > model_->most_seconds) {
    fail({503, "the request took longer than --max-time", "", ""});
    return false;
  }
  const size_t index =
      prompt * static_cast<size_t>(request_.options.answers) + static_cast<size_t>(event.answer);
  Choice& choice = choices_[index];
  if (event.id >= 0) {
    const double now = seconds();
    if (!std::exchange(any_token_, true)) metrics_.first_token(now);
    const double last = std::exchange(choice.last_token, now);
    if (last >= 0) metrics_.next_token(now - last);
  }
  const size_t before = choice.bytes();
  if (event.trace != nullptr) choice.trace.add(event.id, *event.trace);
  if (request_.stream) stream_event(index, event);
  if (event.finished != nullptr) finish_choice(index, event);
  held_bytes_ += choice.bytes() - before;
  try {
    held_.set(static_cast<int64_t>(held_bytes_));
  } catch (const ApiError& error) {
    fail(error);
  }
  if (event.finished != nullptr && --open_ == 0 && !failed_) finish();
  return !failed_;
}

void GenerationJob::score_prompts(const std::vector<std::vector<int32_t>>& prompts) {
  const auto answers = static_cast<size_t>(request_.options.answers);
  for (size_t p = 0; p < prompts.size(); ++p) {
    const auto found = model_->score(prompts[p], request_.options.logprobs);
    for (size_t i = p * answers; i < (p + 1) * answers; ++i) {
      LogprobList& list = choices_[i].logprobs;
      list.add_first(prompts[p][0]);
      for (size_t n = 1; n < found.size(); ++n) list.add(prompts[p][n], found[n]);
    }
  }
}

void GenerationJob::finish_choice(size_t index, const infer::Event& event) {
  const infer::Generation& generation = *event.finished;
  if (event.answer == 0) {
    counts_.prompt += generation.prompt_tokens;
    counts_.cached += generation.cached_tokens;
  }
  counts_.written += static_cast<int64_t>(generation.ids.size());
  if (timings_.is_null()) timings_ = timings_json(generation);
  if (request_.stream) {
    stream_end(index, generation);
  } else {
    whole_[index] = whole_choice(index, generation);
    held_bytes_ += whole_[index].size();
  }
}

void GenerationJob::fail(const ApiError& error) {
  failed_ = true;
  if (streaming_) {
    const auto& [status, message, param, code] = error;
    exchange_->write(sse_event(http::error_object(status, message, param, code)));
    exchange_->finish();
  } else {
    exchange_->send(error_response(ErrorShape::openai, error));
  }
}

std::string GenerationJob::echoed(size_t index) const {
  if (!request_.echo) return {};
  const Prompt& prompt = request_.prompts[index / static_cast<size_t>(request_.options.answers)];
  if (const auto* text = std::get_if<std::string>(&prompt)) return *text;
  return model_->needs_tokenizer().decode(std::get<std::vector<int32_t>>(prompt));
}

// Adds calls to a message, in the older form with one call if the request has `functions`. Returns
// the reason of the end.
const char* GenerationJob::put_calls(Json calls, Json& message) const {
  if (!request_.functions) {
    message["tool_calls"] = std::move(calls);
    return "tool_calls";
  }
  message["function_call"] = calls[0]["function"];
  return "function_call";
}

std::string GenerationJob::whole_choice(size_t index, const infer::Generation& generation) {
  LogprobList& logprobs = choices_[index].logprobs;
  if (wants_logprobs()) {
    for (size_t i = 0; i < generation.logprobs.size() && i < generation.ids.size(); ++i) {
      logprobs.add(generation.ids[i], generation.logprobs[i]);
    }
  }
  Json choice = {{"index", index}};
  const char* reason = finish_reason(generation.finish);
  if (head_.chat) {
    ToolCalls found =
        calls_ ? find_tool_calls(generation.text, *calls_) : ToolCalls{generation.text};
    Json message = {{"role", "assistant"}, {"content", found.text}, {"refusal", nullptr}};
    if (!found.calls.empty()) {
      if (found.text.empty()) message["content"] = nullptr;
      reason = put_calls(std::move(found.calls), message);
    }
    choice["message"] = std::move(message);
  } else {
    choice["text"] = echoed(index) + generation.text;
  }
  choice["finish_reason"] = reason;
  return json_object(choice, extras(choices_[index], generation.ids));
}

void GenerationJob::begin_choice(size_t index) {
  if (!streaming_) {
    streaming_ = true;
    http::Response head;
    head.content_type = "text/event-stream; charset=utf-8";
    head.headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}};
    exchange_->begin(std::move(head));
  }
  choices_[index].begun = true;
  if (head_.chat) {
    send_chunk(json_line({{"index", index},
                          {"delta", {{"role", "assistant"}, {"content", ""}}},
                          {"logprobs", nullptr},
                          {"finish_reason", nullptr}}));
  } else if (const std::string text = echoed(index); !text.empty()) {
    const Json echo = {{"index", index}, {"text", text}, {"finish_reason", nullptr}};
    send_chunk(json_object(echo, {{"logprobs", choices_[index].logprobs.take()}}));
  }
}

void GenerationJob::send_chunk(const std::string& choice) {
  Json object = head_.object(true);
  if (request_.include_usage) object["usage"] = nullptr;
  exchange_->write(sse_event(json_object(object, {{"choices", "[" + choice + "]"}})));
}

Members GenerationJob::extras(Choice& choice, const std::vector<int32_t>& ids) const {
  Members members = {{"logprobs", choice.logprobs.take()}};
  if (request_.return_ids)
    members.emplace_back("token_ids", fmt::format("[{}]", fmt::join(ids, ",")));
  if (std::string traced = choice.trace.take(); !traced.empty()) {
    members.emplace_back("fovea", std::move(traced));
  }
  return members;
}

void GenerationJob::stream_event(size_t index, const infer::Event& event) {
  Choice& choice = choices_[index];
  if (!choice.begun) begin_choice(index);
  if (event.id >= 0) {
    choice.ids.push_back(event.id);
    if (wants_logprobs() && event.logprob != nullptr) choice.logprobs.add(event.id, *event.logprob);
  }
  const std::string text = calls_ ? choice.filter.add(event.text) : std::string(event.text);
  if (!text.empty()) stream_piece(index, text);
}

void GenerationJob::stream_piece(size_t index, const std::string& text) {
  Choice& choice = choices_[index];
  Json json = {{"index", index}};
  if (head_.chat) {
    json["delta"] = {{"content", text}};
  } else {
    json["text"] = text;
  }
  json["finish_reason"] = nullptr;
  send_chunk(json_object(json, extras(choice, std::exchange(choice.ids, {}))));
}

void GenerationJob::stream_end(size_t index, const infer::Generation& generation) {
  Choice& choice = choices_[index];
  const char* reason = finish_reason(generation.finish);
  if (calls_) {
    const ToolCalls found = find_tool_calls(choice.filter.held(), *calls_);
    if (!found.text.empty()) stream_piece(index, found.text);
    Json calls = Json::array();
    for (size_t i = 0; i < found.calls.size(); ++i) {
      Json call = {{"index", i}};
      call.update(found.calls[i]);
      calls.push_back(std::move(call));
    }
    if (!calls.empty()) {
      Json delta = Json::object();
      reason = put_calls(std::move(calls), delta);
      const Json json = {{"index", index}, {"delta", delta}, {"finish_reason", nullptr}};
      send_chunk(json_object(json, {{"logprobs", choice.logprobs.take()}}));
    }
  }
  Json json = {{"index", index}};
  if (head_.chat) {
    json["delta"] = Json::object();
  } else {
    json["text"] = "";
  }
  json["finish_reason"] = reason;
  send_chunk(json_object(json, extras(choice, std::exchange(choice.ids, {}))));
}

void GenerationJob::finish_stream() {
  if (request_.include_usage) {
    Json object = head_.object(true);
    object["choices"] = Json::array();
    object["usage"] = counts_.json();
    object["timings"] = timings_;
    exchange_->write(sse_event(json_line(object)));
  }
  exchange_->write(sse_event("[DONE]"));
  exchange_->finish();
}

void GenerationJob::finish() {
  if (request_.stream) return finish_stream();
  Json object = head_.object(false);
  object["usage"] = counts_.json();
  object["timings"] = timings_;
  Members members;
  std::string& choices = members.emplace_back("choices", "[").second;
  choices.reserve(held_bytes_ + whole_.size() + 2);
  for (std::string& choice : whole_) {
    if (choices.size() > 1) choices += ',';
    choices += std::exchange(choice, {});
  }
  choices += ']';
  exchange_->send({200, "application/json", {}, json_object(object, members)});
}

}  // namespace fovea::serve

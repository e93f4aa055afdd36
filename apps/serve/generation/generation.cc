#include "serve/generation/generation.h"
#include "base/ordered_json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "base/stop.h"
#include "serve/generation/tool_calls.h"
#include "serve/request/api_error.h"

namespace fovea::serve {
GenerationJob::GenerationJob(GenerationRequest request, std::unique_ptr<GenerationFormat> format,
                             std::shared_ptr<ServedModel> model,
                             std::shared_ptr<http::Exchange> exchange, Metrics& metrics)
    : request_(std::move(request)),
      format_(std::move(format)),
      model_(std::move(model)),
      exchange_(std::move(exchange)),
      metrics_(metrics),
      call_ids_(request_.identity),
      submissions_(std::make_shared<Submissions>(
          [served = model_](uint64_t number) { served->cancel(number); })) {}

void GenerationJob::start(const PreparedPrompts& prepared) {
  const auto& prompts = prepared.ids;
  if (const auto* generator = model_->find<TextGenerator>(); generator && generator->chat)
    short_ids_ = generator->chat->habits.short_ids;
  // In an encoder-decoder, the encoder reads the prompt; the decoder begins with a token of empty
  // text.
  const std::vector<int32_t> start = {-1};
  open_ = prompts.size() * static_cast<size_t>(request_.options.generations);
  for (size_t i = 0; i < open_; ++i) {
    const auto& prompt = prompts[i / static_cast<size_t>(request_.options.generations)];
    choices_.push_back({LogprobList(model_->tokenizer, format_->logprob_style),
                        AttentionTraceList(request_.trace, model_->tokenizer,
                                           model_->facts.encoder ? start : prompt),
                        text::MessageReader(prepared.message)});
    if (prepared.message.in_reasoning) choices_.back().kind = text::MessagePart::reasoning;
  }
  whole_.resize(open_);
  submissions_->follow(*exchange_);
  if (!prepared.score) return submit_all(prepared);
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
  const size_t index = prompt * static_cast<size_t>(request_.options.generations) +
                       static_cast<size_t>(event.generation);
  Choice& choice = choices_[index];
  if (event.id >= 0) {
    const double now = seconds();
    if (!std::exchange(any_token_, true)) metrics_.first_token(now);
    const double last = std::exchange(choice.last_token, now);
    if (last >= 0) metrics_.next_token(now - last);
  }
  const size_t before = choice.bytes();
  if (event.trace != nullptr) choice.trace.add(event.id, *event.trace);
  if (request_.stream && !choice.begun) begin_choice(index);
  const std::vector<text::MessagePart> parts = choice.reader.add(event.text);
  // The marks before content are none of its tokens.
  if (of_content() && !parts.empty() && parts[0].kind != choice.kind) choice.logprobs.settle(false);
  if (event.id >= 0 && request_.stream) choice.ids.push_back(event.id);
  if (event.id >= 0 && (request_.stream || of_content()) && wants_logprobs() && event.logprob)
    choice.logprobs.add(event.id, *event.logprob);
  read_parts(index, parts);
  totals_.counts.reasoning += event.id >= 0 && choice.kind == text::MessagePart::reasoning;
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
  const auto& score = model_->needs<TextGenerator>().score;
  const auto generations = static_cast<size_t>(request_.options.generations);
  for (size_t p = 0; p < prompts.size(); ++p) {
    const auto found = score(prompts[p], request_.options.logprobs);
    for (size_t i = p * generations; i < (p + 1) * generations; ++i) {
      LogprobList& list = choices_[i].logprobs;
      list.add_first(prompts[p][0]);
      for (size_t n = 1; n < found.size(); ++n) list.add(prompts[p][n], found[n]);
    }
  }
}

void GenerationJob::finish_choice(size_t index, const infer::Event& event) {
  const infer::Generation& generation = *event.finished;
  if (event.generation == 0) {
    totals_.counts.prompt += generation.prompt_tokens;
    if (request_.identity.empty()) totals_.counts.cached += generation.cached_tokens;
  }
  totals_.counts.generated += static_cast<int64_t>(generation.ids.size());
  if (totals_.timings.is_null() && request_.identity.empty())
    totals_.timings = timings_json(generation);
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
    exchange_->write(format_->stream_error(error));
    exchange_->finish();
  } else {
    exchange_->send(error_response(format_->error_shape, error));
  }
}

std::string GenerationJob::whole_choice(size_t index, const infer::Generation& generation) {
  LogprobList& logprobs = choices_[index].logprobs;
  if (wants_logprobs() && !of_content()) {
    for (size_t i = 0; i < generation.logprobs.size() && i < generation.ids.size(); ++i) {
      logprobs.add(generation.ids[i], generation.logprobs[i]);
    }
  }
  Choice& choice = choices_[index];
  read_parts(index, choice.reader.finish());
  if (of_content()) logprobs.settle(false);
  return format_->whole_choice(end_of(index, generation, extras(choice, generation.ids)));
}

ChoiceEnd GenerationJob::end_of(size_t index, const infer::Generation& generation, Members extras) {
  return {index,
          std::move(choices_[index].message),
          generation.finish,
          generation.stop,
          std::move(extras),
          {generation.prompt_tokens, generation.cached_tokens, std::ssize(generation.ids)},
          timings_json(generation)};
}

void GenerationJob::begin_choice(size_t index) {
  if (!streaming_) {
    streaming_ = true;
    http::Response head;
    head.content_type = format_->stream_type;
    head.headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}};
    head.headers.insert(head.headers.end(), request_.headers.begin(), request_.headers.end());
    exchange_->begin(std::move(head));
  }
  choices_[index].begun = true;
  if (std::string first = format_->begin_choice(index, choices_[index].logprobs); !first.empty())
    exchange_->write(std::move(first));
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

// Adds the parts to the message, and streams them.
void GenerationJob::read_parts(size_t index, const std::vector<text::MessagePart>& parts) {
  Choice& choice = choices_[index];
  for (const text::MessagePart& part : parts) {
    add_part(choice.message, part, short_ids_, call_ids_);
    choice.kind = part.kind;
    if (of_content() && !request_.stream) choice.logprobs.settle(part.kind == part.content);
    if (!request_.stream) continue;
    TextPiece piece{index, part.kind, part.text};
    if (part.kind == text::MessagePart::call) {
      piece.call_index = part.call_index;
      piece.call = &choice.message.calls[part.call_index];
      piece.begins_call = part.begins;
    }
    piece.extras = extras(choice, std::exchange(choice.ids, {}));
    if (of_content()) held_bytes_ += piece.extras[0].second.size();  // the format keeps them
    if (std::string written = format_->piece(piece); !written.empty())
      exchange_->write(std::move(written));
  }
}

void GenerationJob::stream_end(size_t index, const infer::Generation& generation) {
  Choice& choice = choices_[index];
  read_parts(index, choice.reader.finish());
  Members rest = extras(choice, std::exchange(choice.ids, {}));
  exchange_->write(format_->end_choice(end_of(index, generation, std::move(rest))));
}

void GenerationJob::finish() {
  if (request_.stream) {
    exchange_->write(format_->end_stream(totals_));
    exchange_->finish();
  } else {
    http::Response response{
        200, "application/json", {}, format_->whole(std::move(whole_), totals_)};
    response.headers = request_.headers;
    exchange_->send(std::move(response));
  }
}

}  // namespace fovea::serve

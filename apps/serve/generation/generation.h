#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "http/http.h"
#include "serve/generation/attention_trace_json.h"
#include "serve/generation/generation_format.h"
#include "serve/generation/prompts.h"
#include "serve/models/metrics.h"
#include "serve/routes/response_ids.h"
#include "serve/routes/response_limits.h"
#include "serve/routes/submissions.h"

namespace fovea::serve {

// A running request for texts. Submits its prompts to the engine, and sends what the format of its
// protocol makes of the events.
class GenerationJob : public std::enable_shared_from_this<GenerationJob> {
 public:
  GenerationJob(GenerationRequest request, std::unique_ptr<GenerationFormat> format,
                std::shared_ptr<ServedModel> model, std::shared_ptr<http::Exchange> exchange,
                Metrics& metrics);

  // Throws ApiError 429 if the engine is full.
  void start(const PreparedPrompts& prompts);

 private:
  struct Choice {
    LogprobList logprobs;
    AttentionTraceList trace;
    text::MessageReader reader;
    Message message = {};
    text::MessagePart::Kind kind = text::MessagePart::content;  // of the last part
    std::vector<int32_t> ids = {};
    bool begun = false;
    double last_token = -1;  // seconds since the request started; -1 = none
    size_t bytes() const { return logprobs.bytes() + trace.bytes(); }
  };

  void score_and_submit(const PreparedPrompts& prompts);
  void submit_all(const PreparedPrompts& prompts);
  bool submit(size_t number, const infer::ImagePrompt& prompt);
  bool take(size_t prompt, const infer::Event& event);
  void finish_choice(size_t index, const infer::Event& event);
  double seconds() const;  // seconds since the request started
  void read_parts(size_t index, const std::vector<text::MessagePart>& parts);
  void stream_end(size_t index, const infer::Generation& generation);
  void begin_choice(size_t index);
  // Returns the members of a choice besides its text: log-probabilities, token ids and traces.
  Members extras(Choice& choice, const std::vector<int32_t>& ids) const;
  std::string whole_choice(size_t index, const infer::Generation& generation);
  ChoiceEnd end_of(size_t index, const infer::Generation& generation, Members extras);
  void fail(const ApiError& error);
  void finish();
  bool wants_logprobs() const { return request_.options.logprobs >= 0; }
  bool of_content() const { return format_->logprob_style == LogprobStyle::content; }
  // Adds the log-probabilities of the prompts to the choices.
  void score_prompts(const std::vector<std::vector<int32_t>>& prompts);

  GenerationRequest request_;
  const std::unique_ptr<GenerationFormat> format_;
  std::shared_ptr<ServedModel> model_;
  std::shared_ptr<http::Exchange> exchange_;
  Metrics& metrics_;
  bool short_ids_ = true;  // of calls
  ResponseIds call_ids_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();

  // The following members are used on the engine's thread only.
  std::vector<Choice> choices_;
  std::vector<std::string> whole_;  // texts of a response that is not streamed
  HeldBytes held_;
  size_t held_bytes_ = 0;  // bytes of whole_ and of finished choices
  GenerationTotals totals_;
  size_t open_ = 0;  // number of unfinished choices
  bool streaming_ = false, failed_ = false, any_token_ = false;

  const std::shared_ptr<Submissions> submissions_;
};

}  // namespace fovea::serve

#include "serve/protocols/llama_format.h"

#include <utility>

namespace fovea::serve {
namespace {

const char* stop_type(infer::FinishReason finish) {
  if (finish == infer::FinishReason::length) return "limit";
  return finish == infer::FinishReason::stop ? "word" : "eos";
}

class LlamaFormat : public GenerationFormat {
 public:
  LlamaFormat(Json settings, std::string model)
      : GenerationFormat(LogprobStyle::list, ErrorShape::openai,
                         "text/event-stream; charset=utf-8"),
        settings_(std::move(settings)),
        model_(std::move(model)) {
    settings_["model"] = model_;
  }

  std::string begin_choice(size_t, LogprobList&) override { return {}; }

  std::string piece(const TextPiece& piece) override {
    const Json json = {
        {"index", piece.choice}, {"content", piece.text}, {"id_slot", -1}, {"stop", false}};
    return sse_event(json_object(json, renamed_members(piece.extras)));
  }

  std::string end_choice(ChoiceEnd end) override {
    end.message.content.clear();  // the pieces had it
    return sse_event(whole_choice(std::move(end)));
  }

  std::string end_stream(const GenerationTotals&) override { return {}; }

  std::string stream_error(const ApiError& error) override {
    return sse_event(openai_error(error));
  }

  std::string whole_choice(ChoiceEnd end) override {
    const bool line = end.message.content.find('\n') != std::string::npos;
    const Json json = {{"index", end.choice},
                       {"content", std::move(end.message.content)},
                       {"id_slot", -1},
                       {"stop", true},
                       {"model", model_},
                       {"tokens_predicted", end.counts.generated},
                       {"tokens_evaluated", end.counts.prompt},
                       {"tokens_cached", end.counts.cached},
                       {"generation_settings", settings_},
                       {"has_new_line", line},
                       {"truncated", false},
                       {"stop_type", stop_type(end.finish)},
                       {"stopping_word", end.stop},
                       {"timings", end.timings}};
    return json_object(json, renamed_members(end.extras));
  }

  // One object, or an array of several.
  std::string whole(std::vector<std::string> choices, const GenerationTotals&) override {
    if (choices.size() == 1) return std::move(choices[0]) + "\n";
    std::string list = "[";
    for (std::string& choice : choices) {
      if (list.size() > 1) list += ',';
      list += std::exchange(choice, {});
    }
    return list + "]\n";
  }

 private:
  static Members renamed_members(const Members& extras) {
    Members members;
    std::string tokens = "[]";
    for (const auto& [name, value] : extras) {
      if (std::string_view(name) == "token_ids")
        tokens = value;
      else if (std::string_view(name) != "logprobs")
        members.emplace_back(name, value);
      else if (value != "null")
        members.emplace_back("completion_probabilities", value);
    }
    members.emplace_back("tokens", std::move(tokens));
    return members;
  }

  Json settings_;
  const std::string model_;
};

}  // namespace

std::unique_ptr<GenerationFormat> llama_completion(const LlamaCompletionRequest& request,
                                                   std::string model, int64_t context) {
  return std::make_unique<LlamaFormat>(llama_settings(request.options, request.stream, context),
                                       std::move(model));
}

Json llama_settings(const infer::GenerateOptions& options, bool stream, int64_t context) {
  const infer::Sampling& sampling = options.sampling;
  return {{"n_predict", options.max_tokens},
          {"n_ctx", context},
          {"seed", sampling.seed},
          {"temperature", sampling.temperature},
          {"top_k", sampling.top_k},
          {"top_p", sampling.top_p},
          {"min_p", sampling.min_p},
          {"typical_p", sampling.typical_p},
          {"repeat_penalty", sampling.repetition_penalty},
          {"presence_penalty", sampling.presence_penalty},
          {"frequency_penalty", sampling.frequency_penalty},
          {"mirostat", sampling.mirostat},
          {"stop", options.stop},
          {"ignore_eos", options.ignore_end},
          {"stream", stream}};
}

}  // namespace fovea::serve

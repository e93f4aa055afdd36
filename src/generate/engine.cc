#include "generate/engine.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/error.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// A model needs something to go on from: the end-of-text token, else a line break, else the
// vocabulary's first.
std::vector<int32_t> beginning(const Tokenizer& tokenizer) {
  if (const auto end = tokenizer.eos_id()) return {*end};
  if (tokenizer.unknown("\n").empty()) return tokenizer.encode("\n");
  return {0};
}

}  // namespace

Engine::Engine(const Transformer& model, DType compute)
    : model_(model),
      compute_(compute),
      cache_(model.spec.decoder->layers, 1, model.spec.context,
             model.spec.decoder->attention.kv_heads, model.spec.decoder->attention.head_width,
             compute) {}

void Engine::read(const std::vector<int32_t>& tokens) {
  const size_t context = static_cast<size_t>(model_.spec.context);
  for (const int32_t token : tokens) {
    check(token >= 0 && token < vocabulary(), "prompt: token id {}; expected 0 to {}", token,
          vocabulary() - 1);
  }
  window_.insert(window_.end(), tokens.begin(), tokens.end());
  if (window_.size() <= context) return forward(tokens);
  const size_t kept = std::max<size_t>(1, context / 2);
  window_.erase(window_.begin(), window_.end() - static_cast<std::ptrdiff_t>(kept));
  cache_.clear();
  forward(window_);
}

void Engine::forward(const std::vector<int32_t>& tokens) {
  const NoGradient off;
  const int64_t T = static_cast<int64_t>(tokens.size());
  const Tensor ids = empty({1, T}, DType::i32);
  std::copy(tokens.begin(), tokens.end(), ids.data_as<int32_t>());
  Pass pass;
  pass.compute = compute_;
  pass.cache = &cache_;
  const Tensor hidden = model_.hidden(ids, pass);                           // [1, T, C]
  logits_ = model_.logits(hidden.view({T, hidden.dim(2)}).rows(T - 1, T));  // [1, V]
}

std::string StopWatch::add(std::string_view piece) {
  if (stopped_) return {};
  held_ += piece;
  // The one that is complete first stops, however the text was cut into pieces; of several, the
  // longest.
  size_t first = std::string::npos, complete = std::string::npos;
  for (const std::string& stop : stops_) {
    const size_t begin = stop.empty() ? std::string::npos : held_.find(stop);
    if (begin == std::string::npos) continue;
    const size_t end = begin + stop.size();
    if (end < complete || (end == complete && begin < first)) first = begin, complete = end;
  }
  std::string sure;
  if (first != std::string::npos) {
    stopped_ = true;
    sure = held_.substr(0, first);
    held_.clear();
    return sure;
  }
  // Hold back the longest end that is the beginning of a stop string.
  size_t keep = 0;
  for (const std::string& stop : stops_) {
    for (size_t n = std::min(stop.size() - !stop.empty(), held_.size()); n > keep; --n)
      if (std::string_view(held_).substr(held_.size() - n) == std::string_view(stop).substr(0, n))
        keep = n;
  }
  sure = held_.substr(0, held_.size() - keep);
  held_.erase(0, held_.size() - keep);
  return sure;
}

std::string StopWatch::finish() { return std::exchange(held_, {}); }

std::string continue_tokens(Engine& engine, const std::vector<int32_t>& prompt,
                            const GenerateOptions& options, const std::vector<int32_t>& end_ids,
                            Generation& result, const std::function<bool(int32_t)>& next) {
  check(options.max_tokens >= -1, "-n: {}; expected -1 (until the end) or more",
        options.max_tokens);
  check(!prompt.empty(), "prompt: no tokens; expected at least one");
  Sampler sample(options.sampling);
  auto start = std::chrono::steady_clock::now();
  engine.read(prompt);
  result.prompt_tokens = static_cast<int64_t>(prompt.size());
  result.prompt_seconds = seconds_since(start);

  start = std::chrono::steady_clock::now();
  std::vector<int32_t> seen = prompt;
  std::string finish = "length";
  for (int64_t n = 0; options.max_tokens < 0 || n < options.max_tokens; ++n) {
    if (n > 0) engine.read({seen.back()});
    const int32_t token = sample(engine.logits(), engine.vocabulary(), seen);
    if (!options.ignore_end && std::find(end_ids.begin(), end_ids.end(), token) != end_ids.end()) {
      finish = "end";
      break;
    }
    seen.push_back(token);
    result.ids.push_back(token);
    if (!next(token)) {
      finish = "stop";
      break;
    }
  }
  result.generation_seconds = seconds_since(start);
  return finish;
}

Generation generate_ids(const Transformer& model, DType compute,
                        const std::vector<int32_t>& end_ids, const std::vector<int32_t>& prompt,
                        const GenerateOptions& options) {
  Generation result;
  Engine engine(model, compute);
  result.finish =
      continue_tokens(engine, prompt, options, end_ids, result, [](int32_t) { return true; });
  return result;
}

Generation generate_text(const Transformer& model, const Tokenizer& tokenizer, DType compute,
                         const std::vector<int32_t>& end_ids, const std::string& prompt,
                         const GenerateOptions& options, const TextSink& stream) {
  Generation result;
  std::vector<int32_t> ids = tokenizer.encode(prompt);
  if (ids.empty()) ids = beginning(tokenizer);
  StreamingDecoder decoder(tokenizer);
  StopWatch watch(options.stop);
  const auto emit = [&](const std::string& sure) {
    result.text += sure;
    return sure.empty() || !stream || stream(sure);
  };
  Engine engine(model, compute);
  result.finish = continue_tokens(engine, ids, options, end_ids, result, [&](int32_t token) {
    const bool wanted = emit(watch.add(decoder.add(token)));
    return wanted && !watch.stopped();
  });
  if (!watch.stopped()) {
    emit(watch.add(decoder.finish()));
    emit(watch.finish());
  }
  return result;
}

}  // namespace fovea

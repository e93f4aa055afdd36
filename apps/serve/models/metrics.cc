#include "serve/models/metrics.h"

#include <fmt/format.h>

namespace fovea::serve {
namespace {

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

void head(std::string& out, const char* name, const char* type, const char* help) {
  out += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
}

template <class Status>
struct Gauge {
  const char *name, *type, *help;
  int64_t Status::* value;
};

constexpr Gauge<infer::EngineStatus> kEngineGauges[] = {
    {"fovea_sequences_running", "gauge", "Sequences that are being generated.",
     &infer::EngineStatus::running},
    {"fovea_requests_waiting", "gauge", "Requests that wait.", &infer::EngineStatus::waiting},
    {"fovea_cache_bytes", "gauge", "Size of the key-value cache.",
     &infer::EngineStatus::cache_bytes},
    {"fovea_cache_used_bytes", "gauge", "Used bytes of the key-value cache.",
     &infer::EngineStatus::cache_used_bytes},
    {"fovea_generations_total", "counter", "Accepted prompts.", &infer::EngineStatus::requests},
    {"fovea_prompt_tokens_total", "counter", "Prompt tokens.", &infer::EngineStatus::prompt_tokens},
    {"fovea_cached_tokens_total", "counter", "Prompt tokens found in the cache.",
     &infer::EngineStatus::cached_tokens},
    {"fovea_generated_tokens_total", "counter", "Generated tokens.",
     &infer::EngineStatus::generated_tokens},
    {"fovea_steps_total", "counter", "Forward passes.", &infer::EngineStatus::steps},
    {"fovea_speculative_tokens_total", "counter", "Speculative tokens checked.",
     &infer::EngineStatus::speculative_tokens},
    {"fovea_accepted_tokens_total", "counter", "Speculative tokens accepted.",
     &infer::EngineStatus::accepted_tokens},
};

// Metrics of models that compute vectors or scores.
constexpr Gauge<infer::QueueStatus> kQueueGauges[] = {
    {"fovea_queue_waiting", "gauge", "Requests that wait.", &infer::QueueStatus::waiting},
    {"fovea_queue_waiting_tokens", "gauge", "Tokens that wait.",
     &infer::QueueStatus::waiting_tokens},
    {"fovea_queue_requests_total", "counter", "Accepted requests.", &infer::QueueStatus::requests},
    {"fovea_queue_tokens_total", "counter", "Tokens computed.", &infer::QueueStatus::tokens},
    {"fovea_queue_batches_total", "counter", "Batches computed.", &infer::QueueStatus::batches},
};

template <class Status, size_t count>
void write(std::string& out, const Gauge<Status> (&gauges)[count],
           const std::vector<std::pair<std::string, Status>>& statuses) {
  if (statuses.empty()) return;
  for (const Gauge<Status>& gauge : gauges) {
    head(out, gauge.name, gauge.type, gauge.help);
    for (const auto& [model, status] : statuses) {
      out +=
          fmt::format("{}{{model=\"{}\"}} {}\n", gauge.name, escaped(model), status.*gauge.value);
    }
  }
}

}  // namespace

void Histogram::add(double seconds) {
  size_t bucket = 0;
  while (bucket < kBounds.size() && seconds > kBounds[bucket]) ++bucket;
  ++counts_[bucket];
  sum_ += seconds;
}

void Histogram::write(std::string& out, const std::string& name) const {
  uint64_t count = 0;
  for (size_t i = 0; i < kBounds.size(); ++i) {
    count += counts_[i];
    out += fmt::format("{}_bucket{{le=\"{}\"}} {}\n", name, kBounds[i], count);
  }
  count += counts_.back();
  out +=
      fmt::format("{0}_bucket{{le=\"+Inf\"}} {1}\n{0}_sum {2}\n{0}_count {1}\n", name, count, sum_);
}

void Metrics::request(const http::AccessRecord& record) {
  const std::lock_guard lock(mutex_);
  // Unknown paths would let the table grow without limit.
  ++requests_[{record.route.empty() ? "other" : record.route, record.status}];
  durations_.add(record.seconds);
}

void Metrics::first_token(double seconds) {
  const std::lock_guard lock(mutex_);
  first_tokens_.add(seconds);
}

void Metrics::next_token(double seconds) {
  const std::lock_guard lock(mutex_);
  next_tokens_.add(seconds);
}

std::string Metrics::text(const std::vector<std::shared_ptr<ServedModel>>& models) const {
  std::vector<std::pair<std::string, infer::EngineStatus>> engines;
  std::vector<std::pair<std::string, infer::QueueStatus>> queues;
  for (const auto& model : models) {
    const std::string& name = model->facts.name;
    std::visit(
        [&](const auto& part) {
          if constexpr (requires { part.queue; })
            if (part.queue) queues.emplace_back(name, part.queue->status());
          if constexpr (requires { part.labels; })
            if (part.labels.queue) queues.emplace_back(name, part.labels.queue->status());
          if constexpr (requires { part.engine; })  // an adapter uses the engine of its base
            if (part.engine && model->facts.parent.empty())
              engines.emplace_back(name, part.engine->status());
        },
        model->part);
  }
  std::string out;
  write(out, kEngineGauges, engines);
  write(out, kQueueGauges, queues);
  const std::lock_guard lock(mutex_);
  head(out, "fovea_http_requests_total", "counter", "HTTP requests by route and status.");
  for (const auto& [key, count] : requests_) {
    out += fmt::format("fovea_http_requests_total{{path=\"{}\",status=\"{}\"}} {}\n",
                       escaped(key.first), key.second, count);
  }
  head(out, "fovea_http_request_seconds", "histogram",
       "Time from a request to the end of its response.");
  durations_.write(out, "fovea_http_request_seconds");
  head(out, "fovea_time_to_first_token_seconds", "histogram",
       "Time from a request to its first token.");
  first_tokens_.write(out, "fovea_time_to_first_token_seconds");
  head(out, "fovea_time_per_output_token_seconds", "histogram",
       "Time from a token to the next one of the same choice.");
  next_tokens_.write(out, "fovea_time_per_output_token_seconds");
  return out;
}

}  // namespace fovea::serve

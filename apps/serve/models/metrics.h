#pragma once

#include <array>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "http/http_server.h"
#include "serve/models/served_model.h"

namespace fovea::serve {

// A histogram of seconds in Prometheus' bucket format.
class Histogram {
 public:
  void add(double seconds);
  void write(std::string& out, const std::string& name) const;

 private:
  static constexpr std::array<double, 15> kBounds = {
      0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60, 600};
  std::array<uint64_t, kBounds.size() + 1> counts_ = {};
  double sum_ = 0;
};

// The counters of /metrics. All functions may be called from any thread.
class Metrics {
 public:
  void request(const http::AccessRecord& record);
  void first_token(double seconds);
  void next_token(double seconds);  // since the token before it
  // Returns all metrics in Prometheus' text format.
  std::string text(const std::vector<std::shared_ptr<ServedModel>>& models) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, uint64_t> requests_;  // by route and status
  Histogram durations_, first_tokens_, next_tokens_;
};

}  // namespace fovea::serve

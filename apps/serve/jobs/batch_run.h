#pragma once

#include <functional>

#include "http/router.h"
#include "jobs/line_job.h"
#include "serve/jobs/batch_line.h"

namespace fovea::serve {

// Answers lines of requests by the routes of an API.
struct BatchRun {
  const http::Router& router;
  std::string identity;           // of the run: ids of lines are made from it and their number
  bool bare = false;              // lines may be bodies: see read_batch_line()
  std::string name = {};          // of the file in errors; empty = its path
  std::function<bool()> stopped;  // whether the run ends now

  // Returns the output of the block's lines, which are answered at the same time. Requests for
  // which there is no room are repeated. Throws Stopped once stopped() returns true.
  jobs::BlockResult answer(const jobs::LineBlock& block) const;

 private:
  std::string id_of(size_t line) const;
  http::Request request_of(const BatchLine& line, const std::string& id) const;
  http::Response response_to(const BatchLine& line, const std::string& id) const;
};

}  // namespace fovea::serve

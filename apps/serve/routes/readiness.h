#pragma once

#include <atomic>

#include "http/router.h"

namespace fovea::serve {

// Whether the server wants requests. A load balancer learns it from /health, and sends them to
// another server while this one loads its models or is about to stop.
enum class Readiness { loading, ready, draining };

// Adds /health and /v1/health, which say 503 unless the server is ready. `readiness` must outlive
// the router.
void add_health_routes(http::Router& router, const std::atomic<Readiness>& readiness);
// Returns the routes of a server whose models are not open yet: every other path says 503 too.
http::Router loading_router(const std::atomic<Readiness>& readiness);

}  // namespace fovea::serve

#include "jobs/heartbeat.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace fovea::jobs {
namespace {

using namespace std::chrono_literals;

constexpr auto kInterval = 1s;

const char* name_of(Activity activity) {
  switch (activity) {
    case Activity::preparing: return "before the first step";
    case Activity::computing: return "in forward and backward";
    case Activity::exchanging: return "waiting for the others";
    case Activity::evaluating: return "evaluating";
    case Activity::writing: return "writing files";
  }
  return "";
}

// Returns "in forward and backward of step 12 for 61 s" and the like.
std::string describe(const Beat& beat) {
  if (beat.step < 0) return name_of(beat.activity);
  return fmt::format("{} {} step {} for {:.0f} s", name_of(beat.activity),
                     beat.activity == Activity::computing ? "of" : "at", beat.step, beat.seconds);
}

}  // namespace

Heartbeat::Heartbeat(Communicator& ranks, std::function<std::string(int)> name,
                     std::chrono::duration<double> silence)
    : ranks_(ranks), name_(std::move(name)), silence_(silence) {
  for (int rank = 0; rank < ranks.size(); ++rank)
    if (rank != ranks.rank() && (ranks.rank() == 0 || rank == 0))
      others_.push_back({.rank = rank, .heard = Clock::now()});
}

std::string Heartbeat::pulse() {
  receive();
  if (Clock::now() - sent_ >= kInterval) send(ranks_.beat());
  std::string wrong = silent();
  return wrong.empty() ? stalled() : wrong;
}

void Heartbeat::leave() {
  Beat last = ranks_.beat();
  last.leaves = true;
  send(last);
}

void Heartbeat::send(const Beat& beat) {
  sent_ = Clock::now();
  for (const Other& other : others_) ranks_.send_beat(other.rank, beat);
}

void Heartbeat::receive() {
  while (const std::optional<Beat> beat = ranks_.receive_beat()) {
    for (Other& other : others_) {
      if (other.rank != beat->from) continue;
      other.heard = Clock::now();
      other.beat = *beat;
    }
  }
}

std::string Heartbeat::silent() const {
  for (const Other& other : others_) {
    const std::chrono::duration<double> since = Clock::now() - other.heard;
    if (!other.beat.leaves && since > silence_)
      return fmt::format("{}: no sign of life for {:.0f} s, last {}", name_(other.rank),
                         since.count(), describe(other.beat));
  }
  return {};
}

// A rank that computes longest holds up the others. If all wait, the network does not move data.
std::string Heartbeat::stalled() const {
  if (ranks_.rank() != 0) return {};
  std::vector<Beat> beats = {ranks_.beat()};
  for (const Other& other : others_) beats.push_back(other.beat);
  const auto waits = [](const Beat& beat) { return beat.activity == Activity::exchanging; };
  const auto waiting = std::ranges::count_if(beats, waits);
  const bool all = waiting == std::ssize(beats);
  const auto others = waiting - (all ? 1 : 0);
  for (const Beat& beat : beats) {
    if (beat.allowed == 0 || beat.seconds <= beat.allowed || beat.step < 0) continue;
    if (!all && beat.activity != Activity::computing) continue;
    return fmt::format("{}: {}; {} for it", name_(beat.from), describe(beat),
                       others == 1 ? "1 other waits" : fmt::format("{} others wait", others));
  }
  return {};
}

}  // namespace fovea::jobs

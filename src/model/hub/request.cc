#include "hub/request.h"

#include <chrono>
#include <cmath>
#include <thread>

#include "base/error.h"

namespace fovea::model {
namespace {

constexpr int kMostFailures = 6;      // without progress: half a minute in all
constexpr double kFirstWait = 0.5;    // seconds, doubled each time
constexpr double kLongestWait = 300;  // that a server may ask for

bool passes(int status) {
  return status == 408 || status == 425 || status == 429 || (status >= 500 && status != 501);
}

std::string header(const HttpResponse& response, const char* name) {
  const auto found = response.headers.find(name);
  return found == response.headers.end() ? "" : found->second;
}

double requested_wait(const HttpResponse& response) {
  const std::string text = header(response, "retry-after");
  if (text.empty() || text.size() > 6 || text.find_first_not_of("0123456789") != text.npos)
    return 0;
  return std::stod(text);
}

// The Hub answers 401 for a repository that does not exist, as it could be a private one.
[[noreturn]] void refuse(const HttpResponse& response, const std::string& what) {
  const std::string code = header(response, "x-error-code");
  if (code == "GatedRepo")
    fail(ErrorKind::Failed,
         "{}: is for those who have accepted its terms; expected that you accept them on its page, "
         "and set HF_TOKEN to your token",
         what);
  if (code == "RevisionNotFound")
    fail(ErrorKind::BadFile, "{}: has no such revision; expected a branch, a tag or a commit",
         what);
  if (code == "EntryNotFound") fail(ErrorKind::BadFile, "{}: has no such file", what);
  if (response.status == 401 || response.status == 404)
    fail(ErrorKind::BadFile,
         "{}: is not at the Hub, or is private; expected USER/NAME of a repository there, or "
         "HF_TOKEN with the token of somebody who may read it",
         what);
  if (response.status == 403)
    fail(ErrorKind::Failed, "{}: the token may not read it (status 403); expected another HF_TOKEN",
         what);
  if (response.status >= 400)
    fail(ErrorKind::Failed, "{}: the server answers with status {}", what, response.status);
  fail(ErrorKind::Failed, "{}: {}; what has been fetched is kept for the next pull", what,
       response.error.empty() ? "the connection ends early" : response.error);
}

}  // namespace

std::string url_encoded(const std::string& path, bool slashes) {
  std::string out;
  for (const char c : path) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.' || c == '~' || (slashes && c == '/');
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

HttpRequest request_to(const std::string& path, const HubSettings& settings) {
  HttpRequest request;
  request.url = settings.endpoint + "/" + path;
  request.token = settings.token;
  request.only_tls = settings.endpoint.starts_with("https://");
  return request;
}

bool Patience::wait(const HttpResponse& response, bool progress, const std::string& what,
                    const std::function<void(const std::string&)>& tell,
                    const std::function<bool()>& tick) {
  if (progress) failures_ = 0;
  const double requested = requested_wait(response);
  const bool broken = response.status < 400 && !response.final;
  if ((!broken && !passes(response.status)) || ++failures_ > kMostFailures ||
      requested > kLongestWait)
    refuse(response, what);
  const double seconds = requested > 0 ? requested
                         : progress    ? 0
                                       : std::ldexp(kFirstWait, failures_ - 1);
  if (seconds >= 1)
    tell(fmt::format(
        "{}: {}; next try in {:.0f} s", what,
        response.status >= 400 ? fmt::format("status {}", response.status) : response.error,
        seconds));
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  while (Clock::now() < end) {
    if (!tick()) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return tick();
}

}  // namespace fovea::model

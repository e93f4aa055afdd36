#include "inspector/mount.h"

namespace fovea::inspector {
namespace {

// The page may load only files of this server, and only its own page, for the course, may embed it
// in a frame.
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-src 'self'; "
    "frame-ancestors 'self'";

void handle(Routes& routes, http::Request request, http::Exchange& exchange) {
  Answer answer = routes.answer(
      {request.method, request.rest, std::move(request.query), std::move(request.body)});
  http::Response response{answer.status, std::move(answer.type), {}, std::move(answer.body)};
  response.headers = {{"Content-Security-Policy", kPolicy},
                      {"X-Content-Type-Options", "nosniff"},
                      {"Referrer-Policy", "no-referrer"},
                      {"Cache-Control", "no-store"}};
  exchange.send(std::move(response));
}

}  // namespace

void mount(http::Router& router, const std::string& prefix, Routes& routes) {
  const http::Handler handler = [&routes](http::Request request,
                                          const std::shared_ptr<http::Exchange>& exchange) {
    handle(routes, std::move(request), *exchange);
  };
  router.add({"GET", prefix, true, handler});
  http::Route picture{
      "POST", prefix + kPicturePath, true,
      [&routes](http::Request request, const std::shared_ptr<http::Exchange>& exchange) {
        request.rest = kPicturePath;
        handle(routes, std::move(request), *exchange);
      }};
  picture.most_body = kMostPictureBody;
  router.add(std::move(picture));
  for (const char* method : {"GET", "POST"}) router.add({method, prefix + "{rest}", true, handler});
}

}  // namespace fovea::inspector

// The first line is a route of the inspector, the others are NAME=VALUE of its query, about a run
// of a small model. Any query gives a response, or an error for the client.

#include <algorithm>
#include <map>
#include <string>

#include "fuzz.h"
#include "inspector/routes.h"
#include "small_model.h"

namespace fovea::inspector {
namespace {

Routes& routes() {
  static Routes small(
      "small",
      small_model(test::small_decoder({.context = 8, .width = 12, .layers = 2, .heads = 2})));
  static const Response run = small.respond({"POST", "api/run", {}, R"({"text": "a b a"})"});
  require(run.status == 200, "the model reads words");
  return small;
}

std::string_view take_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  return line;
}

}  // namespace
}  // namespace fovea::inspector

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fovea::inspector;
  std::string_view rest = fovea::text_of(data, size);
  const std::string path(take_line(rest));
  std::map<std::string, std::string> query = {{"model", "0"}, {"run", "r1"},  {"other", "r1"},
                                              {"layer", "0"}, {"heads", "0"}, {"head", "0"},
                                              {"token", "0"}};
  while (!rest.empty()) {
    const std::string_view line = take_line(rest);
    const size_t equal = std::min(line.find('='), line.size());
    query[std::string(line.substr(0, equal))] = line.substr(std::min(equal + 1, line.size()));
  }
  const int status = routes().respond({"GET", path, query, ""}).status;
  fovea::require(status == 200 || (status >= 400 && status < 500), "the status is a client error");
  return 0;
}

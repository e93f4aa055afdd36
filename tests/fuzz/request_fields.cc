// The JSON of a request, for the route that the first byte names: options in their bounds, or an
// error that a client can read.

#include "fuzz.h"
#include "serve/fields.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fovea::serve;
  if (size == 0) return 0;
  const std::vector<FieldsOf>& routes = routes_with_fields();
  const unsigned route = routes[data[0] % routes.size()].of;
  try {
    ApiRequest request;
    read_fields(parse_body(std::string(fovea::text_of(data + 1, size - 1))), route, 100, request);
    fovea::require(request.options.sampling.temperature >= 0, "a temperature in its bounds");
    for (const int32_t id : request.ids) fovea::require(id >= 0 && id < 100, "a token id");
  } catch (const ApiError& error) {
    fovea::require(error.status >= 400 && error.status < 500, "the client's fault");
    fovea::require(!error.message.empty() && error.message.find('\n') == std::string::npos,
                   "an error is one line");
  }
  return 0;
}

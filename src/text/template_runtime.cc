#include "text/template_runtime.h"

namespace fovea::jinja {

void Runtime::refuse(ErrorKind kind, const std::string& message) const {
  // Templates write raise_exception messages over several lines; an error is one line.
  std::string line = message;
  std::replace(line.begin(), line.end(), '\n', ' ');
  fovea::fail(kind, "{}: line {}, column {}: {}", name_, place.line, place.column, line);
}

void Runtime::out_of_steps() const {
  fail("the template takes more than {} steps; expected one that ends sooner", limits_.steps);
}

void Runtime::too_long(size_t bytes) const {
  fail("the template makes a text of {} bytes; expected at most {}", bytes, limits_.output_bytes);
}

}  // namespace fovea::jinja

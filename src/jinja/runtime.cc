#include "jinja/runtime.h"

#include "jinja/lexer.h"

namespace fovea::jinja {

void Runtime::refuse(ErrorKind kind, const std::string& message) const {
  refuse_source(kind, name_, place, message);
}

void Runtime::out_of_steps() const {
  fail("the template takes more than {} steps; expected one that ends sooner", limits_.steps);
}

void Runtime::too_long(size_t bytes) const {
  fail("the template makes a text of {} bytes; expected at most {}", bytes, limits_.output_bytes);
}

}  // namespace fovea::jinja

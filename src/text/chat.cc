#include "fovea/chat.h"

#include <algorithm>

#include "base/files.h"
#include "base/json.h"
#include "text/template_format.h"
#include "text/template_interpreter.h"
#include "text/template_parser.h"
#include "text/template_scope.h"

namespace fovea {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

constexpr size_t kTemplateBytes = size_t{1} << 20;  // real ones have up to some 20 KB

}  // namespace

ChatTemplate ChatTemplate::parse(std::string_view source, std::string name) {
  if (source.size() > kTemplateBytes) {
    fail(ErrorKind::BadFile, "{}: {} bytes; expected a template of at most {}", name, source.size(),
         kTemplateBytes);
  }
  auto program = std::make_shared<Program>();
  program->name = std::move(name);
  program->source = source;
  program->body = jinja::Parser(jinja::lex(source, program->name), program->name).run();
  jinja::resolve(*program);
  return ChatTemplate(std::move(program));
}

const std::string& ChatTemplate::source() const { return program_->source; }

ChatTemplate::Result ChatTemplate::render(std::string_view variables, const RenderLimits& limits,
                                          const std::function<std::tm()>& now) const {
  // The caller's own values: as large as they are.
  RenderLimits unlimited;
  unlimited.steps = unlimited.output_bytes = std::numeric_limits<size_t>::max();
  jinja::Runtime runtime("variables", unlimited);
  const jinja::Value given = jinja::from_json(runtime, variables, "variables");
  if (!given.is(jinja::Kind::dict)) {
    fail(ErrorKind::InvalidArgument, "variables: is no object; expected a JSON object");
  }
  return jinja::Interpreter(*program_, given.dict(), limits, now).run();
}

}  // namespace fovea

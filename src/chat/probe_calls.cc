#include "chat/probe_calls.h"

#include "base/error.h"

namespace fovea {
namespace {

// The id has nine letters and digits, which some templates demand.
ChatRequest conversation(const ChatFormat::Calls& calls) {
  const char* const arguments = calls.text_arguments ? R"("{\"probed_key\": \"probed_value\"}")"
                                                     : R"({"probed_key": "probed_value"})";
  ChatRequest request;
  request.tools = R"([{"type": "function", "function": {"name": "probed_name", "description": "", )"
                  R"("parameters": {"type": "object", "properties": {}}}}])";
  request.messages = fmt::format(
      R"([{{"role": "user", "content": "a"}}, {{"role": "assistant", "content": {}, )"
      R"("tool_calls": [{{"id": "probe0001", "type": "function", )"
      R"("function": {{"name": "probed_name", "arguments": {}}}}}]}}, )"
      R"({{"role": "tool", "tool_call_id": "probe0001", "name": "probed_name", "content": "b"}}, )"
      R"({{"role": "user", "content": "c"}}])",
      calls.null_content ? "null" : R"("")", arguments);
  return request;
}

}  // namespace

ChatFormat::Calls probe_calls(const std::function<std::string(const ChatRequest&)>& render) {
  const auto shows = [&](const ChatFormat::Calls& calls) {
    try {
      return render(conversation(calls)).find("probed_value") != std::string::npos;
    } catch (const Error&) {
      return false;
    }
  };
  for (const bool text_arguments : {false, true})
    for (const bool null_content : {false, true})
      if (const ChatFormat::Calls calls{text_arguments, null_content}; shows(calls)) return calls;
  return {};
}

}  // namespace fovea

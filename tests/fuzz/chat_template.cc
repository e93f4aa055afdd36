// A chat template over one conversation, within limits. The template stands alone, or before a NUL
// with the JSON of its variables behind it.

#include "base/json.h"
#include "fovea/chat.h"
#include "fuzz.h"

namespace fovea {
namespace {

constexpr std::string_view kVariables = R"({"bos_token": "<s>", "eos_token": "</s>",
  "add_generation_prompt": true, "messages": [{"role": "system", "content": "Be brief."},
  {"role": "user", "content": "Größe?"}, {"role": "assistant", "content": null,
   "tool_calls": [{"function": {"name": "f", "arguments": {"x": 1, "y": [1.5, "a"]}}}]}],
  "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]})";

std::tm moment() {
  std::tm time{};
  time.tm_mday = 1;
  time.tm_year = 124;
  return time;
}

}  // namespace
}  // namespace fovea

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fovea;
  const auto [source, variables] = two_texts(data, size);
  const RenderLimits limits{.steps = 20'000, .output_bytes = 1 << 16};
  succeeds_soon([&, source = source, variables = variables] {
    const ChatTemplate parsed = ChatTemplate::parse(source, "fuzz");
    const auto result = parsed.render(variables.empty() ? kVariables : variables, limits, moment);
    require(result.text.size() <= limits.output_bytes, "the text keeps its limit");
    size_t done = 0;
    for (const auto& span : result.assistant.value_or(std::vector<ChatTemplate::Span>())) {
      require(span.begin >= done && span.end >= span.begin && span.end <= result.text.size(),
              "spans lie in the text, in order");
      done = span.begin;
    }
  });
  return 0;
}

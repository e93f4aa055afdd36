// Renders a chat template for one conversation, within limits. The input is a template, optionally
// followed by a NUL and the JSON of its variables. The same bytes are also used as the parts of a
// conversation: no text in it, including the names of members, may become a special token.

#include "base/json.h"
#include "fovea/text/chat.h"
#include "fuzz.h"
#include "tokenizer/state/state.h"

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

// Returns a small tokenizer. The names of its special tokens do not occur in JSON outside strings;
// "e", for example, would occur in false and in 1e5.
const text::Tokenizer& tokenizer() {
  constexpr const char* kJson = R"({"added_tokens": [
    {"id": 3, "content": "<s>", "special": true},
    {"id": 4, "content": "<|im_end|>", "special": true},
    {"id": 5, "content": "m", "special": true}],
    "model": {"type": "WordLevel", "vocab": {"u": 0, "b": 1, "c": 2}, "unk_token": "u"}})";
  static const text::Tokenizer small(
      text::parse_tokenizer({kJson, ""}, "tokenizer.json", "config.json"));
  return small;
}

void keep_as_text(std::string_view json) {
  text::ChatRequest request;
  request.messages = request.tools = request.documents = request.variables =
      text::ChatValue::parse(json, "json");
  const text::ChatRequest safe = text::guarded(request, tokenizer());
  for (const text::ChatValue& value : {safe.messages, safe.tools, safe.documents, safe.variables}) {
    for (const int32_t id : tokenizer().encode(value.json(), text::SpecialTokens::guarded)) {
      require(!tokenizer().is_special(id), "no text of a conversation becomes a special token");
    }
  }
}

}  // namespace
}  // namespace fovea

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fovea;
  const auto [source, variables] = two_texts(data, size);
  succeeds([&, part = variables.empty() ? source : variables] { keep_as_text(part); });
  const text::RenderLimits limits{.steps = 20'000, .output_bytes = 1 << 16, .value_bytes = 1 << 20};
  succeeds_soon([&] {
    const text::ChatTemplate parsed = text::ChatTemplate::parse(source, "fuzz");
    const auto result = parsed.render(variables.empty() ? kVariables : variables, limits, moment);
    require(result.text.size() <= limits.output_bytes, "the text respects its limit");
    size_t done = 0;
    for (const auto& span : result.assistant.value_or(std::vector<text::ChatTemplate::Span>())) {
      require(span.begin >= done && span.end >= span.begin && span.end <= result.text.size(),
              "spans lie within the text, in order");
      done = span.begin;
    }
  });
  return 0;
}

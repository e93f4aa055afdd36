// How templates write calls is found by rendering one.

#include "chat/probe_calls.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace fovea {
namespace {

ChatFormat::Calls probed(const std::string& source) {
  const ModelChat chat = ModelChat::of_source(source, "a template", std::nullopt);
  return probe_calls([&](const ChatRequest& request) { return chat.render(request).text; });
}

std::string with_calls(const std::string& condition, const std::string& call) {
  return "{% for m in messages %}{% if " + condition + " %}{% for c in m.tool_calls %}{{ " + call +
         " }}{% endfor %}{% elif m.content is not none %}{{ m.content }}{% endif %}{% endfor %}";
}

TEST(ProbeCalls, FindsObjectsAndTexts) {
  const ChatFormat::Calls objects =
      probed(with_calls("m.tool_calls", "c.function.arguments | tojson"));
  EXPECT_FALSE(objects.text_arguments);
  EXPECT_FALSE(objects.null_content);
  // Regression: DeepSeek-V3's template joins the arguments with texts.
  const ChatFormat::Calls texts =
      probed(with_calls("m.tool_calls", "c.function.name + c.function.arguments"));
  EXPECT_TRUE(texts.text_arguments);
  EXPECT_FALSE(texts.null_content);
  // Regression: that of DeepSeek-R1 leaves calls out beside a content.
  const ChatFormat::Calls null = probed(with_calls("m.role == 'assistant' and m.content is none",
                                                   "c.function.name + c.function.arguments"));
  EXPECT_TRUE(null.text_arguments);
  EXPECT_TRUE(null.null_content);
}

TEST(ProbeCalls, TakesTemplatesWithoutCalls) {
  EXPECT_FALSE(probed("{{ messages[0].content }}").text_arguments);
  EXPECT_FALSE(probed("{{ raise_exception('no') }}").null_content);
}

}  // namespace
}  // namespace fovea

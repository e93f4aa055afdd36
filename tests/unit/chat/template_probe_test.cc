#include "chat/template_probe.h"

#include <gtest/gtest.h>

namespace fovea::text {
namespace {

TemplateHabits habits_of(const std::string& source) {
  const ModelChat chat = ModelChat::of_source(source, "t", std::nullopt);
  return probe_template([&](const ChatRequest& request) { return chat.render(request).text; },
                        false);
}

// Returns a template that shows each call by `call`.
std::string calls_as(const std::string& call) {
  return "{% for m in messages %}{{ m.content or '' }}{% if m.tool_calls %}{% for c in "
         "m.tool_calls %}" +
         call + "{% endfor %}{% endif %}{% endfor %}";
}

TEST(TemplateProbe, FindsTheFormOfArguments) {
  EXPECT_FALSE(habits_of(calls_as("{{ c.function | tojson }}")).text_arguments);
  EXPECT_FALSE(habits_of(calls_as("{% for k, v in c.function.arguments | items %}{{ k }}={{ v }}"
                                  "{% endfor %}"))
                   .text_arguments);
  // Models whose templates join texts were given an error, or Python's notation of an object.
  EXPECT_TRUE(habits_of(calls_as("{{ c.function.name + c.function.arguments }}")).text_arguments);
  EXPECT_TRUE(habits_of(calls_as("{{ c.function.arguments }}")).text_arguments);
}

TEST(TemplateProbe, FindsTheRuleOfIds) {
  const std::string check =
      "{% if c.id | length != 9 %}{{ raise_exception('9') }}{% endif %}{{ c.function | tojson }}";
  EXPECT_TRUE(habits_of(calls_as(check)).short_ids);
  EXPECT_FALSE(habits_of(calls_as(check)).long_ids);
  const TemplateHabits any = habits_of(calls_as("{{ c.function | tojson }}"));
  EXPECT_TRUE(any.short_ids && any.long_ids);
}

// Such a template omitted the calls of a message whose content was replaced by "".
TEST(TemplateProbe, FindsTheContentBesideCalls) {
  const TemplateHabits none = habits_of(
      "{% for m in messages %}{% if m.content is none %}{% for c in m.tool_calls %}"
      "{{ c.function | tojson }}{% endfor %}{% else %}{{ m.content }}{% endif %}{% endfor %}");
  EXPECT_TRUE(none.calls_without_content);
  EXPECT_FALSE(none.calls_with_empty || none.calls_with_text);
  const TemplateHabits joined = habits_of(
      "{% for m in messages %}{{ m.content + '' }}{% if m.tool_calls %}{{ m.tool_calls | tojson }}"
      "{% endif %}{% endfor %}");
  EXPECT_FALSE(joined.calls_without_content);
  EXPECT_TRUE(joined.calls_with_empty && joined.calls_with_text);
  const TemplateHabits blind = habits_of("{% for m in messages %}{{ m.content }}{% endfor %}");
  EXPECT_FALSE(blind.calls_without_content || blind.calls_with_empty || blind.calls_with_text);
}

TEST(TemplateProbe, FindsRoles) {
  const TemplateHabits all = habits_of("{% for m in messages %}{{ m.content }}{% endfor %}");
  EXPECT_TRUE(all.shows_system && all.shows_developer);
  EXPECT_FALSE(habits_of("{% for m in messages %}{% if m.role == 'system' %}"
                         "{{ raise_exception('no') }}{% endif %}{{ m.content }}{% endfor %}")
                   .shows_system);
  EXPECT_FALSE(habits_of("{{ messages[-1].content }}").shows_system);
  EXPECT_TRUE(habits_of("x").shows_system) << "nothing is shown, so nothing is known";
}

}  // namespace
}  // namespace fovea::text

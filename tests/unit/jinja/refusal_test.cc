// The errors of templates, and the limits on their work, memory and depth.

#include <gtest/gtest.h>

#include "rendering.h"
#include "support/expect_error.h"

namespace fovea::text::jinja {
namespace {

// Expects an error of one line that contains this text.
void expect_refusal(const std::string& source, const std::string& text) {
  try {
    render(source);
    ADD_FAILURE() << source << " renders; expected an error with " << text;
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_TRUE(message.starts_with("t: line 1, column ")) << message;
    EXPECT_NE(message.find(text), message.npos) << message;
    EXPECT_EQ(message.find('\n'), message.npos) << message;
  }
}

TEST(JinjaErrors, NameLineAndColumn) {
  const auto parse = [](const std::string& source) {
    return [source] { parsed(source, "model/chat_template.jinja"); };
  };
  expect_error(ErrorKind::BadFile,
               {"model/chat_template.jinja: line 2, column 11: ", "expected '%}'"},
               parse("a\n  {% if 1 2 %}{% endif %}"
                     ""));
  expect_error(ErrorKind::Unsupported, {"line 1, column 6: filter 'nope' is not supported"},
               parse("{{ 1|nope }}"));
  expect_error(ErrorKind::BadFile, {"the template ends here; expected {% endfor %} or {% else %}"},
               parse("{% for x in y %}"));
  expect_error(ErrorKind::BadFile, {"invalid UTF-8"}, parse("a\xFF"));
  // Fuzzing found an error of several lines for an unexpected string with a line break.
  expect_error(ErrorKind::BadFile, {"line 1, column 14: unexpected '\"a b"},
               parse("{% set j = 1 \"a\nb\" %}"));
  expect_error(ErrorKind::InvalidArgument, {"t: line 2, column ", ": no system role"},
               [] { render("\n{{ raise_exception('no\nsystem role') }}"); });
  expect_error(ErrorKind::InvalidArgument, {"line 1, column 7: 'dict object' has no attribute 'b'"},
               [] { render("{{ a.b.c }}", R"({"a": {}})"); });
}

// Each error names the feature, its line and its column.
TEST(JinjaErrors, NameUnsupportedFeatures) {
  for (const auto& [source, lacking] :
       {std::pair{"{{ 1e22|int }}", "line 1, column 5: unexpected 'e22'"},
        {"{{ 9223372036854775807 + 1 }}", "column 24: the result of + has more than 64 bits"},
        {"{{ 2 ** 3 }}", "column 6: the operator ** is not supported"},
        {"{{ 1 < 2 < 3 }}", "column 10: a chain of comparisons is not supported"},
        {"{{ 'a'.center(5) }}", "column 7: the method str.center is not supported"},
        {"{{ '{:d}'.format(1) }}", "format with this field is not supported; expected {}"},
        {"{{ [].append(1) }}", "column 6: the method list.append is not supported"},
        {"{{ '%5d' % 1 }}", "the format %5 is not supported"},
        {"{{ cycler('a') }}", "'cycler' is undefined"},
        {"{{ lipsum() }}", "'lipsum' is undefined"},
        {"{% for x in [1] %}{{ loop.cycle(1, 2) }}{% endfor %}", "loop.cycle is not supported"},
        {"{% for x in [1] recursive %}{% endfor %}", "recursive loops are not supported"},
        {"{% macro m() %}{{ varargs }}{% endmacro %}", "varargs of a macro is not supported"},
        {"{{ 1 is sameas 1 }}", "test 'sameas' is not supported"},
        {"{{ range(3) }}", "printing a range"}}) {
    expect_refusal(source, lacking);
  }
  for (const std::string name : {"attr", "batch", "center", "groupby", "pprint", "round", "slice",
                                 "sum", "truncate", "urlencode", "wordcount", "wordwrap"}) {
    expect_refusal("{{ 'a'|" + name + " }}",
                   "t: line 1, column 8: filter '" + name + "' is not supported");
  }
  for (const std::string tag : {"include 'x'", "import 'x' as y", "from 'x' import y",
                                "extends 'x'", "block x", "autoescape true", "with", "print 1"}) {
    expect_refusal("{% " + tag + " %}", "line 1, column 4: the tag ");
  }
}

// As in Jinja2, an unknown filter is an error even in a loop without iterations, but not in a
// branch of an `if` that is not taken.
TEST(JinjaErrors, RefuseUnsupportedFiltersBeforeRendering) {
  expect_refusal("{% for x in [] %}{{ x|nope }}{% endfor %}", "filter 'nope' is not supported");
  EXPECT_EQ(text_of("{% if false %}{{ 1|nope }}{% endif %}{{ 1|nope if false else 2 }}"), "2");
  expect_refusal("{% if true %}{{ 1|nope }}{% endif %}", "filter 'nope' is not supported");
}

// Hostile templates end with an error, in little time and memory.
TEST(HostileTemplate, IsRefusedQuickly) {
  std::string deep_brackets = "{{ ", deep_blocks, long_sum = "{{ 1", long_path = "{{ a";
  for (int i = 0; i < 100000; ++i) {
    deep_brackets += "(";
    deep_blocks += "{% if 1 %}";
    long_sum += "+1";
    long_path += ".b";
  }
  const std::string hostile[] = {
      "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
      "{{ range(1000000000) }}",
      "{{ 'x' * 100000000 }}",
      "{{ ['x'] * 100000000 }}",
      "{% for i in range(100000) %}{{ 'x' * 1000 }}{% endfor %}",
      "{% set n = namespace(x='x') %}{% for i in range(60) %}{% set n.x = n.x ~ n.x %}{% endfor %}",
      "{% set n = namespace(x=[1]) %}{% for i in range(60) %}{% set n.x = n.x + n.x %}{% endfor %}",
      "{% set n = namespace(x=[1]) %}{% for i in range(60) %}{% set n.x = [n.x, n.x] %}{% endfor "
      "%}{{ n.x }}",
      "{% set n = namespace(x=[1], y=[1]) %}{% for i in range(60) %}{% set n.x = [n.x, n.x] %}"
      "{% set n.y = [n.y, n.y] %}{% endfor %}{{ n.x == n.y }}",
      "{% set n = namespace(x=[1]) %}{% for i in range(99999) %}{% set n.x = [n.x] %}{% endfor %}",
      "{% set n = namespace() %}{% for x in [1, 2] if n.l.length or 1 %}{% set n.l = loop %}"
      "{% endfor %}",
      "{% set n = namespace() %}{% set n.me = n %}{{ n }}",
      "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
      "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}",
      "{{ 2 ** 1000 }}",
      "{{ 9223372036854775807 + 1 }}",
      "{{ 1000000000000000000 * 10 }}",
      "{{ '%999999999d' % 1 }}",
      "{{ 'a'|indent(1000000000000) }}",
      "{{ [1]|tojson(indent=1000000000000) }}",
      "{{ ''.__class__.__mro__ }}",
      "{{ ''['__class__'] }}",
      "{{ ''|attr('__class__') }}",
      "{{ '{0.__class__}'.format(1) }}",
      "{{ range.__globals__ }}",
      "{% set n = namespace(__init__=1) %}",
      "{{ [].append(1) }}",
      "{{ {}.update(a=1) }}",
      "{{ cycler.__init__ }}",
      deep_brackets,
      deep_blocks,
      long_sum + " }}",
      long_path + " }}"};
  for (const std::string& source : hostile) {
    EXPECT_THROW(render(source), Error) << source.substr(0, 200);
  }
}

// Cycles of values are freed, and long chains are freed without recursion. The sanitizers detect
// leaks.
TEST(HostileTemplate, FreesCyclesAndChains) {
  for (const char* source :
       {"{% set n = namespace() %}{% set n.me = n %}x",
        "{% set n = namespace() %}{% macro m() %}{% endmacro %}{% set n.m = [m] %}x",
        "{% macro m() %}{{ m }}{% endmacro %}x",
        "{% for y in [1] %}{% set outer = loop %}{% for z in [1] if outer %}{% endfor %}{% endfor "
        "%}x",
        "{% set n = namespace() %}{% macro f(g) %}{% macro h() %}{{ g }}{% endmacro %}"
        "{% set n.m = h %}{% endmacro %}{% for i in range(20000) %}{{ f(n.m) }}{% endfor %}x"}) {
    EXPECT_EQ(text_of(source), "x") << source;
  }
}

TEST(JinjaLanguage, TreatsEqualKeysAsOne) {
  EXPECT_EQ(text_of("{{ {1: 'a', 1.0: 'b', true: 'c', none: 'd', '1': 'e'}|length }}"), "3");
  EXPECT_EQ(
      text_of("{% set d = {0: 'a', false: 'b', -0.0: 'c', 2.5: 'd'} %}{{ d[0] }}{{ d[2.5] }}"),
      "cd");
  EXPECT_EQ(text_of("{% set d = {9007199254740993: 'a', 9007199254740992.0: 'b'} %}{{ d|length }}"),
            "2");
  EXPECT_THROW(text_of("{{ dict(a=1, a=2) }}"), Error);
}

TEST(HostileTemplate, RespectsTheCallersLimits) {
  const std::string loop = "{% for i in range(1000) %}{{ i }}{% endfor %}";
  EXPECT_EQ(text_of(loop).size(), 2890u);
  RenderLimits limits;
  limits.steps = 100;
  expect_error(ErrorKind::InvalidArgument, {"more than 100 steps"},
               [&] { render(loop, "{}", limits); });
  limits = {};
  limits.output_bytes = 1000;
  expect_error(ErrorKind::InvalidArgument, {"at most 1000"}, [&] { render(loop, "{}", limits); });
}

// Only the bytes of texts were counted: split() of 10 MB made values of 600 MB.
TEST(HostileTemplate, ValuesCountAsMemory) {
  const std::string big = "{% set t = 'a,' * 5000000 %}", some = "{% set t = 'a ' * 200000 %}";
  for (const std::string& source :
       {big + "{{ t.split(',')|length }}", big + "{{ t.rsplit(',')|length }}",
        some + "{{ t.split()|length }}", some + "{{ t|list|length }}",
        std::string("{{ ([1] * 350000 + [2] * 350000)|length }}"),
        std::string("{% set l = [0] * 400000 %}{% set m = l[::-1] %}{{ m|length }}"),
        std::string("{% set n = namespace(x=[]) %}{% for i in range(10) %}"
                    "{% set n.x = n.x + [range(100000)] %}{% endfor %}")}) {
    expect_error(ErrorKind::InvalidArgument, {"bytes of values"}, [&] { text_of(source); });
  }
  // Values that are no longer needed, and the caller's variables, do not count.
  EXPECT_EQ(text_of("{% for i in range(100) %}{% set t = 'a' * 200000 %}{% endfor %}x"), "x");
  EXPECT_EQ(text_of("{{ t[:3] }}", R"({"t": ")" + std::string(10'000'000, 'a') + "\"}"), "aaa");
}

}  // namespace
}  // namespace fovea::text::jinja

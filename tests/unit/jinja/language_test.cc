// Renders templates and compares with the results of Jinja2 in the environment of transformers. The
// cases cover the same features as the public tests of minja and of Jinja2.

#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "rendering.h"

namespace fovea::text::jinja {
namespace {

constexpr const char* kError = nullptr;

struct Case {
  const char* source;
  const char* variables;  // a JSON object; "" for none
  const char* expected;   // kError: a one-line error that names the line and column
};

void check(std::initializer_list<Case> cases) {
  for (const auto& [source, variables, expected] : cases) {
    try {
      const std::string text = text_of(source, *variables ? variables : "{}");
      EXPECT_EQ(text, expected ? expected : "an error") << source;
    } catch (const Error& error) {
      EXPECT_FALSE(expected) << source << ": " << error.what();
      EXPECT_TRUE(std::string(error.what()).starts_with("t: line ")) << error.what();
    }
  }
}

TEST(JinjaLanguage, RunsLoops) {
  check({
      {"{% for c in word %}<{{ c }}>{% endfor %}", R"({"word": "añ"})", "<a><ñ>"},
      {"{% for k in ages %}{{ k }}={{ ages[k] }} {% endfor %}", R"({"ages": {"ann": 3, "bob": 5}})",
       "ann=3 bob=5 "},
      {"{% for x in rows %}{{ x }}{% else %}no rows{% endfor %}", R"({"rows": []})", "no rows"},
      {"{% for x in absent %}{{ x }}{% else %}nothing{% endfor %}", "", "nothing"},
      {"{% for k, (a, b) in [('p', (1, 2)), ('q', [3, 4])] %}{{ k }}{{ a + b }} {% endfor %}", "",
       "p3 q7 "},
      {"{% for x in [4, 5, 6] %}{{ loop.index }}/{{ loop.length }}{{ ',' if not loop.last }}{% "
       "endfor %}",
       "", "1/3,2/3,3/3"},
      {"{% for x in [4, 5] %}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first "
       "}} {% endfor %}",
       "", "021True 110False "},
      {"{% for x in 'abc' %}{{ loop.previtem|default('-') }}{{ x }}{{ loop.nextitem|default('-') "
       "}} {% endfor %}",
       "", "-ab abc bc- "},
      {"{% for n in range(9) if n is odd %}{{ loop.index }}:{{ n }}{{ '' if loop.last else ' of ' "
       "~ loop.length ~ ', ' }}{% endfor %}",
       "", "1:1 of 4, 2:3 of 4, 3:5 of 4, 4:7"},
      {"{% set ns = namespace(left=2) %}{% for n in range(9) if ns.left > 0 %}{{ n }}{% set "
       "ns.left = ns.left - 1 %}{% endfor %}",
       "", "01"},
      {"{% for n in range(9) %}{% if n == 2 %}{% continue %}{% elif n > 3 %}{% break %}{% endif "
       "%}{{ n }}{% endfor %}",
       "", "013"},
      {"{% for row in ['ab', 'c'] %}{% for x in row %}{{ loop.index }}{% endfor %}{{ loop.index "
       "}};{% endfor %}",
       "", "121;12;"},
      {"{% for row in [[1, 2], [3]] %}{% set outer = loop %}{% for x in row %}{{ outer.index }}.{{ "
       "loop.index }} {% endfor %}{% endfor %}",
       "", "1.1 1.2 2.1 "},
      {"{% for x in items|reverse %}{{ x }}{{ loop.last }} {% endfor %}", R"({"items": [1, 2]})",
       "2False 1True "},
      {"{% for k, v in d|dictsort %}{{ k }}{{ v }}{% endfor %}", R"({"d": {"b": 1, "A": 2}})",
       "A2b1"},
  });
}

TEST(JinjaLanguage, ScopesVariables) {
  check({
      {"{% set n = 0 %}{% for x in [1, 2] %}{{ n }}{% set n = x %}{{ n }}{% endfor %}|{{ n }}", "",
       "0102|0"},
      {"{% for x in [1, 2] %}{{ n }}{% set n = x %}{{ n }}{% endfor %}|{{ n }}", R"({"n": 0})",
       "0102|0"},
      {"{% if flag %}{% set a = 1 %}{% endif %}{{ a }}", R"({"flag": true})", "1"},
      {"{% if flag %}{% set a = 1 %}{% endif %}[{{ a }}]", R"({"flag": false})", "[]"},
      {"{{ a }}{% set a = 2 %}{{ a }}", R"({"a": 1})", "12"},
      {"{% set ns = namespace(n=0) %}{% for x in [1, 2, 3] %}{% set ns.n = ns.n + x %}{% endfor "
       "%}{{ ns.n }}",
       "", "6"},
      {"{% set ns = namespace(found=false, seen=[]) %}{% for x in 'ab' %}{% set ns.seen = ns.seen "
       "+ [x] %}{% endfor %}{{ ns.seen }}{{ ns.found }}",
       "", "['a', 'b']False"},
      {"{% macro f() %}{{ a }}{% endmacro %}{% set a = 1 %}{{ f() }}{% set a = 2 %}{{ f() }}", "",
       "12"},
      {"{% set a = 1 %}{% macro f() %}{% set a = 5 %}{{ a }}{% endmacro %}{{ f() }}{{ a }}", "",
       "51"},
      {"{% for x in [1, 2] %}{% macro f() %}{{ x }}{% endmacro %}{{ f() }}{% endfor %}", "", "12"},
      {"{% set a, b = 1, 2 %}{% set a, b = b, a %}{{ a }}{{ b }}", "", "21"},
      {"{% set text %}{{ n }} items{% endset %}{{ text }}|{{ text|length }}", R"({"n": 12})",
       "12 items|8"},
      {"{% set text | upper | replace('B', '-') %}abc{% endset %}{{ text }}", "", "A-C"},
      {"{% filter upper %}{% for c in 'ab' %}{{ c }}.{% endfor %}{% endfilter %}", "", "A.B."},
      {"{% set range = 3 %}{{ range }}", "", "3"},
  });
}

TEST(JinjaLanguage, CallsMacros) {
  check({
      {"{% macro f(a, b=2, c=b) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ f(1) }} {{ f(1, c=9) }} {{ "
       "f(b=7, a=8) }}",
       "", "122 129 877"},
      {"{% macro f(a, b) %}{{ a }}[{{ b }}]{{ b is defined }}{% endmacro %}{{ f(1) }}", "",
       "1[]False"},
      {"{% macro f(n) %}{{ n }}{% if n > 1 %}|{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(4) }}",
       "", "4|3|2|1"},
      {"{% macro box(title) %}<{{ title }}:{{ caller() }}>{% endmacro %}{% call box('t') %}in {{ n "
       "}}{% endcall %}",
       R"({"n": 1})", "<t:in 1>"},
      {"{% macro each(xs) %}{% for x in xs %}{{ caller(x) }}{% endfor %}{% endmacro %}{% call(x) "
       "each([1, 2]) %}({{ x }}){% endcall %}",
       "", "(1)(2)"},
      {"{% macro a() %}a{{ caller() }}{% endmacro %}{% macro b() %}b{{ caller() }}{% endmacro %}{% "
       "call a() %}{% call b() %}c{% endcall %}{% endcall %}",
       "", "abc"},
      {"{% macro f() %}{% if caller %}body{% else %}none{% endif %}{% endmacro %}{{ f() }}{% call "
       "f() %}{% endcall %}",
       "", "nonebody"},
      {"{% macro f(a) %}{{ a }}{% endmacro %}{{ f(*[5]) }}{{ [f][0](6) }}", "", "56"},
      {"{% macro f(x) -%}   {{ x }}   {%- endmacro %}[{{ f(1) }}]", "", "[1]"},
      {"{% macro f(a) %}{% endmacro %}{{ f(1, 2) }}", "", kError},
      {"{% macro f(a) %}{% endmacro %}{{ f(z=2) }}", "", kError},
  });
}

TEST(JinjaLanguage, EvaluatesOperators) {
  check({
      {"{{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 6 / 2 }}", "",
       "3 -4 1 2 3.5 3.0"},
      {"{{ 1 + 2 * 3 - 4 }} {{ (1 + 2) * 3 }} {{ 2 - 3 - 4 }} {{ -2 + 3 }}", "", "3 9 -5 1"},
      {"{{ 1 ~ 'a' ~ none ~ true ~ 1.0 }} {{ 1 ~ 2 + 3 }}", "", kError},
      {"{{ 'ab' * 3 }} {{ [1] * 2 }} {{ 'a' + 'b' 'c' }} {{ [1] + [2] }}", "",
       "ababab [1, 1] abc [1, 2]"},
      {"{{ 1 == 1.0 }}{{ '1' == 1 }}{{ [1] == [1] }}{{ {'a': 1} == {'a': 1.0} }}{{ none == false "
       "}}",
       "", "TrueFalseTrueTrueFalse"},
      {"{{ 'a' < 'b' }}{{ [1, 2] < [1, 3] }}{{ 2 >= 2 }}{{ 1 != 2 }}", "", "TrueTrueTrueTrue"},
      {"{{ 'a' in 'cat' }}{{ 1 in [2] }}{{ 'k' in {'k': 0} }}{{ 'x' not in 'cat' }}{{ '' in '' }}",
       "", "TrueFalseTrueTrueTrue"},
      {"{{ 0 or 'x' }}{{ '' and 1 }}|{{ not [] }}{{ not not 1 }}{{ 1 and 2 or 3 }}", "",
       "x|TrueTrue2"},
      {"{{ 'y' if n else 'z' }}{{ 'y' if absent }}|{{ 1 if 0 else 2 if 0 else 3 }}", R"({"n": 0})",
       "z|3"},
      {"{{ xs|length > 1 and xs[0] == 3 }}{{ -xs[0]|abs }}{{ not xs is string }}",
       R"({"xs": [3, 4]})", "True3True"},
      {"{{ 9223372036854775807 + 1 }}", "", kError},
      {"{{ 1 + 'a' }}", "", kError},
      {"{{ 1 // 0 }}", "", kError},
  });
}

TEST(JinjaLanguage, ReadsItemsAndAttributes) {
  check({
      {"{{ m.role }}{{ m['role'] }}{{ m.get('role') }}{{ m.get('none', '-') }}{{ m.absent }}|",
       R"({"m": {"role": "user"}})", "useruseruser-|"},
      {"{{ a.b[0].c }}{{ a['b'][-1].c }}", R"({"a": {"b": [{"c": 1}, {"c": 2}]}})", "12"},
      {"{{ xs[1:] }}{{ xs[:-1] }}{{ xs[::-1] }}{{ xs[::2] }}{{ xs[5:] }}", R"({"xs": [1, 2, 3]})",
       "[2, 3][1, 2][3, 2, 1][1, 3][]"},
      {"{{ s[0] }}{{ s[-1] }}{{ s[1:3] }}{{ s[::-1] }}", R"({"s": "größe"})", "geröeßörg"},
      {"{{ xs[9] is defined }}{{ d.zz is defined }}{{ d.a is defined }}",
       R"({"xs": [1], "d": {"a": null}})", "FalseFalseTrue"},
      {"{{ absent.x }}", "", kError},
      {"{{ d.items()|list }}{{ d.keys()|list }}{{ d.values()|list }}",
       R"({"d": {"a": 1, "b": [2]}})", "[('a', 1), ('b', [2])]['a', 'b'][1, [2]]"},
      {"{{ d.items is callable }}{{ d['items'] }}", R"({"d": {"items": 5}})", "True5"},
      {"{{ ''.__class__ }}", "", kError},
      {"{{ x.y.z }}", R"({"x": {}})", kError},
  });
}

TEST(JinjaLanguage, AppliesFilters) {
  check({
      {"{{ absent|default('d') }}{{ none|default('d') }}{{ ''|default('d', true) }}{{ 0|d(1) }}",
       "", "dNoned0"},
      {"{{ ' a b '|trim }}|{{ 'xxaxx'|trim('x') }}|{{ 'abc'|upper|lower|capitalize }}|{{ 'the "
       "(big) dog-house'|title }}",
       "", "a b|a|Abc|The (Big) Dog-House"},
      {"{{ xs|join(', ') }}|{{ xs|join }}|{{ ms|join('-', attribute='n') }}",
       R"({"xs": [1, null, true], "ms": [{"n": 1}, {"n": 2}]})", "1, None, True|1NoneTrue|1-2"},
      {"{{ xs|first }}{{ xs|last }}{{ xs|length }}{{ xs|count }}{{ []|first is defined }}{{ xs|min "
       "}}{{ xs|max }}",
       R"({"xs": [3, 1, 2]})", "3233False13"},
      {"{{ ['b', 'A', 'c']|sort }}{{ [1, 2]|sort(reverse=true) }}{{ "
       "ms|sort(attribute='n')|map(attribute='n')|list }}",
       R"({"ms": [{"n": 2}, {"n": 1}]})", "['A', 'b', 'c'][2, 1][1, 2]"},
      {"{{ ['a', 'A', 'b', 1, true]|unique|list }}", "", "['a', 'b', 1]"},
      {"{{ ['', 'ab']|map('length')|list }}{{ ms|map(attribute='a.0', default='-')|list }}",
       R"({"ms": [{"a": [7]}, {}]})", "[0, 2][7, '-']"},
      {"{{ [1, 2, 3]|select('odd')|list }}{{ [1, 2]|reject('equalto', 2)|list }}{{ [0, "
       "1]|select|list }}{{ [1, 5]|select('>', 2)|list }}",
       "", "[1, 3][1][1][5]"},
      {"{{ ms|selectattr('role', 'equalto', 'user')|list|length }}{{ "
       "ms|selectattr('n')|list|length }}{{ ms|rejectattr('role', 'in', "
       "['user'])|map(attribute='role')|join }}",
       R"({"ms": [{"role": "user", "n": 1}, {"role": "tool"}]})", "11tool"},
      {"{{ none|selectattr('a')|list }}{{ absent|map('upper')|list }}", "", "[][]"},
      {"{% set g = [1, 2]|select %}{{ g|list }}{{ g|list }}{{ 1 if g }}", "", "[1, 2][]1"},
      {R"({{ 'a
b

c'|indent }}|{{ 'a
b'|indent(2, true) }}|{{ 'a

b'|indent('> ', blank=true) }})",
       "", R"(a
    b

    c|  a
  b|a
> 
> b)"},
      {"{{ '42'|int }}{{ ' 7 '|int }}{{ '4.9'|int }}{{ 'x'|int }}{{ 'x'|int(3) }}{{ -2.5|int }}{{ "
       "none|int }}{{ '1.5'|float }}{{ 'x'|float }}",
       "", "427403-201.50.0"},
      {"{{ 'a-b'|replace('-', '+') }}{{ 'aaa'|replace('a', 'b', 2) }}{{ 7|string + '!' }}{{ "
       "'ab'|list }}{{ 'abc'|reverse }}",
       "", "a+bbba7!['a', 'b']cba"},
      {"{{ d|items|list }}{{ {'b': 2, 'A': 1}|dictsort }}{{ {'b': 1, 'a': 2}|dictsort(by='value') "
       "}}",
       R"({"d": {"k": "v"}})", "[('k', 'v')][('A', 1), ('b', 2)][('b', 1), ('a', 2)]"},
      {"{{ '<b>'|e }}{{ '<b>'|safe }}{{ '<i>'|safe + '&' }}{{ '&' + ('<i>'|safe) }}{{ ('<'|safe) ~ "
       "'&' }}",
       "", "&lt;b&gt;<b><i>&amp;&amp;<i><&"},
      {"{{ '%s and %s' | format('a', 1) }}{{ '%s%%' % 5 }}{{ '%s:%s' % ('a', none) }}", "",
       "a and 15%a:None"},
  });
}

TEST(JinjaLanguage, WritesJson) {
  check({
      {"{{ d|tojson }}", R"({"d": {"b": [1, 2.5, null, true], "a": "é\n\"<>&'"}})",
       R"({"b": [1, 2.5, null, true], "a": "é\n\"<>&'"})"},
      {"{{ d|tojson(indent=2) }}", R"({"d": {"a": [], "b": {}, "c": [1, {"x": 1}]}})", R"({
  "a": [],
  "b": {},
  "c": [
    1,
    {
      "x": 1
    }
  ]
})"},
      {"{{ d|tojson(ensure_ascii=true, sort_keys=true, separators=(',', ':')) }}",
       R"({"d": {"z": "é😀", "a": 1e-07}})", R"({"a":1e-07,"z":"\u00e9\ud83d\ude00"})"},
      {"{{ xs|tojson }}", R"({"xs": [0.1, 1.0, 1e+16, 1.5e-07, 1e+22, -0.0, 123456789.125]})",
       "[0.1, 1.0, 1e+16, 1.5e-07, 1e+22, -0.0, 123456789.125]"},
      {"{{ d }}{{ d|string|length }}",
       R"({"d": {"a": "it's", "b": ["x\n", null, true, 1e-07], "c": {"é": "​"}}})",
       R"({'a': "it's", 'b': ['x\n', None, True, 1e-07], 'c': {'é': '\u200b'}}68)"},
      {"{{ {1: 'a', true: 'b', none: (1,)} }}{{ (1, 2) }}{{ () }}", "",
       "{1: 'b', None: (1,)}(1, 2)()"},
  });
}

TEST(JinjaLanguage, CallsMethods) {
  check({
      {R"({{ ' a '.strip() }}|{{ 'xay'.strip('xy') }}|{{ '
a'.lstrip('
') }}|{{ 'a  '.rstrip() }}|)",
       "", "a|a|a|a|"},
      {"{{ 'a b  c'.split() }}{{ 'a,b,c'.split(',') }}{{ 'a,b,c'.split(',', 1) }}{{ "
       "'a,b,c'.rsplit(',', 1) }}{{ ''.split(',') }}",
       "", "['a', 'b', 'c']['a', 'b', 'c']['a', 'b,c']['a,b', 'c']['']"},
      {"{{ 'x</think>y'.split('</think>')[-1] }}{{ 'x</t>y'.split('</t>')[0].split('<t>')[-1] }}",
       "", "yx"},
      {"{{ '<{}>{{}}{}'.format('a', 1) }}{{ ''.format() }}", "", "<a>{}1"},
      {"{{ '{}{}'.format('a') }}", "", kError},
      {"{{ '{0}'.format('a') }}", "", kError},
      {"{{ '{'.format() }}", "", kError},
      {"{{ 'abc'.startswith('ab') }}{{ 'abc'.endswith(('x', 'bc')) }}{{ ''.startswith('a') }}", "",
       "TrueTrueFalse"},
      {"{{ 'ab'.upper() }}{{ 'AB'.lower() }}{{ 'ab cd'.title() }}{{ 'aB'.capitalize() }}{{ "
       "'straße'.upper() }}",
       "", "ABabAb CdAbSTRASSE"},
      {"{{ 'aXbX'.replace('X', '-') }}{{ 'aXbX'.replace('X', '-', 1) }}{{ '-'.join(['a', 'b']) "
       "}}{{ 'a=b=c'.partition('=') }}{{ 'a=b=c'.rpartition('=')[2] }}",
       "", "a-b-a-bXa-b('a', '=', 'b=c')c"},
      {"{{ [5, 6].index(6) }}", "", "1"},
  });
}

TEST(JinjaLanguage, TestsTypes) {
  check({
      {"{% for v in vs %}{{ v is string }}{{ v is number }}{{ v is mapping }}{{ v is iterable }}{{ "
       "v is sequence }}{{ v is none }}{{ v is boolean }} {% endfor %}",
       R"({"vs": ["a", 1, 1.5, true, null, [1], {"a": 1}]})",
       "TrueFalseFalseTrueTrueFalseFalse FalseTrueFalseFalseFalseFalseFalse "
       "FalseTrueFalseFalseFalseFalseFalse FalseTrueFalseFalseFalseFalseTrue "
       "FalseFalseFalseFalseFalseTrueFalse FalseFalseFalseTrueTrueFalseFalse "
       "FalseFalseTrueTrueTrueFalseFalse "},
      {"{{ 3 is odd }}{{ 4 is even }}{{ 9 is divisibleby 3 }}{{ true is true }}{{ 1 is true }}{{ "
       "false is false }}{{ 1 is integer }}{{ 1.0 is float }}",
       "", "TrueTrueTrueTrueFalseTrueTrueTrue"},
      {"{{ absent is defined }}{{ absent is undefined }}{{ absent is not none }}{{ n is defined "
       "and n is none }}",
       R"({"n": null})", "FalseTrueTrueTrue"},
      {"{{ 1 is eq 1 }}{{ 1 is ne 2 }}{{ 1 is lt 2 }}{{ 2 is in [1, 2] }}{{ 2 is not in [1] }}{{ 1 "
       "is equalto 1.0 }}",
       "", "TrueTrueTrueTrueTrueTrue"},
      {"{{ range(2)|list }}{{ range(1, 6, 2)|list }}{{ range(3, 0, -1)|list }}{{ range(4)|length "
       "}}{{ 2 in range(3) }}{{ range(5)[1] }}",
       "", "[0, 1][1, 3, 5][3, 2, 1]4True1"},
      {"{{ dict(a=1, b=2) }}{{ namespace(a=1).a }}", "", "{'a': 1, 'b': 2}1"},
  });
}

TEST(JinjaLanguage, TrimsWhiteSpace) {
  check({
      {R"(a
  {% if true %}
b
  {% endif %}
c
)",
       "", R"(a
b
c)"},
      {R"(a
  {%- if true -%}
 b 
 {%- endif %}
c)",
       "", "abc"},
      {R"(  {{ 1 }}
{{- 2 -}}
  3

)",
       "", R"(  123
)"},
      {R"(  {# note #}
x {# y #} z
)",
       "", "x  z"},
      {R"(  {%+ if true %}a{% endif +%}
b)",
       "", R"(  a
b)"},
      {"{% raw %}{{ x }}{% if %}{% endraw %}!", "", "{{ x }}{% if %}!"},
      {"a\r\nb\r\n", "", R"(a
b)"},
      {R"({{ '\n\t\\ \'q\' \u00e9 \x41 \w' }})", "", R"(
	\ 'q' é A \w)"},
  });
}

TEST(JinjaLanguage, MarksGenerationSpans) {
  check({
      {"a{% generation %}b{{ 1 }}{% endgeneration %}c", "", "ab1c"},
      {"{% set x = 1 %}{% generation %}{% set x = 2 %}{{ x }}{% endgeneration %}{{ x }}", "", "21"},
      {"{{ strftime_now('%d %b %Y') }}", "", "26 Jul 2024"},
      {"{{ raise_exception('no') }}", "", kError},
  });
}

using nlohmann::ordered_json;

ordered_json rendered(const std::string& source, const std::string& variables) {
  return as_golden([&] { return render(source, variables); });
}

void check_sources(const std::string& name) {
  const ordered_json golden = read_template_golden("tests/goldens/chat_templates/" + name);
  const std::string variables = golden["variables"].dump();
  EXPECT_GE(golden["cases"].size(), 80u);
  for (const ordered_json& each : golden["cases"]) {
    const std::string source = each["source"];
    EXPECT_EQ(rendered(source, variables), expected_result(each)) << source;
  }
}

TEST(JinjaGoldens, ExpressionsMatchJinja2) { check_sources("expressions.json"); }
TEST(JinjaGoldens, WhiteSpaceMatchesJinja2) { check_sources("whitespace.json"); }
TEST(JinjaGoldens, StatementsMatchJinja2) { check_sources("statements.json"); }

bool refused(const std::string& source, const std::string& variables) {
  try {
    render(source, variables);
  } catch (const Error& error) {
    return error.kind() == ErrorKind::Unsupported;
  }
  return false;
}

// Reads the file that FOVEA_TEMPLATE_CASES names, such as the random templates of
// tools/compare/fuzz_templates.py. fovea may refuse a template as unsupported that Jinja2 renders.
TEST(JinjaGoldens, FileOfCasesMatchesJinja2) {
  const char* path = std::getenv("FOVEA_TEMPLATE_CASES");
  if (path == nullptr) GTEST_SKIP() << "FOVEA_TEMPLATE_CASES is unset; expected a file of cases";
  const ordered_json golden = read_template_golden(path);
  const std::string variables = golden["variables"].dump();
  for (const ordered_json& each : golden["cases"]) {
    const std::string source = each["source"];
    if (refused(source, variables)) continue;
    EXPECT_EQ(rendered(source, variables), expected_result(each)) << source;
  }
}

}  // namespace
}  // namespace fovea::text::jinja

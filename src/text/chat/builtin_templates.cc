#include "chat/builtin_templates.h"

#include <algorithm>

namespace fovea::text {
namespace {

// Each template is the format of published models, without their defaults and without tools.

constexpr const char* kTextsOnly = R"({%- if messages | rejectattr('content', 'string') | list %}
{{- raise_exception('the template needs the content of each message as a text') }}
{%- endif %}
{%- if messages | selectattr('tool_calls') | list %}
{{- raise_exception('the template does not support tool_calls') }}
{%- endif %}
)";

constexpr const char* kChatml = R"({%- for message in messages %}
{{- '<|im_start|>' ~ message.role ~ '\n' }}
{%- if message.role == 'assistant' %}
{%- generation %}{{ message.content ~ '<|im_end|>' }}{% endgeneration %}
{%- else %}{{ message.content ~ '<|im_end|>' }}
{%- endif %}
{{- '\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %})";

constexpr const char* kHeaders = R"({{- bos_token }}
{%- for message in messages %}
{{- '<|start_header_id|>' ~ message.role ~ '<|end_header_id|>\n\n' }}
{%- if message.role == 'assistant' %}
{%- generation %}{{ message.content | trim ~ '<|eot_id|>' }}{% endgeneration %}
{%- else %}{{ message.content | trim ~ '<|eot_id|>' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}
{%- endif %})";

// A system message becomes the beginning of the first user message.
constexpr const char* kTurns = R"({{- bos_token }}
{%- set ns = namespace(system='') %}
{%- for message in messages %}
{%- if message.role == 'system' %}
{%- set ns.system = message.content | trim ~ '\n\n' %}
{%- elif message.role == 'assistant' %}
{{- '<start_of_turn>model\n' }}
{%- generation %}{{ message.content | trim ~ '<end_of_turn>' }}{% endgeneration %}
{{- '\n' }}
{%- else %}
{{- '<start_of_turn>' ~ message.role ~ '\n' ~ ns.system ~ message.content | trim }}
{{- '<end_of_turn>\n' }}
{%- set ns.system = '' %}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %})";

constexpr const char* kInstructions = R"({{- bos_token }}
{%- set ns = namespace(system='') %}
{%- for message in messages %}
{%- if message.role == 'system' %}
{%- set ns.system = message.content ~ '\n\n' %}
{%- elif message.role == 'assistant' %}
{%- generation %}{{ ' ' ~ message.content ~ eos_token }}{% endgeneration %}
{%- else %}
{{- '[INST] ' ~ ns.system ~ message.content ~ ' [/INST]' }}
{%- set ns.system = '' %}
{%- endif %}
{%- endfor %})";

// The names of roles are plain text, so no special token besides eos_token is needed.
constexpr const char* kRoleLines = R"({%- for message in messages %}
{{- '<|' ~ message.role ~ '|>\n' }}
{%- if message.role == 'assistant' %}
{%- generation %}{{ message.content ~ eos_token }}{% endgeneration %}
{%- else %}{{ message.content ~ eos_token }}
{%- endif %}
{{- '\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %})";

}  // namespace

const std::vector<BuiltinTemplate>& builtin_templates() {
  static const std::vector<BuiltinTemplate> all = {
      {"chatml", kTextsOnly + std::string(kChatml), {"<|im_start|>", "<|im_end|>"}, false},
      {"llama3",
       kTextsOnly + std::string(kHeaders),
       {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"},
       false},
      {"gemma", kTextsOnly + std::string(kTurns), {"<start_of_turn>", "<end_of_turn>"}, false},
      {"mistral", kTextsOnly + std::string(kInstructions), {}, true},
      {"zephyr", kTextsOnly + std::string(kRoleLines), {}, true}};
  return all;
}

std::string builtin_template_names() {
  std::string names;
  for (const BuiltinTemplate& each : builtin_templates())
    names += (names.empty() ? "" : ", ") + each.name;
  return names;
}

const BuiltinTemplate* find_builtin_template(const std::string& name) {
  const std::vector<BuiltinTemplate>& all = builtin_templates();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const BuiltinTemplate& each) { return each.name == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace fovea::text

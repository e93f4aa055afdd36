#include "calls/call_formats.h"

#include <algorithm>

#include "base/error.h"

namespace fovea::text {
namespace {

using enum ArgumentStyle;

// JSON objects with the name and the arguments of a call.
constexpr const char *kNameKey = "{\"name\": \"", *kArgumentsKey = "\", \"arguments\": ",
                     *kParametersKey = "\", \"parameters\": ";

}  // namespace

// Formats whose marks contain those of others precede them.
const std::vector<CallFormat>& call_formats() {
  static const std::vector<CallFormat> all = {
      // Hermes 2 Pro, Qwen 2.5 and 3, SmolLM3, Granite 4.
      {"hermes", "<tool_call>", "", "<tool_call>\n{\"name\": \"", kArgumentsKey, "}\n</tool_call>",
       "\n", "", json},
      // Qwen3-Coder, Qwen 3.5, Nemotron 3.
      {"qwen3_coder", "<tool_call>", "", "<tool_call>\n<function=", ">\n",
       "</function>\n</tool_call>", "\n", "", tagged, "<parameter=", ">\n", "\n</parameter>\n"},
      {"glm45", "<tool_call>", "", "<tool_call>", "\n", "</tool_call>", "\n", "", tagged,
       "<arg_key>", "</arg_key>\n<arg_value>", "</arg_value>\n"},
      {"granite33", "<tool_call>", "<tool_call>[", kNameKey, kArgumentsKey, "}", ", ", "]", json},
      {"phi4", "<|tool_call|>", "<|tool_call|>[", kNameKey, kArgumentsKey, "}", ", ",
       "]<|/tool_call|>", json},
      {"granite3", "<|tool_call|>", "<|tool_call|>[", kNameKey, kArgumentsKey, "}", ", ", "]", json},
      {"functools", "functools[", "functools[", kNameKey, kArgumentsKey, "}", ", ", "]", json},
      {"nemotron", "<TOOLCALL>", "<TOOLCALL>[", kNameKey, kArgumentsKey, "}", ", ", "]</TOOLCALL>",
       json},
      // Mistral up to v7, and from v11 on.
      {"mistral", "[TOOL_CALLS]", "[TOOL_CALLS][", kNameKey, kArgumentsKey, "}", ", ", "]", json},
      {"mistral_v11", "[TOOL_CALLS]", "", "[TOOL_CALLS]", "[ARGS]", "", "", "", json},
      {"deepseek_r1", "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁begin｜>",
       "<｜tool▁call▁begin｜>function<｜tool▁sep｜>", "\n```json\n", "\n```<｜tool▁call▁end｜>",
       "\n", "<｜tool▁calls▁end｜>", json},
      {"deepseek_v31", "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁begin｜>",
       "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>", "",
       "<｜tool▁calls▁end｜>", json},
      {"kimi", "<|tool_calls_section_begin|>", "<|tool_calls_section_begin|>",
       "<|tool_call_begin|>functions.", ":\1<|tool_call_argument_begin|>", "<|tool_call_end|>", "",
       "<|tool_calls_section_end|>", json},
      {"harmony", "<|channel|>commentary to=functions.", "",
       "<|channel|>commentary to=functions.", " <|constrain|>json<|message|>", "", "", "", json,
       "", "", "", false,
       {"<|start|>assistant", "<|channel|>final<|message|>", "<|channel|>commentary<|message|>",
        "<|return|>", "<|end|>"}},
      {"command_r7b", "<|START_ACTION|>", "<|START_ACTION|>[\n",
       "    {\"tool_call_id\": \"\1\", \"tool_name\": \"", kParametersKey, "}", ",\n",
       "\n]<|END_ACTION|>", json, "", "", "", true, {"<|START_RESPONSE|>", "<|END_RESPONSE|>"}},
      {"minimax", "<minimax:tool_call>", "<minimax:tool_call>\n", "<invoke name=\"", "\">\n",
       "</invoke>\n", "", "</minimax:tool_call>", tagged, "<parameter name=\"", "\">",
       "</parameter>\n"},
      {"lfm2", "<|tool_call_start|>", "<|tool_call_start|>[", "", "(", ")", ", ",
       "]<|tool_call_end|>", keywords},
      {"llama4", "<|python_start|>", "<|python_start|>[", "", "(", ")", ", ", "]<|python_end|>",
       keywords},
      {"gemma4", "<|tool_call>", "", "<|tool_call>call:", "", "<tool_call|>", "", "", braces,
       "<|\"|>", "<|\"|>"},
      {"functiongemma", "<start_function_call>", "", "<start_function_call>call:", "",
       "<end_function_call>", "", "", braces, "<escape>", "<escape>"},
      {"qwen3_coder_unopened", "<function=", "", "<function=", ">\n",
       "</function>\n</tool_call>", "\n", "", tagged, "<parameter=", ">\n", "\n</parameter>\n"},
      {"functionary_v31", "<function=", "", "<function=", ">", "</function>", "", "", json},
      {"functionary_v32", ">>>", "", ">>>", "\n", "", "", "", json, "", "", "", true, {">>>all\n"}},
      {"llama3_python_tag", "<|python_tag|>", "<|python_tag|>", kNameKey, kParametersKey, "}", "; ", "",
       json},
      // Llama 3.1 to 3.3.
      {"llama3", "", "", kNameKey, kParametersKey, "}", "; ", "", json},
      // Llama 3.2, ToolACE, Gemma 3.
      {"pythonic", "", "[", "", "(", ")", ", ", "]", keywords},
  };
  return all;
}

const std::vector<ReasoningMarks>& reasoning_marks() {
  static const std::vector<ReasoningMarks> all = {
      {"<|channel|>analysis<|message|>", "<|end|>"},
      {"<|START_THINKING|>", "<|END_THINKING|>"},
      {"<|channel>thought\n", "<channel|>"},
      {"<seed:think>", "</seed:think>"},
      {"[THINK]", "[/THINK]"},
      {"<|inner_prefix|>", "<|inner_suffix|>"},
      {"<reasoning>", "</reasoning>"},
      {"<think>", "</think>"},
  };
  return all;
}

std::string call_format_names() {
  std::string names;
  for (const CallFormat& format : call_formats())
    names += (names.empty() ? "" : ", ") + std::string(format.name);
  return names;
}

const CallFormat* find_call_format(const std::string& name) {
  const auto found = std::ranges::find(call_formats(), std::string_view(name), &CallFormat::name);
  if (found == call_formats().end())
    fail(ErrorKind::InvalidArgument, "tool format: \"{}\" is unknown; expected one of {}", name,
         call_format_names());
  return &*found;
}

const char* name_of(const CallFormat& format) { return format.name; }

}  // namespace fovea::text

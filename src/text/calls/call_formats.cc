#include "calls/call_formats.h"

#include <algorithm>

#include "base/error.h"

namespace fovea::text {
namespace {

using enum ArgumentStyle;

// JSON objects with the name and the arguments of a call.
constexpr const char *kNameKey = "{\"name\": \"", *kArgumentsKey = "\", \"arguments\": ",
                     *kParametersKey = "\", \"parameters\": ";

CallFormat framed(CallFormat format, std::vector<std::string> frames) {
  format.frames = std::move(frames);
  return format;
}

// A call that is a message of its own, in gpt-oss's format.
CallFormat alone(const char* name, const char* call, const char* arguments,
                 const char* generated = "") {
  CallFormat format = {name, call, "", call, arguments, "", "", "", json};
  format.many = false;
  format.generated = generated;
  if (*generated != '\0') return format;
  return framed(std::move(format), {"<|start|>assistant", "<|channel|>final<|message|>",
                                    "<|channel|>commentary<|message|>", "<|return|>", "<|end|>"});
}

// Formats with tags or words as marks.
std::vector<CallFormat> formats_between_tags() {
  return {
      // Qwen3-Coder, Qwen 3.5, Nemotron 3.
      {"qwen3_coder", "<tool_call>", "", "<tool_call>\n<function=", ">\n",
       "</function>\n</tool_call>", "\n", "", tagged, "<parameter=", ">\n", "\n</parameter>\n"},
      {"glm47", "<tool_call>", "", "<tool_call>", "", "</tool_call>", "", "", tagged, "<arg_key>",
       "</arg_key><arg_value>", "</arg_value>"},
      {"glm45", "<tool_call>", "", "<tool_call>", "\n", "</tool_call>", "\n", "", tagged,
       "<arg_key>", "</arg_key>\n<arg_value>", "</arg_value>\n"},
      {"granite33", "<tool_call>", "<tool_call>[", kNameKey, kArgumentsKey, "}", ", ", "]", json},
      // Hermes 2 Pro, Qwen 2.5 and 3, SmolLM3, Granite 4.
      {"hermes", "<tool_call>", "", "<tool_call>\n{\"name\": \"", kArgumentsKey, "}\n</tool_call>",
       "\n", "", json},
      {"phi4_objects", "<|tool_call|>", "", "<|tool_call|>{\"name\": \"", kArgumentsKey,
       "}<|/tool_call|>", "", "", json},
      {"phi4", "<|tool_call|>", "<|tool_call|>[", kNameKey, kArgumentsKey, "}", ", ",
       "]<|/tool_call|>", json},
      {"granite3", "<|tool_call|>", "<|tool_call|>[", kNameKey, kArgumentsKey, "}", ", ", "]",
       json},
      {"functools", "functools[", "functools[", kNameKey, kArgumentsKey, "}", ", ", "]", json},
      {"nemotron", "<TOOLCALL>", "<TOOLCALL>[", kNameKey, kArgumentsKey, "}", ", ", "]</TOOLCALL>",
       json},
  };
}

std::vector<CallFormat> formats_of_mistral() {
  return {
      // Mistral up to v7, v11 (Small 3.2), and later ones.
      {"mistral_v3", "[TOOL_CALLS]", "[TOOL_CALLS] [", kNameKey, kArgumentsKey, "}", ", ", "]",
       json},
      {"mistral", "[TOOL_CALLS]", "[TOOL_CALLS][", kNameKey, kArgumentsKey, "}", ", ", "]", json},
      {"mistral_v11", "[TOOL_CALLS]", "", "[TOOL_CALLS]", "[CALL_ID]\2[ARGS]", "", "", "", json},
      {"mistral_v13", "[TOOL_CALLS]", "", "[TOOL_CALLS]", "[ARGS]", "", "", "", json},
  };
}

// Formats whose calls are in sections, or in messages of their own.
std::vector<CallFormat> formats_of_sections() {
  return {
      {"deepseek_r1", "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁begin｜>",
       "<｜tool▁call▁begin｜>function<｜tool▁sep｜>", "\n```json\n", "\n```<｜tool▁call▁end｜>",
       "\n", "<｜tool▁calls▁end｜>", json},
      {"deepseek_v31", "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>",
       "<｜tool▁sep｜>", "<｜tool▁call▁end｜>", "", "<｜tool▁calls▁end｜>", json},
      {"kimi", "<|tool_calls_section_begin|>", "<|tool_calls_section_begin|>",
       "<|tool_call_begin|>functions.", ":\1<|tool_call_argument_begin|>", "<|tool_call_end|>", "",
       "<|tool_calls_section_end|>", json},
      alone("harmony", "<|channel|>commentary to=functions.", " <|constrain|>json<|message|>"),
      alone("harmony_recipient", "to=functions.", "<|channel|>commentary json<|message|>",
            "harmony"),
      alone("harmony_constrained", "to=functions.",
            "<|channel|>commentary <|constrain|>json<|message|>", "harmony"),
      framed({"command_r7b", "<|START_ACTION|>", "<|START_ACTION|>[\n",
              "    {\"tool_call_id\": \"\1\", \"tool_name\": \"", kParametersKey, "}", ",\n",
              "\n]<|END_ACTION|>", json},
             {"<|START_RESPONSE|>", "<|END_RESPONSE|>"}),
  };
}

// Formats that fewer models share.
std::vector<CallFormat> rarer_formats() {
  return {
      {"minimax", "<minimax:tool_call>", "<minimax:tool_call>\n", "<invoke name=\"", "\">\n",
       "</invoke>\n", "", "</minimax:tool_call>", tagged, "<parameter name=\"", "\">",
       "</parameter>\n"},
      {"seed_oss", "<seed:tool_call>", "", "<seed:tool_call>\n<function=", ">\n",
       "</function>\n</seed:tool_call>", "\n", "", tagged, "<parameter=", ">", "</parameter>\n"},
      // Hunyuan, Jamba.
      {"tool_calls", "<tool_calls>", "<tool_calls>[", kNameKey, kArgumentsKey, "}", ", ",
       "]</tool_calls>", json},
      {"tool_calls_lines", "<tool_calls>", "<tool_calls>\n", kNameKey, kArgumentsKey, "}", "\n",
       "\n</tool_calls>", json},
      {"function_call", "<function_call>", "", "<function_call> {\"name\": \"", kArgumentsKey, "}",
       "\n", "", json},
  };
}

// Further ones whose arguments are between tags, and MiniCPM 3.
std::vector<CallFormat> further_tags() {
  return {
      {"deepseek_v32", "<｜DSML｜function_calls>", "<｜DSML｜function_calls>\n",
       "<｜DSML｜invoke name=\"", "\">\n", "</｜DSML｜invoke>", "\n", "\n</｜DSML｜function_calls>",
       tagged, "<｜DSML｜parameter name=\"", "\" string=\"\3\">", "</｜DSML｜parameter>\n"},
      {"deepseek_v4", "<｜DSML｜tool_calls>", "<｜DSML｜tool_calls>\n", "<｜DSML｜invoke name=\"",
       "\">\n", "</｜DSML｜invoke>", "\n", "\n</｜DSML｜tool_calls>", tagged,
       "<｜DSML｜parameter name=\"", "\" string=\"\3\">", "</｜DSML｜parameter>\n"},
      {"hy3", "<tool_calls:opensource>", "<tool_calls:opensource>\n", "<tool_call:opensource>",
       "<tool_sep:opensource>\n", "</tool_call:opensource>", "\n", "\n</tool_calls:opensource>",
       tagged, "<arg_key:opensource>", "</arg_key:opensource>\n<arg_value:opensource>",
       "</arg_value:opensource>\n"},
      framed({"kimi_k3", "<|open|>tools<|sep|>", "<|open|>tools<|sep|>", "<|open|>call tool=\"",
              "\" index=\"\1\"<|sep|>", "<|close|>call<|sep|>", "", "<|close|>tools<|sep|>", tagged,
              "<|open|>argument key=\"", "\" type=\"\4\"<|sep|>", "<|close|>argument<|sep|>"},
             {"<|open|>response<|sep|>", "<|close|>response<|sep|>", "<|close|>message<|sep|>"}),
      {"minicpm3", "<|tool_call_start|>", "<|tool_call_start|>\n```python\n", "", "(", ")", "\n",
       "\n```\n<|tool_call_end|>", keywords},
      {"minicpm5", "<function name=\"", "", "<function name=\"", "\">", "</function>", "\n", "",
       tagged, "<param name=\"", "\">", "</param>", true},
  };
}

// Further ones; those without a mark are the last.
std::vector<CallFormat> further_formats() {
  return {
      {"gigachat", "<|function_call|>", "", "<|function_call|>{\"name\": \"", kArgumentsKey, "}",
       "", "", json},
      {"internlm", "<|action_start|><|plugin|>", "", "<|action_start|><|plugin|>\n{\"name\": \"",
       kArgumentsKey, "}<|action_end|>", "", "", json},
      {"apertus", "<|tools_prefix|>", "<|tools_prefix|>[", "{\"", "\": ", "}", ", ",
       "]<|tools_suffix|>", json},
      {"olmo3", "<function_calls>", "<function_calls>", "", "(", ")", "\n", "</function_calls>",
       keywords},
      {"command_r", "Action:", "Action: ```json\n[\n", "{\"tool_name\": \"", kParametersKey, "}",
       ",\n", "\n]```", json},
      {"lfm2", "<|tool_call_start|>", "<|tool_call_start|>[", "", "(", ")", ", ",
       "]<|tool_call_end|>", keywords},
      {"llama4", "<|python_start|>", "<|python_start|>[", "", "(", ")", ", ", "]<|python_end|>",
       keywords},
      {"gemma4", "<|tool_call>", "", "<|tool_call>call:", "", "<tool_call|>", "", "", braces,
       "<|\"|>", "<|\"|>"},
      {"functiongemma", "<start_function_call>", "", "<start_function_call>call:", "",
       "<end_function_call>", "", "", braces, "<escape>", "<escape>"},
      {"qwen3_coder_unopened", "<function=", "", "<function=", ">\n", "</function>\n</tool_call>",
       "\n", "", tagged, "<parameter=", ">\n", "\n</parameter>\n"},
      {"functionary_v31", "<function=", "", "<function=", ">", "</function>", "", "", json},
      framed({"functionary_v32", ">>>", "", ">>>", "\n", "", "", "", json}, {">>>all\n"}),
      {"llama3_python_tag", "<|python_tag|>", "<|python_tag|>", kNameKey, kParametersKey, "}", "; ",
       "", json},
      // xLAM.
      {"json_list", "", "[", kNameKey, kArgumentsKey, "}", ", ", "]", json},
      // Llama 3.1 to 3.3.
      {"llama3", "", "", kNameKey, kParametersKey, "}", "; ", "", json},
      {"json", "", "", kNameKey, kArgumentsKey, "}", "; ", "", json},
      // Llama 3.2, ToolACE, Gemma 3.
      {"pythonic", "", "[", "", "(", ")", ", ", "]", keywords},
  };
}

}  // namespace

// Formats whose marks contain those of others precede them.
const std::vector<CallFormat>& call_formats() {
  static const std::vector<CallFormat> all = [] {
    std::vector<CallFormat> joined = formats_between_tags();
    for (const auto& more : {formats_of_mistral(), formats_of_sections(), rarer_formats(),
                             further_tags(), further_formats()})
      joined.insert(joined.end(), more.begin(), more.end());
    return joined;
  }();
  return all;
}

const std::vector<ReasoningMarks>& reasoning_marks() {
  static const std::vector<ReasoningMarks> all = {
      {"<|channel|>analysis<|message|>", "<|end|>", true},
      {"<|START_THINKING|>", "<|END_THINKING|>"},
      {"<|channel>thought\n", "<channel|>", true},
      {"<seed:think>", "</seed:think>"},
      {"[THINK]", "[/THINK]"},
      {"<|inner_prefix|>", "<|inner_suffix|>"},
      {"<reasoning>", "</reasoning>"},
      {"<|open|>think<|sep|>", "<|close|>think<|sep|>"},
      {"<|thought_start|>", "<|thought_end|>"},
      {"<think:opensource>", "</think:opensource>"},
      {"<think>", "</think>"},
  };
  return all;
}

std::string call_format_names() {
  std::string names;
  for (const CallFormat& format : call_formats())
    if (*format.generated == '\0') names += (names.empty() ? "" : ", ") + std::string(format.name);
  return names;
}

const CallFormat* find_call_format(const std::string& name) {
  const auto found = std::ranges::find(call_formats(), std::string_view(name), &CallFormat::name);
  if (found == call_formats().end() || *found->generated != '\0')
    fail(ErrorKind::InvalidArgument, "tool format: \"{}\" is unknown; expected one of {}", name,
         call_format_names());
  return &*found;
}

const char* name_of(const CallFormat& format) { return format.name; }

}  // namespace fovea::text

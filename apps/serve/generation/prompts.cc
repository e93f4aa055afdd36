#include "serve/generation/prompts.h"

#include <fmt/format.h>

#include <algorithm>

#include "fovea/core/error.h"
#include "fovea/core/excerpt.h"
#include "serve/generation/chat_images.h"
#include "serve/generation/guide_constraint.h"
#include "serve/generation/template_messages.h"
#include "serve/generation/tool_calls.h"
#include "serve/request/api_error.h"
#include "serve/routes/response_ids.h"
#include "serve/routes/response_limits.h"

namespace fovea::serve {
namespace {

// The end of a message that is continued: the noncharacter U+FDD2.
constexpr std::string_view kMark = "\xEF\xB7\x92";

// A message that only calls tools may have no content, where some templates expect a string: if
// rendering fails, it is repeated with empty strings.
std::string rendered(const TextGenerator& generator, const text::Tokenizer& tokenizer,
                     text::ChatRequest& chat, Json& messages) {
  const auto render = [&] {
    return generator.image_prompt
               ? text::render_with_images(*generator.chat, chat, tokenizer, generator.image_mark)
               : generator.chat->render(text::guarded(chat, tokenizer));
  };
  try {
    return render();
  } catch (const Error&) {
    if (!fill_contents(messages, generator.chat->habits)) throw;
  }
  chat.messages = text::ChatValue::of(messages);
  return render();
}

// Rejects fields that the template would silently ignore.
void check_shown(const ChatRequest& request, const text::ChatFormat& chat) {
  if (request.documents.empty() || chat.knows_documents) return;
  throw ApiError{400, "documents: not supported by the model's chat template; expected none",
                 "documents", "unsupported_by_template"};
}

// A chat whose last message is continued is rendered with a mark at the end of this message, and
// cut there. Throws ApiError if the last message is not a text of the assistant.
void mark_end(Json& messages) {
  Json& last = messages.back();
  const auto refuse = [] {
    refuse_value("continue_final_message", "a last message with a text of the assistant");
  };
  if (last["role"] != "assistant" || !last.contains("content")) refuse();
  Json* content = &last["content"];
  if (content->is_array() && !content->empty() && content->back().contains("text"))
    content = &content->back()["text"];
  if (!content->is_string()) refuse();
  *content = content->get<std::string>() + std::string(kMark);
}

// Returns the rendered text before the mark. Throws ApiError if the template does not show it.
std::string until_end(std::string text) {
  const size_t end = text.rfind(kMark);
  if (end == std::string::npos)
    throw ApiError{400,
                   "continue_final_message: the chat template does not show the last message; "
                   "expected false",
                   "continue_final_message", "invalid_value"};
  text.resize(end);
  return text;
}

// Whether the template shows the calls of a message.
bool shows_calls(const text::ChatFormat& chat) {
  const text::TemplateHabits& habits = chat.habits;
  return habits.calls_without_content || habits.calls_with_empty || habits.calls_with_text;
}

// Returns the text of a conversation, and its images.
std::string conversation(const ChatRequest& request, bool with_tools, ServedModel& model,
                         std::vector<ChatImage>& images) {
  const auto& generator = model.needs<TextGenerator>();
  if (!generator.chat) {
    throw ApiError{400,
                   request.messages_field +
                       ": the model has no chat template; use /v1/completions, or start the "
                       "server with --chat-template",
                   request.messages_field, "no_chat_template"};
  }
  text::ChatRequest chat;
  const bool reads_images = generator.image_prompt != nullptr;
  Json messages = request.messages;
  if (reads_images) images = take_images(messages);
  const bool describes = with_tools && !generator.chat->knows_tools;
  if (describes) {
    const bool shows = shows_calls(*generator.chat);
    const text::CallFormat* const calls = generator.message.calls;
    describe_calls(messages, request.tools,
                   shows && calls != nullptr ? *calls : *text::find_call_format("hermes"),
                   shows && calls != nullptr);
  }
  messages = template_messages(messages, *generator.chat, reads_images);
  if (request.ending.continue_final) mark_end(messages);
  chat.add_generation_prompt = request.ending.add_generation_prompt;
  try {
    chat.messages = text::ChatValue::of(messages);
    if (with_tools && !describes) chat.tools = text::ChatValue::of(request.tools);
    if (!request.documents.empty()) chat.documents = text::ChatValue::of(request.documents);
    if (!request.template_variables.empty())
      chat.variables = text::ChatValue::of(request.template_variables);
    std::string text = rendered(generator, model.needs_tokenizer(), chat, messages);
    return request.ending.continue_final ? until_end(std::move(text)) : text;
  } catch (const Error& error) {
    throw ApiError{400, request.messages_field + ": " + error.what(), request.messages_field,
                   "template_error"};
  }
}

struct ToolChoice {
  bool none = false, required = false;
  std::string name = {};  // name of the function that must be called
};

ToolChoice tool_choice(const ChatRequest& request) {
  const char* const expected =
      "none, auto, required or {\"type\": \"function\", \"function\": {\"name\": ...}}";
  const Json& choice = request.tool_choice;
  if (request.tools.empty()) return {true};
  if (choice.is_null() || choice == "auto") return {};
  if (choice == "none") return {true};
  if (choice == "required") return {false, true};
  if (!choice.is_object()) refuse_value("tool_choice", expected);
  const Json function = choice.value("function", Json());
  if (!function.is_object() || !function.value("name", Json()).is_string()) {
    refuse_value("tool_choice", expected);
  }
  return {false, true, function["name"]};
}

// Throws ApiError if the request has several descriptions of the text.
void check_guides(const GenerationRequest& request) {
  if (request.guides.size() > 1)
    refuse_value(
        request.guides[1].field,
        fmt::format("only one of {} and {}", request.guides[0].field, request.guides[1].field));
}

text::Constraint constraint_for(const Guide& guide, ServedModel& model, int64_t most) {
  try {
    return constraint_of(guide, model, most);
  } catch (const Error& error) {
    const std::string prefix = guide.field + ": ", what = error.what();
    throw ApiError{400, what.starts_with(prefix) ? what : prefix + what, guide.field,
                   "invalid_schema"};
  }
}

void constrain(GenerationRequest& request, ServedModel& model) {
  check_guides(request);
  if (request.guides.empty()) return;
  request.options.constrain = constraint_for(request.guides[0], model, request.options.max_tokens);
}

// Returns how the message is read.
text::MessageRules message_rules(const ChatRequest& request, const ToolChoice& choice,
                                 const ServedModel& model) {
  const auto& generator = *model.find<TextGenerator>();
  text::MessageRules rules;
  rules.format = generator.message;
  rules.split_reasoning = request.split_reasoning;
  if (choice.none) return rules;
  rules.functions = functions_of(request.tools);
  if (!choice.name.empty())
    std::erase_if(rules.functions,
                  [&](const auto& function) { return function.name != choice.name; });
  if (rules.functions.empty() && choice.required)
    throw ApiError{
        400, "tool_choice: tools has no such function; expected the name of a function in tools",
        "tool_choice", "invalid_value"};
  const bool shows = generator.chat->knows_tools || shows_calls(*generator.chat);
  if (!generator.chat->knows_tools && (!shows || rules.format.calls == nullptr))
    rules.format.calls = text::find_call_format("hermes");
  const bool ends = !generator.ends.empty() || model.tokenizer->eos_id().has_value();
  rules.enforced =
      rules.format.calls != nullptr && !rules.functions.empty() && request.guides.empty() && ends;
  return rules;
}

// Restricts calls and content, and limits the reasoning.
void constrain_message(ChatRequest& request, const ToolChoice& choice,
                       const text::MessageRules& rules, ServedModel& model) {
  check_guides(request);
  if (choice.required && !rules.enforced && request.guides.empty())
    request.guides = {{Guide::Kind::schema, "tool_choice", text::call_schema(rules.functions)}};
  const bool reasons = !rules.format.reasoning_end.empty();
  const int64_t reasoning =
      request.reasoning_tokens.value_or(model.needs<TextGenerator>().reasoning_tokens);
  if (!rules.enforced && (!reasons || (request.guides.empty() && reasoning < 0)))
    return constrain(request, model);
  text::MessageLimits limits;
  limits.calls_required = choice.required;
  limits.one_call = !request.parallel_calls || request.functions;
  limits.reasoning_tokens = reasons ? reasoning : -1;
  limits.most_tokens = request.options.max_tokens;
  if (!request.guides.empty()) {
    const Guide guide = request.guides[0];
    constraint_for(guide, model, limits.most_tokens);  // an error is one of the request
    limits.content = [guide, &model](int64_t most) { return constraint_of(guide, model, most); };
  }
  try {
    text::MessageConstraint made = text::message_constraint(model.message_vocabulary(),
                                                            model.needs_tokenizer(), rules, limits);
    request.options.constrain = std::move(made.constrain);
    request.warnings.insert(request.warnings.end(), made.warnings.begin(), made.warnings.end());
  } catch (const Error& error) {
    throw ApiError{400, std::string("tools: ") + error.what(), "tools", "invalid_schema"};
  }
}

// Returns prefix token, prompt, suffix token, suffix, middle token.
std::vector<int32_t> ids_with_suffix(const Prompt& prompt, const CompletionRequest& request,
                                     const text::Tokenizer& tokenizer) {
  const std::optional<MiddleTokens> tokens = middle_tokens(tokenizer);
  if (!tokens)
    refuse_value("suffix", "none: the tokenizer has no tokens to fill in the middle of a text");
  std::vector<int32_t> ids = {tokens->prefix};
  const auto append = [&](const std::vector<int32_t>& more) {
    ids.insert(ids.end(), more.begin(), more.end());
  };
  const auto* const text = std::get_if<std::string>(&prompt);
  const text::SpecialTokens special = request.special;
  append(text ? tokenizer.encode(*text, special) : std::get<std::vector<int32_t>>(prompt));
  ids.push_back(tokens->suffix);
  append(tokenizer.encode(request.suffix, special));
  ids.push_back(tokens->middle);
  return ids;
}

std::vector<int32_t> prompt_ids(const Prompt& prompt, const CompletionRequest& request,
                                const ServedModel& model) {
  if (const auto* ids = std::get_if<std::vector<int32_t>>(&prompt)) {
    if (!ids->empty()) return *ids;
  } else if (const auto& text = std::get<std::string>(prompt); !text.empty()) {
    text::EncodingOptions options;
    options.truncate_and_pad = false;
    options.special = request.special;
    return model.needs_tokenizer().encoding(text, options).ids;
  }
  refuse_value("prompt", "at least one character or token");
}

// Returns the maximum number of tokens that fit after a prompt, which is in the field `param`.
int64_t room_after(const std::vector<int32_t>& ids, const ServedModel& model,
                   const std::string& param) {
  const auto length = static_cast<int64_t>(ids.size());
  const int64_t context = model.facts.context;
  if (context == 0 || length < context) return context - length;
  throw ApiError{
      400,
      fmt::format(
          "{}: {} tokens leave no room for generated tokens; expected fewer than {}, the model's "
          "context",
          param, length, context),
      param, "context_length_exceeded"};
}

void bound_length(GenerationRequest& request, const PreparedPrompts& prompts, ServedModel& model,
                  const std::string& param) {
  int64_t& most = request.options.max_tokens;
  for (const std::vector<int32_t>& ids : prompts.ids) {
    int64_t room = room_after(ids, model, param);
    if (model.facts.context == 0) continue;
    // A cache smaller than the context limits the number of generated tokens; submit() reports a
    // cache that is too small to generate any.
    const auto length = model.facts.encoder ? 1 : static_cast<int64_t>(ids.size());
    const int64_t cached = model.needs_engine().room(length, request.options.generations);
    if (cached > 0) room = std::min(room, cached);
    most = most < 0 ? room : std::min(most, room);
  }
}

// Returns the JSON bytes of the prompts in a response.
int64_t echoed_bytes(const CompletionRequest& request, const PreparedPrompts& prompts,
                     const ModelFacts& facts) {
  if (!request.echo) return 0;
  int64_t bytes = 0;
  for (const Prompt& prompt : request.prompts) {
    const auto* text = std::get_if<std::string>(&prompt);
    constexpr int64_t kTokenBytes = 16;
    bytes +=
        text ? std::ssize(*text) : kTokenBytes * std::ssize(std::get<std::vector<int32_t>>(prompt));
  }
  if (prompts.score)
    for (const std::vector<int32_t>& ids : prompts.ids)
      bytes += std::ssize(ids) * bytes_of_token(request, facts.width, facts.context);
  return bytes * request.options.generations;
}

// Limits the JSON bytes of the response, of which the prompts take `echoed`, by reducing
// max_tokens. Throws ApiError if the client has set max_tokens above the limit, or if one token per
// choice exceeds the limit.
void bound_responses(GenerationRequest& request, const PreparedPrompts& prompts,
                     const ModelFacts& facts, int64_t echoed) {
  const auto generations = std::ssize(prompts.ids) * request.options.generations;
  check_response_bytes(echoed, "echo", "with fewer or shorter prompts, or without echo");
  const int64_t token = generations * bytes_of_token(request, facts.width, facts.context);
  check_response_bytes(echoed + token, "n", "with fewer choices");
  const int64_t most = (kMostResponseBytes - echoed) / token;
  int64_t& tokens = request.options.max_tokens;
  if (request.max_tokens_given && tokens > most) {
    const double bytes = static_cast<double>(token) * static_cast<double>(tokens);
    check_response_bytes(
        static_cast<int64_t>(std::min(bytes, 1e18)), "max_tokens",
        fmt::format("such as {} tokens for each of {} choices", most, generations));
  }
  tokens = tokens < 0 ? most : std::min(tokens, most);
  request.options.min_tokens = std::min(request.options.min_tokens, tokens);
}

void check_attention_trace(const infer::AttentionTraceOptions& trace, const ModelFacts& facts) {
  const auto check = [](const char* param, int64_t value, int64_t most, const char* what) {
    if (value <= most) return;
    throw ApiError{400, fmt::format("{}: expected at most {}, {}", param, most, what), param,
                   "out_of_range"};
  };
  if (trace.attention) {
    check("fovea.attention.layer", trace.attention->layer, facts.layers - 1,
          "the model's last layer");
    check("fovea.attention.head", trace.attention->head, facts.heads - 1, "the model's last head");
  }
  check("fovea.hidden_states.layer", trace.hidden.value_or(0), facts.layers,
        "the number of layers");
}

// A call names its tool, so that a custom tool and a function of one name could not be told apart.
void check_custom_names(const ChatRequest& request) {
  if (request.custom_tools.empty()) return;
  const std::vector<text::CallableFunction> functions = functions_of(request.tools);
  for (const std::string& name : request.custom_tools) {
    if (std::ranges::count(functions, name, &text::CallableFunction::name) > 1)
      refuse_value("tools", fmt::format("one tool with the name of the custom tool \"{}\"",
                                        excerpt(name, 64)));
  }
}

void check_combinations(ChatRequest& request) {
  check_custom_names(request);
  if (request.ending.continue_final && request.ending.add_generation_prompt)
    refuse_value("continue_final_message", "false, or add_generation_prompt false beside it");
  if (request.options.logprobs > 0 && !request.logprobs)
    refuse_value("logprobs", "true with top_logprobs");
  if (!request.logprobs) request.options.logprobs = -1;
  if (request.logprobs && request.options.logprobs < 0) request.options.logprobs = 0;
}

void read_conversation(const ChatRequest& request, bool with_tools, ServedModel& model,
                       PreparedPrompts& prompts) {
  std::vector<ChatImage> images;
  const std::string text = conversation(request, with_tools, model, images);
  text::read_prompt(text, prompts.message);
  const auto& image_prompt = model.needs<TextGenerator>().image_prompt;
  if (!image_prompt) {
    prompts.ids.push_back(model.needs_tokenizer().encode(text, text::SpecialTokens::guarded));
    return;
  }
  std::vector<std::string> names;
  for (const ChatImage& image : images) names.push_back(image.location);
  try {
    infer::ImagePrompt prompt = image_prompt(text, images.size(), ImageDecoder(images), names);
    prompts.ids.push_back(std::move(prompt.ids));
    prompts.images = std::move(prompt.images);
  } catch (const Error& error) {
    throw ApiError{400, request.messages_field + ": " + error.what(), request.messages_field,
                   "invalid_image"};
  }
}

// What follows once the prompts, which are in the field `param`, are tokenised.
void limit(GenerationRequest& request, const PreparedPrompts& prompts, ServedModel& model,
           const std::string& param, int64_t echoed) {
  bound_length(request, prompts, model, param);
  bound_responses(request, prompts, model.facts, echoed);
  if (!request.seed_given) request.options.sampling.seed = ResponseIds(request.identity).next();
}

}  // namespace

PreparedPrompts prepare(ChatRequest& request, ServedModel& model) {
  check_combinations(request);
  check_attention_trace(request.trace, model.facts);
  PreparedPrompts prompts;
  const ToolChoice choice = tool_choice(request);
  const auto& generator = model.needs<TextGenerator>();
  if (generator.chat) {
    check_shown(request, *generator.chat);
    prompts.message = message_rules(request, choice, model);
  }
  read_conversation(request, !choice.none, model, prompts);
  if (prompts.ids[0].empty()) refuse_value(request.messages_field, "at least one character");
  request.options.kept_special = choice.none ? generator.reasoning_marks : generator.marks;
  limit(request, prompts, model, request.messages_field, 0);
  constrain_message(request, choice, prompts.message, model);
  return prompts;
}

std::vector<int32_t> prompt_of(const ChatRequest& request, ServedModel& model) {
  PreparedPrompts prompts;
  read_conversation(request, !tool_choice(request).none, model, prompts);
  return std::move(prompts.ids[0]);
}

PreparedPrompts prepare(CompletionRequest& request, ServedModel& model,
                        const http::Exchange& exchange) {
  if (request.best_of != 0 && request.best_of != request.options.generations)
    refuse_value("best_of", "the value of n");
  check_attention_trace(request.trace, model.facts);
  PreparedPrompts prompts;
  for (const Prompt& prompt : request.prompts) {
    if (exchange.gone()) throw ApiError{503, "the client has disconnected", "", ""};
    prompts.ids.push_back(request.suffix.empty()
                              ? prompt_ids(prompt, request, model)
                              : ids_with_suffix(prompt, request, model.needs_tokenizer()));
  }
  prompts.score = request.echo && request.options.logprobs >= 0;
  if (prompts.score && (model.facts.encoder || !model.needs<TextGenerator>().score))
    refuse_value("echo", "false with logprobs: the model is no decoder");
  limit(request, prompts, model, "prompt", echoed_bytes(request, prompts, model.facts));
  constrain(request, model);
  return prompts;
}

std::optional<MiddleTokens> middle_tokens(const text::Tokenizer& tokenizer) {
  // StarCoder and Refact, Qwen and Codestral Mamba, CodeLlama, DeepSeek, CodeGemma.
  static constexpr const char* kNames[][3] = {
      {"<fim_prefix>", "<fim_suffix>", "<fim_middle>"},
      {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"},
      {"▁<PRE>", "▁<SUF>", "▁<MID>"},
      {"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"},
      {"[PREFIX]", "[SUFFIX]", "[MIDDLE]"}};
  for (const auto& [prefix, suffix, middle] : kNames) {
    const auto p = tokenizer.id_of(prefix), s = tokenizer.id_of(suffix),
               m = tokenizer.id_of(middle);
    if (p && s && m) return MiddleTokens{*p, *s, *m};
  }
  return std::nullopt;
}

std::string rendered_chat(const ChatRequest& request, ServedModel& model) {
  constexpr std::string_view kGuard = "\xEF\xB7\x90";  // of Tokenizer::guarded()
  const ToolChoice choice = tool_choice(request);
  if (const auto& chat = model.needs<TextGenerator>().chat) check_shown(request, *chat);
  std::vector<ChatImage> images;
  std::string text = conversation(request, !choice.none, model, images);
  for (size_t at = text.find(kGuard); at != text.npos; at = text.find(kGuard, at))
    text.erase(at, kGuard.size());
  return text;
}

std::vector<std::string> echoed_prompts(const CompletionRequest& request,
                                        const ServedModel& model) {
  std::vector<std::string> echoed;
  for (const Prompt& prompt : request.prompts) {
    const auto* const text = std::get_if<std::string>(&prompt);
    const std::string shown =
        !request.echo ? ""
        : text        ? *text
                      : model.needs_tokenizer().decode(std::get<std::vector<int32_t>>(prompt));
    echoed.insert(echoed.end(), static_cast<size_t>(request.options.generations), shown);
  }
  return echoed;
}

}  // namespace fovea::serve

#include "fovea/text/chat.h"

#include <algorithm>

#include "base/files.h"
#include "base/float_mode.h"
#include "base/folder_links.h"
#include "base/json.h"
#include "chat/values.h"
#include "jinja/interpreter.h"
#include "jinja/parser.h"
#include "tokenizer/formats/gguf_tokenizer.h"

namespace fovea::text {

using jinja::Dict;
using jinja::Kind;
using jinja::Runtime;
using jinja::Value;
using Json = nlohmann::json;

namespace {

constexpr size_t kTemplateBytes = size_t{1} << 20;  // real templates have at most about 20 KB

}  // namespace

ChatTemplate ChatTemplate::parse(std::string_view source, std::string name) {
  const FloatMode mode;
  if (source.size() > kTemplateBytes) {
    fail(ErrorKind::BadFile, "{}: {} bytes; expected a template of at most {}", name, source.size(),
         kTemplateBytes);
  }
  auto program = std::make_shared<Program>();
  program->name = std::move(name);
  program->source = source;
  program->body = jinja::Parser(jinja::lex(source, program->name), program->name).run();
  return ChatTemplate(std::move(program));
}

const std::string& ChatTemplate::source() const { return program_->source; }

ChatTemplate::Result ChatTemplate::render(std::string_view variables, const RenderLimits& limits,
                                          const std::function<std::tm()>& now) const {
  const FloatMode mode;
  Runtime runtime = unlimited();
  const Value given = jinja::from_json(runtime, variables, "variables");
  if (!given.is(Kind::dict)) {
    fail(ErrorKind::InvalidArgument, "variables: is not an object; expected a JSON object");
  }
  return jinja::Interpreter(*program_, given.dict(), limits, now).run();
}

namespace {

struct NamedSource {
  std::string name, source, path;
};

// Adds the templates of the config: one template, or a list of {"name", "template"}.
void add_configured(std::vector<NamedSource>& found, const Json& config, const std::string& path) {
  const auto entry = config.find("chat_template");
  if (entry == config.end() || entry->is_null()) return;
  if (entry->is_string()) {
    found.push_back({"default", entry->get<std::string>(), path + ": chat_template"});
    return;
  }
  if (!entry->is_array()) {
    fail(ErrorKind::BadFile, "{}: chat_template is {}; expected a string or a list of templates",
         path, brief(*entry));
  }
  for (const Json& each : *entry) {
    const std::string name = get_string(each, "name", path);
    found.push_back({name, get_string(each, "template", path), path + ": chat_template " + name});
  }
}

void add_file(std::vector<NamedSource>& found, const std::string& name, const std::string& path) {
  std::erase_if(found, [&](const NamedSource& each) { return each.name == name; });
  found.push_back({name, read_file(path, kTemplateBytes), path});
}

// Returns the special tokens of the config, such as bos_token: each is a string, or an object with
// "content".
Json special_tokens(const Json& config, const std::string& path) {
  Json tokens = Json::object();
  for (const auto& [key, value] : config.items()) {
    if (!key.ends_with("_token")) continue;
    if (value.is_string()) tokens[key] = value;
    if (value.is_object()) tokens[key] = get_string(value, "content", path);
  }
  return tokens;
}

// The templates of a model, and its configuration.
struct Found {
  std::vector<NamedSource> templates;
  Json config;
  std::string config_path;
};

// As in transformers, files take precedence over the configuration.
Found find_templates(const std::filesystem::path& folder) {
  Found found;
  const std::string path = folder.string();
  if (is_folder(path)) refuse_links_out(path);
  found.config_path = (folder / "tokenizer_config.json").string();
  found.config = is_gguf(path)                ? parse_json(tokenizer_files(Gguf(path)).config, path)
                 : is_file(found.config_path) ? read_json(found.config_path)
                                              : Json::object();
  if (!found.config.is_object())
    fail(ErrorKind::BadFile, "{}: is not an object; expected a JSON object", found.config_path);
  add_configured(found.templates, found.config, found.config_path);
  // Where transformers 4 keeps the template of a model that reads images.
  const std::string of_processor = (folder / "chat_template.json").string();
  if (is_file(of_processor)) {
    const Json json = read_json(of_processor);
    if (!json.is_object())
      fail(ErrorKind::BadFile, "{}: is not an object; expected a JSON object", of_processor);
    if (json.contains("chat_template")) found.templates.clear();
    add_configured(found.templates, json, of_processor);
  }
  const std::string file = (folder / "chat_template.jinja").string();
  if (is_file(file)) add_file(found.templates, "default", file);
  const std::string more = (folder / "additional_chat_templates").string();
  for (const std::string& name : is_folder(more) ? list_files(more) : std::vector<std::string>()) {
    if (!name.ends_with(".jinja")) continue;
    add_file(found.templates, name.substr(0, name.size() - 6),
             (folder / "additional_chat_templates" / name).string());
  }
  return found;
}

}  // namespace

bool ModelChat::has_template(const std::filesystem::path& folder) {
  const FloatMode mode;
  return !find_templates(folder).templates.empty();
}

ModelChat ModelChat::open(const std::filesystem::path& folder) {
  const FloatMode mode;
  ModelChat chat;
  chat.folder_ = folder.string();
  const Found found = find_templates(folder);
  if (found.templates.empty()) {
    fail(ErrorKind::Unsupported,
         "{}: the model has no chat template (neither chat_template.jinja nor chat_template in "
         "tokenizer_config.json); expected a chat model",
         chat.folder_);
  }
  for (const NamedSource& each : found.templates) {
    chat.templates_.insert_or_assign(each.name, ChatTemplate::parse(each.source, each.path));
  }
  chat.special_tokens_ = ChatValue::of(special_tokens(found.config, found.config_path));
  return chat;
}

ModelChat ModelChat::open_file(const std::string& path, const std::optional<Tokenizer>& tokenizer) {
  return of_source(read_file(path, kTemplateBytes), path, tokenizer);
}

ModelChat ModelChat::of_source(const std::string& source, const std::string& name,
                               const std::optional<Tokenizer>& tokenizer) {
  const FloatMode mode;
  ModelChat chat;
  chat.folder_ = name;
  const auto text_of = [&](std::optional<int32_t> id) {
    return id ? std::string(tokenizer->text_of(*id)) : std::string();
  };
  chat.templates_.emplace("default", ChatTemplate::parse(source, name));
  chat.special_tokens_ =
      ChatValue::object({{"bos_token", tokenizer ? text_of(tokenizer->bos_id()) : ""},
                         {"eos_token", tokenizer ? text_of(tokenizer->eos_id()) : ""}});
  return chat;
}

const ChatTemplate& ModelChat::choose(const ChatRequest& request) const {
  std::string name = request.template_name;
  if (name.empty()) {
    const bool tools = !request.tools.is_null() && templates_.contains("tool_use");
    name = tools ? "tool_use" : "default";
  }
  const auto found = templates_.find(name);
  if (found != templates_.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [known, value] : templates_) names.push_back(known);
  fail(ErrorKind::InvalidArgument, "{}: the model has no chat template {}; expected one of {}",
       folder_, name, fmt::join(names, ", "));
}

namespace {

// Returns the message with its reasoning under both names that templates read, reasoning_content
// and thinking, as in transformers.
Value with_reasoning(Runtime& runtime, const Value& message) {
  const Value* reasoning = nullptr;
  for (const std::string_view name : {"reasoning_content", "thinking", "reasoning"}) {
    const Value* given = message.dict().find(name);
    if (given && !given->is(Kind::none) && !reasoning) reasoning = given;
  }
  if (!reasoning) return message;
  const auto made = std::make_shared<Dict>();
  made->set(runtime, Value("thinking"), *reasoning);
  for (const auto& [key, value] : message.dict().entries()) made->set(runtime, key, value);
  made->set(runtime, Value("reasoning_content"), *reasoning);
  return Value(std::shared_ptr<const Dict>(made));
}

// Returns a list of objects; none if it is not given.
const Value& objects(const ChatValue& given, const char* name) {
  const Value& list = value_of(given);
  const bool right =
      given.is_null() || (is_list(list) && std::ranges::all_of(list.items(), [](const Value& v) {
                            return v.is(Kind::dict);
                          }));
  check(right, "{}: is invalid; expected an array of objects", name);
  return list;
}

void add_all(Runtime& runtime, Dict& variables, const ChatValue& given, const std::string& name) {
  if (given.is_null()) return;
  const Value& more = value_of(given);
  check(more.is(Kind::dict), "{}: is not an object; expected a JSON object", name);
  for (const auto& [key, value] : more.dict().entries()) variables.set(runtime, key, value);
}

}  // namespace

ChatTemplate::Result ModelChat::render(const ChatRequest& request, const RenderLimits& limits,
                                       const std::function<std::tm()>& now) const {
  const FloatMode mode;
  Runtime runtime = unlimited();
  const auto variables = std::make_shared<Dict>();
  add_all(runtime, *variables, special_tokens_, folder_);
  add_all(runtime, *variables, request.variables, "variables");
  check(!request.messages.is_null(), "messages: is invalid; expected an array of objects");
  jinja::Values messages;
  for (const Value& message : objects(request.messages, "messages").items())
    messages.push_back(with_reasoning(runtime, message));
  variables->set(runtime, Value("messages"), new_sequence(runtime, std::move(messages)));
  variables->set(runtime, Value("tools"), objects(request.tools, "tools"));
  variables->set(runtime, Value("documents"), objects(request.documents, "documents"));
  variables->set(runtime, Value("add_generation_prompt"), Value(request.add_generation_prompt));
  return jinja::Interpreter(*choose(request).program_, *variables, limits, now).run();
}

namespace {

// Returns the value with each string and key guarded.
Value guarded(Runtime& runtime, const Value& value, const Tokenizer& tokenizer) {
  if (value.is(Kind::string)) return Value(tokenizer.guarded(value.bytes()));
  if (value.is(Kind::sequence)) {
    jinja::Values items;
    for (const Value& item : value.items()) items.push_back(guarded(runtime, item, tokenizer));
    return new_sequence(runtime, std::move(items));
  }
  if (!value.is(Kind::dict)) return value;
  const auto dict = std::make_shared<Dict>();
  for (const auto& [key, each] : value.dict().entries())
    dict->set(runtime, guarded(runtime, key, tokenizer), guarded(runtime, each, tokenizer));
  return Value(std::shared_ptr<const Dict>(dict));
}

}  // namespace

ChatRequest guarded(const ChatRequest& request, const Tokenizer& tokenizer) {
  Runtime runtime = unlimited();
  ChatRequest result = request;
  for (ChatValue* each : {&result.messages, &result.tools, &result.documents, &result.variables})
    *each = chat_value(guarded(runtime, value_of(*each), tokenizer));
  return result;
}

}  // namespace fovea::text

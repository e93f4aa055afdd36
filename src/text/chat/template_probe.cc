#include "chat/template_probe.h"

#include <optional>

#include "base/ordered_json.h"

namespace fovea::text {
namespace {

using nlohmann::ordered_json;

constexpr const char *kName = "probe_name", *kKey = "probe_key", *kValue = "probe_value";
constexpr const char *kShortId = "a1B2c3D4e", *kLongId = "call_0123456789abcdef";
constexpr const char* kContent = "probe_content";

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// One way to give a call to a template.
struct CallForm {
  bool text_arguments = false;
  const char* id = kShortId;
  ordered_json content = nullptr;
};

class Probe {
 public:
  Probe(const std::function<std::string(const ChatRequest&)>& render, bool parts)
      : render_(render), parts_(parts) {}

  bool shows(const CallForm& form) const {
    const ordered_json object = {{kKey, kValue}};
    const ordered_json arguments = form.text_arguments ? ordered_json(object.dump()) : object;
    const ordered_json call = {{"id", form.id},
                               {"type", "function"},
                               {"function", {{"name", kName}, {"arguments", arguments}}}};
    ordered_json given = content(form.content);
    const ordered_json messages = {
        {{"role", "user"}, {"content", content("probe_user")}},
        {{"role", "assistant"}, {"content", given}, {"tool_calls", ordered_json::array({call})}},
        {{"role", "tool"},
         {"tool_call_id", form.id},
         {"name", kName},
         {"content", content("probe_result")}}};
    const ordered_json parameters = {{"type", "object"},
                                     {"properties", {{kKey, {{"type", "string"}}}}}};
    const ordered_json function = {
        {"name", kName}, {"description", "probe"}, {"parameters", parameters}};
    const ordered_json tools =
        ordered_json::array({{{"type", "function"}, {"function", function}}});
    // The name is in the list of tools too; the value is only in the call.
    const std::string text = rendered(messages, ChatValue::of(tools));
    if (!has(text, kValue) || (form.content == kContent && !has(text, kContent))) return false;
    // A text in another text has escaped quotes; an object that is joined to a text has Python's.
    const std::string key = kKey;
    return form.text_arguments ? has(text, '"' + key + '"') : !has(text, '\'' + key + '\'');
  }

  // Returns whether messages of this role are shown; true if the template does not even show one
  // of the user.
  bool shows_role(const char* role) const {
    const ordered_json user = {{"role", "user"}, {"content", content("probe_user")}};
    if (!has(rendered(ordered_json::array({user}), {}), "probe_user")) return true;
    const ordered_json given = {{"role", role}, {"content", content("probe_role")}};
    return has(rendered(ordered_json::array({given, user}), {}), "probe_role");
  }

 private:
  ordered_json content(const ordered_json& text) const {
    if (!parts_ || !text.is_string()) return text;
    return ordered_json::array({{{"type", "text"}, {"text", text}}});
  }

  // Returns an empty text if the template refuses the conversation.
  std::string rendered(const ordered_json& messages, const ChatValue& tools) const {
    ChatRequest request;
    request.messages = ChatValue::of(messages);
    request.tools = tools;
    try {
      return render_(request);
    } catch (const Error&) {
      return {};
    }
  }

  const std::function<std::string(const ChatRequest&)>& render_;
  const bool parts_;
};

// Returns the first form in which the template shows a call: arguments as objects, short ids and no
// content precede others.
std::optional<CallForm> first_form(const Probe& probe) {
  for (const bool text : {false, true})
    for (const char* const id : {kShortId, kLongId})
      for (const ordered_json& content : {ordered_json(), ordered_json(""), ordered_json(kContent)})
        if (const CallForm form{text, id, content}; probe.shows(form)) return form;
  return std::nullopt;
}

}  // namespace

TemplateHabits probe_template(const std::function<std::string(const ChatRequest&)>& render,
                              bool knows_parts) {
  const Probe probe(render, knows_parts);
  TemplateHabits habits;
  habits.shows_system = probe.shows_role("system");
  habits.shows_developer = probe.shows_role("developer");
  const std::optional<CallForm> found = first_form(probe);
  if (!found) {
    habits.calls_without_content = habits.calls_with_empty = habits.calls_with_text = false;
    return habits;
  }
  const bool text = found->text_arguments;
  habits.text_arguments = text;
  habits.short_ids = probe.shows({text, kShortId, found->content});
  habits.long_ids = probe.shows({text, kLongId, found->content});
  habits.calls_without_content = probe.shows({text, found->id, nullptr});
  habits.calls_with_empty = probe.shows({text, found->id, ""});
  habits.calls_with_text = probe.shows({text, found->id, kContent});
  return habits;
}

}  // namespace fovea::text

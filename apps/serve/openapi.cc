#include "serve/openapi.h"

#include <algorithm>
#include <string_view>

#include "fovea/core/machine.h"
#include "serve/request/fields.h"
#include "serve/routes/handlers.h"

namespace fovea::serve {
namespace {

constexpr double kExact = 9007199254740992;  // 2^53: larger integers have no exact number in JSON

Json array_of(const char* type) { return {{"type", "array"}, {"items", {{"type", type}}}}; }

Json one_or_many(const char* type) {
  return {{"anyOf", Json::array({Json{{"type", type}}, array_of(type)})}};
}

Json bounded_type(const char* type, const FieldInfo& field) {
  Json schema = {{"type", type}};
  const auto bound = [&](const char* key, double value) {
    if (std::string_view(type) != "integer")
      schema[key] = value;
    else if (value >= -kExact && value <= kExact)
      schema[key] = static_cast<int64_t>(value);
  };
  bound("minimum", field.least);
  bound("maximum", field.most);
  return schema;
}

Json or_auto(Json schema) {
  return {{"anyOf", Json::array({std::move(schema), Json{{"const", "auto"}}})}};
}

Json type_schema(const FieldInfo& field) {
  switch (field.type) {
    case FieldType::boolean: return {{"type", "boolean"}};
    case FieldType::integer: return bounded_type("integer", field);
    case FieldType::number: return bounded_type("number", field);
    case FieldType::automatic_integer: return or_auto(bounded_type("integer", field));
    case FieldType::automatic_number: return or_auto(bounded_type("number", field));
    case FieldType::text: return {{"type", "string"}};
    case FieldType::stops:
    case FieldType::texts: return one_or_many("string");
    case FieldType::strings: return array_of("string");
    case FieldType::ids: return array_of("integer");
    case FieldType::messages: return array_of("object");
    case FieldType::array: return {{"type", "array"}};
    case FieldType::biases:
    case FieldType::object: return {{"type", "object"}};
    case FieldType::prompts: return {{"type", {"string", "array"}}};
    case FieldType::any: break;
  }
  return Json::object();
}

// Returns the schema of a body; the field "a.b" is a property of the property a.
Json body_schema(const std::vector<FieldInfo>& fields) {
  Json schema = {{"type", "object"}, {"properties", Json::object()}};
  for (const FieldInfo& field : fields) {
    Json* object = &schema;
    std::string_view name = field.name;
    for (size_t dot = name.find('.'); dot != name.npos; dot = name.find('.')) {
      object = &(*object)["properties"][std::string(name.substr(0, dot))];
      name.remove_prefix(dot + 1);
    }
    Json property = type_schema(field);
    property["description"] =
        field.initial.empty() ? field.help : field.help + "; default: " + field.initial;
    (*object)["properties"][std::string(name)] = std::move(property);
    if (field.required) (*object)["required"].push_back(std::string(name));
  }
  return schema;
}

// Several paths may lead to a request: those without /v1 have the fields of those with it.
const std::vector<FieldInfo>* fields_at(const std::string& path) {
  for (const std::string& known : {path, "/v1" + path})
    for (const RouteFields& route : routes_with_fields())
      if (known == route.path) return &route.fields;
  return nullptr;
}

Json operation(const http::Route& route) {
  Json json = {{"summary", route.method + " " + route.path},
               {"responses", {{"200", {{"description", "the response"}}}}}};
  if (const size_t brace = route.path.find('{'); brace != route.path.npos) {
    const std::string name = route.path.substr(brace + 1, route.path.find('}') - brace - 1);
    json["parameters"] = Json::array(
        {{{"name", name}, {"in", "path"}, {"required", true}, {"schema", {{"type", "string"}}}}});
  }
  if (route.needs_key) json["security"] = Json::array({{{"key", Json::array()}}});
  if (const auto* fields = route.method == "POST" ? fields_at(route.path) : nullptr)
    json["requestBody"] = {{"required", true},
                           {"content", {{"application/json", {{"schema", body_schema(*fields)}}}}}};
  return json;
}

}  // namespace

Json openapi_json(const http::Router& router) {
  Json paths = Json::object();
  for (const http::Route& route : router.routes()) {
    std::string method = route.method;
    std::transform(method.begin(), method.end(), method.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    Json& path = paths[route.path];
    if (!path.contains(method)) path[method] = operation(route);  // the first route is used
  }
  return {
      {"openapi", "3.1.0"},
      {"info", {{"title", "fovea"}, {"version", version()}}},
      {"paths", paths},
      {"components", {{"securitySchemes", {{"key", {{"type", "http"}, {"scheme", "bearer"}}}}}}}};
}

void add_openapi_route(http::Router& router) {
  http::Router all = router;
  all.add({"GET", "/openapi.json"});
  const std::string body = json_line(openapi_json(all)) + "\n";
  router.add(
      guarded_route("GET", "/openapi.json",
                    [body](const http::Request&, const std::shared_ptr<http::Exchange>& exchange) {
                      exchange->send({200, "application/json", {}, body});
                    }));
}

}  // namespace fovea::serve

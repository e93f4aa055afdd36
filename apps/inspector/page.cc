#include "inspector/page.h"

#include <nlohmann/json.hpp>
#include <set>

namespace fovea::inspector {
namespace {

std::string_view type_of(const std::string& path) {
  if (path.ends_with(".js")) return "text/javascript; charset=utf-8";
  if (path.ends_with(".css")) return "text/css; charset=utf-8";
  if (path.ends_with(".md")) return "text/markdown; charset=utf-8";
  return "text/html; charset=utf-8";
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

// Modules import one another as "./name.js", which does not resolve in data: URLs. A saved page
// therefore imports "fovea/name.js", which an import map resolves.
std::string import_map() {
  nlohmann::ordered_json imports;
  for (const auto& [name, bytes] : page_files()) {
    if (!name.ends_with(".js")) continue;
    std::string module(bytes);
    for (const std::string import : {"from \"", "import(\""})
      replace_all(module, import + "./", import + "fovea/");
    imports["fovea/" + name] = "data:text/javascript;base64," + base64(module);
  }
  return nlohmann::ordered_json({{"imports", imports}}).dump();
}

// Adds a module and those that it imports statically.
void add_imports(const std::string& module, std::set<std::string>& names) {
  constexpr std::string_view kFrom = "from \"./";
  if (!names.insert(module).second) return;
  const std::string_view text = page_files().at(module);
  for (size_t at = text.find(kFrom); at != text.npos; at = text.find(kFrom, at + 1)) {
    const size_t begin = at + kFrom.size();
    add_imports(std::string(text.substr(begin, text.find('"', begin) - begin)), names);
  }
}

// Returns the page with links that preload the modules of the first view in parallel, not one
// import after the other.
std::string front_page() {
  constexpr std::string_view kMain = R"(<script type="module" src="main.js"></script>)";
  std::string page(page_files().at("index.html")), preloads;
  std::set<std::string> names;
  for (const char* first : {"main.js", "overview.js"}) add_imports(first, names);
  for (const std::string& name : names)
    preloads += "<link rel=\"modulepreload\" href=\"" + name + "\">\n";
  return page.insert(page.find(kMain), preloads);
}

std::string captured(const std::map<std::string, Response>& responses, const std::string& hash) {
  nlohmann::ordered_json all = nlohmann::ordered_json::object();
  for (const auto& [address, response] : responses) {
    const bool json = response.type == "application/json";
    all[address] = {{"type", response.type},
                    {"body", json ? response.body : base64(response.body)}};
  }
  std::string text = nlohmann::ordered_json({{"hash", hash}, {"responses", all}}).dump();
  replace_all(text, "<", "\\u003c");  // so that the user's text cannot close the script element
  return text;
}

}  // namespace

std::string base64(std::string_view bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t three = 0;
    for (size_t j = 0; j < 3; ++j)
      three = three << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    for (size_t j = 0; j < 4; ++j)
      text += i + j > bytes.size() ? '=' : kDigits[three >> (18 - 6 * j) & 63];
  }
  return text;
}

Response page_file(const std::string& path) {
  if (path == "saved.html") return {200, "text/html; charset=utf-8", saved_page({}, "")};
  if (path.empty()) return {200, "text/html; charset=utf-8", front_page()};
  const std::string& name = path;
  const auto found = page_files().find(name);
  if (found == page_files().end())
    return {404, "application/json", R"({"error":{"message":"unknown page"}})"};
  return {200, std::string(type_of(name)), std::string(found->second)};
}

std::string saved_page(const std::map<std::string, Response>& responses, const std::string& hash) {
  std::string page(page_files().at("index.html"));
  const auto put = [&](std::string_view mark, const std::string& text) {
    const size_t at = page.find(mark);
    page.replace(at, mark.size(), text);
  };
  put(R"(<link rel="stylesheet" href="style.css">)",
      "<style>" + std::string(page_files().at("style.css")) + "</style>");
  put(R"(<script type="module" src="main.js"></script>)",
      "<script type=\"application/json\" id=\"captured\">" + captured(responses, hash) +
          "</script>\n<script type=\"importmap\">" + import_map() +
          "</script>\n<script type=\"module\">import \"fovea/main.js\";</script>");
  return page;
}

}  // namespace fovea::inspector

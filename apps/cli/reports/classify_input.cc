#include "cli/reports/classify_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/ordered_json.h"
#include "fovea/core/error.h"
#include "fovea/text/text_lines.h"
#include "options/options.h"

namespace fovea::cli {
namespace {

using Json = nlohmann::ordered_json;

[[noreturn]] void refuse_line(const std::string& name, const std::string& message) {
  throw Error(ErrorKind::BadFile, name + ": " + message);
}

InputLines kind_of(const std::string& file, InputLines lines) {
  if (lines != InputLines::automatic) return lines;
  const std::string_view name = text::without_compression(file);
  if (name.ends_with(".jsonl") || name.ends_with(".json")) return InputLines::json;
  return name.ends_with(".tsv") ? InputLines::pairs : InputLines::text;
}

infer::TextInput pair_in(const std::string& line, const std::string& name) {
  const size_t tab = line.find('\t');
  if (tab == std::string::npos || line.find('\t', tab + 1) != std::string::npos)
    refuse_line(name, fmt::format("has {} column{}; expected two texts, separated by a tab",
                                  std::count(line.begin(), line.end(), '\t') + 1,
                                  tab == std::string::npos ? "" : "s"));
  return {line.substr(0, tab), line.substr(tab + 1)};
}

// Returns the text under the first of these keys that the object has.
std::optional<std::string> text_under(const Json& object, std::initializer_list<const char*> keys,
                                      const std::string& name) {
  for (const char* key : keys) {
    const auto found = object.find(key);
    if (found == object.end() || found->is_null()) continue;
    if (found->is_string()) return found->get<std::string>();
    std::string joined;  // words
    for (const Json& word : found->is_array() ? *found : Json::array({nullptr})) {
      if (!word.is_string())
        refuse_line(name, fmt::format("\"{}\": expected a text or a list of words", key));
      joined += (joined.empty() ? "" : " ") + word.get<std::string>();
    }
    return joined;
  }
  return std::nullopt;
}

infer::TextInput object_in(const std::string& line, const std::string& name) {
  const Json object = [&] {
    try {
      return parse_ordered_json(line, name);
    } catch (const JsonFault& fault) {
      throw Error(ErrorKind::BadFile, fault.what());
    }
  }();
  if (!object.is_object()) refuse_line(name, "expected a JSON object with \"text\"");
  auto text = text_under(
      object, {"text", "sentence", "sentence1", "premise", "question", "tokens", "words"}, name);
  if (!text) refuse_line(name, "has no \"text\"; expected \"text\", \"question\" or \"tokens\"");
  return {*std::move(text),
          text_under(object, {"text_pair", "sentence2", "hypothesis", "context"}, name)};
}

bool looks_like_a_file(const std::string& argument) {
  if (argument.find_first_of(" \t\n") != std::string::npos) return false;
  constexpr std::array kEndings = {".txt", ".tsv", ".csv", ".json", ".jsonl", ".gz"};
  return argument.find('/') != std::string::npos ||
         std::any_of(kEndings.begin(), kEndings.end(),
                     [&](const char* ending) { return argument.ends_with(ending); });
}

bool is_a_file(const std::string& argument) {
  constexpr size_t kLongestPath = 4096;
  std::error_code error;
  return argument == "-" ||
         (argument.size() < kLongestPath && std::filesystem::exists(argument, error));
}

}  // namespace

std::vector<infer::TextInput> inputs_of(const jobs::LineBlock& block, InputLines lines) {
  const InputLines kind = kind_of(block.file, lines);
  std::vector<infer::TextInput> inputs;
  for (size_t i = 0; i < block.lines.size(); ++i) {
    const std::string& line = block.lines[i];
    inputs.push_back(kind == InputLines::pairs  ? pair_in(line, block.name_of(i))
                     : kind == InputLines::json ? object_in(line, block.name_of(i))
                                                : infer::TextInput{line, {}});
  }
  return inputs;
}

std::vector<std::string> texts_of(const jobs::LineBlock& block) {
  if (kind_of(block.file, InputLines::automatic) != InputLines::json) return block.lines;
  std::vector<std::string> texts;
  for (size_t i = 0; i < block.lines.size(); ++i) {
    infer::TextInput input = object_in(block.lines[i], block.name_of(i));
    if (input.pair) refuse_line(block.name_of(i), "has two texts; expected one");
    texts.push_back(std::move(input.text));
  }
  return texts;
}

FilesOrTexts files_or_texts(const std::vector<std::string>& arguments) {
  FilesOrTexts found;
  for (const std::string& argument : arguments) {
    if (!is_a_file(argument) && looks_like_a_file(argument))
      throw UsageError(argument + ": no such file; expected a file or a text");
    (is_a_file(argument) ? found.files : found.texts).push_back(argument);
  }
  if (!found.files.empty() && !found.texts.empty())
    throw UsageError(fmt::format("{} is a file, but {} is not; expected files or texts",
                                 found.files.front(), found.texts.front()));
  return found;
}

std::string file_or_text(const std::string& argument) {
  if (is_a_file(argument) && argument != "-") return text::read_text(argument);
  if (looks_like_a_file(argument))
    throw UsageError(argument + ": no such file; expected a file or a text");
  return argument;
}

}  // namespace fovea::cli

#include "options/grammar_options.h"

#include <algorithm>

#include "fovea/core/error.h"
#include "fovea/infer/generate.h"
#include "fovea/text/text_lines.h"

namespace fovea::cli {
namespace {

constexpr size_t kGrammarBytes = size_t{1} << 20;  // the library's limit

}  // namespace

void GrammarOptions::declare(OptionTable& table) {
  table.section("Grammar");
  table.add(text("--json-schema", {"-j", "--guided-json"},
                 "generate JSON that satisfies this JSON Schema; {} = any JSON", schema_));
  table.add(as("FILE",
               text("--json-schema-file", {}, "file that contains the JSON Schema", schema_file_)));
  table.add(text("--grammar", {"--guided-grammar"},
                 "generate a text of this grammar, in llama.cpp's notation (GBNF)", grammar_));
  table.add(
      as("FILE", text("--grammar-file", {}, "file that contains the grammar", grammar_file_)));
  table.add(text("--regex", {"--guided-regex"},
                 "generate a text that matches this regular expression as a whole", regex_));
  table.add(list("--choice", {"--guided-choice"}, "generate one of these texts; may be repeated",
                 choices_));
}

text::Constraint GrammarOptions::constraint(const model::Model& model, int64_t most_tokens) {
  struct Way {
    const char* option;
    bool given;
  };
  const Way ways[] = {
      {"--json-schema", !schema_.empty()}, {"--json-schema-file", !schema_file_.empty()},
      {"--grammar", !grammar_.empty()},    {"--grammar-file", !grammar_file_.empty()},
      {"--regex", !regex_.empty()},        {"--choice", !choices_.empty()}};
  const Way* given = nullptr;
  for (const Way& way : ways) {
    if (way.given && given != nullptr)
      throw UsageError(std::string(given->option) + ": cannot be combined with " + way.option);
    if (way.given) given = &way;
  }
  if (given == nullptr) return {};
  const std::string& file = schema_file_.empty() ? grammar_file_ : schema_file_;
  const std::string text = file.empty() ? "" : text::read_text(file, kGrammarBytes);
  try {
    if (!vocabulary_) {
      std::vector<int32_t> ends = infer::end_ids(model);
      const auto end = model.tokenizer().eos_id();
      if (ends.empty() && end) ends.push_back(*end);
      vocabulary_ = std::make_shared<const text::JsonVocabulary>(model.tokenizer(), ends);
    }
    if (!choices_.empty()) return text::choice_constraint(vocabulary_, choices_, most_tokens);
    if (!regex_.empty()) return text::regex_constraint(vocabulary_, regex_, most_tokens);
    if (!grammar_.empty()) return text::gbnf_constraint(vocabulary_, grammar_, most_tokens);
    if (!grammar_file_.empty()) return text::gbnf_constraint(vocabulary_, text, most_tokens);
    return text::json_constraint(vocabulary_, schema_.empty() ? text : schema_, most_tokens);
  } catch (const Error& error) {  // "grammar: ...": names the option or the file instead
    const std::string message = error.what();
    const std::string word = message.substr(0, message.find(':'));
    const bool named = word == "schema" || word == "grammar" || word == "regex" || word == "choice";
    throw Error(error.kind(), (file.empty() ? given->option : file) +
                                  (named ? message.substr(word.size()) : ": " + message));
  }
}

}  // namespace fovea::cli

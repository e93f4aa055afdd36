#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fovea/infer/classify.h"
#include "jobs/lines.h"

namespace fovea::cli {

// How the lines of a file give texts. automatic: by the extension of the file's name: json for
// .jsonl and .json, pairs for .tsv, else text. text: a line is a text. pairs: two texts, separated
// by a tab. json: an object with "text" (or "sentence", "question", a list "tokens") and
// optionally "text_pair" (or "context").
enum class InputLines { automatic, text, pairs, json };

// Returns the texts of a block of lines, each of which is a text, or, in .jsonl and .json files, an
// object with "text". Throws BadFile, naming the line, if an object has another form.
std::vector<std::string> texts_of(const jobs::LineBlock& block);

// Returns the texts of a block of lines. Throws BadFile, naming the line, if one has another form.
std::vector<infer::TextInput> inputs_of(const jobs::LineBlock& block, InputLines lines);

// The arguments FILE|TEXT: the files, or the texts.
struct FilesOrTexts {
  std::vector<std::string> files, texts;
};
// An argument is a file if one of this name exists, and "-" is standard input. Throws UsageError if
// an argument without blanks looks like the name of a file, or if files and texts are mixed.
FilesOrTexts files_or_texts(const std::vector<std::string>& arguments);

// Returns the contents of a file of this name, or else the text itself.
std::string file_or_text(const std::string& argument);

}  // namespace fovea::cli

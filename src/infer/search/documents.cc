#include "search/documents.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>

#include "base/bounded_program.h"
#include "base/error.h"
#include "base/json.h"
#include "records/json_records.h"
#include "search/text_files.h"
#include "unicode/utf8.h"

namespace fovea::infer {
namespace {

// A program that writes the text of the file at its standard input.
struct Converter {
  std::string ending, program;
  std::vector<std::string> arguments;
  std::string package;  // of Debian and Ubuntu
};

const std::vector<Converter>& converters() {
  static const std::vector<Converter> all = {
      {".pdf", "pdftotext", {"-q", "-enc", "UTF-8", "-", "-"}, "poppler-utils"},
      {".html", "html2text", {"-utf8", "-nobs"}, "html2text"},
      {".htm", "html2text", {"-utf8", "-nobs"}, "html2text"},
      {".xhtml", "html2text", {"-utf8", "-nobs"}, "html2text"},
      {".docx", "docx2txt", {"-", "-"}, "docx2txt"}};
  return all;
}

bool has_ending(const std::string& file, std::string_view ending) {
  if (file.size() <= ending.size()) return false;
  for (size_t i = 0; i < ending.size(); ++i) {
    char c = file[file.size() - ending.size() + i];
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c != ending[i]) return false;
  }
  return true;
}

const Converter* converter_for(const std::string& file) {
  for (const Converter& converter : converters())
    if (has_ending(file, converter.ending)) return &converter;
  return nullptr;
}

// Removes what html2text draws in place of markup: the asterisks around headings and in bold text,
// and rules of equals signs.
std::string without_drawings(std::string_view text) {
  constexpr size_t kRule = 10;  // fewer may be text
  std::string plain;
  for (size_t at = 0, end = 0; at < text.size(); at = end) {
    end = std::min(text.find_first_not_of(text[at], at), text.size());
    const bool drawn = (text[at] == '*' && end - at > 1) || (text[at] == '=' && end - at >= kRule);
    if (!drawn) plain.append(text.substr(at, end - at));
  }
  return plain;
}

// Returns the text of a record, whose other texts and numbers become its fields; unset if it is
// none.
std::optional<Document> record_of(const std::string& text, const std::string& location) {
  const nlohmann::json json = parse_json(text, location);
  if (!json.is_object() || !json.contains("text") || !json["text"].is_string()) return std::nullopt;
  nlohmann::json fields = nlohmann::json::object();
  for (const auto& [name, value] : json.items())
    if (name != "text" && value.is_primitive() && !value.is_null()) fields[name] = value;
  const size_t colon = location.rfind(':');
  return Document{json["text"].get<std::string>(), std::stoll(location.substr(colon + 1)),
                  fields.empty() ? "" : fields.dump()};
}

// Returns the records of a .jsonl file; none if its first line is no record with a text.
std::vector<Document> records_in(const std::string& text, const std::string& path) {
  std::vector<Document> records;
  bool first = true, are_records = true;
  text::JsonRecords reader(path, [&](const std::string& record, const std::string& location) {
    if (!are_records) return;
    std::optional<Document> found;
    try {
      found = record_of(record, location);
    } catch (const Error&) {
      if (!first) throw;
    }
    if (!found && !first)
      fail(ErrorKind::BadFile,
           "{}: is no object with a \"text\"; expected one, as in the first line", location);
    are_records = found.has_value();
    if (found) records.push_back(std::move(*found));
    first = false;
  });
  reader.add(text);
  if (are_records) reader.end();
  return records;
}

}  // namespace

bool DocumentReader::needs_program(const std::string& file) {
  return converter_for(file) != nullptr;
}

std::vector<Document> DocumentReader::read(const std::string& folder, const std::string& file) {
  if (needs_program(file)) return read_by_program(folder, file);
  std::string text = read_text_file(folder, file);
  if (has_ending(file, ".jsonl")) {
    std::vector<Document> records = records_in(text, folder + "/" + file);
    if (!records.empty()) return records;
  }
  return {{std::move(text)}};
}

std::vector<Document> DocumentReader::read_by_program(const std::string& folder,
                                                      const std::string& file) {
  const Converter& converter = *converter_for(file);
  const auto program = find_program(converter.program);
  if (!program) {
    Missing& missing = missing_[converter.package];
    if (missing.files++ == 0) missing.first = file;
    return {};
  }
  std::vector<std::string> command = {*program};
  command.insert(command.end(), converter.arguments.begin(), converter.arguments.end());
  try {
    std::string text = run_bounded(command, folder + "/" + file, {}, stop_);
    for (char& c : text)
      if (c == '\0' || c == '\f') c = '\n';  // pdftotext ends pages by \f
    if (converter.program == "html2text") text = without_drawings(text);
    return {{text::utf8::valid_prefix(text) == text.size() ? text : text::utf8::repaired(text)}};
  } catch (const Error& error) {
    if (stop_ && stop_()) throw;
    unread_.push_back(file + ": " + error.what());
    return {};
  }
}

std::vector<std::string> DocumentReader::unread() const {
  std::vector<std::string> lines = unread_;
  for (const auto& [package, missing] : missing_)
    lines.push_back(missing.first +
                    (missing.files > 1 ? fmt::format(" and {} more", missing.files - 1) : "") +
                    ": not read; expected the program of the package " + package);
  return lines;
}

std::string date_of_file(const std::string& path) {
  struct stat status{};
  if (stat(path.c_str(), &status) != 0) return "";
  namespace time = std::chrono;
  const time::sys_seconds at{time::seconds(status.st_mtime)};
  const auto day = time::floor<time::days>(at);
  const time::year_month_day date(day);
  const time::hh_mm_ss clock(at - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count());
}

}  // namespace fovea::infer

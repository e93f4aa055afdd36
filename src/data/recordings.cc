#include "data/recordings.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/json.h"
#include "data/lines.h"
#include "fovea/excerpt.h"

namespace fovea {
namespace {

// The columns of a line by their names.
using Columns = std::map<std::string, std::string>;

void add_recording(const std::string& table, const std::string& place, const Columns& columns,
                   Recordings& all) {
  const auto needed = [&](const char* name) {
    const auto found = columns.find(name);
    if (found == columns.end() || is_blank(found->second))
      fail(ErrorKind::BadFile,
           "{}: has no {}; expected the columns audio, text and, if it is known, "
           "language",
           place, name);
    return found->second;
  };
  const std::string audio = needed("audio");
  const std::string file = audio.starts_with('/') ? audio : parent_of(table) + "/" + audio;
  if (!is_file(file))
    fail(ErrorKind::BadFile, "{}: {} is missing; expected a sound file", place, excerpt(file));
  all.files.push_back(file);
  all.texts.push_back(needed("text"));
  const auto language = columns.find("language");
  all.languages.push_back(language == columns.end() ? "" : language->second);
  all.places.push_back(place);
}

void add_table(const std::string& path, char separator, Recordings& all) {
  const std::vector<std::string> lines = read_lines(path);
  std::vector<std::string> names;
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string place = fmt::format("{}:{}", path, i + 1);
    if (is_blank(lines[i])) continue;
    const std::vector<std::string> row = split_row(lines[i], separator, place);
    if (names.empty()) {
      names = row;
      for (const char* name : {"audio", "text"})
        if (std::find(names.begin(), names.end(), name) == names.end())
          fail(ErrorKind::BadFile,
               "{}: names no column {}; expected the names of the columns, such "
               "as audio{}text",
               place, name, separator);
      continue;
    }
    if (row.size() != names.size())
      fail(ErrorKind::BadFile, "{}: has {} columns; expected {}", place, row.size(), names.size());
    Columns columns;
    for (size_t c = 0; c < row.size(); ++c) columns[names[c]] = row[c];
    add_recording(path, place, columns, all);
  }
}

void add_json_lines(const std::string& path, Recordings& all) {
  each_json_line(path, [&](const std::string& line, const std::string& place) {
    const nlohmann::json json = parse_json(line, place);
    if (!json.is_object())
      fail(ErrorKind::BadFile, "{}: is {}; expected an object with \"audio\" and \"text\"", place,
           brief(json));
    Columns columns;
    for (const char* name : {"audio", "text", "language"})
      if (const auto value = find_string(json, name, place)) columns[name] = *value;
    add_recording(path, place, columns, all);
  });
}

}  // namespace

Recordings read_recordings(const std::vector<std::string>& tables) {
  Recordings all;
  for (const std::string& path : tables) {
    if (path.ends_with(".jsonl") || path.ends_with(".json"))
      add_json_lines(path, all);
    else if (path.ends_with(".csv") || path.ends_with(".tsv"))
      add_table(path, path.ends_with(".csv") ? ',' : '\t', all);
    else
      fail(ErrorKind::BadFile,
           "{}: is no table of recordings; expected a .csv, .tsv or .jsonl file with the columns "
           "audio and text",
           path);
  }
  if (all.files.empty())
    fail(ErrorKind::BadFile, "{}: has no recordings; expected at least one", tables.front());
  Hasher hasher;
  for (size_t i = 0; i < all.files.size(); ++i) {
    hasher.add(all.texts[i] + "\n" + all.languages[i] + "\n");
    hasher.add(MappedFile(all.files[i]));
  }
  all.hash = hasher.hash();
  return all;
}

}  // namespace fovea

#include "data/recordings.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/json.h"
#include "fovea/core/excerpt.h"
#include "fovea/text/text_lines.h"
#include "records/json_records.h"
#include "records/table.h"

namespace fovea::train {
namespace {

// The columns of a line by their names.
using Columns = std::map<std::string, std::string>;

void add_recording(const std::string& table, const std::string& location, const Columns& columns,
                   Recordings& all) {
  const auto needed = [&](const char* name, bool may_be_blank = false) {
    const auto found = columns.find(name);
    if (found == columns.end() || (!may_be_blank && text::is_blank(found->second)))
      fail(ErrorKind::BadFile,
           "{}: has no {}; expected the columns audio, text and, if it is known, "
           "language",
           location, name);
    return found->second;
  };
  const std::string audio = needed("audio");
  const std::string file = audio.starts_with('/') ? audio : parent_of(table) + "/" + audio;
  if (!is_file(file))
    fail(ErrorKind::BadFile, "{}: {} is missing; expected an audio file", location, excerpt(file));
  const std::string text = needed("text", true);
  if (text::is_blank(text)) {
    ++all.empty;
    return;
  }
  all.files.push_back(file);
  all.texts.push_back(text);
  const auto language = columns.find("language");
  all.languages.push_back(language == columns.end() ? "" : language->second);
  all.locations.push_back(location);
}

bool are_names_of_recordings(const std::vector<std::string>& columns) {
  return text::has_name(columns, {"audio"}) && text::has_name(columns, {"text"});
}

void add_table(const std::string& path, Recordings& all) {
  const text::Table table = text::read_table(path, are_names_of_recordings);
  if (table.names.empty() && !table.rows.empty())
    fail(ErrorKind::BadFile,
         "{}: names no columns audio and text; expected the names of the columns, such as "
         "audio{}text",
         table.rows.front().location, table.separator);
  for (const text::Table::Row& row : table.rows) {
    Columns columns;
    for (size_t c = 0; c < row.columns.size(); ++c) columns[table.names[c]] = row.columns[c];
    add_recording(path, row.location, columns, all);
  }
}

void add_json_records(const std::string& path, Recordings& all) {
  text::each_json_record(path, [&](const std::string& record, const std::string& location) {
    const nlohmann::json json = parse_json(record, location);
    if (!json.is_object())
      fail(ErrorKind::BadFile, "{}: is {}; expected an object with \"audio\" and \"text\"",
           location, brief(json));
    Columns columns;
    for (const char* name : {"audio", "text", "language"})
      if (const auto value = find_string(json, name, location)) columns[name] = *value;
    add_recording(path, location, columns, all);
  });
}

}  // namespace

Recordings read_recordings(const std::vector<std::string>& tables) {
  Recordings all;
  for (const std::string& path : tables) {
    if (text::has_records(path))
      add_json_records(path, all);
    else if (path.ends_with(".csv") || path.ends_with(".tsv"))
      add_table(path, all);
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

}  // namespace fovea::train

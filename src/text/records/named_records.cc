#include "records/named_records.h"

#include <algorithm>
#include <cstddef>

#include "base/error.h"
#include "base/json.h"
#include "records/json_records.h"
#include "records/table.h"

namespace fovea::text {
namespace {

std::optional<std::string> text_of(const nlohmann::json& value, const std::string& name,
                                   const std::string& location) {
  if (value.is_null()) return std::nullopt;
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "1" : "0";
  if (value.is_number()) return value.dump();
  fail(ErrorKind::BadFile, "{}: \"{}\" is {}; expected a text or a number", location, name,
       brief(value));
}

NamedRecord record_of_object(const nlohmann::json& json, const std::vector<NamedField>& fields,
                             const std::string& location) {
  if (!json.is_object())
    fail(ErrorKind::BadFile, "{}: is {}; expected an object", location, brief(json));
  NamedRecord record{{}, location};
  for (const NamedField& field : fields) {
    const auto name = std::find_if(field.names.begin(), field.names.end(),
                                   [&](const std::string& each) { return json.contains(each); });
    record.values.push_back(name == field.names.end() ? std::nullopt
                                                      : text_of(json[*name], *name, location));
    if (field.required && !record.values.back())
      fail(ErrorKind::BadFile, "{}: has no \"{}\"", location, field.names.front());
  }
  return record;
}

std::optional<size_t> column_of(const std::vector<std::string>& columns, const NamedField& field) {
  for (const std::string& name : field.names) {
    const auto found = std::find(columns.begin(), columns.end(), name);
    if (found != columns.end()) return static_cast<size_t>(found - columns.begin());
  }
  return std::nullopt;
}

bool has_names(const std::vector<std::string>& columns, const std::vector<NamedField>& fields) {
  size_t found = 0;
  for (const NamedField& field : fields) {
    const bool here = column_of(columns, field).has_value();
    if (field.required && !here) return false;
    found += here ? 1 : 0;
  }
  return found >= 2;
}

std::string names_of(const std::vector<NamedField>& fields) {
  std::vector<std::string> names;
  for (const NamedField& field : fields)
    if (field.required || std::ranges::none_of(fields, &NamedField::required))
      names.push_back(field.names.front());
  return fmt::format("{}", fmt::join(names, ", "));
}

void each_row(const std::string& path, const std::vector<NamedField>& fields,
              const std::function<void(const NamedRecord& record)>& use) {
  const Table table = read_table(
      path, [&](const std::vector<std::string>& columns) { return has_names(columns, fields); });
  if (table.names.empty())
    fail(ErrorKind::BadFile, "{}: has no names of columns; expected a first row with {}", path,
         names_of(fields));
  for (const Table::Row& row : table.rows) {
    NamedRecord record{{}, row.location};
    for (const NamedField& field : fields) {
      const auto column = column_of(table.names, field);
      record.values.push_back(column ? std::optional(row.columns[*column]) : std::nullopt);
    }
    use(record);
  }
}

}  // namespace

void each_named_record(const std::string& path, const std::vector<NamedField>& fields,
                       const std::function<void(const NamedRecord& record)>& use) {
  if (!has_records(path) && !first_json_record(path).starts_with('{'))
    return each_row(path, fields, use);
  each_json_record(path, [&](const std::string& record, const std::string& location) {
    use(record_of_object(parse_json(record, location), fields, location));
  });
}

}  // namespace fovea::text

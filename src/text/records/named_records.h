#pragma once

// Records whose values are found by their names: JSON records and the columns of tables.

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace fovea::text {

// A value of each record, by the names that it may have, of which the first one is in errors.
struct NamedField {
  std::vector<std::string> names;
  bool required = true;
};

struct NamedRecord {
  std::vector<std::optional<std::string>> values;  // of each field; unset if the record lacks it
  std::string location;                            // "path:line"
};

// Calls `use` with each record of a file of JSON lines or Parquet, or each row of a table, whose
// first row must have names: all required ones, and at least two. Numbers and booleans (1 and 0)
// become texts. Throws BadFile, naming the record, if it lacks a required value or if a value is
// something else, and the errors of each_json_record() and read_table().
void each_named_record(const std::string& path, const std::vector<NamedField>& fields,
                       const std::function<void(const NamedRecord& record)>& use);

}  // namespace fovea::text

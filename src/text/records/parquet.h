#pragma once

#include <cstdint>
#include <string>

#include "records/json_records.h"

namespace fovea::text {

// Files of Apache Parquet (https://parquet.apache.org/docs/file-format/), in which most data sets
// of the Hugging Face Hub are stored: a row is a record.

bool is_parquet(const std::string& path);  // by its first bytes

// Calls `use` with the first `most` rows of a file as JSON objects, whose keys are in the order of
// the columns; a list is an array, a missing value null, and so are bytes that are no text. Read:
// pages without compression and those of Snappy, gzip and Zstandard, plain values and dictionaries.
// Throws BadFile if the file is damaged, and Unsupported, naming the column, for other encodings.
void each_parquet_record(const std::string& path, const JsonUse& use, int64_t most = INT64_MAX);
// The same for the bytes of a file; `path` is its name in errors.
void each_parquet_record(std::string_view file, const std::string& path, const JsonUse& use,
                         int64_t most = INT64_MAX);

}  // namespace fovea::text

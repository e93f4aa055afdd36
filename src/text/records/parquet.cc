#include "records/parquet.h"

#include <algorithm>
#include <fstream>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "records/parquet_format.h"

namespace fovea::text {
namespace {

// Puts the columns of a group of rows together to rows.
class Rows {
 public:
  Rows(const ParquetMetadata& metadata, const ParquetRowGroup& group, std::string_view file,
       const std::string& path)
      : path_(path) {
    for (size_t i = 0; i < group.chunks.size(); ++i)
      columns_.push_back(read_parquet_column(file, group.chunks[i], *metadata.columns[i], path));
    cursors_.resize(columns_.size());
  }

  // Returns the JSON text of the next row.
  std::string next(const ParquetNode& root) {
    json_.clear();
    group(root);
    return json_;
  }

 private:
  struct Cursor {
    size_t entry = 0, value = 0;
  };

  [[noreturn]] void refuse() const {
    fail(ErrorKind::BadFile,
         "{}: its columns have different numbers of rows; expected a whole "
         "Parquet file",
         path_);
  }

  // The first column of a node shows whether the node is present and whether it goes on.
  static size_t first_column(const ParquetNode& node) {
    return node.column >= 0 ? static_cast<size_t>(node.column)
                            : first_column(node.children.front());
  }
  int definition(size_t column) const {
    if (cursors_[column].entry >= columns_[column].definitions.size()) refuse();
    return columns_[column].definitions[cursors_[column].entry];
  }
  bool goes_on(const ParquetNode& node) const {
    const size_t column = first_column(node);
    const size_t entry = cursors_[column].entry;
    return entry < columns_[column].repetitions.size() &&
           columns_[column].repetitions[entry] == node.repetition;
  }

  // Each column below a node that is missing has one entry for it.
  void skip(const ParquetNode& node) {
    if (node.column >= 0) {
      definition(static_cast<size_t>(node.column));
      ++cursors_[static_cast<size_t>(node.column)].entry;
    }
    for (const ParquetNode& child : node.children) skip(child);
  }

  void group(const ParquetNode& node) {
    json_ += '{';
    for (const ParquetNode& child : node.children) {
      if (&child != &node.children.front()) json_ += ',';
      json_ +=
          nlohmann::json(child.name).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
      json_ += ':';
      field(child);
    }
    json_ += '}';
  }

  void field(const ParquetNode& node) {
    const bool present = definition(first_column(node)) >= node.definition;
    if (!present) {
      skip(node);
      json_ += node.repeated ? "[]" : "null";
    } else if (node.repeated) {
      elements(node, node);
    } else if (node.list && node.children.size() == 1 && node.children.front().repeated) {
      list(node.children.front());
    } else {
      value(node);
    }
  }

  // A list is a group of a repeated group that has the element: {"list": [{"element": x}]}.
  void list(const ParquetNode& node) {
    if (definition(first_column(node)) < node.definition) {
      skip(node);
      json_ += "[]";
      return;
    }
    const bool wrapped = node.children.size() == 1 && !node.children.front().repeated;
    elements(node, wrapped ? node.children.front() : node);
  }

  void elements(const ParquetNode& repeated, const ParquetNode& element) {
    json_ += '[';
    do {
      if (json_.back() != '[') json_ += ',';
      if (&element == &repeated)
        value(element);
      else
        field(element);
    } while (goes_on(repeated));
    json_ += ']';
  }

  void value(const ParquetNode& node) {
    if (node.column < 0) return group(node);
    const auto column = static_cast<size_t>(node.column);
    Cursor& cursor = cursors_[column];
    definition(column);
    ++cursor.entry;
    if (cursor.value >= columns_[column].values.size()) refuse();
    json_ += columns_[column].texts[columns_[column].values[cursor.value++]];
  }

  const std::string& path_;
  std::vector<ParquetColumn> columns_;
  std::vector<Cursor> cursors_;
  std::string json_;
};

}  // namespace

bool is_parquet(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  char magic[4] = {};
  file.read(magic, sizeof magic);
  return file && std::string_view(magic, sizeof magic) == "PAR1";
}

void each_parquet_record(std::string_view file, const std::string& path, const JsonUse& use,
                         int64_t most) {
  ParquetMetadata metadata;
  read_parquet_metadata(file, path, metadata);
  int64_t row = 0;
  for (const ParquetRowGroup& group : metadata.groups) {
    if (row == most) return;
    Rows rows(metadata, group, file, path);
    for (int64_t i = 0; i < group.rows && row < most; ++i)
      use(rows.next(metadata.root), fmt::format("{}: row {}", path, ++row));
  }
}

void each_parquet_record(const std::string& path, const JsonUse& use, int64_t most) {
  const MappedFile file(path);
  each_parquet_record(file.bytes(), path, use, most);
}

}  // namespace fovea::text

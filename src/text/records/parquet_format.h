#pragma once

// The parts of a Parquet file: its metadata, which are in Thrift's compact protocol, and its pages.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::text {

enum class ParquetType { boolean, int32, int64, int96, float32, float64, bytes, fixed_bytes };

// A column, or a group of columns. An entry of a column has a definition level: how many of the
// optional and repeated nodes on the path to it are present; and a repetition level: which of the
// repeated ones goes on (0 = a new row), as in Dremel (Melnik et al. 2010).
struct ParquetNode {
  std::string name;
  bool optional = false, repeated = false, text = false, list = false;
  int definition = 0, repetition = 0;  // levels if the node is present
  ParquetType type = ParquetType::boolean;
  int64_t column = -1;  // index of a column; a group has none
  std::vector<ParquetNode> children;
};

struct ParquetChunk {  // the values of a column in a group of rows
  int64_t codec = 0, values = 0, begin = 0, bytes = 0;
};

struct ParquetRowGroup {
  int64_t rows = 0;
  std::vector<ParquetChunk> chunks;
};

struct ParquetMetadata {
  ParquetNode root;
  std::vector<const ParquetNode*> columns;
  std::vector<ParquetRowGroup> groups;
};

// Reads the metadata at the end of a file with these bytes. Throws BadFile, naming `path`.
void read_parquet_metadata(std::string_view file, const std::string& path, ParquetMetadata& into);

// The entries of a column in a group of rows. `texts` are JSON values; each entry whose definition
// level is that of the column has the next one of `values`, an index into them.
struct ParquetColumn {
  std::vector<uint16_t> definitions, repetitions;
  std::vector<uint32_t> values;
  std::vector<std::string> texts;
};

ParquetColumn read_parquet_column(std::string_view file, const ParquetChunk& chunk,
                                  const ParquetNode& node, const std::string& path);

}  // namespace fovea::text

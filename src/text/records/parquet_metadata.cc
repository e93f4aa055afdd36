#include <cstring>

#include "records/parquet_format.h"
#include "records/thrift.h"

namespace fovea::text {
namespace {

constexpr std::string_view kMagic = "PAR1";

// An element of the schema, which lists the nodes in the order of a walk from the root.
struct Element {
  std::string name;
  int64_t type = -1, repetition = 0, children = 0, converted = -1;
  bool text = false, list = false;
};

Element read_element(ThriftReader& reader) {
  constexpr int64_t kUtf8 = 0, kList = 3, kEnum = 4, kJson = 19;  // ConvertedType
  Element element;
  reader.fields([&](int64_t field, ThriftReader::Type type) {
    switch (field) {
      case 1: element.type = reader.integer(); break;
      case 3: element.repetition = reader.integer(); break;
      case 4: element.name = reader.text(); break;
      case 5: element.children = reader.integer(); break;
      case 6: element.converted = reader.integer(); break;
      case 10:  // LogicalType, a union: STRING is its field 1, LIST 3, ENUM 4, JSON 12
        reader.fields([&](int64_t kind, ThriftReader::Type of) {
          element.text |= kind == 1 || kind == 4 || kind == 12;
          element.list |= kind == 3;
          reader.skip(of);
        });
        break;
      default: reader.skip(type);
    }
  });
  element.text |=
      element.converted == kUtf8 || element.converted == kEnum || element.converted == kJson;
  element.list |= element.converted == kList;
  return element;
}

// Returns the node of elements[at] with all below it, and moves `at` after them.
ParquetNode take_node(const std::vector<Element>& elements, size_t& at, const ParquetNode& parent,
                      int64_t& columns, const ThriftReader& reader, int depth) {
  constexpr int kDeepest = 32;
  if (at >= elements.size() || depth > kDeepest) reader.refuse("a schema that is inconsistent");
  const Element& element = elements[at++];
  ParquetNode node{.name = element.name,
                   .optional = element.repetition == 1,
                   .repeated = element.repetition == 2,
                   .text = element.text,
                   .list = element.list,
                   .definition = parent.definition,
                   .repetition = parent.repetition,
                   .type = ParquetType::boolean,
                   .column = -1,
                   .children = {}};
  if (depth > 0) {  // the root has no levels
    node.definition += node.optional || node.repeated ? 1 : 0;
    node.repetition += node.repeated ? 1 : 0;
  }
  if (element.children == 0) {
    if (element.type < 0 || element.type > 7) reader.refuse("a column without a type");
    node.type = static_cast<ParquetType>(element.type);
    node.column = columns++;
  }
  for (int64_t i = 0; i < element.children; ++i)
    node.children.push_back(take_node(elements, at, node, columns, reader, depth + 1));
  return node;
}

ParquetChunk read_chunk(ThriftReader& reader) {
  ParquetChunk chunk;
  int64_t data = 0, dictionary = 0;
  reader.fields([&](int64_t field, ThriftReader::Type type) {
    if (field != 3) return reader.skip(type);
    reader.fields([&](int64_t of_column, ThriftReader::Type of) {
      switch (of_column) {
        case 4: chunk.codec = reader.integer(); break;
        case 5: chunk.values = reader.integer(); break;
        case 7: chunk.bytes = reader.integer(); break;
        case 9: data = reader.integer(); break;
        case 11: dictionary = reader.integer(); break;
        default: reader.skip(of);
      }
    });
  });
  chunk.begin = dictionary > 0 && dictionary < data ? dictionary : data;
  return chunk;
}

ParquetRowGroup read_group(ThriftReader& reader) {
  ParquetRowGroup group;
  reader.fields([&](int64_t field, ThriftReader::Type type) {
    if (field == 1)
      reader.elements([&](ThriftReader::Type) { group.chunks.push_back(read_chunk(reader)); });
    else if (field == 3)
      group.rows = reader.integer();
    else
      reader.skip(type);
  });
  return group;
}

void list_columns(const ParquetNode& node, std::vector<const ParquetNode*>& columns) {
  if (node.column >= 0) columns.push_back(&node);
  for (const ParquetNode& child : node.children) list_columns(child, columns);
}

}  // namespace

void read_parquet_metadata(std::string_view file, const std::string& path, ParquetMetadata& into) {
  uint32_t bytes = 0;  // of the metadata, before the last 4 bytes of the file
  const size_t tail = sizeof bytes + kMagic.size();
  const bool whole = file.size() >= kMagic.size() + tail && file.ends_with(kMagic);
  if (whole) std::memcpy(&bytes, file.data() + file.size() - tail, sizeof bytes);
  if (!whole || bytes > file.size() - tail - kMagic.size())
    fail(ErrorKind::BadFile, "{}: has no metadata at its end; expected a whole Parquet file", path);
  ThriftReader reader(file.substr(file.size() - tail - bytes, bytes), path);
  std::vector<Element> elements;
  reader.fields([&](int64_t field, ThriftReader::Type type) {
    if (field == 2)
      reader.elements([&](ThriftReader::Type) { elements.push_back(read_element(reader)); });
    else if (field == 4)
      reader.elements([&](ThriftReader::Type) { into.groups.push_back(read_group(reader)); });
    else
      reader.skip(type);
  });
  size_t at = 0;
  int64_t columns = 0;
  into.root = take_node(elements, at, {}, columns, reader, 0);
  list_columns(into.root, into.columns);
  if (at != elements.size() || columns == 0) reader.refuse("a schema that is inconsistent");
  for (const ParquetRowGroup& group : into.groups)
    if (group.chunks.size() != into.columns.size())
      reader.refuse("a group of rows with another number of columns than the schema");
}

}  // namespace fovea::text

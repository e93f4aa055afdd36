#include <snappy.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/json.h"
#include "records/parquet_format.h"
#include "records/thrift.h"

namespace fovea::text {
namespace {

constexpr int64_t kMostPage = int64_t{1} << 30;    // bytes; usual pages have one megabyte
constexpr int64_t kMostValues = int64_t{1} << 28;  // of a column in a group of rows

struct PageHeader {
  enum Kind { data = 0, index = 1, dictionary = 2, data2 = 3 };
  int64_t kind = -1, whole = 0, stored = 0, values = 0, encoding = 0;
  int64_t definition_bytes = 0, repetition_bytes = 0;  // of data2, whose levels are not compressed
  bool compressed = true;
};

PageHeader read_header(ThriftReader& reader) {
  PageHeader page;
  reader.fields([&](int64_t field, ThriftReader::Type type) {
    switch (field) {
      case 1: page.kind = reader.integer(); break;
      case 2: page.whole = reader.integer(); break;
      case 3: page.stored = reader.integer(); break;
      case 5:
      case 7:
        reader.fields([&](int64_t of_page, ThriftReader::Type of) {
          if (of_page == 1)
            page.values = reader.integer();
          else if (of_page == 2)
            page.encoding = reader.integer();
          else
            reader.skip(of);
        });
        break;
      case 8:
        reader.fields([&](int64_t of_page, ThriftReader::Type of) {
          switch (of_page) {
            case 1: page.values = reader.integer(); break;
            case 4: page.encoding = reader.integer(); break;
            case 5: page.definition_bytes = reader.integer(); break;
            case 6: page.repetition_bytes = reader.integer(); break;
            case 7: page.compressed = of == ThriftReader::yes; break;
            default: reader.skip(of);
          }
        });
        break;
      default: reader.skip(type);
    }
  });
  return page;
}

class ColumnReader {
 public:
  ColumnReader(const ParquetChunk& chunk, const ParquetNode& node, const std::string& path)
      : chunk_(chunk), node_(node), path_(path) {}

  ParquetColumn read(std::string_view file) {
    if (chunk_.begin < 0 || chunk_.bytes < 0 || chunk_.values < 0 ||
        static_cast<uint64_t>(chunk_.begin) > file.size() ||
        static_cast<uint64_t>(chunk_.bytes) > file.size() - static_cast<uint64_t>(chunk_.begin))
      refuse("is outside of the file");
    if (chunk_.values > kMostValues) refuse("has too many values in a group of rows");
    std::string_view pages =
        file.substr(static_cast<size_t>(chunk_.begin), static_cast<size_t>(chunk_.bytes));
    while (std::ssize(column_.definitions) < chunk_.values) {
      ThriftReader reader(pages, path_);
      const PageHeader page = read_header(reader);
      pages.remove_prefix(reader.position());
      if (page.stored < 0 || page.whole < 0 || page.whole > kMostPage || page.values < 0 ||
          static_cast<uint64_t>(page.stored) > pages.size())
        refuse("has a page of a wrong size");
      const std::string_view stored = pages.substr(0, static_cast<size_t>(page.stored));
      pages.remove_prefix(stored.size());
      if (page.kind == PageHeader::dictionary)
        add_dictionary(page, unpacked(stored, page.whole));
      else if (page.kind == PageHeader::data)
        add_page(page, unpacked(stored, page.whole));
      else if (page.kind == PageHeader::data2)
        add_page2(page, stored);
    }
    return std::move(column_);
  }

 private:
  [[noreturn]] void refuse(const char* what) const {
    fail(ErrorKind::BadFile, "{}: column {}: {}; expected a whole Parquet file", path_, node_.name,
         what);
  }
  template <class... Args>
  [[noreturn]] void not_read(fmt::format_string<Args...> what, Args&&... args) const {
    fail(ErrorKind::Unsupported,
         "{}: column {}: {}; expected pages of Snappy, gzip or Zstandard with plain values or "
         "dictionaries, as pyarrow writes them",
         path_, node_.name, fmt::format(what, std::forward<Args>(args)...));
  }

  // Returns the bytes of a page without compression, valid until the next call.
  std::string_view unpacked(std::string_view stored, int64_t whole) {
    const auto bytes = static_cast<size_t>(whole);
    if (chunk_.codec == 0) return stored;
    buffer_.resize(bytes);
    bool good = false;
    switch (chunk_.codec) {
      case 1: {
        size_t length = 0;
        good = snappy::GetUncompressedLength(stored.data(), stored.size(), &length) &&
               length == bytes &&
               snappy::RawUncompress(stored.data(), stored.size(), buffer_.data());
        break;
      }
      case 2: good = inflated(stored); break;
      case 6:
        good = ZSTD_decompress(buffer_.data(), bytes, stored.data(), stored.size()) == bytes;
        break;
      default: not_read("its compression has number {}", chunk_.codec);
    }
    if (!good) refuse("has a page that cannot be decompressed");
    return buffer_;
  }

  bool inflated(std::string_view stored) {
    constexpr int kGzipOnly = 16;
    z_stream stream = {};
    if (inflateInit2(&stream, MAX_WBITS + kGzipOnly) != Z_OK) return false;
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(stored.data()));
    stream.avail_in = static_cast<uInt>(stored.size());
    stream.next_out = reinterpret_cast<Bytef*>(buffer_.data());
    stream.avail_out = static_cast<uInt>(buffer_.size());
    const bool good = inflate(&stream, Z_FINISH) == Z_STREAM_END && stream.avail_out == 0;
    inflateEnd(&stream);
    return good;
  }

  std::string_view take(std::string_view& bytes, uint64_t count) const {
    if (count > bytes.size()) refuse("has a page that ends early");
    const std::string_view taken = bytes.substr(0, count);
    bytes.remove_prefix(count);
    return taken;
  }
  template <class T>
  T number(std::string_view& bytes) const {
    T value;
    std::memcpy(&value, take(bytes, sizeof value).data(), sizeof value);
    return value;
  }

  // Calls add(value) for `count` values of `bits` bits: runs of one value, and groups of 8 values.
  template <class Add>
  void runs(std::string_view bytes, int bits, int64_t count, const Add& add) const {
    while (count > 0) {
      uint64_t head = 0;
      for (int shift = 0;; shift += 7) {
        const auto next = static_cast<uint8_t>(take(bytes, 1)[0]);
        head |= static_cast<uint64_t>(next & 127) << shift;
        if (next < 128) break;
        if (shift > 28) refuse("has a run that is too long");
      }
      if ((head & 1) == 0) {
        uint32_t value = 0;
        const std::string_view stored = take(bytes, static_cast<uint64_t>(bits + 7) / 8);
        std::memcpy(&value, stored.data(), stored.size());
        for (uint64_t i = head >> 1; i > 0 && count > 0; --i, --count) add(value);
        continue;
      }
      const std::string_view packed =
          take(bytes, std::min<uint64_t>((head >> 1) * static_cast<uint64_t>(bits), bytes.size()));
      const uint64_t most =
          bits == 0 ? (head >> 1) * 8 : packed.size() * 8 / static_cast<uint64_t>(bits);
      if (most == 0) refuse("has a page that ends early");
      for (uint64_t i = 0; i < most && count > 0; ++i, --count) add(bits_at(packed, i, bits));
    }
  }
  static uint32_t bits_at(std::string_view packed, uint64_t index, int bits) {
    uint32_t value = 0;
    for (int b = 0; b < bits; ++b) {
      const uint64_t at = index * static_cast<uint64_t>(bits) + static_cast<uint64_t>(b);
      value |= static_cast<uint32_t>(static_cast<uint8_t>(packed[at / 8]) >> (at % 8) & 1) << b;
    }
    return value;
  }

  void add_levels(std::string_view bytes, int highest, int64_t count,
                  std::vector<uint16_t>& levels) const {
    if (highest == 0) {
      levels.resize(levels.size() + static_cast<size_t>(count), 0);
      return;
    }
    runs(bytes, std::bit_width(static_cast<unsigned>(highest)), count, [&](uint32_t level) {
      if (level > static_cast<uint32_t>(highest)) refuse("has a level that is too high");
      levels.push_back(static_cast<uint16_t>(level));
    });
  }

  void check_count(int64_t count) const {
    if (count > chunk_.values - std::ssize(column_.definitions))
      refuse("has more values than its metadata say");
  }

  void add_page(const PageHeader& page, std::string_view bytes) {
    check_count(page.values);
    const auto levels = [&](int highest) {
      return highest == 0 ? std::string_view() : take(bytes, number<uint32_t>(bytes));
    };
    add_levels(levels(node_.repetition), node_.repetition, page.values, column_.repetitions);
    add_levels(levels(node_.definition), node_.definition, page.values, column_.definitions);
    add_values(page, bytes);
  }

  void add_page2(const PageHeader& page, std::string_view stored) {
    check_count(page.values);
    if (page.repetition_bytes < 0 || page.definition_bytes < 0)
      refuse("has levels of a wrong size");
    add_levels(take(stored, static_cast<uint64_t>(page.repetition_bytes)), node_.repetition,
               page.values, column_.repetitions);
    add_levels(take(stored, static_cast<uint64_t>(page.definition_bytes)), node_.definition,
               page.values, column_.definitions);
    const int64_t whole = page.whole - page.repetition_bytes - page.definition_bytes;
    if (whole < 0) refuse("has levels of a wrong size");
    add_values(page, page.compressed && !stored.empty() ? unpacked(stored, whole) : stored);
  }

  // Adds the values of the entries that the page has added, except those that are missing.
  void add_values(const PageHeader& page, std::string_view bytes) {
    constexpr int64_t kPlain = 0, kPlainDictionary = 2, kRuns = 3, kDictionary = 8;
    const int64_t count =
        std::count(column_.definitions.end() - page.values, column_.definitions.end(),
                   static_cast<uint16_t>(node_.definition));
    if (page.encoding == kDictionary || page.encoding == kPlainDictionary) {
      if (count == 0) return;
      const int bits = static_cast<uint8_t>(take(bytes, 1)[0]);
      if (bits > 32) refuse("has indices of more than 32 bits");
      runs(bytes, bits, count, [&](uint32_t index) {
        if (index >= dictionary_) refuse("has an index outside of its dictionary");
        column_.values.push_back(index);
      });
    } else if (page.encoding == kPlain) {
      add_plain(bytes, count);
    } else if (page.encoding == kRuns && node_.type == ParquetType::boolean) {
      runs(take(bytes, number<uint32_t>(bytes)), 1, count,
           [&](uint32_t value) { add_text(value != 0 ? "true" : "false"); });
    } else {
      not_read("its encoding has number {}", page.encoding);
    }
  }

  void add_dictionary(const PageHeader& page, std::string_view bytes) {
    if (!column_.definitions.empty()) refuse("has a dictionary after its values");
    if (page.values > kMostValues) refuse("has a dictionary that is too large");
    add_plain(bytes, page.values);
    dictionary_ = column_.texts.size();
    column_.values.clear();
  }

  void add_text(std::string text) {
    column_.values.push_back(static_cast<uint32_t>(column_.texts.size()));
    column_.texts.push_back(std::move(text));
  }

  void add_plain(std::string_view bytes, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      switch (node_.type) {
        case ParquetType::boolean: {
          if (static_cast<size_t>(i / 8) >= bytes.size()) refuse("has a page that ends early");
          add_text(bits_at(bytes, static_cast<uint64_t>(i), 1) != 0 ? "true" : "false");
          break;
        }
        case ParquetType::int32: add_text(std::to_string(number<int32_t>(bytes))); break;
        case ParquetType::int64: add_text(std::to_string(number<int64_t>(bytes))); break;
        case ParquetType::float32: add_text(nlohmann::json(number<float>(bytes)).dump()); break;
        case ParquetType::float64: add_text(nlohmann::json(number<double>(bytes)).dump()); break;
        case ParquetType::bytes: add_bytes(take(bytes, number<uint32_t>(bytes))); break;
        case ParquetType::int96:
        case ParquetType::fixed_bytes: return add_nulls(count);
      }
    }
  }
  void add_nulls(int64_t count) {  // bytes whose meaning is not that of a text or a number
    for (int64_t i = 0; i < count; ++i) add_text("null");
  }

  void add_bytes(std::string_view value) {
    try {
      add_text(node_.text ? nlohmann::json(value).dump() : "null");
    } catch (const nlohmann::json::type_error&) {  // no UTF-8
      refuse("has a text that is not UTF-8");
    }
  }

  const ParquetChunk& chunk_;
  const ParquetNode& node_;
  const std::string& path_;
  ParquetColumn column_;
  size_t dictionary_ = 0;  // number of its values
  std::string buffer_;
};

}  // namespace

ParquetColumn read_parquet_column(std::string_view file, const ParquetChunk& chunk,
                                  const ParquetNode& node, const std::string& path) {
  return ColumnReader(chunk, node, path).read(file);
}

}  // namespace fovea::text

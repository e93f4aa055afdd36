#pragma once

// Thrift's compact protocol, as far as the metadata of Parquet use it
// (https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md).

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace fovea::text {

class ThriftReader {
 public:
  // `name` is the file's name in errors.
  ThriftReader(std::string_view bytes, const std::string& name) : all_(bytes), name_(name) {}

  enum Type { yes = 1, no, i8, i16, i32, i64, real, binary, list, set, map, structure };

  // Calls read(field, type) for each field of a structure; it must read or skip the value.
  template <class Read>
  void fields(const Read& read) {
    if (++depth_ > kDeepest) refuse("nested too deeply");
    for (int64_t field = 0;;) {
      const uint8_t head = byte();
      if (head == 0) break;
      const int64_t step = head >> 4;
      field = step == 0 ? integer() : field + step;
      read(field, static_cast<Type>(head & 15));
    }
    --depth_;
  }
  // Calls read(type) for each element of a list.
  template <class Read>
  void elements(const Read& read) {
    const uint8_t head = byte();
    const uint64_t count = head >> 4 == 15 ? varint() : head >> 4;
    if (count > all_.size()) refuse("a list that is longer than the file");
    for (uint64_t i = 0; i < count; ++i) read(static_cast<Type>(head & 15));
  }
  int64_t integer() {  // zigzag
    const uint64_t value = varint();
    return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
  }
  std::string_view text() {
    const uint64_t bytes = varint();
    if (bytes > all_.size() - at_) refuse("a text that does not end");
    at_ += bytes;
    return all_.substr(at_ - bytes, bytes);
  }
  void skip(Type type, bool element = false) {
    switch (type) {
      case yes:
      case no: at_ += element ? 1 : 0; break;
      case i8: byte(); break;
      case i16:
      case i32:
      case i64: integer(); break;
      case real:
        for (int i = 0; i < 8; ++i) byte();
        break;
      case binary: text(); break;
      case list:
      case set: elements([&](Type each) { skip(each, true); }); break;
      case map: refuse("a map");
      case structure: fields([&](int64_t, Type each) { skip(each); }); break;
      default: refuse("an unknown type");
    }
  }
  size_t position() const { return at_; }

  [[noreturn]] void refuse(const char* what) const {
    fail(ErrorKind::BadFile, "{}: byte {} of its metadata: {}; expected a file of Apache Parquet",
         name_, at_, what);
  }

 private:
  static constexpr int kDeepest = 32;
  uint8_t byte() {
    if (at_ >= all_.size()) refuse("the end");
    return static_cast<uint8_t>(all_[at_++]);
  }
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const uint8_t next = byte();
      value |= static_cast<uint64_t>(next & 127) << shift;
      if (next < 128) return value;
    }
    refuse("a number of more than 64 bits");
  }

  std::string_view all_;
  const std::string& name_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace fovea::text

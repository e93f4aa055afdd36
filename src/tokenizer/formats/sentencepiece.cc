#include "tokenizer/formats/sentencepiece.h"

#include <cmath>
#include <cstring>

#include "base/error.h"
#include "unicode/utf8.h"

namespace fovea {
namespace {

// Limits on the bytes of a piece and on the number of pieces, well above what trainers produce (16
// characters, 256,000 pieces): they bound the time and memory that a hostile file can take.
constexpr size_t kMostBytes = 1024, kMostPieces = size_t{4} << 20;

// Wire types: https://protobuf.dev/programming-guides/encoding
enum class Wire { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

// Iterates over the fields of a message. Nested messages are parsed from their own bytes.
class Fields {
 public:
  Fields(std::string_view file, std::string_view message, const std::string& path)
      : file_(file), rest_(message), path_(path) {}

  bool next() {
    if (rest_.empty()) return false;
    const uint64_t tag = varint();
    number_ = tag >> 3;
    wire_ = static_cast<Wire>(tag & 7);
    switch (wire_) {
      case Wire::varint: value_ = varint(); break;
      case Wire::fixed64: bytes_ = take(8); break;
      case Wire::bytes: bytes_ = take(varint()); break;
      case Wire::fixed32: bytes_ = take(4); break;
      default: bad(fmt::format("contains a field of type {}", tag & 7));
    }
    return true;
  }

  uint64_t number() const { return number_; }
  std::string_view bytes() const { return expect(Wire::bytes), bytes_; }
  Fields message() const { return Fields(file_, bytes(), path_); }
  bool boolean() const { return expect(Wire::varint), value_ != 0; }
  int32_t integer() const {  // negative numbers are stored with 64 bits
    return expect(Wire::varint), static_cast<int32_t>(static_cast<uint32_t>(value_));
  }
  float number32() const {
    expect(Wire::fixed32);
    float number;
    std::memcpy(&number, bytes_.data(), sizeof(number));
    if (!std::isfinite(number)) bad("contains a score that is not finite");
    return number;
  }
  std::string text() const {
    if (utf8::valid_prefix(bytes()) != bytes_.size()) bad("contains a string that is not UTF-8");
    return std::string(bytes_);
  }

  [[noreturn]] void bad(const std::string& what) const {
    fail(ErrorKind::BadFile, "{}: {} (before byte {}); expected a SentencePiece model", path_, what,
         rest_.data() - file_.data());
  }

 private:
  void expect(Wire wire) const {
    if (wire_ != wire) bad(fmt::format("contains field {} with another type", number_));
  }

  std::string_view take(uint64_t count) {
    if (count > rest_.size()) bad(fmt::format("ends before a field of {} bytes", count));
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<uint8_t>(take(1)[0]);
      value |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
    bad("contains a number of more than 64 bits");
  }

  std::string_view file_, rest_;
  const std::string& path_;
  uint64_t number_ = 0, value_ = 0;
  Wire wire_ = Wire::varint;
  std::string_view bytes_;
};

SentencePieceFile::Entry read_piece(Fields fields) {
  SentencePieceFile::Entry entry;
  while (fields.next()) {
    if (fields.number() == 1) entry.text = fields.text();
    if (fields.number() == 2) entry.score = fields.number32();
    if (fields.number() == 3) {
      const int32_t type = fields.integer();
      if (type < 1 || type > 6) fields.bad(fmt::format("contains a piece of type {}", type));
      entry.type = static_cast<SentencePieceFile::Type>(type);
    }
  }
  if (entry.text.empty()) fields.bad("contains an empty piece");
  if (entry.text.size() > kMostBytes)
    fields.bad(fmt::format("contains a piece of {} bytes, above the limit of {}", entry.text.size(),
                           kMostBytes));
  return entry;
}

void read_trainer(Fields fields, SentencePieceFile& file) {
  while (fields.next()) {
    switch (fields.number()) {
      case 3: {
        const int32_t kind = fields.integer();
        if (kind < 1 || kind > 4) fields.bad(fmt::format("is of kind {}", kind));
        file.kind = static_cast<SentencePieceFile::Kind>(kind);
        break;
      }
      case 35: file.byte_fallback = fields.boolean(); break;
      case 40: file.unk_id = fields.integer(); break;
      case 45: file.unk_piece = fields.text(); break;
      case 46: file.bos_piece = fields.text(); break;
      case 47: file.eos_piece = fields.text(); break;
      default: break;
    }
  }
}

void read_normalizer(Fields fields, SentencePieceFile& file) {
  while (fields.next()) {
    if (fields.number() == 2) file.charsmap = fields.bytes();
    if (fields.number() == 3) file.add_dummy_prefix = fields.boolean();
    if (fields.number() == 4) file.remove_extra_whitespaces = fields.boolean();
  }
}

}  // namespace

SentencePieceFile parse_sentencepiece(std::string_view bytes, const std::string& path) {
  SentencePieceFile file;
  Fields fields(bytes, bytes, path);
  while (fields.next()) {
    if (fields.number() == 1) {
      if (file.pieces.size() == kMostPieces)
        fields.bad(fmt::format("contains more than {} pieces", kMostPieces));
      file.pieces.push_back(read_piece(fields.message()));
    }
    if (fields.number() == 2) read_trainer(fields.message(), file);
    if (fields.number() == 3) read_normalizer(fields.message(), file);
  }
  if (file.pieces.empty()) fields.bad("contains no pieces");
  if (file.unk_id < 0 || static_cast<size_t>(file.unk_id) >= file.pieces.size())
    fields.bad(fmt::format("names the piece {} as unknown, but has {} pieces", file.unk_id,
                           file.pieces.size()));
  return file;
}

}  // namespace fovea

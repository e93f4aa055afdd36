#include "tokenizer/formats/sentencepiece.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include "base/error.h"
#include "unicode/utf8.h"

namespace fovea::text {
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

  [[noreturn]] void refuse(const std::string& what, const char* expected) const {
    fail(ErrorKind::Unsupported, "{}: {}; expected {}", path_, what, expected);
  }
  // Throws Unsupported if the number of the field is not among those that have no effect.
  void expect_one_of(std::span<const uint64_t> harmless, const char* message) const {
    if (std::find(harmless.begin(), harmless.end(), number_) == harmless.end())
      refuse(fmt::format("{} has field {}, which is not known", message, number_), "no such field");
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

// Fields that only affect training or how an unknown piece is printed: those of trainer_spec up to
// 26, numbers of threads and iterations, lists of symbols (whose pieces have types), and the rest.
constexpr uint64_t kTrainingOnly[] = {1,  2,  4,  5,  6,  7,  10, 11, 12, 13, 14, 15, 16,
                                      17, 18, 19, 20, 21, 22, 23, 25, 26, 30, 31, 32, 33,
                                      34, 36, 42, 43, 44, 48, 49, 50, 51, 52, 54};

void read_trainer(Fields fields, SentencePieceFile& file) {
  while (fields.next()) {
    switch (fields.number()) {
      case 3: {
        const int32_t kind = fields.integer();
        if (kind < 1 || kind > 4) fields.bad(fmt::format("is of kind {}", kind));
        file.kind = static_cast<SentencePieceFile::Kind>(kind);
        break;
      }
      case 24: file.space_is_suffix = fields.boolean(); break;
      case 35: file.byte_fallback = fields.boolean(); break;
      case 40: file.unk_id = fields.integer(); break;
      case 41: file.bos_id = fields.integer(); break;
      case 45: file.unk_piece = fields.text(); break;
      case 46: file.bos_piece = fields.text(); break;
      case 47: file.eos_piece = fields.text(); break;
      case 53:
        if (!fields.bytes().empty())
          fields.refuse("trainer_spec.pretokenization_delimiter is set", "none");
        break;
      default: fields.expect_one_of(kTrainingOnly, "trainer_spec");
    }
  }
}

void read_normalizer(Fields fields, SentencePieceFile& file) {
  while (fields.next()) {
    switch (fields.number()) {
      case 1:  // the name of the rules
      case 6:  // the rules as text, which are compiled in the charsmap
        break;
      case 2: file.charsmap = fields.bytes(); break;
      case 3: file.add_dummy_prefix = fields.boolean(); break;
      case 4: file.remove_extra_whitespaces = fields.boolean(); break;
      case 5:
        if (!fields.boolean()) fields.refuse("normalizer_spec.escape_whitespaces is false", "true");
        break;
      default: fields.expect_one_of({}, "normalizer_spec");
    }
  }
}

// The rules that are applied to decoded texts; the published models have none.
void read_denormalizer(Fields fields) {
  while (fields.next())
    if (fields.number() == 2 && !fields.bytes().empty())
      fields.refuse("denormalizer_spec has rules", "none");
}

}  // namespace

SentencePieceFile parse_sentencepiece(std::string_view bytes, const std::string& path) {
  SentencePieceFile file;
  Fields fields(bytes, bytes, path);
  while (fields.next()) {
    constexpr uint64_t kSelfTest = 4, kDenormalizer = 5;
    if (fields.number() == 1) {
      if (file.pieces.size() == kMostPieces)
        fields.bad(fmt::format("contains more than {} pieces", kMostPieces));
      file.pieces.push_back(read_piece(fields.message()));
    }
    if (fields.number() == 2) read_trainer(fields.message(), file);
    if (fields.number() == 3) read_normalizer(fields.message(), file);
    if (fields.number() == kDenormalizer) read_denormalizer(fields.message());
    if (fields.number() > kDenormalizer) fields.expect_one_of({&kSelfTest, 1}, "the file");
  }
  if (file.pieces.empty()) fields.bad("contains no pieces");
  if (file.unk_id < 0 || static_cast<size_t>(file.unk_id) >= file.pieces.size())
    fields.bad(fmt::format("names the piece {} as unknown, but has {} pieces", file.unk_id,
                           file.pieces.size()));
  return file;
}

}  // namespace fovea::text

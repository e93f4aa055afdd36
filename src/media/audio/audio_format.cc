#include "audio/audio_format.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace fovea::media {
namespace {

// Reads the format of the chunk "fmt ".
void read_format(std::string_view chunk, WaveHeader& header) {
  constexpr int kInteger = 1, kFloat = 3, kExtensible = 0xFFFE;
  int code = value_at<uint16_t>(chunk.data());
  const int bits = value_at<uint16_t>(chunk.data() + 14);
  if (code == kExtensible && chunk.size() >= 26) code = value_at<uint16_t>(chunk.data() + 24);
  header.raw.rate = static_cast<double>(value_at<uint32_t>(chunk.data() + 4));
  header.raw.channels = value_at<uint16_t>(chunk.data() + 2);
  header.plain = true;
  if (code == kInteger && bits == 8)
    header.raw.type = SampleType::u8;
  else if (code == kInteger && bits == 16)
    header.raw.type = SampleType::s16;
  else if (code == kInteger && bits == 32)
    header.raw.type = SampleType::s32;
  else if (code == kFloat && bits == 32)
    header.raw.type = SampleType::f32;
  else
    header.plain = false;
}

uint8_t byte_at(std::string_view bytes, size_t at) { return static_cast<uint8_t>(bytes[at]); }

// Returns the length of a frame of AAC (ADTS; ISO/IEC 13818-7, 6.2) that begins here; 0 = none.
size_t aac_frame(std::string_view head) {
  if (byte_at(head, 0) != 0xFF || (byte_at(head, 1) & 0xF6) != 0xF0) return 0;
  const size_t length = static_cast<size_t>(byte_at(head, 3) & 3) << 11 |
                        static_cast<size_t>(byte_at(head, 4)) << 3 | byte_at(head, 5) >> 5;
  return length < 7 ? 0 : length;
}

// Returns the length of a frame of MP3 (ISO/IEC 11172-3, 2.4) that begins here; 0 = none.
size_t mp3_frame(std::string_view head) {
  constexpr std::array<size_t, 14> kFirst = {32,  40,  48,  56,  64,  80,  96,
                                             112, 128, 160, 192, 224, 256, 320};
  constexpr std::array<size_t, 14> kSecond = {8,  16, 24, 32,  40,  48,  56,
                                              64, 80, 96, 112, 128, 144, 160};
  constexpr std::array<size_t, 3> kRates = {44100, 48000, 32000};
  if (byte_at(head, 0) != 0xFF || (byte_at(head, 1) & 0xE6) != 0xE2) return 0;
  const int version = byte_at(head, 1) >> 3 & 3;  // 3 = MPEG-1, 2 = MPEG-2, 0 = MPEG-2.5
  const size_t bits = byte_at(head, 2) >> 4, rate = byte_at(head, 2) >> 2 & 3;
  if (version == 1 || bits == 0 || bits == 15 || rate == 3) return 0;
  const bool first = version == 3;
  const size_t kilobits = first ? kFirst[bits - 1] : kSecond[bits - 1];
  const size_t divisor = first ? 1 : version == 2 ? 2 : 4;
  return (first ? 144 : 72) * kilobits * 1000 / (kRates[rate] / divisor) +
         (byte_at(head, 2) >> 1 & 1);
}

// Returns whether two frames in sequence, of the same kind, begin here.
bool has_frames(const FirstBytes& first, size_t (*frame)(std::string_view)) {
  constexpr size_t kHead = 6;
  const std::string head(first(kHead));
  const size_t length = head.size() < kHead ? 0 : frame(head);
  if (length == 0) return false;
  const std::string_view bytes = first(length + kHead);
  return bytes.size() == length + kHead && bytes[length + 1] == head[1] &&
         frame(bytes.substr(length)) > 0;
}

}  // namespace

std::optional<WaveHeader> wave_header(const FirstBytes& first) {
  constexpr size_t kMostChunk = 1 << 20;           // other chunks are short descriptions
  constexpr uint64_t kLeastUnknown = 0x7FFF'F000;  // what programs write that do not know the size
  const std::string begin(first(12));
  if (begin.size() < 12 || begin.substr(8) != "WAVE") return std::nullopt;
  if (!begin.starts_with("RIFF") && !begin.starts_with("RF64")) return std::nullopt;
  WaveHeader header;
  bool known = false;
  uint64_t large = kToTheEnd;  // the size of the samples in a file of more than 4 GiB
  for (size_t at = 12;;) {
    std::string_view bytes = first(at + 8);
    if (bytes.size() < at + 8) {
      header.problem = "ends before its samples; expected a chunk 'data'";
      return header;
    }
    const std::string name(bytes.substr(at, 4));
    const size_t length = value_at<uint32_t>(bytes.data() + at + 4);
    at += 8;
    if (name == "data" && known) {
      const uint64_t size = length == 0xFFFF'FFFF ? large : length;
      header.begin = at;
      header.bytes = size == 0 || (size >= kLeastUnknown && size != large) ? kToTheEnd : size;
      return header;
    }
    if (name == "data" || length > kMostChunk || (name == "fmt " && length < 16)) {
      header.problem = fmt::format("has {}; expected a chunk 'fmt ' of at least 16",
                                   name == "data" ? "samples before their format"
                                                  : fmt::format("a chunk of {} bytes", length));
      return header;
    }
    bytes = first(at + length + length % 2);
    if (bytes.size() < at + length) {
      header.problem = "ends within its header";
      return header;
    }
    if (name == "fmt ") read_format(bytes.substr(at, length), header), known = true;
    if (name == "ds64" && length >= 16) large = value_at<uint64_t>(bytes.data() + at + 8);
    at += length + length % 2;
  }
}

bool begins_audio_file(const FirstBytes& first) {
  constexpr std::array<std::string_view, 9> kNames = {
      "RIFF", "RF64", "RIFX", "FORM", "fLaC", "OggS", "ID3", "caff", "\x1A\x45\xDF\xA3"};
  const std::string begin(first(8));
  const auto begins = [&](std::string_view name) { return begin.starts_with(name); };
  return std::any_of(kNames.begin(), kNames.end(), begins) ||
         (begin.size() == 8 && begin.substr(4) == "ftyp") || has_frames(first, mp3_frame) ||
         has_frames(first, aac_frame);
}

}  // namespace fovea::media

#include <sndfile.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string_view>

#include "audio/audio_format.h"
#include "audio/container_decoder.h"
#include "audio/convert_audio.h"
#include "base/error.h"
#include "base/files.h"

namespace fovea::media {
namespace {

struct CloseAudio {
  void operator()(SNDFILE* file) const { sf_close(file); }
};
using AudioHandle = std::unique_ptr<SNDFILE, CloseAudio>;

// Returns the kind of a container whose audio libsndfile does not decode; null for other files.
const char* container_kind(std::string_view begin) {
  if (begin.size() >= 8 && begin.substr(4, 4) == "ftyp") return "MP4 (m4a, mp4, mov)";
  if (begin.starts_with("\x1A\x45\xDF\xA3")) return "Matroska (webm, mkv)";
  if (begin.starts_with("\xFF\xF1") || begin.starts_with("\xFF\xF9")) return "AAC";
  return nullptr;
}

// Decodes a container; `owner` keeps its bytes.
AudioSource container_source(const std::string& name, const char* kind, std::string_view bytes,
                             std::shared_ptr<const void> owner) {
  const std::shared_ptr<ContainerDecoder> decoder = open_container(name, kind, bytes);
  return converted(name, decoder->rate(), decoder->channels(),
                   [name, decoder, owner = std::move(owner)](float* frames, int64_t most) {
                     const int64_t count = decoder->read(frames, most);
                     if (count < 0) fail(ErrorKind::BadFile, "{}: {}", name, decoder->error());
                     return count;
                   });
}

// Bytes in memory as a file of libsndfile.
struct MemoryAudio {
  std::shared_ptr<const std::string> bytes;
  sf_count_t offset = 0;

  static MemoryAudio& of(void* self) { return *static_cast<MemoryAudio*>(self); }
  static sf_count_t length(void* self) { return std::ssize(*of(self).bytes); }
  static sf_count_t seek(sf_count_t offset, int whence, void* self) {
    MemoryAudio& file = of(self);
    const sf_count_t from = whence == SEEK_SET   ? 0
                            : whence == SEEK_CUR ? file.offset
                                                 : length(self);
    // Offsets come from the file, so they may be anything.
    if (offset < -from || offset > length(self) - from) return -1;
    return file.offset = from + offset;
  }
  static sf_count_t read(void* to, sf_count_t count, void* self) {
    MemoryAudio& file = of(self);
    const sf_count_t some = std::clamp<sf_count_t>(count, 0, length(self) - file.offset);
    std::memcpy(to, file.bytes->data() + file.offset, static_cast<size_t>(some));
    file.offset += some;
    return some;
  }
  static sf_count_t write(const void*, sf_count_t, void*) { return 0; }
  static sf_count_t tell(void* self) { return of(self).offset; }
};

// A decoder and what it reads; shared by the copies of an AudioSource.
struct OpenAudio {
  MemoryAudio memory = {};
  SF_INFO info = {};
  AudioHandle file;
};

AudioSource source_of(const std::string& name, const std::shared_ptr<OpenAudio>& audio) {
  if (audio->file == nullptr) {
    std::string reason = sf_strerror(nullptr);
    while (!reason.empty() && (reason.back() == '.' || reason.back() == '\n')) reason.pop_back();
    fail(
        ErrorKind::BadFile,
        "{}: is not an audio file that libsndfile reads ({}); expected WAV, FLAC, Ogg, Opus or MP3",
        name, reason);
  }
  const double rate = audio->info.samplerate;
  return converted(name, rate, audio->info.channels, [name, audio](float* frames, int64_t most) {
    const sf_count_t count = sf_readf_float(audio->file.get(), frames, most);
    if (count <= 0 && sf_error(audio->file.get()) != SF_ERR_NO_ERROR)
      fail(ErrorKind::BadFile, "{}: is damaged: {}", name, sf_strerror(audio->file.get()));
    return std::max<int64_t>(count, 0);
  });
}

// A WAV file that was written to a pipe may state 0 bytes of samples. Returns its bytes with the
// size of what follows; nothing for other files.
std::shared_ptr<const std::string> with_size(std::string_view bytes) {
  const auto header = wave_header([&](size_t count) { return bytes.substr(0, count); });
  if (!header || !header->problem.empty() || header->bytes != kToTheEnd) return nullptr;
  uint32_t size = 0;
  std::memcpy(&size, bytes.data() + header->begin - sizeof size, sizeof size);
  if (size != 0) return nullptr;  // libsndfile reads other sizes that are too large to the end
  size = static_cast<uint32_t>(
      std::min<size_t>(bytes.size() - header->begin, std::numeric_limits<uint32_t>::max()));
  const auto mended = std::make_shared<std::string>(bytes);
  std::memcpy(mended->data() + header->begin - sizeof size, &size, sizeof size);
  return mended;
}

// Opens a file in memory.
AudioSource open_bytes(std::shared_ptr<const std::string> bytes, const std::string& name) {
  const auto audio = std::make_shared<OpenAudio>();
  audio->memory.bytes = std::move(bytes);
  SF_VIRTUAL_IO calls{MemoryAudio::length, MemoryAudio::seek, MemoryAudio::read, MemoryAudio::write,
                      MemoryAudio::tell};
  audio->file.reset(sf_open_virtual(&calls, SFM_READ, &audio->info, &audio->memory));
  return source_of(name, audio);
}

}  // namespace

AudioSource open_audio(const std::string& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status))
    fail(ErrorKind::InvalidArgument, "{}: does not exist; expected an audio file", path);
  if (std::filesystem::is_directory(status))
    fail(ErrorKind::InvalidArgument, "{}: is a directory; expected an audio file", path);
  // Refuses FIFOs and devices; libsndfile would wait for the writer of a FIFO.
  const auto mapped = std::make_shared<const MappedFile>(path);
  if (const char* kind = container_kind(mapped->bytes()))
    return container_source(path, kind, mapped->bytes(), mapped);
  if (mapped->bytes().starts_with("RIFF"))
    if (auto mended = with_size(mapped->bytes())) return open_bytes(std::move(mended), path);
  const auto audio = std::make_shared<OpenAudio>();
  audio->file.reset(sf_open(path.c_str(), SFM_READ, &audio->info));
  return source_of(path, audio);
}

AudioSource open_audio(std::shared_ptr<const std::string> bytes, const std::string& name) {
  if (const char* kind = container_kind(*bytes)) return container_source(name, kind, *bytes, bytes);
  if (auto mended = with_size(*bytes)) bytes = std::move(mended);
  return open_bytes(std::move(bytes), name);
}

}  // namespace fovea::media

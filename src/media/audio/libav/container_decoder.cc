// The module fovea_libav.so. It opens no file and no address: FFmpeg's libraries read the bytes
// that they are given, with the readers and decoders of audio in the lists below.

#include "audio/container_decoder.h"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/mem.h>
}

#include <algorithm>
#include <cstring>
#include <vector>

namespace fovea::media {
namespace {

constexpr const char* kContainers = "mov,matroska,aac";
constexpr const char* kDecoders =
    "aac,alac,flac,mp3float,mp3,opus,libopus,vorbis,ac3,eac3,pcm_s16le,pcm_s16be,pcm_s24le,"
    "pcm_f32le";
constexpr size_t kMostMemory = size_t{256} << 20;  // of one array, such as the index of a film
constexpr int64_t kMostProbed = 8 << 20;           // bytes that are read to find the streams
constexpr int kMostDamaged = 200;                  // packets in a row that cannot be decoded

std::string text_of(int code) {
  char text[AV_ERROR_MAX_STRING_SIZE] = {};
  av_strerror(code, text, sizeof text);
  return text;
}

// The sample `i` of one channel's plane, or of interleaved channels.
float sample_at(const uint8_t* plane, int64_t i, AVSampleFormat format) {
  const auto value = [&]<class T>(T) {
    T x;
    std::memcpy(&x, plane + i * static_cast<int64_t>(sizeof x), sizeof x);
    return x;
  };
  switch (format) {
    case AV_SAMPLE_FMT_U8: return static_cast<float>(value(uint8_t{}) - 128) / 128;
    case AV_SAMPLE_FMT_S16: return static_cast<float>(value(int16_t{})) / 32768;
    case AV_SAMPLE_FMT_S32: return static_cast<float>(value(int32_t{}) / 2147483648.0);
    case AV_SAMPLE_FMT_FLT: return value(float{});
    case AV_SAMPLE_FMT_DBL: return static_cast<float>(value(double{}));
    default: return 0;
  }
}

class LibavDecoder : public ContainerDecoder {
 public:
  explicit LibavDecoder(std::string_view bytes) : bytes_(bytes) {}
  ~LibavDecoder() override {
    av_packet_free(&packet_);
    av_frame_free(&frame_);
    avcodec_free_context(&decoder_);
    avformat_close_input(&container_);
    if (input_ != nullptr) av_free(input_->buffer);
    avio_context_free(&input_);
  }
  LibavDecoder(const LibavDecoder&) = delete;
  LibavDecoder& operator=(const LibavDecoder&) = delete;

  double rate() const override { return decoder_->sample_rate; }
  int64_t channels() const override { return channels_; }
  const std::string& error() const override { return error_; }

  // Returns whether the container is open; else error() tells the reason.
  bool open() {
    constexpr int kBuffer = 1 << 16;
    auto* const buffer = static_cast<uint8_t*>(av_malloc(kBuffer));
    input_ = avio_alloc_context(buffer, kBuffer, 0, this, read_bytes, nullptr, seek_bytes);
    container_ = avformat_alloc_context();
    packet_ = av_packet_alloc();
    frame_ = av_frame_alloc();
    if (input_ == nullptr || container_ == nullptr || packet_ == nullptr || frame_ == nullptr)
      return refuse("memory is exhausted");
    container_->pb = input_;
    container_->format_whitelist = av_strdup(kContainers);
    container_->codec_whitelist = av_strdup(kDecoders);
    container_->protocol_whitelist = av_strdup("none");
    container_->probesize = kMostProbed;
    container_->max_streams = 64;
    // A failure frees the container.
    if (const int code = avformat_open_input(&container_, nullptr, nullptr, nullptr); code < 0)
      return refuse("is damaged: " + text_of(code));
    if (const int code = avformat_find_stream_info(container_, nullptr); code < 0)
      return refuse("is damaged: " + text_of(code));
    return open_decoder();
  }

  int64_t read(float* frames, int64_t most) override {
    while (next_ == frame_->nb_samples)
      if (const int64_t found = next_frame(); found <= 0) return found;
    const int64_t count = std::min<int64_t>(most, frame_->nb_samples - next_);
    const auto format = static_cast<AVSampleFormat>(frame_->format);
    const bool planar = av_sample_fmt_is_planar(format) != 0;
    const AVSampleFormat packed = av_get_packed_sample_fmt(format);
    for (int64_t i = 0; i < count; ++i)
      for (int64_t c = 0; c < channels_; ++c)
        frames[i * channels_ + c] =
            planar ? sample_at(frame_->extended_data[c], next_ + i, packed)
                   : sample_at(frame_->extended_data[0], (next_ + i) * channels_ + c, packed);
    next_ += count;
    return count;
  }

 private:
  bool refuse(std::string reason) {
    error_ = std::move(reason);
    return false;
  }

  bool open_decoder() {
    const AVCodec* codec = nullptr;
    stream_ = av_find_best_stream(container_, AVMEDIA_TYPE_AUDIO, -1, -1, &codec, 0);
    if (stream_ < 0) return refuse("has no audio that FFmpeg's libraries decode");
    for (unsigned i = 0; i < container_->nb_streams; ++i)
      if (static_cast<int>(i) != stream_) container_->streams[i]->discard = AVDISCARD_ALL;
    const AVStream& stream = *container_->streams[stream_];
    decoder_ = avcodec_alloc_context3(codec);
    if (decoder_ == nullptr || avcodec_parameters_to_context(decoder_, stream.codecpar) < 0)
      return refuse("memory is exhausted");
    decoder_->pkt_timebase = stream.time_base;
    decoder_->codec_whitelist = av_strdup(kDecoders);
    decoder_->thread_count = 1;
    if (const int code = avcodec_open2(decoder_, codec, nullptr); code < 0)
      return refuse(std::string("has audio of the kind ") + codec->name + ": " + text_of(code));
    channels_ = decoder_->ch_layout.nb_channels;
    return true;
  }

  // Decodes the next frame with samples. Returns 1; 0 at the end; -1 after an error.
  int64_t next_frame() {
    next_ = 0;
    for (int damaged = 0; damaged < kMostDamaged;) {
      av_frame_unref(frame_);
      const int code = avcodec_receive_frame(decoder_, frame_);
      if (code == AVERROR_EOF) return 0;
      if (code >= 0) {
        if (frame_->nb_samples == 0) continue;
        if (frame_->ch_layout.nb_channels == channels_ &&
            frame_->sample_rate == decoder_->sample_rate)
          return 1;
        return fail_read("changes its rate or its channels");
      }
      if (code == AVERROR(EAGAIN) && send_packet()) continue;
      ++damaged;
    }
    return fail_read("is damaged: its audio cannot be decoded");
  }

  // Passes a packet to the decoder. Returns false if it is damaged. Cut files end at the cut.
  bool send_packet() {
    for (;;) {
      av_packet_unref(packet_);
      if (av_read_frame(container_, packet_) < 0) {
        avcodec_send_packet(decoder_, nullptr);
        return true;
      }
      if (packet_->stream_index == stream_) return avcodec_send_packet(decoder_, packet_) >= 0;
    }
  }

  int64_t fail_read(const char* reason) {
    error_ = reason;
    av_frame_unref(frame_);
    return -1;
  }

  static int read_bytes(void* self, uint8_t* to, int most) {
    auto& decoder = *static_cast<LibavDecoder*>(self);
    const auto left = static_cast<int64_t>(decoder.bytes_.size()) - decoder.byte_;
    const int64_t count = std::min<int64_t>(most, left);
    if (count <= 0) return AVERROR_EOF;
    std::memcpy(to, decoder.bytes_.data() + decoder.byte_, static_cast<size_t>(count));
    decoder.byte_ += count;
    return static_cast<int>(count);
  }

  static int64_t seek_bytes(void* self, int64_t offset, int whence) {
    auto& decoder = *static_cast<LibavDecoder*>(self);
    const auto size = static_cast<int64_t>(decoder.bytes_.size());
    if ((whence & AVSEEK_SIZE) != 0) return size;
    whence &= ~AVSEEK_FORCE;
    const int64_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? decoder.byte_ : size;
    if (offset < -from || offset > size - from) return AVERROR(EINVAL);
    return decoder.byte_ = from + offset;
  }

  std::string_view bytes_;
  int64_t byte_ = 0;
  AVIOContext* input_ = nullptr;
  AVFormatContext* container_ = nullptr;
  AVCodecContext* decoder_ = nullptr;
  AVPacket* packet_ = nullptr;
  AVFrame* frame_ = nullptr;
  int stream_ = -1;
  int64_t channels_ = 0, next_ = 0;  // of the next sample in frame_
  std::string error_;
};

}  // namespace
}  // namespace fovea::media

extern "C" __attribute__((visibility("default"))) fovea::media::ContainerDecoder*
fovea_open_libav_decoder(std::string_view bytes, std::string& error) {
  av_log_set_level(AV_LOG_QUIET);
  av_max_alloc(fovea::media::kMostMemory);
  auto decoder = std::make_unique<fovea::media::LibavDecoder>(bytes);
  if (decoder->open()) return decoder.release();
  error = decoder->error();
  return nullptr;
}

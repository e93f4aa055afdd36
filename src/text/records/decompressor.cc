#include "records/decompressor.h"

#include <zlib.h>
#include <zstd.h>

#include <new>
#include <utility>

#include "base/error.h"

namespace fovea::text {
namespace {

constexpr std::string_view kGzip = "\x1F\x8B", kZstandard = "\x28\xB5\x2F\xFD";
constexpr size_t kOutput = size_t{1} << 20;

}  // namespace

class Decompressor::Method {
 public:
  virtual ~Method() = default;
  // Decompresses the beginning of `in` and removes it; returns the number of bytes written to `out`
  // [room]. `wrong` receives the reason if the data is damaged.
  virtual size_t decompress(std::string_view& in, char* out, size_t room, std::string& wrong) = 0;
  virtual bool in_the_middle() const = 0;  // whether more bytes must follow
};

class Decompressor::Gzip : public Method {
 public:
  Gzip() {
    constexpr int kGzipOnly = 16;
    if (inflateInit2(&stream_, MAX_WBITS + kGzipOnly) != Z_OK) throw std::bad_alloc();
  }
  ~Gzip() override { inflateEnd(&stream_); }

  size_t decompress(std::string_view& in, char* out, size_t room, std::string& wrong) override {
    if (ended_) {  // the next member
      inflateReset(&stream_);
      ended_ = false;
    }
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
    stream_.avail_in = static_cast<uInt>(in.size());
    stream_.next_out = reinterpret_cast<Bytef*>(out);
    stream_.avail_out = static_cast<uInt>(room);
    const int state = inflate(&stream_, Z_NO_FLUSH);
    in.remove_prefix(in.size() - stream_.avail_in);
    ended_ = state == Z_STREAM_END;
    if (!ended_ && state != Z_OK && state != Z_BUF_ERROR)
      wrong = stream_.msg == nullptr ? "it needs a dictionary" : stream_.msg;
    return room - stream_.avail_out;
  }
  bool in_the_middle() const override { return !ended_; }

 private:
  z_stream stream_{};
  bool ended_ = false;
};

class Decompressor::Zstandard : public Method {
 public:
  Zstandard() : stream_(ZSTD_createDStream()) {
    if (stream_ == nullptr) throw std::bad_alloc();
  }
  ~Zstandard() override { ZSTD_freeDStream(stream_); }

  size_t decompress(std::string_view& in, char* out, size_t room, std::string& wrong) override {
    ZSTD_inBuffer input{in.data(), in.size(), 0};
    ZSTD_outBuffer output{out, room, 0};
    const size_t left = ZSTD_decompressStream(stream_, &output, &input);
    if (ZSTD_isError(left) != 0) wrong = ZSTD_getErrorName(left);
    in.remove_prefix(input.pos);
    ended_ = left == 0;
    return output.pos;
  }
  bool in_the_middle() const override { return !ended_; }

 private:
  ZSTD_DStream* stream_;
  bool ended_ = false;
};

Decompressor::Decompressor(std::string name) : name_(std::move(name)) {}
Decompressor::~Decompressor() = default;

void Decompressor::refuse(const std::string& what) const {
  fail(ErrorKind::BadFile, "{}: {} (byte {}); expected a complete and undamaged file", name_, what,
       before_ + 1);
}

// Chooses the method when the first bytes are known, or when there are no more.
void Decompressor::recognise() {
  const std::string_view bytes = first_;
  if (bytes.starts_with(kGzip)) method_ = std::make_unique<Gzip>();
  if (bytes.starts_with(kZstandard)) method_ = std::make_unique<Zstandard>();
  if (method_ != nullptr) out_.resize(kOutput);
  recognised_ = true;
}

void Decompressor::add(std::string_view block, bool last) {
  rest_ = block;
  last_ = last;
  if (recognised_) return;
  first_ += block;
  rest_ = {};
  if (first_.size() < kZstandard.size() && !last) return;
  recognise();
  rest_ = first_;
}

std::string_view Decompressor::next() {
  if (method_ == nullptr) {
    before_ += std::ssize(rest_);
    return std::exchange(rest_, {});
  }
  if (filled_ == kOutput) filled_ = 0;  // the last call returned it
  while (filled_ < kOutput && !(rest_.empty() && !method_->in_the_middle())) {
    const size_t before = rest_.size();
    std::string wrong;
    const size_t bytes =
        method_->decompress(rest_, out_.data() + filled_, kOutput - filled_, wrong);
    before_ += static_cast<int64_t>(before - rest_.size());
    if (!wrong.empty()) refuse(fmt::format("its compressed data is damaged: {}", wrong));
    filled_ += bytes;
    if (bytes > 0 || !rest_.empty()) continue;  // without input, there may still be output
    if (last_ && method_->in_the_middle()) refuse("ends within its compressed data");
    break;
  }
  if (filled_ < kOutput && !last_) return {};
  const std::string_view whole = std::string_view(out_).substr(0, filled_);
  if (filled_ < kOutput) filled_ = 0;
  return whole;
}

void Decompressor::pass(std::string_view block, bool last, const Use& use) {
  add(block, last);
  for (std::string_view bytes = next(); !bytes.empty(); bytes = next()) use(bytes, false);
  if (last) use({}, true);
}

}  // namespace fovea::text

#include "fovea/text/text_lines.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <system_error>

#include "base/error.h"
#include "base/files.h"
#include "records/decompressor.h"
#include "unicode/unicode.h"
#include "unicode/utf8.h"

namespace fovea::text {
namespace {

// Maximum bytes of a line; usually only binary files have longer ones.
constexpr size_t kLongestLine = size_t{64} << 20;
constexpr size_t kLineBlockBytes = size_t{4} << 20;  // a block ends when its lines have so many
constexpr size_t kTextPiece = size_t{1} << 16;

constexpr std::string_view kMark = "\xEF\xBB\xBF";

std::string name_of_text(const std::string& path) { return path == "-" ? "standard input" : path; }

[[noreturn]] void fail_to_read_text(const std::string& name) {
  fail(ErrorKind::BadFile, "{}: cannot be read ({}); expected a text file", name,
       std::generic_category().message(errno));
}

// Returns a descriptor, which close_text() closes.
int open_text(const std::string& path) {
  if (path == "-") return STDIN_FILENO;
  const int file = system_calls().open(path.c_str(), O_RDONLY | O_CLOEXEC, 0);
  if (file < 0) fail_to_read_text(path);
  return file;
}

void close_text(int file) {
  if (file != STDIN_FILENO) system_calls().close(file);
}

// Returns the bytes that were read; 0 at the end.
size_t read_piece(int file, const std::string& name, std::string& piece) {
  piece.resize(kTextPiece);
  ssize_t count = -1;
  do count = system_calls().read(file, piece.data(), piece.size());
  while (count < 0 && errno == EINTR);
  if (count < 0) fail_to_read_text(name);
  piece.resize(static_cast<size_t>(count));
  return piece.size();
}

}  // namespace

bool is_blank(std::string_view text) {
  while (!text.empty()) {
    const utf8::Character c = utf8::first(text);
    constexpr char32_t kByteOrderMark = 0xFEFF;
    const bool blank = unicode::is(c.code_point, unicode::space) || c.code_point == kByteOrderMark;
    if (!c.valid || !blank) return false;
    text.remove_prefix(c.bytes);
  }
  return true;
}

std::string_view without_compression(std::string_view path) {
  for (const std::string_view ending : {".gz", ".zst"})
    if (path.ends_with(ending)) return path.substr(0, path.size() - ending.size());
  return path;
}

std::string_view TextCheck::add(std::string_view block, bool last) {
  pass(std::string_view(buffer_).substr(0, given_));
  buffer_.erase(0, given_);
  given_ = 0;
  buffer_ += block;
  if (!begun_ && buffer_.size() < kMark.size() && !last) return {};
  if (!begun_) begin();
  const std::string_view all = buffer_;
  if (const size_t zero = all.find('\0'); zero != all.npos)
    refuse(all.substr(0, zero), "looks binary", "a NUL byte");
  given_ = utf8::valid_prefix(all);
  const std::string_view text = all.substr(0, given_), rest = all.substr(given_);
  if (last ? !rest.empty() : rest.size() != utf8::incomplete_suffix(all))
    refuse(text, "is not UTF-8", fmt::format("byte 0x{:02x}", static_cast<uint8_t>(rest[0])));
  return text;
}

void TextCheck::begin() {
  begun_ = true;
  if (buffer_.starts_with("\xFF\xFE") || buffer_.starts_with("\xFE\xFF") ||
      buffer_.starts_with(std::string_view("\0\0\xFE\xFF", 4)))
    fail(ErrorKind::BadFile,
         "{}: is UTF-16 or UTF-32 (byte 1); expected UTF-8: convert it, such as by iconv -t UTF-8",
         name_);
  if (!buffer_.starts_with(kMark)) return;
  buffer_.erase(0, kMark.size());
  before_line_ = kMark.size();
}

// Moves line_ and before_line_ past a valid text.
void TextCheck::pass(std::string_view text) {
  line_ += static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  const size_t newline = text.rfind('\n');
  before_line_ = newline == text.npos ? before_line_ + text.size() : text.size() - newline - 1;
}

void TextCheck::refuse(std::string_view before, const char* wrong, const std::string& what) {
  pass(before);
  fail(ErrorKind::BadFile, "{}:{}:{}: {} ({}); expected UTF-8 text", name_, line_, before_line_ + 1,
       wrong, what);
}

std::string read_text(const std::string& path, size_t most) {
  const std::string name = name_of_text(path);
  struct Opened {
    int file;
    ~Opened() { close_text(file); }
  } const opened{open_text(path)};
  Decompressor decompressor(name);
  TextCheck check(name);
  std::string text, piece;
  for (bool last = false; !last;) {
    last = read_piece(opened.file, name, piece) == 0;
    decompressor.pass(piece, last, [&](std::string_view bytes, bool all) {
      text += check.add(bytes, all);
      if (text.size() > most)
        fail(ErrorKind::BadFile, "{}: too large; expected at most {} bytes", name, most);
    });
  }
  return text;
}

LineReader::LineReader(const std::string& path)
    : file_(open_text(path)),
      name_(name_of_text(path)),
      decompressor_(std::make_unique<Decompressor>(name_)),
      check_(name_) {}

LineReader::~LineReader() { close_text(file_); }

bool LineReader::fill() {
  if (ended_) return false;
  buffer_.erase(0, at_);
  at_ = 0;
  const size_t before = buffer_.size();
  if (before > kLongestLine)
    fail(ErrorKind::BadFile, "{}:{}: the line is too long; expected at most {} bytes", name_,
         lines_read_ + 1, kLongestLine);
  std::string_view bytes = decompressor_->next();
  bool last = false;
  if (bytes.empty()) {
    last = read_piece(file_, name_, piece_) == 0;
    decompressor_->add(piece_, last);
    bytes = decompressor_->next();
  }
  ended_ = last && bytes.empty();
  buffer_ += check_.add(bytes, ended_);
  return !ended_ || buffer_.size() > before;
}

std::vector<std::string> LineReader::next(size_t lines) {
  std::vector<std::string> block;
  size_t bytes = 0, searched = 0;
  while (block.size() < lines && bytes < kLineBlockBytes) {
    size_t end = buffer_.find('\n', at_ + searched);
    if (end == std::string::npos) {
      searched = buffer_.size() - at_;
      if (fill()) continue;
      if (at_ == buffer_.size()) break;
      end = buffer_.size();  // the last line has no line break
      const size_t alone = buffer_.find('\r', at_);
      if (lines_read_ == 0 && alone < end - 1)
        fail(ErrorKind::BadFile,
             "{}:1:{}: the lines end with a carriage return alone; expected \\n or \\r\\n", name_,
             alone - at_ + 1);
    }
    size_t length = end - at_;
    if (length > 0 && buffer_[end - 1] == '\r') --length;
    block.push_back(buffer_.substr(at_, length));
    bytes += length;
    at_ = std::min(end + 1, buffer_.size());
    searched = 0;
    ++lines_read_;
  }
  return block;
}

std::vector<std::string> all_lines(const std::string& path) {
  constexpr size_t kBlock = 4096;
  LineReader reader(path);
  std::vector<std::string> lines;
  for (auto block = reader.next(kBlock); !block.empty(); block = reader.next(kBlock))
    std::move(block.begin(), block.end(), std::back_inserter(lines));
  return lines;
}

}  // namespace fovea::text

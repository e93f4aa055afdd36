#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace fovea::text {

// The bytes of a file that arrive in blocks, decompressed in bounded memory. gzip (RFC 1952) and
// Zstandard (RFC 8878) are recognised by their first bytes, whatever the name of the file; all
// other bytes pass unchanged. Several members or frames are read one after another. Throws BadFile,
// naming the file and the byte in it, if compressed data is damaged or incomplete.
class Decompressor {
 public:
  explicit Decompressor(std::string name);
  ~Decompressor();
  Decompressor(const Decompressor&) = delete;
  Decompressor& operator=(const Decompressor&) = delete;

  // Adds a block, which must remain valid until next() has returned all of it; `last`: no other
  // follows.
  void add(std::string_view block, bool last);
  // Returns the next decompressed bytes, valid until the next call: a megabyte, or the rest of the
  // file, so that what is read in pieces does not depend on the compression. Empty if the blocks so
  // far have no more.
  std::string_view next();

  // Passes all decompressed bytes of a block to `use`, with true if no other follow: at least once
  // for the last block.
  using Use = std::function<void(std::string_view bytes, bool last)>;
  void pass(std::string_view block, bool last, const Use& use);

 private:
  class Method;  // of the compression
  class Gzip;
  class Zstandard;

  void recognise();
  [[noreturn]] void refuse(const std::string& what) const;

  std::string name_, first_;  // first_: the bytes by which the method is recognised
  std::string_view rest_;     // of the block
  bool recognised_ = false, last_ = false;
  int64_t before_ = 0;              // bytes of the file before rest_
  std::unique_ptr<Method> method_;  // null = not compressed
  std::string out_;
  size_t filled_ = 0;  // bytes of out_
};

}  // namespace fovea::text

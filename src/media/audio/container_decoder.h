#pragma once

// Containers whose audio libsndfile does not read, by the module fovea_libav.so, which needs
// FFmpeg's libraries.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace fovea::media {

// The audio of an open container.
class ContainerDecoder {
 public:
  virtual ~ContainerDecoder() = default;
  virtual double rate() const = 0;  // samples per second
  virtual int64_t channels() const = 0;
  // Reads interleaved frames [frames, channels]; returns their number, at most `most`; 0 = the end.
  // Below 0: error() tells what is wrong with the file.
  virtual int64_t read(float* frames, int64_t most) = 0;
  virtual const std::string& error() const = 0;
};

// Opens a container, whose bytes must outlive the result. Throws BadFile, naming `name`, if it is
// damaged or has no audio, and Unsupported if the module is not installed or its libraries do not
// decode the audio; `kind` is the container's name for this message.
std::unique_ptr<ContainerDecoder> open_container(const std::string& name, const char* kind,
                                                 std::string_view bytes);

// The name and the type of the function that the module exports. No exception leaves it: a null
// pointer means that `error` tells what is wrong.
inline constexpr const char* kOpenLibavDecoder = "fovea_open_libav_decoder";
using OpenLibavDecoder = ContainerDecoder*(std::string_view bytes, std::string& error);

}  // namespace fovea::media

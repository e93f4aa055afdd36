#include "audio/container_decoder.h"

#include <dlfcn.h>

#include "base/error.h"
#include "base/module.h"

namespace fovea::media {
namespace {

OpenLibavDecoder* open_module(const std::string& name, const char* kind) {
  const std::string path = module_path("fovea_libav.so");
  void* const module = path.empty() ? nullptr : dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const open = module == nullptr ? nullptr : dlsym(module, kOpenLibavDecoder);
  if (open != nullptr) return reinterpret_cast<OpenLibavDecoder*>(open);
  const char* const reason = path.empty() ? nullptr : dlerror();
  fail(ErrorKind::Unsupported,
       "{}: is a container of the kind {}, which needs FFmpeg's libraries ({}); expected a fovea "
       "that is built with libavformat-dev, libavcodec-dev and libavutil-dev installed, or WAV, "
       "FLAC, Ogg, Opus or MP3, to which 'ffmpeg -i FILE FILE.flac' converts",
       name, kind,
       path.empty()        ? "this fovea has no module fovea_libav.so"
       : reason != nullptr ? reason
                           : "the module belongs to another build of fovea");
}

}  // namespace

std::unique_ptr<ContainerDecoder> open_container(const std::string& name, const char* kind,
                                                 std::string_view bytes) {
  std::string error;
  std::unique_ptr<ContainerDecoder> decoder(open_module(name, kind)(bytes, error));
  if (decoder == nullptr)
    fail(ErrorKind::BadFile, "{}: {}; expected the audio of a container of the kind {}", name,
         error, kind);
  return decoder;
}

}  // namespace fovea::media

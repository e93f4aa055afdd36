#include "cli/reports/images.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "base/files.h"
#include "base/files_below.h"
#include "fovea/core/error.h"
#include "options/options.h"
#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

constexpr const char* kStandardInput = "-";

std::string read_standard_input() {
  std::string bytes, part(size_t{1} << 16, '\0');
  for (;;) {
    const ssize_t count = ::read(STDIN_FILENO, part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0)
      throw Error(ErrorKind::BadFile, "standard input: cannot be read; expected an image");
    if (count == 0) return bytes;
    bytes.append(part, 0, static_cast<size_t>(count));
    if (bytes.size() > media::kMostImageBytes)
      throw Error(ErrorKind::OutOfMemory,
                  fmt::format("standard input: more than {} bytes; expected a smaller image",
                              media::kMostImageBytes));
  }
}

}  // namespace

bool holds_images(const std::string& argument) {
  return is_folder(argument) || media::is_image_name(argument);
}

ImageList::ImageList(const std::vector<std::string>& arguments) {
  if (arguments.empty())
    throw UsageError("FILE: not given; expected images, folders, or - for standard input");
  for (const std::string& argument : arguments) {
    if (argument == kStandardInput) {
      if (standard_input_.empty()) standard_input_ = read_standard_input();
      names_.push_back(argument);
    } else if (!is_folder(argument)) {
      names_.push_back(argument);
    } else {
      const size_t before = names_.size();
      const FilesBelow below = files_below(argument);
      for (const auto& file : below.files)
        if (media::is_image_name(file.string())) names_.push_back(file.string());
      for (const auto& link : below.links_out)
        note("warning: " + printable(link.string()) + ": a link out of the directory, skipped\n");
      if (names_.size() == before)
        throw Error(ErrorKind::BadFile, argument +
                                            ": no images; expected files named .png, .jpg, "
                                            ".jpeg or .webp");
    }
  }
}

media::Image ImageList::read(size_t image) const {
  const std::string& name = names_[image];
  return name == kStandardInput ? media::decode_image(standard_input_, "standard input")
                                : media::read_image(name);
}

}  // namespace fovea::cli

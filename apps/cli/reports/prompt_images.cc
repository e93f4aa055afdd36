#include "cli/reports/prompt_images.h"

#include "base/files.h"
#include "cli/reports/images.h"

namespace fovea::cli {
namespace {

constexpr int64_t kMostFrames = 4096;

}  // namespace

std::vector<std::string> spread(const std::vector<std::string>& names, int64_t count) {
  const auto all = static_cast<int64_t>(names.size());
  if (count >= all) return names;
  std::vector<std::string> some;
  for (int64_t i = 0; i < count; ++i)
    some.push_back(names[static_cast<size_t>(count == 1 ? 0 : i * (all - 1) / (count - 1))]);
  return some;
}

void PromptImages::declare(OptionTable& table) {
  table.add(as("FILE", list("--image", {"--images"},
                            "image for the next mark, such as <image>, in the prompt, or a "
                            "folder of them; may be repeated",
                            arguments_)));
  table.add(integer("--frames", {},
                    "--image FOLDER: use only N of its images, spread evenly; 0 = all", frames_, 0,
                    kMostFrames));
}

void PromptImages::find() {
  if (frames_ > 0 && arguments_.empty()) throw UsageError("--frames: requires --image FOLDER");
  for (const std::string& argument : arguments_) {
    if (argument == "-") throw UsageError("--image: -; expected a file or a folder");
    const ImageList list({argument});
    const bool samples = frames_ > 0 && is_folder(argument);
    const std::vector<std::string> names = samples ? spread(list.names(), frames_) : list.names();
    names_.insert(names_.end(), names.begin(), names.end());
  }
}

infer::ImagePrompt PromptImages::prompt(const model::Model& model, const std::string& text,
                                        text::SpecialTokens special) const {
  std::string marks;
  if (!names_.empty() && infer::image_marks(model, text) == 0) {
    for (size_t i = 0; i < names_.size(); ++i) marks += infer::image_mark(model);
    marks += "\n";
  }
  return infer::image_prompt(
      model, marks + text, names_.size(), [&](size_t i) { return media::read_image(names_[i]); },
      special, names_);
}

}  // namespace fovea::cli

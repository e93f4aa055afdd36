#include "serve/protocols/translated_files.h"

#include <algorithm>

#include "tuning/random_id.h"

namespace fovea::serve {

void TranslatedFiles::remove_old() {
  while (!files_.empty() && (files_.front().end <= now_() || files_.size() > kMostFiles ||
                             (bytes_ > kMostBytes && files_.size() > 1))) {
    bytes_ -= files_.front().text->size();
    files_.pop_front();
  }
}

std::string TranslatedFiles::keep(std::string text) {
  const std::lock_guard lock(mutex_);
  bytes_ += text.size();
  files_.push_back({tuning::random_id("") + ".txt",
                    std::make_shared<const std::string>(std::move(text)), now_() + kLifetime});
  remove_old();
  return files_.back().name;
}

std::shared_ptr<const std::string> TranslatedFiles::find(const std::string& name) {
  const std::lock_guard lock(mutex_);
  remove_old();
  const auto file = std::ranges::find(files_, name, &File::name);
  return file == files_.end() ? nullptr : file->text;
}

}  // namespace fovea::serve

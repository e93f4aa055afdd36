#include "data/labelled_images.h"

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "base/files_below.h"
#include "base/hash.h"
#include "data/lines.h"
#include "fovea/excerpt.h"
#include "fovea/image.h"

namespace fovea {
namespace {

void add_folder(const std::string& folder, LabelledImages& all) {
  const std::vector<std::string> labels = list_folders(folder);
  const auto loose = list_files(folder);
  const auto picture = std::find_if(loose.begin(), loose.end(), is_image_name);
  if (labels.empty() || picture != loose.end())
    fail(ErrorKind::BadFile,
         "{}: {}; expected a folder of pictures for each label, such as {}/cat and {}/dog", folder,
         picture != loose.end() ? excerpt(*picture) + " is in no label's folder"
                                : std::string("no folders"),
         folder, folder);
  for (const std::string& label : labels) {
    if (label.starts_with('.')) continue;
    const size_t before = all.files.size();
    for (const auto& file : files_below(folder + "/" + label).files)
      if (is_image_name(file.string())) all.files.push_back(file.string());
    if (all.files.size() == before)
      fail(ErrorKind::BadFile,
           "{}/{}: no pictures; expected files named .png, .jpg, .jpeg or .webp", folder, label);
    all.labels.resize(all.files.size(), label);
  }
}

// Returns a column without the quotes around it.
std::string unquoted(std::string text) {
  const bool quoted = text.size() > 1 && text.front() == '"' && text.back() == '"';
  return quoted ? text.substr(1, text.size() - 2) : text;
}

void add_table(const std::string& path, char separator, LabelledImages& all) {
  const std::vector<std::string> lines = read_lines(path);
  const std::string folder = parent_of(path);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (is_blank(lines[i])) continue;
    const size_t at = lines[i].rfind(separator);
    const std::string name = unquoted(lines[i].substr(0, at));
    const std::string label = at == std::string::npos ? "" : unquoted(lines[i].substr(at + 1));
    const std::string file = name.starts_with('/') ? name : folder + "/" + name;
    if (i == 0 && !is_image_name(name)) continue;  // a header
    if (name.empty() || label.empty())
      fail(ErrorKind::BadFile, "{}: line {}: {}; expected a picture, a {} and a label", path, i + 1,
           excerpt(lines[i]), separator == '\t' ? "tab" : "comma");
    if (!is_file(file))
      fail(ErrorKind::BadFile, "{}: line {}: {} is missing; expected a picture", path, i + 1,
           excerpt(file));
    all.files.push_back(file);
    all.labels.push_back(label);
  }
}

}  // namespace

LabelledImages read_labelled_images(const std::vector<std::string>& paths) {
  LabelledImages all;
  for (const std::string& path : paths) {
    if (is_folder(path)) {
      add_folder(path, all);
      continue;
    }
    const bool tabs = path.ends_with(".tsv");
    if (!is_file(path) || !(tabs || path.ends_with(".csv")))
      fail(ErrorKind::BadFile,
           "{}: not a folder of labels; expected one, or lines picture,label in a .csv file", path);
    add_table(path, tabs ? '\t' : ',', all);
  }
  if (all.files.empty())
    fail(ErrorKind::BadFile, "{}: no pictures; expected at least one", paths.front());
  Hasher hasher;
  for (size_t i = 0; i < all.files.size(); ++i) {
    hasher.add(all.files[i] + "\n" + all.labels[i] + "\n");
    hasher.add(MappedFile(all.files[i]));
  }
  all.hash = hasher.hash();
  return all;
}

}  // namespace fovea

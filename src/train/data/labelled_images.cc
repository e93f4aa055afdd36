#include "data/labelled_images.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/files.h"
#include "base/files_below.h"
#include "base/hash.h"
#include "fovea/core/excerpt.h"
#include "fovea/media/image.h"
#include "records/table.h"

namespace fovea::train {
namespace {

void add_folder(const std::string& folder, LabelledImages& all) {
  const std::vector<std::string> labels = list_folders(folder);
  const auto loose = list_files(folder);
  const auto image = std::find_if(loose.begin(), loose.end(), media::is_image_name);
  if (labels.empty() || image != loose.end())
    fail(ErrorKind::BadFile,
         "{}: {}; expected a folder of images for each label, such as {}/cat and {}/dog", folder,
         image != loose.end() ? excerpt(*image) + " is in no label's folder"
                              : std::string("no folders"),
         folder, folder);
  for (const std::string& label : labels) {
    if (label.starts_with('.')) continue;
    const size_t before = all.files.size();
    for (const auto& file : files_below(folder + "/" + label).files)
      if (media::is_image_name(file.string())) all.files.push_back(file.string());
    if (all.files.size() == before)
      fail(ErrorKind::BadFile, "{}/{}: no images; expected files named .png, .jpg, .jpeg or .webp",
           folder, label);
    all.labels.resize(all.files.size(), label);
  }
}

constexpr std::initializer_list<const char*> kImageNames = {"image",      "picture",   "file",
                                                            "filename",   "file_name", "path",
                                                            "image_path", "photo"},
                                             kImageLabelNames = {"label", "caption",  "text",
                                                                 "class", "category", "species"};

bool are_names_of_images(const std::vector<std::string>& columns) {
  return text::has_name(columns, kImageNames) && text::has_name(columns, kImageLabelNames);
}

void add_table(const std::string& path, LabelledImages& all) {
  const text::Table table = text::read_table(path, are_names_of_images);
  const size_t image = table.column(kImageNames).value_or(0),
               label = table.column(kImageLabelNames).value_or(1);
  for (const text::Table::Row& row : table.rows) {
    const std::vector<std::string>& columns = row.columns;
    if ((table.names.empty() && columns.size() != 2) || columns[image].empty() ||
        columns[label].empty())
      fail(ErrorKind::BadFile, "{}: {}; expected an image, a {} and a label{}", row.location,
           excerpt(fmt::format("{}", fmt::join(columns, ", "))),
           table.separator == '\t' ? "tab" : "comma",
           columns.size() > 2 ? ", in quotes if it has commas" : "");
    const std::string& name = columns[image];
    const std::string file = name.starts_with('/') ? name : parent_of(path) + "/" + name;
    if (!is_file(file))
      fail(ErrorKind::BadFile, "{}: {} is missing; expected an image", row.location, excerpt(file));
    all.files.push_back(file);
    all.labels.push_back(columns[label]);
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
    if (!is_file(path) || !(path.ends_with(".tsv") || path.ends_with(".csv")))
      fail(ErrorKind::BadFile,
           "{}: not a folder of labels; expected one, or lines image,label in a .csv file", path);
    add_table(path, all);
  }
  if (all.files.empty())
    fail(ErrorKind::BadFile, "{}: no images; expected at least one", paths.front());
  Hasher hasher;
  for (size_t i = 0; i < all.files.size(); ++i) {
    hasher.add(all.files[i] + "\n" + all.labels[i] + "\n");
    hasher.add(MappedFile(all.files[i]));
  }
  all.hash = hasher.hash();
  return all;
}

void hold_out(double fraction, LabelledImages& training, LabelledImages& validation) {
  LabelledImages kept;
  kept.hash = training.hash;
  const auto before = [&](size_t i) { return std::floor(static_cast<double>(i) * fraction); };
  for (size_t i = 0; i < training.files.size(); ++i) {
    LabelledImages& part = before(i + 1) > before(i) ? validation : kept;
    part.files.push_back(std::move(training.files[i]));
    part.labels.push_back(std::move(training.labels[i]));
  }
  training = std::move(kept);
}

}  // namespace fovea::train

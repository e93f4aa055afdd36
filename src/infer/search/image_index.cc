// The index of images: the files of the index of passages, where the text of a passage is the
// hash of the image's file.

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <unordered_map>

#include "base/error.h"
#include "base/files.h"
#include "base/files_below.h"
#include "base/float_mode.h"
#include "base/hash.h"
#include "base/json.h"
#include "fovea/infer/image_search.h"
#include "parallel/gather_json.h"
#include "search/dense_search.h"

namespace fovea::infer {
namespace {

constexpr size_t kImagesAtOnce = 64;  // number embedded between two calls of `progress`

ImageOptions unit_vectors() {
  ImageOptions options;
  options.normalise = true;
  return options;
}

// Lists the images of a folder, with the hash of each as its text.
std::vector<IndexedPassage> list_images(const std::string& folder, ImageIndexBuild& result) {
  const FilesBelow below = files_below(folder);
  std::vector<IndexedPassage> images;
  for (const auto& path : below.files)
    if (media::is_image_name(path.string()))
      images.push_back({std::filesystem::relative(path, folder).string(), 1, 1,
                        hash_text(hash_bytes(MappedFile(path.string()).bytes()))});
  for (const auto& link : below.links_out) result.links_out.push_back(link.string());
  std::ranges::sort(images, {}, &IndexedPassage::file);
  if (images.empty())
    fail(ErrorKind::BadFile, "{}: no images; expected files named .png, .jpg, .jpeg or .webp",
         folder);
  result.images = std::ssize(images);
  return images;
}

// The vectors of an older index by the hashes of the files; empty unless it fits the model.
std::unordered_map<std::string, std::vector<float>> known_images(const std::string& path,
                                                                 const std::string& fingerprint,
                                                                 int64_t width) {
  std::unordered_map<std::string, std::vector<float>> known;
  if (!is_index(path)) return known;
  try {
    const IndexContents index(path);
    const IndexSettings& s = index.settings();
    if (s.fingerprint != fingerprint || s.width != width || s.kind != VectorKind::dense)
      return known;
    for (int64_t i = 0; i < index.passages(); ++i) {
      const auto [p, passage] = index.location(i);
      const IndexPart& part = index.part(p);
      known.emplace(index.passage(i).text, part.dense().vector(part.table().row(passage)));
    }
  } catch (const Error&) {  // a damaged index is built again
    known.clear();
  }
  return known;
}

std::string absolute_path(const std::string& path) {
  return std::filesystem::absolute(path).lexically_normal().string();
}

// Computes the vectors of image files, by blocks of which each rank takes one at a time.
class FileVectors {
 public:
  FileVectors(const ImageModel& model, const std::string& folder,
              const std::function<bool(int64_t embedded, int64_t images)>& progress,
              Communicator* ranks)
      : model_(model), folder_(folder), progress_(progress), ranks_(ranks) {}

  // Calls `put` for each vector, with the index of the file. Collective; the files are those of
  // rank 0.
  void of(std::vector<std::string> files,
          const std::function<void(size_t file, const float* vector)>& put) const {
    if (ranks_ != nullptr)
      files = gather_json(*ranks_, files).front().get<std::vector<std::string>>();
    const size_t size = ranks_ == nullptr ? 1 : static_cast<size_t>(ranks_->size()),
                 me = ranks_ == nullptr ? 0 : static_cast<size_t>(ranks_->rank());
    const size_t count = std::min(kImagesAtOnce, (files.size() + size - 1) / size);  // of a block
    for (size_t first = 0; first < files.size(); first += size * count) {
      if (progress_ && !progress_(static_cast<int64_t>(first), std::ssize(files)))
        fail(ErrorKind::Failed, "search: interrupted; the index is unchanged");
      const std::string own = block(files, first + me * count, count);
      const std::vector<std::string> all =
          ranks_ == nullptr ? std::vector{own} : ranks_->gather(own);
      size_t file = first;
      for (const std::string& bytes : all) {
        std::vector<float> vectors(bytes.size() / sizeof(float));
        std::memcpy(vectors.data(), bytes.data(), bytes.size());
        const auto width = static_cast<size_t>(model_.width());
        for (size_t at = 0; at < vectors.size(); at += width) put(file++, vectors.data() + at);
      }
    }
  }

 private:
  // Returns the bytes of the vectors of at most `count` files from `first` on.
  std::string block(const std::vector<std::string>& files, size_t first, size_t count) const {
    if (first >= files.size()) return {};
    count = std::min(count, files.size() - first);
    const auto path = [&](size_t i) { return folder_ + "/" + files[first + i]; };
    ImageOptions options = unit_vectors();
    options.name_of_image = path;
    const Embeddings found =
        model_.embed(count, [&](size_t i) { return media::read_image(path(i)); }, options);
    return {reinterpret_cast<const char*>(found.values.data()),
            found.values.size() * sizeof(float)};
  }

  const ImageModel& model_;
  const std::string& folder_;
  const std::function<bool(int64_t embedded, int64_t images)>& progress_;
  Communicator* const ranks_;
};

}  // namespace

ImageIndexBuild build_image_index(
    const std::string& folder, const std::string& model_folder, const std::string& index,
    const std::function<bool(int64_t embedded, int64_t images)>& progress, Communicator* ranks) {
  const FloatMode mode;
  const ImageModel model = ImageModel::open(model_folder);
  const std::string fingerprint = hash_text(model.fingerprint());
  const FileVectors compute(model, folder, progress, ranks);
  if (ranks != nullptr) {
    check(ranks->gather(fingerprint).front() == fingerprint,
          "{}: differs from the model of rank 0; expected the same files", model_folder);
    if (ranks->rank() > 0) {
      compute.of({}, [](size_t, const float*) {});
      return {};
    }
  }
  const int64_t width = model.width();
  const auto known = known_images(index, fingerprint, width);
  ImageIndexBuild result;
  std::vector<IndexedPassage> images = list_images(folder, result);
  DenseVectors vectors(result.images, width, VectorPrecision::float32);
  std::vector<int64_t> fresh;
  std::vector<std::string> files;
  for (size_t i = 0; i < images.size(); ++i) {
    const auto found = known.find(images[i].text);
    if (found != known.end()) {
      vectors.set(static_cast<int64_t>(i), found->second.data());
      continue;
    }
    fresh.push_back(static_cast<int64_t>(i));
    files.push_back(images[i].file);
  }
  result.embedded = std::ssize(fresh);
  compute.of(files, [&](size_t i, const float* vector) { vectors.set(fresh[i], vector); });
  std::vector<std::string_view> names;
  std::vector<uint64_t> groups;  // images with equal contents are found separately
  for (const IndexedPassage& image : images) {
    names.emplace_back(image.file);
    groups.push_back(hash_bytes(image.file));
  }
  const TextRows rows = separate_texts(images);
  WordIndex words(names);
  IndexSettings settings = {absolute_path(folder), absolute_path(model_folder), fingerprint, width};
  settings.passage_tokens = 1;  // images are not cut
  IndexWriter writer(index);
  const PartEntry part = writer.write({images, rows, groups, {}, vectors, words});
  writer.commit({settings, {part}});
  return result;
}

struct ImageIndex::Parts {
  IndexContents index;
  ImageModel model;
};

bool ImageIndex::holds_images(const std::string& index, const std::string& model) {
  if (!is_file(index + "/index.json")) return false;
  if (!model.empty()) return ImageModel::reads_images(model);
  const nlohmann::json json = read_json(index + "/index.json");
  const auto named = json.is_object() ? json.find("model") : json.end();
  return named != json.end() && named->is_string() &&
         ImageModel::reads_images(named->get<std::string>());
}

ImageIndex ImageIndex::open(const std::string& index, const std::string& model_folder) {
  const FloatMode mode;
  IndexContents contents(index);
  const IndexSettings& s = contents.settings();
  const std::string& folder = model_folder.empty() ? s.model : model_folder;
  const ImageModel model = ImageModel::open(folder);
  // A forged index can have any fingerprint; the width determines how many elements of a vector are
  // read.
  check(s.fingerprint == hash_text(model.fingerprint()) && s.width == model.width() &&
            s.kind == VectorKind::dense,
        "{}: was built with another model than {}; expected the same model, or a new index", index,
        folder);
  return ImageIndex(std::make_shared<Parts>(Parts{std::move(contents), model}));
}

std::vector<FoundImage> ImageIndex::nearest(const Embeddings& query, int64_t count) const {
  std::vector<FoundImage> found;
  const IndexContents& index = parts_->index;
  for (const auto& [number, similarity] : best_by_vectors(index, index.all(), query.values, count))
    found.push_back({index.passage(number).file, similarity});
  return found;
}

std::vector<FoundImage> ImageIndex::search(const std::string& text, int64_t count) const {
  const FloatMode mode;
  return nearest(parts_->model.embed_texts({text}, unit_vectors()), count);
}

std::vector<FoundImage> ImageIndex::search(const media::Image& image, int64_t count) const {
  const FloatMode mode;
  return nearest(parts_->model.embed(1, [&](size_t) { return image; }, unit_vectors()), count);
}

const std::vector<std::string>& ImageIndex::warnings() const { return parts_->model.warnings(); }
const std::string& ImageIndex::folder() const { return parts_->index.settings().folder; }

}  // namespace fovea::infer

#include "cli/verbs/images.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/files.h"
#include "cli/reports/classify_input.h"
#include "cli/reports/images.h"
#include "jobs/lines.h"
#include "options/open_model.h"
#include "terminal/signals.h"
#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

constexpr size_t kImagesAtOnce = 64, kTextsAtOnce = 512;

// Calls use(first, count, source, options) for consecutive images. Returns the exit code.
int each_block(
    const ImageList& list, const infer::ImageOptions& given,
    const std::function<void(size_t first, size_t count, const infer::ImageModel::Source&,
                             const infer::ImageOptions&)>& use) {
  catch_signals("");
  for (size_t first = 0; first < list.size(); first += kImagesAtOnce) {
    if (stop_requested()) return stop_code();
    infer::ImageOptions options = given;
    options.name_of_image = [&list, first](size_t i) { return list.names()[first + i]; };
    const auto source = [&list, first](size_t i) { return list.read(first + i); };
    use(first, std::min(kImagesAtOnce, list.size() - first), source, options);
  }
  return 0;
}

// Prints vectors, or writes them to a file at the end: the header of an array has their number.
class VectorOutput {
 public:
  VectorOutput(const VectorLayout& layout, const std::string& out) : layout_(layout), out_(out) {}
  void add(const infer::Embeddings& vectors) {
    bytes_ += layout_.bytes(vectors, count_);
    count_ += vectors.count;
    if (!out_.empty() || layout_.has_header()) return;
    print(bytes_);
    bytes_.clear();
  }
  void finish(int64_t width) {
    if (layout_.has_header()) bytes_.insert(0, layout_.header(count_, width));
    if (out_.empty())
      print(bytes_);
    else
      write_file_atomically(out_, bytes_);
  }

 private:
  const VectorLayout& layout_;
  const std::string& out_;
  std::string bytes_;
  int64_t count_ = 0;
};

}  // namespace

infer::ImageModel open_image_model(const std::string& folder, model::WeightPrecision precision,
                                   const std::vector<model::AdapterUse>& adapters) {
  const infer::ImageModel model = infer::ImageModel::open(folder, precision, adapters);
  warn(model.warnings());
  return model;
}

int classify_images(const infer::ImageModel& model, const std::vector<std::string>& images,
                    const std::vector<std::string>& labels, const infer::ImageOptions& given,
                    ClassifiedFormat format) {
  const ImageList list(images);
  return each_block(list, given,
                    [&](size_t first, size_t count, const auto& source, const auto& options) {
                      const infer::Classifications found =
                          labels.empty() ? model.classify(count, source, options)
                                         : model.classify_by(count, source, labels, options);
                      const auto begin = list.names().begin() + static_cast<std::ptrdiff_t>(first);
                      format.files.assign(begin, begin + static_cast<std::ptrdiff_t>(count));
                      print(labels_text(found, first, format));
                    });
}

int embed_images(const infer::ImageModel& model, const std::vector<std::string>& images,
                 const infer::ImageOptions& given, const VectorLayout& layout,
                 const std::string& out) {
  const ImageList list(images);
  VectorOutput output(layout, out);
  const int code =
      each_block(list, given, [&](size_t, size_t count, const auto& source, const auto& options) {
        output.add(model.embed(count, source, options));
      });
  if (code == 0) output.finish(model.width());
  return code;
}

int embed_lines(const infer::ImageModel& model, const std::vector<std::string>& files,
                const infer::ImageOptions& options, const VectorLayout& layout,
                const std::string& out) {
  catch_signals("");
  VectorOutput output(layout, out);
  jobs::BlockReader reader(files.empty() ? std::vector<std::string>{"-"} : files);
  int64_t cut = 0;
  while (const auto block = reader.next(kTextsAtOnce)) {
    if (stop_requested()) return stop_code();
    const infer::Embeddings found = model.embed_texts(texts_of(*block), options);
    cut += std::count_if(found.cut.begin(), found.cut.end(), [](int64_t n) { return n > 0; });
    output.add(found);
  }
  output.finish(model.width());
  if (cut > 0) note(fmt::format("warning: {} lines truncated to the model's maximum\n", cut));
  return 0;
}

}  // namespace fovea::cli

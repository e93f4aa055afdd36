// Images, and models that read them.

#include "images.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays.h"
#include "bindings.h"
#include "call.h"
#include "fovea/core/error.h"
#include "fovea/infer/image_model.h"
#include "fovea/infer/image_search.h"
#include "keywords.h"
#include "values.h"

namespace nb = nanobind;

namespace fovea::python {
namespace {

using infer::ImageModel;

media::Image image_of(nb::handle given, size_t index) {
  const std::string name = "image " + std::to_string(index + 1);
  if (nb::isinstance<nb::bytes>(given)) {
    const auto bytes = nb::borrow<nb::bytes>(given);
    return media::decode_image({bytes.c_str(), bytes.size()}, name);
  }
  std::string path;
  if (nb::try_cast(given, path)) return media::read_image(path);
  if (nb::hasattr(given, "__fspath__"))
    return media::read_image(nb::cast<std::string>(given.attr("__fspath__")()));
  using Pixels = nb::ndarray<const uint8_t, nb::shape<-1, -1, 3>, nb::c_contig, nb::device::cpu>;
  Pixels pixels;
  nb::object array = nb::borrow(given);
  if (nb::hasattr(given, "convert"))  // an image of PIL
    array = nb::module_::import_("numpy").attr("array")(given.attr("convert")("RGB"));
  if (!nb::try_cast<Pixels>(array, pixels))
    throw Error(ErrorKind::InvalidArgument,
                name +
                    ": not an image; expected a path, the bytes of a file, an image of PIL, or "
                    "an array uint8 [height, width, 3]");
  return {static_cast<int64_t>(pixels.shape(0)),
          static_cast<int64_t>(pixels.shape(1)),
          {pixels.data(), pixels.data() + pixels.size()}};
}

void add_image_model(nb::module_& module) {
  nb::class_<ImageModel>(module, "ImageModel",
                         "Labels and vectors of images, by an encoder of images or a model of "
                         "images and texts such as CLIP.")
      .def(
          "__init__",
          [](ImageModel* self, const std::string& path, const std::string& precision) {
            new (self) ImageModel(call(
                [path, how = precision_of(precision)] { return ImageModel::open(path, how); }));
          },
          nb::arg("path"), nb::arg("precision") = "stored")
      .def(
          "classify",
          [](const ImageModel& m, const nb::list& images,
             const std::optional<std::vector<std::string>>& labels, const nb::kwargs& given) {
            return call(
                [=, all = images_of(images), options = options_from<infer::ImageOptions>(given)] {
                  const auto image = [&](size_t i) { return all[i]; };
                  return labels ? m.classify_by(all.size(), image, *labels, options)
                                : m.classify(all.size(), image, options);
                });
          },
          nb::arg("images"), nb::arg("labels") = nb::none(), nb::arg("options"),
          "Returns the scores of the labels for each image: of the model's labels, or of `labels` "
          "by a model of images and texts.")
      .def(
          "encode",
          [](const ImageModel& m, const nb::list& images, const nb::kwargs& given) {
            infer::Embeddings made = call(
                [m, all = images_of(images), options = options_from<infer::ImageOptions>(given)] {
                  return m.embed(all.size(), [&](size_t i) { return all[i]; }, options);
                });
            return array_of(std::move(made.values),
                            {static_cast<size_t>(made.count), static_cast<size_t>(made.width)});
          },
          nb::arg("images"), nb::arg("options"),
          "Returns the vectors of images, float32 [images, width].")
      .def(
          "encode_texts",
          [](const ImageModel& m, const std::vector<std::string>& texts, const nb::kwargs& given) {
            infer::Embeddings made =
                call([m, texts, options = options_from<infer::ImageOptions>(given)] {
                  return m.embed_texts(texts, options);
                });
            return array_of(std::move(made.values),
                            {static_cast<size_t>(made.count), static_cast<size_t>(made.width)});
          },
          nb::arg("texts"), nb::arg("options"),
          "Returns the vectors of texts, which those of images can be compared with.")
      .def_prop_ro("labels", [](const ImageModel& m) { return m.labels(); })
      .def_prop_ro("has_labels", &ImageModel::has_labels)
      .def_prop_ro("reads_texts", &ImageModel::reads_texts)
      .def_prop_ro("width", &ImageModel::width)
      .def_prop_ro("spec", [](const ImageModel& m) { return m.spec(); })
      .def_prop_ro("fingerprint", &ImageModel::fingerprint)
      .def_prop_ro("warnings", [](const ImageModel& m) { return m.warnings(); });
}

}  // namespace

std::vector<media::Image> images_of(const nb::list& given) {
  std::vector<media::Image> images;
  for (const nb::handle each : given) images.push_back(image_of(each, images.size()));
  return images;
}

void add_images(nb::module_& module) {
  add_image_model(module);
  module.def(
      "read_image",
      [](const nb::object& source) {
        nb::list one;
        one.append(source);
        media::Image image = std::move(images_of(one)[0]);
        const std::vector<size_t> shape = {static_cast<size_t>(image.height),
                                           static_cast<size_t>(image.width), 3};
        return array_of(std::move(image.pixels), shape);
      },
      nb::arg("source"),
      "Decodes a PNG, JPEG or WebP file, by its path or its bytes -> uint8 [height, width, 3].");

  using infer::FoundImage;
  using infer::ImageIndex;
  nb::class_<FoundImage>(module, "FoundImage")
      .def_ro("file", &FoundImage::file)
      .def_ro("score", &FoundImage::score)
      .def("__repr__", [](const FoundImage& f) {
        return fmt::format("FoundImage({}, score={:.4f})", f.file, f.score);
      });
  nb::class_<ImageIndex>(module, "ImageIndex", "An index of images, searched by text or image.")
      .def(
          "__init__",
          [](ImageIndex* self, const std::string& index, const std::string& model) {
            new (self) ImageIndex(call([=] { return ImageIndex::open(index, model); }));
          },
          nb::arg("index"), nb::arg("model") = "")
      .def_static(
          "build",
          [](const std::string& folder, const std::string& model, const std::string& index) {
            const auto made = call([=] { return infer::build_image_index(folder, model, index); });
            return made.images;
          },
          nb::arg("folder"), nb::arg("model"), nb::arg("index"),
          "Writes an index of the images in a folder, and returns their number.")
      .def(
          "search",
          [](const ImageIndex& i, const std::string& text, int64_t count) {
            return call([=] { return i.search(text, count); });
          },
          nb::arg("text"), nb::arg("count") = 10)
      .def(
          "search_image",
          [](const ImageIndex& i, const nb::object& image, int64_t count) {
            nb::list one;
            one.append(image);
            return call([=, all = images_of(one)] { return i.search(all[0], count); });
          },
          nb::arg("image"), nb::arg("count") = 10)
      .def_prop_ro("folder", [](const ImageIndex& i) { return i.folder(); });
}

}  // namespace fovea::python

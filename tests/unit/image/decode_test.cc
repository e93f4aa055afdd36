#include <fmt/format.h>
#include <gtest/gtest.h>

#include <utility>

#include "base/crc32.h"
#include "base/files.h"
#include "fovea/media/image.h"
#include "image/decoders.h"
#include "image/exif.h"
#include "image/processor.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea::media {
namespace {

const std::string kGoldens = "tests/goldens/images/";

std::string big_endian(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 255);
  return bytes;
}

// The start of a PNG file of 8-bit RGB; the sums of chunks are wrong, as in a forged file.
std::string png_header(uint32_t width, uint32_t height) {
  return std::string("\x89PNG\r\n\x1a\n", 8) + big_endian(13) + "IHDR" + big_endian(width) +
         big_endian(height) + std::string("\x08\x02\0\0\0", 5) + big_endian(0);
}

// A PNG file with a right header and `bytes` bytes of data.
std::string png_with_data(uint32_t width, uint32_t height, uint32_t bytes) {
  const std::string header = png_header(width, height);
  const std::string chunk = header.substr(12, 17);  // its name and contents
  return header.substr(0, 29) + big_endian(crc32<kZipPolynomial>(chunk)) + big_endian(bytes) +
         "IDAT" + std::string(bytes, 'x');
}

// A JPEG file that consists of its markers, up to the size.
std::string jpeg_header(uint32_t width, uint32_t height) {
  std::string file("\xff\xd8\xff\xc0\x00\x11\x08", 7);
  for (const uint32_t side : {height, width})
    file += std::string{static_cast<char>(side >> 8), static_cast<char>(side & 255)};
  return file + std::string("\x03\x01\x22\x00\x02\x11\x01\x03\x11\x01", 10) +
         std::string("\xff\xda\x00\x0c\x03\x01\x00\x02\x11\x03\x11\x00\x3f\x00", 14) +
         std::string(64, '\0');
}

// EXIF data with one entry.
std::string exif(uint16_t tag, uint16_t value, uint32_t directory = 8) {
  const auto half = [](uint32_t v) {
    return std::string{static_cast<char>(v >> 8), static_cast<char>(v & 255)};
  };
  return "MM" + half(42) + big_endian(directory) + half(1) + half(tag) + half(3) + big_endian(1) +
         half(value) + half(0) + big_endian(directory);
}

TEST(DecodeImage, EachPrefixOfAFileIsRefusedOrComplete) {
  for (const std::string& name : list_files(kGoldens)) {
    if (!is_image_name(name)) continue;
    const std::string bytes = read_file(kGoldens + name);
    for (size_t size = 0; size < bytes.size(); size += 1 + bytes.size() / 97) {
      try {
        // The last bytes of some formats carry no pixels.
        decode_image(bytes.substr(0, size), name);
        EXPECT_GT(size + 32, bytes.size()) << name << ": " << size;
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::BadFile) << name << ": " << error.what();
      }
    }
  }
}

TEST(DecodeImage, DamagedBytesGiveAnImageOrOneErrorLine) {
  for (const std::string& name : list_files(kGoldens)) {
    if (!is_image_name(name)) continue;
    const std::string bytes = read_file(kGoldens + name);
    for (size_t at = 0; at < bytes.size(); at += 1 + bytes.size() / 61) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
      try {
        decode_image(damaged, name);
      } catch (const Error& error) {
        EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
      }
    }
  }
}

TEST(DecodeImage, RefusesSizesByTheHeader) {
  // Sums of chunks are wrong, so libpng reports those first; JPEG has none.
  expect_error(ErrorKind::BadFile, {"damaged PNG file"},
               [] { decode_image(png_header(65535, 65535), "x.png"); });
  expect_error(ErrorKind::BadFile, {"x.jpg: the image has 65500 x 65500 pixels; expected at most"},
               [] { decode_image(jpeg_header(65500, 65500), "x.jpg"); });
  expect_error(ErrorKind::BadFile, {"x.jpg: damaged JPEG file"},
               [] { decode_image(jpeg_header(0, 5), "x.jpg"); });
}

// libpng took memory for two rows of 178,956,970 pixels, 500 MB, before the size was checked; and
// JPEG files of some kilobytes had a hundred million pixels, or nearly 200 scans of them.
TEST(DecodeImage, RefusesMorePixelsThanTheBytesAllow) {
  expect_error(ErrorKind::BadFile, {"w.png", "178956970 x 1 pixels"},
               [] { decode_image(png_with_data(178'956'970, 1, 10), "w.png"); });
  expect_error(ErrorKind::BadFile, {"h.jpg", "bytes for 9999 x 9999 pixels"},
               [] { decode_image(jpeg_header(9999, 9999), "h.jpg"); });
  expect_error(ErrorKind::BadFile, {"s.jpg", "cannot hold 400 x 400 pixels"},
               [] { decode_image(jpeg_header(400, 400), "s.jpg"); });
  expect_error(ErrorKind::BadFile, {"b.png", "bytes for 9000 x 9000 pixels; expected at least one"},
               [] { decode_image(png_with_data(9000, 9000, 100'000), "b.png"); });
  check_image_bytes(4096, 4096, 100, "one colour");
  check_image_bytes(10'000, 10'000, 200'000, "at least one byte for 512 pixels");
}

TEST(DecodeImage, RefusesOtherFormats) {
  for (const auto& [bytes, kind] : {std::pair("GIF89a", "GIF"), std::pair("BM", "BMP")})
    expect_error(ErrorKind::BadFile, {fmt::format("x: a {} image; expected a PNG, JPEG", kind)},
                 [&, data = bytes] { decode_image(data, "x"); });
  for (const char* bytes : {"", "<svg>", "RIFF....WAVE"})
    expect_error(ErrorKind::BadFile, {"x: not an image; expected a PNG, JPEG or WebP file"},
                 [&] { decode_image(bytes, "x"); });
}

TEST(Exif, ReadsTheOrientationOfTheFirstDirectory) {
  EXPECT_EQ(exif_orientation(exif(0x0112, 6)), 6);
  EXPECT_EQ(exif_orientation(exif(0x0111, 6)), 1);
  EXPECT_EQ(exif_orientation(exif(0x0112, 9)), 1);
  EXPECT_EQ(exif_orientation(exif(0x0112, 3, 0xfffffff0)), 1);
  EXPECT_EQ(exif_orientation(exif(0x0112, 3, 4)), 1);  // a directory that overlaps its own place
  const std::string whole = exif(0x0112, 6);
  for (size_t size = 0; size < whole.size(); ++size) exif_orientation(whole.substr(0, size));
}

TEST(Exif, TurnsRowsAndColumns) {
  // 2 x 3 pixels, numbered by row.
  Image x{2, 3, {}};
  for (uint8_t i = 0; i < 6; ++i) x.pixels.insert(x.pixels.end(), {i, i, i});
  const auto turned_to = [&](int orientation) {
    const Image y = turned(x, orientation);
    std::vector<int> numbers{static_cast<int>(y.height)};
    for (size_t i = 0; i < y.pixels.size(); i += 3) numbers.push_back(y.pixels[i]);
    return numbers;
  };
  using Numbers = std::vector<int>;
  EXPECT_EQ(turned_to(1), (Numbers{2, 0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(turned_to(2), (Numbers{2, 2, 1, 0, 5, 4, 3}));
  EXPECT_EQ(turned_to(3), (Numbers{2, 5, 4, 3, 2, 1, 0}));
  EXPECT_EQ(turned_to(4), (Numbers{2, 3, 4, 5, 0, 1, 2}));
  EXPECT_EQ(turned_to(5), (Numbers{3, 0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(turned_to(6), (Numbers{3, 3, 0, 4, 1, 5, 2}));
  EXPECT_EQ(turned_to(7), (Numbers{3, 5, 2, 4, 1, 3, 0}));
  EXPECT_EQ(turned_to(8), (Numbers{3, 2, 5, 1, 4, 0, 3}));
}

TEST(ImageProcessor, RefusesASideRatioThatNeedsTooManyPixels) {
  ImageProcessor processor;
  processor.resize = {0, 0, 224};
  processor.crop = {224, 224, 0};
  const Image line{100'000, 1, std::vector<uint8_t>(300'000)};
  expect_error(ErrorKind::BadFile, {"line.png: the image has 1 x 100000 pixels, resized to"},
               [&] { processor.fitted(line, "line.png"); });
  processor.resize = {224, 224, 0};
  EXPECT_EQ(processor.fitted(line, "line.png").pixels.size(), size_t{224 * 224 * 3});
}

TEST(ImageProcessor, WritesAConfigThatReadsBack) {
  ImageProcessor processor;
  processor.resize = {32, 40, 0};
  processor.crop = {28, 28, 0};
  processor.resampling = Resampling::lanczos;
  processor.mean = {0.1f, 0.2f, 0.3f};
  const TemporaryFolder folder;
  write_file_atomically(folder.path() + "/preprocessor_config.json", processor.json());
  EXPECT_EQ(ImageProcessor::open(folder.path()).json(), processor.json());
}

TEST(ImageProcessor, RefusesConfigsByFileAndKey) {
  const TemporaryFolder folder;
  const auto open = [&](const std::string& json) {
    return [&folder, json] {
      write_file_atomically(folder.path() + "/preprocessor_config.json", json);
      ImageProcessor::open(folder.path());
    };
  };
  expect_error(ErrorKind::BadFile, {"preprocessor_config.json: not found; expected it"},
               [&] { ImageProcessor::open(folder.path()); });
  expect_error(ErrorKind::BadFile, {"not an object"}, open("[]"));
  expect_error(ErrorKind::Unsupported, {"image_processor_type NougatImageProcessor is not known"},
               open(R"({"image_processor_type": "NougatImageProcessor"})"));
  expect_error(ErrorKind::Unsupported, {"size is an object"},
               open(R"({"size": {"longest_edge": 3}})"));
  expect_error(ErrorKind::BadFile, {"image_std"}, open(R"({"image_std": [0, 1, 1]})"));
  expect_error(ErrorKind::BadFile, {"resample"}, open(R"({"resample": 9})"));
  expect_error(ErrorKind::Unsupported, {"the images keep different sizes"},
               open(R"({"size": {"shortest_edge": 30}})"));
}

}  // namespace
}  // namespace fovea::media

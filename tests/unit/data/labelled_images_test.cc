#include "data/labelled_images.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea::train {
namespace {

class LabelledImageFiles : public testing::Test {
 protected:
  std::string put(const std::string& name, const std::string& content = "pixels") const {
    make_directories(parent_of(folder_ / name));
    write_file_atomically(folder_ / name, content);
    return folder_ / name;
  }
  const TemporaryFolder folder_;
};

TEST_F(LabelledImageFiles, FoldersAreLabels) {
  put("data/dog/b.jpg");
  put("data/dog/more/a.PNG");
  put("data/cat/c.webp");
  put("data/cat/notes.txt");
  const LabelledImages found = read_labelled_images({folder_ / "data"});
  EXPECT_EQ(found.files,
            (std::vector<std::string>{folder_ / "data/cat/c.webp", folder_ / "data/dog/b.jpg",
                                      folder_ / "data/dog/more/a.PNG"}));
  EXPECT_EQ(found.labels, (std::vector<std::string>{"cat", "dog", "dog"}));
  const uint64_t before = found.hash;
  put("data/cat/c.webp", "others");
  EXPECT_NE(read_labelled_images({folder_ / "data"}).hash, before);
}

TEST_F(LabelledImageFiles, TablesNameImagesAndLabels) {
  put("a.png");
  put("b,c.png");
  const std::string csv = put("table.csv", "file,label\na.png,cat\n\n\"b,c.png\",\"big dog\"\n");
  const LabelledImages found = read_labelled_images({csv});
  EXPECT_EQ(found.files, (std::vector<std::string>{folder_ / "a.png", folder_ / "b,c.png"}));
  EXPECT_EQ(found.labels, (std::vector<std::string>{"cat", "big dog"}));
  EXPECT_EQ(read_labelled_images({put("table.tsv", "a.png\tcat, small\n")}).labels,
            (std::vector<std::string>{"cat, small"}));
  EXPECT_EQ(read_labelled_images({put("order.csv", "Caption;Image\ncat;a.png\n")}).labels,
            (std::vector<std::string>{"cat"}));
}

TEST_F(LabelledImageFiles, ErrorsNameTheLocation) {
  const auto refused = [](std::initializer_list<std::string> texts, const std::string& path) {
    expect_error(ErrorKind::BadFile, texts, [&] { read_labelled_images({path}); });
  };
  put("a.png");
  make_directories(folder_ / "empty");
  refused({"empty: no folders; expected a folder of images for each label"}, folder_ / "empty");
  make_directories(folder_ / "bare/cat");
  refused({"bare/cat: no images"}, folder_ / "bare");
  put("bare/loose.png");
  refused({"loose.png is in no label's folder"}, folder_ / "bare");
  refused({"t.csv:1", "expected an image, a comma and a label"}, put("t.csv", "a.png\n"));
  refused({"t.csv:2", "none.png is missing"}, put("t.csv", "a.png,x\nnone.png,x\n"));
  // The first row was dropped as names, since it names no image that can be read.
  refused({"t.csv:1", "a.gif is missing"}, put("t.csv", "a.gif,x\na.png,x\n"));
  refused({"t.csv: no images"}, put("t.csv", "file,label\n"));
  refused({"a.png: not a folder of labels"}, folder_ / "a.png");
}

}  // namespace
}  // namespace fovea::train

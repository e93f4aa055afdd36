#include "data/recordings.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea::train {
namespace {

class RecordingTables : public testing::Test {
 protected:
  std::string put(const std::string& name, const std::string& content = "audio") const {
    write_file_atomically(folder_ / name, content);
    return folder_ / name;
  }
  const TemporaryFolder folder_;
};

TEST_F(RecordingTables, HaveColumnsInAnyOrder) {
  put("a.wav");
  put("b.wav");
  const std::string csv =
      put("t.csv", "text,speaker,audio\n\"Good \"\"morning\"\", all\",7,a.wav\n\nyes,8,b.wav\n");
  const Recordings found = read_recordings({csv});
  EXPECT_EQ(found.files, (std::vector<std::string>{folder_ / "a.wav", folder_ / "b.wav"}));
  EXPECT_EQ(found.texts, (std::vector<std::string>{"Good \"morning\", all", "yes"}));
  EXPECT_EQ(found.languages, (std::vector<std::string>{"", ""}));
  const std::string tsv = put("t.tsv", "audio\tlanguage\ttext\nb.wav\tde\t\"ja\"\n");
  const std::string lines =
      put("t.jsonl", "{\"audio\": \"" + (folder_ / "a.wav") + "\", \"text\": \"si\", " +
                         "\"language\": \"es\"}\n");
  const Recordings more = read_recordings({tsv, lines});
  EXPECT_EQ(more.texts, (std::vector<std::string>{"\"ja\"", "si"}));
  EXPECT_EQ(more.languages, (std::vector<std::string>{"de", "es"}));
  const Recordings some = read_recordings({put("e.csv", "Audio,Text\na.wav,\nb.wav,yes\n")});
  EXPECT_EQ(some.texts, std::vector<std::string>{"yes"});
  EXPECT_EQ(some.empty, 1);
  const uint64_t before = read_recordings({csv}).hash;
  put("a.wav", "other");
  EXPECT_NE(read_recordings({csv}).hash, before);
}

TEST_F(RecordingTables, ErrorsNameTheLine) {
  put("a.wav");
  const auto refused = [&](const std::string& name, const std::string& content,
                           const std::string& text) {
    const std::string path = put(name, content);
    expect_error(ErrorKind::BadFile, {text}, [&] { read_recordings({path}); });
  };
  refused("a.csv", "file,text\na.wav,x\n", "a.csv:1: names no columns audio and text; expected");
  refused("b.csv", "audio,text\na.wav\n", "b.csv:2: has 1 column; expected 2");
  refused("c.csv", "audio,text\na.wav,\"x\n", "c.csv:2: has a quote that does not end");
  refused("d.csv", "audio,text\nnone.wav,x\n", "none.wav is missing; expected an audio file");
  refused("e.jsonl", "{\"audio\": \"a.wav\"}\n", "e.jsonl:1: has no text; expected");
  refused("f.csv", "audio,text\n", "has no recordings; expected at least one");
  refused("g.txt", "a.wav", "is no table of recordings; expected a .csv, .tsv or .jsonl file");
}

}  // namespace
}  // namespace fovea::train

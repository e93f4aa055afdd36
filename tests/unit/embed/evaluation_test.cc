#include "embed/example_files.h"
#include "fovea/infer/embed.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea::infer {
namespace {

std::vector<ScoredPair> read(const std::string& text) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "pairs", text);
  return read_scored_pairs(folder / "pairs");
}

TEST(ScoredPairs, ReadEachFormat) {
  for (const std::string text :
       {"\"a, b\",\"say \"\"x\"\"\",2.5\nc,d,1\n",
        "sentence1\tsentence2\tscore\na, b\tsay \"x\"\t2.5\r\nc\td\t1",
        "{\"sentence1\":\"a, b\",\"sentence2\":\"say \\\"x\\\"\",\"score\":2.5}\n\n"
        "{\"sentence1\":\"c\",\"sentence2\":\"d\",\"score\":1}\n"}) {
    const auto pairs = read(text);
    ASSERT_EQ(pairs.size(), 2u) << text;
    EXPECT_EQ(pairs[0].first, "a, b");
    EXPECT_EQ(pairs[0].second, "say \"x\"");
    EXPECT_EQ(pairs[0].score, 2.5);
    EXPECT_EQ(pairs[1].second, "d");
  }
  EXPECT_EQ(read("\"two\nlines\",b,1").at(0).first, "two\nlines");
}

TEST(ScoredPairs, NameTheInvalidRecord) {
  expect_error(ErrorKind::BadFile, {"pairs:2: has 2 fields"}, [] { read("a,b,1\nc,d\n"); });
  expect_error(ErrorKind::BadFile, {"pairs:2: ", "no number"}, [] { read("a,b,1\nc,d,nan\n"); });
  expect_error(ErrorKind::BadFile, {"pairs:2"},
               [] { read("{\"sentence1\":\"a\",\"sentence2\":\"b\",\"score\":1}\n[]\n"); });
  expect_error(ErrorKind::BadFile, {"nonesuch"}, [] { read_scored_pairs("/nonesuch"); });
}

TEST(TextExamples, HaveTheKindOfTheFirstRecord) {
  const TemporaryFolder folder;
  const auto examples = [&](const std::string& text) {
    write_file_atomically(folder / "examples", text);
    return read_text_examples(folder / "examples");
  };
  const TextExamples pairs = examples("anchor\tpositive\nfox\tthe fox\n\nbird\ta bird\n");
  EXPECT_EQ(pairs.kind, ExampleKind::pairs);
  EXPECT_EQ(pairs.texts[1], (std::vector<std::string>{"the fox", "a bird"}));
  const TextExamples triplets =
      examples("{\"query\":\"fox\",\"positive\":\"the fox\",\"negative\":\"eye\"}\n");
  EXPECT_EQ(triplets.kind, ExampleKind::triplets);
  EXPECT_EQ(triplets.texts[2], std::vector<std::string>{"eye"});
  const TextExamples scored = examples("fox,the fox,5\nfox,eye,1\n");
  EXPECT_EQ(scored.kind, ExampleKind::scored);
  EXPECT_EQ(scored.scores, (std::vector<float>{1, 0.2f}));
  expect_error(ErrorKind::BadFile, {"examples:2: ", "two texts"}, [&] { examples("a\tb\na\n"); });
  // The names were a triplet, with the scores as texts.
  for (const char* text : {"\xEF\xBB\xBFsentence1,sentence2,score\na,b,4\nc,d,0\n",
                           "Score;Sentence1;Sentence2\n4;a;b\n0;c;d\n",
                           "{\n  \"sentence1\": \"a\", \"sentence2\": \"b\",\n  \"score\": 4\n}\n"
                           "{\"sentence1\": \"c\", \"sentence2\": \"d\", \"score\": 0}\n"}) {
    EXPECT_EQ(examples(text).kind, ExampleKind::scored) << text;
    EXPECT_EQ(examples(text).texts[0], (std::vector<std::string>{"a", "c"}));
    EXPECT_EQ(examples(text).scores, (std::vector<float>{1, 0}));
  }
  expect_error(ErrorKind::BadFile, {"examples:1: has no number, as all other records have"},
               [&] { examples("one,two,how similar\na,b,4\n"); });
  // Pairs of label 0 were trained as related.
  const TextExamples judged = examples(
      "{\"sentence1\": \"a\", \"sentence2\": \"b\", \"label\": 0}\n"
      "{\"sentence1\": \"c\", \"sentence2\": \"d\", \"label\": true}\n");
  EXPECT_EQ(judged.scores, (std::vector<float>{0, 1}));
  expect_error(ErrorKind::BadFile, {"examples:2: label is 2; expected 0 to 1, or the name score"},
               [&] { examples("sentence1,sentence2,label\na,b,2\n"); });
  expect_error(ErrorKind::BadFile, {"examples:1: \"positive\" is an array", "expected a text"},
               [&] { examples("{\"query\": \"a\", \"positive\": [\"b\"]}\n"); });
  expect_error(ErrorKind::BadFile, {"no examples"}, [&] { examples("\n"); });
}

TEST(TextExamples, HaveSeveralNegativesAndTheScoresOfATeacher) {
  const TemporaryFolder folder;
  const auto examples = [&](const std::string& text, bool teacher = true) {
    write_file_atomically(folder / "examples", text);
    return read_text_examples(folder / "examples", teacher);
  };
  using Texts = std::vector<std::vector<std::string>>;
  using Scores = std::vector<float>;
  const Texts expected = {{"q", "r"}, {"p", "s"}, {"n", "t"}, {"m", "u"}};
  for (
      const char* text :
      {"negative_2,query,positive,negative_1,scores\nm,q,p,n,\"[3, 2, "
       "1.5]\"\nu,r,s,t,\"[1,0,0]\"\n",
       "query\tpassage1\tpassage2\tpassage3\tlabel\nq\tp\tn\tm\t[3,2,1.5]\nr\ts\tt\tu\t[1,0,0]\n",
       "q\tp\tn\tm\t[3,2,1.5]\nr\ts\tt\tu\t[1,0,0]\n",
       R"({"anchor": "q", "positive": "p", "negative1": "n", "negative2": "m", "score": [3, 2, 1.5]}
{"anchor": "r", "positive": "s", "negative1": "t", "negative2": "u", "score": [1, 0, 0]})"}) {
    const TextExamples found = examples(text);
    EXPECT_EQ(found.texts, expected) << text;
    EXPECT_EQ(found.teacher, (Scores{3, 2, 1.5f, 1, 0, 0})) << text;
    EXPECT_EQ(found.teacher_scores, 3) << text;
    EXPECT_EQ(examples(text, false).teacher_scores, 0) << text;
  }
  // Ten negatives are in the order of their numbers.
  std::string row = R"({"anchor": "q", "positive": "p")";
  for (int i = 10; i > 0; --i) row += fmt::format(R"(, "negative_{}": "{}")", i, i);
  EXPECT_EQ(examples(row + "}", false).texts[11], std::vector<std::string>{"10"});
  // A margin for each negative.
  EXPECT_EQ(examples("text1,text2,text3,label\na,b,c,0.5\nd,e,f,-2\n").teacher, (Scores{0.5f, -2}));
  EXPECT_EQ(examples("a,b,c,0.5\nd,e,f,-2\n").teacher, (Scores{0.5f, -2}));
  const auto refuse = [&](const std::string& text, std::initializer_list<std::string> parts) {
    expect_error(ErrorKind::BadFile, parts, [&] { examples(text); });
  };
  refuse("anchor,positive,negative\na,b,c\n", {"examples:2: has 0 scores of a teacher",
                                               "expected 2, of the positive and the negatives, "
                                               "or 1, the margins"});
  refuse("anchor,positive,negative,scores\na,b,c,1\nd,e,f,\"[1,2]\"\n",
         {"examples:3: has 2 scores", "as in the first record"});
  refuse("anchor,positive,negative,scores\na,b,c,high\n", {"examples:2: has 0 scores"});
  refuse("anchor,positive,negative,scores\na,b,c,\"[1,2,3]\"\n", {"examples:2: has 3 scores"});
  refuse(R"({"anchor": "a", "positive": "b", "negative": "c", "scores": ["1", "2"]})",
         {"examples:1: \"scores\" is an array", "expected a number or a list of numbers"});
  refuse(R"({"anchor": "a", "positive": "b", "negative": 3})",
         {"examples:1: \"negative\" is 3; expected a text"});
  expect_error(ErrorKind::BadFile,
               {"examples:2: has 3 fields", "expected 4 texts, as in the first record"},
               [&] { examples("a,b,c,d\ne,f,g\n", false); });
  refuse("sentence1,sentence2,label\na,b,entailment\n",
         {"examples:2: has 3 fields and no number; expected two texts and a number"});
}

TEST(VectorPrecision, ScalesByTheLargestElement) {
  const float x[] = {0.5f, -0.25f, 0, 0, 0, 0};
  const ArrayView two{x, {2, 3}};
  using Bytes = std::vector<uint8_t>;
  EXPECT_EQ(quantise_vectors(two, VectorPrecision::int8).bytes, (Bytes{127, 192, 0, 0, 0, 0}));
  EXPECT_EQ(quantise_vectors(two, VectorPrecision::uint8).bytes,
            (Bytes{255, 64, 128, 128, 128, 128}));
}

TEST(VectorPrecision, PacksSignsHighestBitFirst) {
  const float x[] = {1, -1, 1, 0, 2, -3, -1, 1, 5, -5};
  const ArrayView one{x, {1, 10}};
  using Bytes = std::vector<uint8_t>;
  EXPECT_EQ(quantise_vectors(one, VectorPrecision::ubinary).bytes, (Bytes{0xA9, 0x80}));
  EXPECT_EQ(quantise_vectors(one, VectorPrecision::binary).bytes, (Bytes{0x29, 0x00}));
  EXPECT_EQ(bytes_of_vector(10, VectorPrecision::binary), 2);
  EXPECT_EQ(quantise_vectors(one, VectorPrecision::binary).view().row<int8_t>(0)[0], 0x29);
  expect_error(ErrorKind::InvalidArgument, {"1 axes", "2"},
               [&] { quantise_vectors({x, {10}}, VectorPrecision::int8); });
}

}  // namespace
}  // namespace fovea::infer

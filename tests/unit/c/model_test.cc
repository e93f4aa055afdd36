#include <cstring>
#include <limits>
#include <new>
#include <regex>
#include <stdexcept>
#include <thread>

#include "c/guard.h"
#include "fovea/core/machine.h"
#include "fovea/infer/embed.h"
#include "fovea/infer/generate.h"
#include "fovea/study/trace.h"
#include "unit/c/support.h"

namespace fovea {
namespace {

std::string text_of(const fovea_generation& g) { return {g.text, g.text_size}; }
std::vector<int32_t> ids_of(const fovea_generation& g) { return {g.ids, g.ids + g.id_count}; }

class CModel : public testing::Test {
 protected:
  CModel() : model_(open_small()) {}
  ~CModel() override { fovea_model_free(model_); }

  fovea_generation generate(const fovea_generate_options& options) {
    fovea_generation result = empty_generation();
    EXPECT_EQ(fovea_model_generate(model_, "the ", FOVEA_NUL_TERMINATED, &options, &result),
              FOVEA_OK)
        << fovea_model_error(model_);
    return result;
  }
  void refuse(const fovea_generate_options& options, fovea_status status, const char* part) {
    EXPECT_EQ(fovea_model_generate(model_, "the ", 4, &options, nullptr), status);
    expect_message(fovea_model_error(model_), part);
  }

  fovea_model* const model_;
};

TEST(CLibrary, HasTheVersionOfItsHeader) {
  int major = 0, minor = 0, patch = 0;
  fovea_version_numbers(&major, &minor, &patch);
  EXPECT_EQ(major, FOVEA_VERSION_MAJOR);
  EXPECT_EQ(minor, FOVEA_VERSION_MINOR);
  EXPECT_EQ(patch, FOVEA_VERSION_PATCH);
  EXPECT_EQ(fovea_version(), version());
  fovea_version_numbers(nullptr, nullptr, nullptr);
}

TEST(CLibrary, SetsThreads) {
  const int before = fovea_threads();
  EXPECT_EQ(fovea_set_threads(1), FOVEA_OK);
  EXPECT_EQ(fovea_threads(), 1);
  EXPECT_EQ(fovea_set_threads(0), FOVEA_INVALID_ARGUMENT);
  expect_message(fovea_error(), "threads: 0; expected 1 to");
  EXPECT_EQ(fovea_set_threads(before), FOVEA_OK);
}

TEST(CLibrary, MapsEveryKindOfError) {
  const std::pair<ErrorKind, fovea_status> kinds[] = {
      {ErrorKind::InvalidArgument, FOVEA_INVALID_ARGUMENT},
      {ErrorKind::BadFile, FOVEA_BAD_FILE},
      {ErrorKind::Unsupported, FOVEA_UNSUPPORTED},
      {ErrorKind::OutOfMemory, FOVEA_OUT_OF_MEMORY},
      {ErrorKind::Failed, FOVEA_FAILED},
      {ErrorKind::Internal, FOVEA_INTERNAL}};
  for (const auto& [kind, status] : kinds) {
    EXPECT_EQ(c::guard([k = kind] { throw Error(k, "one\nline"); }), status);
    EXPECT_STREQ(fovea_error(), "one line");
  }
  EXPECT_EQ(c::guard([] { throw std::bad_alloc(); }), FOVEA_OUT_OF_MEMORY);
  EXPECT_EQ(c::guard([] { throw std::runtime_error("what"); }), FOVEA_INTERNAL);
  EXPECT_STREQ(fovea_error(), "what");
  EXPECT_EQ(c::guard([] { throw 1; }), FOVEA_INTERNAL);
}

TEST(CLibrary, KeepsTheMessageOfEachThread) {
  EXPECT_EQ(fovea_set_threads(-1), FOVEA_INVALID_ARGUMENT);
  std::thread([] { EXPECT_STREQ(fovea_error(), ""); }).join();
  expect_message(fovea_error(), "threads: -1");
}

TEST(CLibrary, ReportsFilesThatCannotBeOpened) {
  auto* model = reinterpret_cast<fovea_model*>(1);
  EXPECT_EQ(fovea_model_open("no such directory", nullptr, &model), FOVEA_BAD_FILE);
  EXPECT_EQ(model, nullptr);
  expect_message(fovea_model_error(nullptr), "no such directory");
  auto* tokenizer = reinterpret_cast<fovea_tokenizer*>(1);
  EXPECT_EQ(fovea_tokenizer_open("no such directory", &tokenizer), FOVEA_BAD_FILE);
  EXPECT_EQ(tokenizer, nullptr);
  auto* embedder = reinterpret_cast<fovea_embedder*>(1);
  EXPECT_EQ(fovea_embedder_open("no such directory", nullptr, &embedder), FOVEA_BAD_FILE);
  EXPECT_EQ(embedder, nullptr);
}

TEST(CLibrary, RefusesNullInsteadOfAHandle) {
  const fovea_status all[] = {
      fovea_model_options_init(nullptr, 8),
      fovea_model_open(nullptr, nullptr, nullptr),
      fovea_model_share(nullptr, nullptr),
      fovea_model_spec(nullptr, nullptr),
      fovea_model_tokenizer(nullptr, nullptr),
      fovea_generate_options_init(nullptr, 8, nullptr),
      fovea_model_generate(nullptr, nullptr, 0, nullptr, nullptr),
      fovea_model_generate_ids(nullptr, nullptr, 0, nullptr, nullptr),
      fovea_model_prompt_ids(nullptr, nullptr, 0, nullptr, nullptr),
      fovea_model_score(nullptr, nullptr, 0, nullptr),
      fovea_trace_options_init(nullptr, 8),
      fovea_model_trace(nullptr, nullptr, nullptr),
      fovea_chat_options_init(nullptr, 8),
      fovea_chat_open(nullptr, nullptr, nullptr),
      fovea_chat_render(nullptr, nullptr, 0, nullptr, nullptr, nullptr),
      fovea_chat_generate(nullptr, nullptr, 0, nullptr, nullptr, nullptr),
      fovea_tokenizer_open(nullptr, nullptr),
      fovea_tokenizer_share(nullptr, nullptr),
      fovea_tokenizer_encode(nullptr, nullptr, 0, 0, nullptr, nullptr),
      fovea_tokenizer_decode(nullptr, nullptr, 0, 0, nullptr, nullptr),
      fovea_embedder_options_init(nullptr, 8),
      fovea_embedder_open(nullptr, nullptr, nullptr),
      fovea_embedder_share(nullptr, nullptr),
      fovea_embed_options_init(nullptr, 8),
      fovea_embedder_embed(nullptr, nullptr, nullptr, 0, nullptr, nullptr, 0),
      fovea_train(nullptr, 1, nullptr, nullptr, nullptr)};
  for (size_t i = 0; i < std::size(all); ++i) EXPECT_EQ(all[i], FOVEA_INVALID_ARGUMENT) << i;
  expect_message(fovea_error(), "NULL");
  fovea_model_free(nullptr);
  fovea_chat_free(nullptr);
  fovea_tokenizer_free(nullptr);
  fovea_embedder_free(nullptr);
  EXPECT_EQ(fovea_model_warning(nullptr, 0), nullptr);
  EXPECT_EQ(fovea_embedder_warning(nullptr, 0), nullptr);
  EXPECT_EQ(fovea_tokenizer_size(nullptr), 0);
  EXPECT_EQ(fovea_embedder_width(nullptr), 0);
}

TEST_F(CModel, RefusesNullInsteadOfAnArgument) {
  const int32_t id = 0;
  fovea_generate_options options = generate_options();
  options.stop_count = 1;
  const fovea_status all[] = {
      fovea_model_share(model_, nullptr),
      fovea_model_spec(model_, nullptr),
      fovea_model_tokenizer(model_, nullptr),
      fovea_model_generate(model_, nullptr, 1, nullptr, nullptr),
      fovea_model_generate(model_, nullptr, FOVEA_NUL_TERMINATED, nullptr, nullptr),
      fovea_model_generate(model_, "", 0, &options, nullptr),
      fovea_model_generate_ids(model_, nullptr, 1, nullptr, nullptr),
      fovea_model_prompt_ids(model_, "the", 3, nullptr, nullptr),
      fovea_model_score(model_, &id, 1, nullptr),
      fovea_model_trace(model_, nullptr, "out"),
      fovea_chat_open(model_, nullptr, nullptr)};
  for (size_t i = 0; i < std::size(all); ++i) EXPECT_EQ(all[i], FOVEA_INVALID_ARGUMENT) << i;
  expect_message(fovea_model_error(model_), "chat: NULL");
}

TEST_F(CModel, GeneratesTheSameBitsAsInCpp) {
  const model::Model same = model::Model::open(small_model().path());
  fovea_generate_options options = generate_options();
  options.seed = 5;
  options.logprobs = 2;
  options.top_k = 5;
  const int32_t ids[] = {1, 2};
  const float values[] = {0.5f, -0.5f};
  options.bias_ids = ids;
  options.bias_values = values;
  options.bias_count = 2;
  const fovea_generation mine = generate(options);

  infer::GenerateOptions theirs;
  theirs.max_tokens = 30;
  theirs.sampling.seed = 5;
  theirs.sampling.top_k = 5;
  theirs.sampling.logit_bias = {{1, 0.5f}, {2, -0.5f}};
  theirs.logprobs = 2;
  const infer::Generation expected = fovea::infer::generate(same, "the ", theirs)[0];
  EXPECT_EQ(text_of(mine), expected.text);
  EXPECT_EQ(ids_of(mine), expected.ids);
  EXPECT_EQ(mine.finish, FOVEA_FINISH_LENGTH);
  EXPECT_EQ(mine.prompt_tokens, expected.prompt_tokens);
  ASSERT_EQ(mine.top_count, 2u);
  for (size_t i = 0; i < mine.id_count; ++i) {
    EXPECT_EQ(mine.logprobs[i], expected.logprobs[i].logprob);
    for (size_t j = 0; j < 2; ++j) {
      EXPECT_EQ(mine.top_ids[2 * i + j], expected.logprobs[i].top[j].first);
      EXPECT_EQ(mine.top_logprobs[2 * i + j], expected.logprobs[i].top[j].second);
    }
  }
}

TEST_F(CModel, ContinuesIdsLikeTheirText) {
  const int32_t* ids = nullptr;
  size_t count = 0;
  const fovea_generate_options options = generate_options();
  const std::string text = text_of(generate(options));
  ASSERT_EQ(fovea_model_prompt_ids(model_, "the ", 4, &ids, &count), FOVEA_OK);
  const std::vector<int32_t> prompt(ids, ids + count);
  EXPECT_EQ(prompt, infer::prompt_ids(model::Model::open(small_model().path()), "the "));
  fovea_generation result = empty_generation();
  ASSERT_EQ(fovea_model_generate_ids(model_, prompt.data(), count, &options, &result), FOVEA_OK);
  EXPECT_EQ(text_of(result), text);
}

TEST_F(CModel, PassesPiecesOfTheText) {
  std::string received;
  fovea_generate_options options = generate_options();
  options.user = &received;
  options.on_text = [](const char* piece, size_t size, void* user) {
    EXPECT_EQ(piece[size], '\0');
    static_cast<std::string*>(user)->append(piece, size);
    return int{FOVEA_CONTINUE};
  };
  EXPECT_EQ(text_of(generate(options)), received);
  EXPECT_FALSE(received.empty());
}

TEST_F(CModel, StopsWhenTheCallbackReturnsStop) {
  std::string received;
  fovea_generate_options options = generate_options();
  options.user = &received;
  options.on_text = [](const char* piece, size_t size, void* user) {
    auto& text = *static_cast<std::string*>(user);
    text.append(piece, size);
    return int{text.size() < 5 ? FOVEA_CONTINUE : FOVEA_STOP};
  };
  const fovea_generation result = generate(options);
  EXPECT_EQ(result.finish, FOVEA_FINISH_CANCELLED);
  EXPECT_EQ(received.size(), 5u);
  EXPECT_EQ(text_of(result), received);
}

TEST_F(CModel, StopsBeforeAStopString) {
  const std::string whole = text_of(generate(generate_options()));
  const std::string end = whole.substr(4, 3);
  const char* const stop[] = {end.c_str()};
  fovea_generate_options options = generate_options();
  options.stop = stop;
  options.stop_count = 1;
  const fovea_generation result = generate(options);
  EXPECT_EQ(result.finish, FOVEA_FINISH_STOP);
  EXPECT_EQ(text_of(result), whole.substr(0, whole.find(end)));
}

TEST_F(CModel, LetsACallbackEditLogits) {
  fovea_generate_options options = generate_options();
  options.max_tokens = 3;
  options.on_logits = [](const int32_t*, size_t count, float* logits, size_t vocabulary, void*) {
    for (size_t id = 0; id < vocabulary; ++id)
      if (id != count + 1) logits[id] = -std::numeric_limits<float>::infinity();
  };
  EXPECT_EQ(ids_of(generate(options)), (std::vector<int32_t>{1, 2, 3}));
}

TEST_F(CModel, TurnsExceptionsOfCallbacksIntoErrors) {
  fovea_generate_options options = generate_options();
  options.on_text = [](const char*, size_t, void*) -> int { throw std::runtime_error("thrown"); };
  refuse(options, FOVEA_INTERNAL, "thrown");
  options.on_text = [](const char*, size_t, void*) -> int { throw std::bad_alloc(); };
  refuse(options, FOVEA_OUT_OF_MEMORY, "memory");
  options.on_text = [](const char*, size_t, void*) -> int { throw 1; };
  refuse(options, FOVEA_INTERNAL, "exception");
  options.on_text = nullptr;
  options.on_logits = [](const int32_t*, size_t, float*, size_t, void*) {
    throw std::runtime_error("thrown");
  };
  refuse(options, FOVEA_INTERNAL, "thrown");
  options.on_logits = nullptr;
  EXPECT_EQ(generate(options).finish, FOVEA_FINISH_LENGTH);  // the handle stays usable
}

TEST_F(CModel, RefusesInvalidOptionsByName) {
  fovea_generate_options options = generate_options();
  options.top_p = 2;
  refuse(options, FOVEA_INVALID_ARGUMENT, "top_p: 2");
  options = generate_options();
  options.early_stopping = 3;
  refuse(options, FOVEA_INVALID_ARGUMENT, "early_stopping: 3");
  fovea_model_options wrong = {sizeof wrong, 6, 0};
  fovea_model* other = nullptr;
  EXPECT_EQ(fovea_model_open(small_model().path().c_str(), &wrong, &other), FOVEA_INVALID_ARGUMENT);
  expect_message(fovea_error(), "precision: 6");
  wrong = {sizeof wrong, 0, -1};
  EXPECT_EQ(fovea_model_open(small_model().path().c_str(), &wrong, &other), FOVEA_INVALID_ARGUMENT);
  expect_message(fovea_error(), "cache_precision: -1");
}

TEST_F(CModel, RefusesASecondCallDuringACall) {
  fovea_generate_options options = generate_options();
  options.user = model_;
  options.on_text = [](const char*, size_t, void* user) {
    const char* json = nullptr;
    EXPECT_EQ(fovea_model_spec(static_cast<fovea_model*>(user), &json), FOVEA_INVALID_ARGUMENT);
    expect_message(fovea_error(), "model: in use");
    return int{FOVEA_CONTINUE};
  };
  generate(options);
}

// Collects the names of fields.
class FieldNames : public OptionVisitor {
 public:
  std::vector<std::string> found;
  void integer(const Field& f, int64_t&, int64_t, int64_t) override { found.push_back(f.name); }
  void number(const Field& f, double&, double, double) override { found.push_back(f.name); }
  void boolean(const Field& f, bool&) override { found.push_back(f.name); }
  void choice(const Field& f, int&, const Names&) override { found.push_back(f.name); }
  void text(const Field& f, std::string&) override { found.push_back(f.name); }
  void list(const Field& f, const List&) override { found.push_back(f.name); }
  void unsigned_integer(const Field& f, uint64_t&, Unit unit) override {
    if (unit == Unit::none) found.push_back(f.name);
  }
  void optional(const Field&, bool& present, Part) override { present = true; }
};

// Returns the fields of the C++ options that a struct of the C header lacks.
template <class Options>
std::vector<std::string> missing_fields(const std::string& name) {
  const std::string header = read_file("include/fovea/c.h");
  const size_t end = header.find("} " + name + ";"), begin = header.rfind("typedef struct", end);
  const std::string body = header.substr(begin, end - begin);
  Options options;
  FieldNames names;
  visit(options, names);
  std::erase_if(names.found, [&](const std::string& field) {
    return std::regex_search(body, std::regex("[ *]" + field + "[,;]"));
  });
  return names.found;
}

TEST(CLibrary, HasEveryOptionOfTheCppInterface) {
  // A call of the C interface returns one generation, so `generations` is missing.
  EXPECT_EQ(missing_fields<infer::GenerateOptions>("fovea_generate_options"),
            (std::vector<std::string>{"generations"}));
  EXPECT_EQ(missing_fields<infer::EmbedOptions>("fovea_embed_options"), std::vector<std::string>{});
}

TEST_F(CModel, SharesWeightsWithAnotherThread) {
  const std::string text = text_of(generate(generate_options()));
  fovea_model* other = nullptr;
  ASSERT_EQ(fovea_model_share(model_, &other), FOVEA_OK);
  std::thread thread([&] {
    const fovea_generate_options options = generate_options();
    fovea_generation result = empty_generation();
    EXPECT_EQ(fovea_model_generate(other, "the ", 4, &options, &result), FOVEA_OK);
    EXPECT_EQ(text_of(result), text);
  });
  EXPECT_EQ(text_of(generate(generate_options())), text);
  thread.join();
  fovea_model_free(other);
}

TEST_F(CModel, AcceptsStructsOfOlderAndNewerVersions) {
  const std::string text = text_of(generate(generate_options()));
  // An older version ends before `max_tokens`, whose default is 256.
  fovea_generate_options older = generate_options();
  older.size = offsetof(fovea_generate_options, max_tokens);
  std::memset(reinterpret_cast<char*>(&older) + older.size, 0xff, sizeof older - older.size);
  fovea_generation result = empty_generation();
  result.size = offsetof(fovea_generation, finish);
  result.finish = 77;
  ASSERT_EQ(fovea_model_generate(model_, "the ", 4, &older, &result), FOVEA_OK)
      << fovea_model_error(model_);
  EXPECT_EQ(result.id_count, 256u);
  EXPECT_EQ(result.finish, 77);  // is not written
  EXPECT_EQ(text_of(result).substr(0, text.size()), text);

  struct Newer {
    fovea_generate_options options;
    int64_t field;
  } newer;
  ASSERT_EQ(fovea_generate_options_init(&newer.options, sizeof newer, nullptr), FOVEA_OK);
  EXPECT_EQ(newer.options.size, sizeof newer);
  EXPECT_EQ(newer.field, 0);
  newer.options.max_tokens = 30;
  EXPECT_EQ(text_of(generate(newer.options)), text);
  newer.field = 1;
  refuse(newer.options, FOVEA_UNSUPPORTED, "newer version");

  newer.options.size = 0;
  refuse(newer.options, FOVEA_INVALID_ARGUMENT, "size: 0");
  newer.options.size = size_t{1} << 40;
  refuse(newer.options, FOVEA_INVALID_ARGUMENT, "size: ");
}

TEST_F(CModel, ScoresIdsLikeInCpp) {
  const std::vector<int32_t> ids = {1, 2, 3, 4, 5};
  std::vector<float> logprobs(ids.size());
  ASSERT_EQ(fovea_model_score(model_, ids.data(), ids.size(), logprobs.data()), FOVEA_OK);
  const auto expected = infer::score(model::Model::open(small_model().path()), ids);
  for (size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(logprobs[i], expected[i].logprob);
  EXPECT_EQ(fovea_model_score(model_, nullptr, 0, logprobs.data()), FOVEA_INVALID_ARGUMENT);
}

TEST_F(CModel, WritesATrace) {
  fovea_trace_options options;
  ASSERT_EQ(fovea_trace_options_init(&options, sizeof options), FOVEA_OK);
  options.text = "the cat";
  options.text_size = FOVEA_NUL_TERMINATED;
  options.gradients = 1;
  const std::string mine = small_model() / "mine.safetensors";
  const std::string theirs = small_model() / "theirs.safetensors";
  ASSERT_EQ(fovea_model_trace(model_, &options, mine.c_str()), FOVEA_OK)
      << fovea_model_error(model_);
  study::TraceOptions same;
  same.text = "the cat";
  same.gradients = true;
  same.out = theirs;
  study::trace(model::Model::open(small_model().path()), same);
  EXPECT_EQ(read_file(mine), read_file(theirs));

  options.gradients = same.gradients = 0;
  options.what = "*query*,logits";
  options.layers = "1";
  options.patch = mine.c_str();
  same.what = {"*query*", "logits"};
  same.layers = "1";
  same.patch = mine;
  const std::string patched = small_model() / "patched.safetensors";
  ASSERT_EQ(fovea_model_trace(model_, &options, patched.c_str()), FOVEA_OK)
      << fovea_model_error(model_);
  study::trace(model::Model::open(small_model().path()), same);
  EXPECT_EQ(read_file(patched), read_file(theirs));
  EXPECT_EQ(fovea_model_trace(model_, &options, nullptr), FOVEA_INVALID_ARGUMENT);
}

TEST_F(CModel, ReturnsItsSpecAsJson) {
  const char* json = nullptr;
  ASSERT_EQ(fovea_model_spec(model_, &json), FOVEA_OK);
  EXPECT_EQ(json, model::write_spec(model::Model::open(small_model().path()).spec()));
  EXPECT_EQ(fovea_model_warning(model_, 1000), nullptr);
}

TEST_F(CModel, HasATokenizerThatOutlivesIt) {
  fovea_model* other = nullptr;
  fovea_tokenizer* tokenizer = nullptr;
  ASSERT_EQ(fovea_model_share(model_, &other), FOVEA_OK);
  ASSERT_EQ(fovea_model_tokenizer(other, &tokenizer), FOVEA_OK);
  fovea_model_free(other);
  const int32_t* ids = nullptr;
  const char* text = nullptr;
  size_t count = 0, size = 0;
  ASSERT_EQ(fovea_tokenizer_encode(tokenizer, "the cat", 7, 0, &ids, &count), FOVEA_OK);
  EXPECT_EQ(count, 7u);  // characters
  ASSERT_EQ(fovea_tokenizer_decode(tokenizer, ids, count, 0, &text, &size), FOVEA_OK);
  EXPECT_EQ(std::string(text, size), "the cat");
  EXPECT_EQ(fovea_tokenizer_size(tokenizer), text::Tokenizer::open(small_model().path()).size());
  EXPECT_EQ(fovea_tokenizer_encode(tokenizer, "the", 3, 8, &ids, &count), FOVEA_INVALID_ARGUMENT);
  expect_message(fovea_tokenizer_error(tokenizer), "flags: 8");
  const int32_t wrong = 1 << 20;
  EXPECT_EQ(fovea_tokenizer_decode(tokenizer, &wrong, 1, 0, &text, &size), FOVEA_INVALID_ARGUMENT);
  fovea_tokenizer_free(tokenizer);
}

}  // namespace
}  // namespace fovea

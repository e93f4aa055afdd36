// Layers of limited reach keep only the pages that further tokens read.

#include "cache/page_pool.h"

#include <gtest/gtest.h>

#include <deque>

#include "cache/kv_cache.h"
#include "cache/prefix_cache.h"
#include "support/expect_error.h"

namespace fovea::model {
namespace {

// One layer each: all tokens, a window of 70, a window of 3 with a global token, states.
PagePool::Layout mixed() {
  const PageLayout rows{1, 4, DType::f32};
  return {.layers = {{rows, rows},
                     {rows, rows, 0, {.window = 70}},
                     {rows, rows, 0, {.window = 3, .global = 1}},
                     {{}, {}, 5, {.window = 2}}}};
}

int64_t held(const CachedText& text, size_t group) {
  return std::ranges::count_if(text.pages[group], [](int32_t page) { return page >= 0; });
}

// Advances the text as a pass over `tokens` tokens does.
void read(PagePool& pool, CachedText& text, int64_t tokens) {
  KvCache cache(pool, {{&text, tokens, 0}});
  cache.begin(1, tokens);
  cache.end();
}

// The error named the free pages of group 0 only, although another group had none.
TEST(PagePools, WithoutFreePagesNameThoseOfAllGroups) {
  PagePool pool(mixed(), {.pages = 100, .texts = 1, .step_tokens = 128});
  std::deque<CachedText> texts;
  expect_error(ErrorKind::InvalidArgument,
               {"KV cache: 0 tokens and 128 more", "of groups ", " of 100, 2 of 8"}, [&] {
                 for (int i = 0; i < 50; ++i) read(pool, texts.emplace_back(), 128);
               });
  for (CachedText& text : texts) shorten(pool, text, 0);
}

TEST(PagePools, HaveAGroupForEachReach) {
  const PagePool pool(mixed(), {.pages = 100, .texts = 2, .step_tokens = 128});
  ASSERT_EQ(pool.groups(), 4u);
  EXPECT_EQ(pool.pages(0), 100);
  EXPECT_EQ(pool.pages(1), 2 * (4 + 2) + 2);  // pages of 70 + 128 tokens, 2 more, those of a step
  EXPECT_EQ(pool.pages(2), 2 * (1 + 3 + 2) + 2);
  EXPECT_EQ(pool.pages(3), 2 * (3 + 2) + 2);
  EXPECT_EQ(mixed().layer_bytes(3), kStateSlots * 5 * 4);
  EXPECT_EQ(pool.bytes(),
            PagePool::bytes_of(mixed(), {.pages = 100, .texts = 2, .step_tokens = 128}));
  EXPECT_EQ(pool.bytes(), 100 * mixed().layer_bytes(0) + 14 * mixed().layer_bytes(1) +
                              14 * mixed().layer_bytes(2) + 12 * mixed().layer_bytes(3));
  EXPECT_EQ(pool.used_bytes(), 0);
}

TEST(PagePools, LimitNoGroupMoreThanTheFirst) {
  const PagePool pool(mixed(), {.pages = 5, .texts = 8, .step_tokens = 128});
  for (size_t group = 0; group < pool.groups(); ++group) EXPECT_EQ(pool.pages(group), 5);
  const PagePool any(mixed(), {.pages = 7});
  for (size_t group = 0; group < any.groups(); ++group) EXPECT_EQ(any.pages(group), 7);
}

TEST(PagePools, KeepAFirstGroupWithoutLayers) {
  PagePool pool({.layers = {{{}, {}, 5, {.window = 2}}}}, {.pages = 100, .texts = 1});
  ASSERT_EQ(pool.groups(), 2u);
  EXPECT_EQ(pool.pages(), 100);
  EXPECT_EQ(pool.bytes(), pool.pages(1) * kStateSlots * 5 * 4);
  CachedText text;
  while (text.length < 6000) read(pool, text, 500);
  EXPECT_EQ(pool.free_pages(), 100 - 94);
}

// The number of pages of a group of limited reach does not grow with the text.
TEST(CachedTexts, ReleaseThePagesThatNoTokenReads) {
  for (const int64_t step : {1, 5, 64, 100}) {
    const PagePool::Size size{.pages = 400, .texts = 1, .step_tokens = 128};
    PagePool pool(mixed(), size);
    CachedText text;
    while (text.length < 20'000) {
      read(pool, text, step);
      release_unread(pool, text);
      ASSERT_EQ(held(text, 0), pages_for(text.length));
      for (size_t group = 1; group < pool.groups(); ++group) {
        const Reach& reach = pool.reach(group);
        const int64_t least = reach.window + pool.layout().most_rejected();
        ASSERT_LE(held(text, group), pages_for(least) + 1 + pages_for(reach.global)) << group;
        const int64_t read_next = std::min(text.length, reach.window - 1);
        ASSERT_GE(held(text, group) * kPageTokens, read_next) << group;
        ASSERT_EQ(pool.pages(group) - pool.free_pages(group), held(text, group));
      }
      if (text.length >= kPageTokens) {
        ASSERT_GE(text.pages[2][0], 0);  // the global token
      }
    }
    shorten(pool, text, 0);
    EXPECT_EQ(pool.used_bytes(), 0);
  }
}

TEST(CachedTexts, AreShortenedToTokensThatCanBeContinued) {
  PagePool pool(mixed(), {.pages = 100, .texts = 1});
  CachedText text;
  read(pool, text, 300);
  read(pool, text, kStateSlots);  // one token and speculative ones
  shorten(pool, text, 301);
  EXPECT_EQ(text.length, 301);
  read(pool, text, 1);
  EXPECT_EQ(text.shortest, 301);  // the states before it were overwritten
  shorten(pool, text, 301);
  EXPECT_EQ(text.length, 301);
  shorten(pool, text, 300);
  EXPECT_EQ(text.length, 0);
  EXPECT_EQ(pool.used_bytes(), 0);

  PagePool all({.layers = {mixed().layers[0]}}, {.pages = 100});
  read(all, text, 300);
  shorten(all, text, 7);  // without layers of limited reach, any number of tokens
  EXPECT_EQ(text.length, 7);
  EXPECT_EQ(all.free_pages(), 99);
}

TEST(CachedTexts, CopyTheLastPageOfEachGroup) {
  PagePool pool(mixed(), {.pages = 100, .texts = 2});
  CachedText text;
  read(pool, text, 300);
  CachedText other = forked(pool, text);
  read(pool, other, 1);
  for (size_t group = 0; group < pool.groups(); ++group) {
    EXPECT_NE(text.pages[group].back(), other.pages[group].back());
    EXPECT_EQ(pool.users(group, text.pages[group].back()), 1);
  }
  EXPECT_EQ(pool.users(0, other.pages[0][3]), 2);
  EXPECT_EQ(other.pages[3][3], -1);  // only the first text can return to it
  EXPECT_EQ(pool.users(3, text.pages[3][3]), 1);
  shorten(pool, text, 0);
  shorten(pool, other, 0);
  EXPECT_EQ(pool.used_bytes(), 0);
}

// Only tokens that the text has are copied: beams fork after each token, and most of a page is
// free.
TEST(PagePools, CopyTheFirstTokensOfAPage) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::i8}) {
    const PageLayout keys{3, 7, dtype}, values{3, 5, dtype};
    const PagePool pool({dtype, {{keys, values}, {{}, {}, 5}, {keys, {}}}}, {.pages = 2});
    std::vector<float> numbers(static_cast<size_t>(kPageTokens * 3 * 7));
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i % 97) - 40;
    const In x{numbers.data(), DType::f32};
    for (const int64_t layer : {0, 2}) {
      put_in_page(keys, PagePart::keys, pool.keys(layer, 0).data, 0, x, kPageTokens);
      if (layer == 0)
        put_in_page(values, PagePart::values, pool.values(0, 0).data, 0, x, kPageTokens);
    }
    const auto state = [&](int32_t page, int64_t token) {
      return pool.memory(1).data_as<uint8_t>() + pool.state_begin(1, page, token);
    };
    const int64_t states = kStateSlots * pool.layout().state_bytes(1);
    std::fill_n(state(0, 0), states, uint8_t{7});
    for (const int64_t tokens : {1, 2, 15, 16, 17, 63}) {
      std::fill_n(pool.memory(0).data_as<uint8_t>() + pool.page_bytes(0), pool.page_bytes(0),
                  uint8_t{0});
      pool.copy(0, 0, 1, tokens);
      const auto expect_copied = [&](const PageLayout& layout, PagePart part, Out from, Out to) {
        double expected[7], got[7];
        for (int64_t i = 0; i < tokens * layout.heads; ++i) {
          get_from_page(layout, part, from.data, i % tokens, i / tokens, expected);
          get_from_page(layout, part, to.data, i % tokens, i / tokens, got);
          EXPECT_TRUE(std::equal(got, got + layout.width, expected)) << i << " of " << tokens;
        }
      };
      expect_copied(keys, PagePart::keys, pool.keys(0, 0), pool.keys(0, 1));
      expect_copied(values, PagePart::values, pool.values(0, 0), pool.values(0, 1));
      expect_copied(keys, PagePart::keys, pool.keys(2, 0), pool.keys(2, 1));
      EXPECT_TRUE(std::equal(state(1, 0), state(1, 0) + states, state(0, 0)));
    }
  }
}

TEST(KvCaches, RestoreStatesAfterRejectedTokens) {
  PagePool pool({.layers = {{{}, {}, 5, {.window = 2}}}}, {.pages = 100, .texts = 1});
  CachedText text;
  const auto advance = [&](int64_t tokens, float first) {
    KvCache cache(pool, {{&text, tokens, 0}});
    cache.begin(1, tokens);
    for (int64_t t = 0; t < tokens; ++t) {
      const Tensor state = zeros({1, 5});
      std::fill_n(state.data_as<float>(), 5, first + static_cast<float>(t));
      cache.store_state(0, 0, t, state);
    }
    cache.end();
  };
  const auto last = [&] {
    const Tensor state = zeros({1, 5});
    KvCache(pool, {{&text, 0, 0}}).load_state(0, 0, state);
    return state.data_as<float>()[4];
  };
  for (const int64_t prompt : {1, 63, 64, 65, 100, 200, 300}) {
    for (int64_t accepted = 1; accepted <= kStateSlots; ++accepted) {
      advance(prompt, 0);
      EXPECT_EQ(last(), static_cast<float>(prompt - 1));
      advance(kStateSlots, 1000);
      shorten(pool, text, prompt + accepted);
      EXPECT_EQ(text.length, prompt + accepted);
      EXPECT_EQ(last(), static_cast<float>(1000 + accepted - 1)) << prompt;
      advance(1, 2000);
      EXPECT_EQ(last(), 2000);
      shorten(pool, text, 0);
    }
  }
}

std::vector<int32_t> some_ids(int64_t count, int32_t changed_at = -1) {
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < count; ++i) ids.push_back(i == changed_at ? -1 : i);
  return ids;
}

// Reads the rest of `ids` in passes of 64 tokens, and keeps the prefix.
void read_on(PagePool& pool, PrefixCache& prefixes, CachedText& text,
             const std::vector<int32_t>& ids) {
  while (text.length < std::ssize(ids)) {
    const int64_t tokens = std::min(kPageTokens, std::ssize(ids) - text.length);
    ASSERT_TRUE(prefixes.make_room(text, text.length + tokens));
    read(pool, text, tokens);
    prefixes.keep(text, ids, text.length);
    release_unread(pool, text);
  }
}

// Returns the number of cached tokens of `ids`, and continues the text.
int64_t cached(PagePool& pool, PrefixCache& prefixes, const std::vector<int32_t>& ids) {
  CachedText text;
  prefixes.begin(text, ids);
  const int64_t length = text.length;
  for (size_t group = 0; group < text.pages.size(); ++group)
    for (size_t page = 0; page < text.pages[group].size(); ++page)
      EXPECT_EQ(text.pages[group][page] >= 0,
                pool.reach(group).reads(static_cast<int64_t>(page), length));
  read_on(pool, prefixes, text, ids);
  shorten(pool, text, 0);
  return length;
}

TEST(PrefixCaches, ContinueAfterAnyFullPage) {
  PagePool pool(mixed(), {.pages = 100});
  PrefixCache prefixes(pool);
  EXPECT_EQ(cached(pool, prefixes, some_ids(640)), 0);
  EXPECT_EQ(cached(pool, prefixes, some_ids(640)), 576);
  EXPECT_EQ(cached(pool, prefixes, some_ids(640, 200)), 192);
  EXPECT_EQ(cached(pool, prefixes, some_ids(640, 63)), 0);
  for (size_t group = 0; group < pool.groups(); ++group)
    EXPECT_EQ(pool.pages(group) - pool.free_pages(group), 10 + 7 + 10);
}

TEST(PrefixCaches, UseTheLongestPrefixWhosePagesArePresent) {
  const PagePool::Size size{.pages = 20, .texts = 1, .step_tokens = 64};
  PagePool pool({.layers = {mixed().layers[0], mixed().layers[1]}}, size);
  ASSERT_EQ(pool.pages(1), 4 + 2 + 1);
  PrefixCache prefixes(pool);
  EXPECT_EQ(cached(pool, prefixes, some_ids(640)), 0);
  EXPECT_EQ(prefixes.pages(0), 10);
  EXPECT_EQ(prefixes.pages(1), 7);  // pages 3 to 9
  EXPECT_EQ(cached(pool, prefixes, some_ids(640)), 576);
  EXPECT_EQ(cached(pool, prefixes, some_ids(200)), 0);  // pages 1 and 2 are missing
  EXPECT_EQ(prefixes.pages(0), 10);
  EXPECT_EQ(prefixes.pages(1), 6);  // pages 0 to 2 and 7 to 9
  EXPECT_EQ(cached(pool, prefixes, some_ids(200)), 192);
  EXPECT_EQ(cached(pool, prefixes, some_ids(250)), 192);
}

TEST(PrefixCaches, KeepKindsApart) {
  PagePool pool(mixed(), {.pages = 100});
  PrefixCache prefixes(pool, 2);
  const std::vector<int32_t> ids = some_ids(320);
  for (const uint64_t kind : {0, 1}) {
    CachedText text;
    ASSERT_TRUE(prefixes.make_room(text, 320));
    read(pool, text, 320);
    prefixes.keep(text, ids, text.length, kind);
    shorten(pool, text, 0);
    EXPECT_EQ(prefixes.pages(0), 5 + 5 * static_cast<int64_t>(kind));
    for (const uint64_t other : {0, 1}) {
      CachedText again;
      prefixes.begin(again, ids, other);
      EXPECT_EQ(again.length, other <= kind ? 256 : 0);
      shorten(pool, again, 0);
    }
  }
}

// Equal tokens stand for different images; the pages before an image are shared.
TEST(PrefixCaches, KeepContentsOfPagesApart) {
  PagePool pool(mixed(), {.pages = 100});
  PrefixCache prefixes(pool);
  const std::vector<int32_t> ids = some_ids(320);
  const PageContents cat = {{1, "cat"}, {2, "cat"}}, dog = {{1, "dog"}, {2, "dog"}};
  const auto found = [&](const PageContents& contents) {
    CachedText text;
    prefixes.begin(text, ids, 0, contents);
    const int64_t length = text.length;
    shorten(pool, text, 0);
    return length;
  };
  CachedText text;
  ASSERT_TRUE(prefixes.make_room(text, 320));
  read(pool, text, 320);
  prefixes.keep(text, ids, text.length, 0, cat);
  shorten(pool, text, 0);
  EXPECT_EQ(found(cat), 256);
  EXPECT_EQ(found(dog), 64);
  EXPECT_EQ(found({}), 64);
  EXPECT_EQ(found({{1, "cat"}}), 128);
  EXPECT_EQ(std::ssize(prefixes.contents(ids).tokens), 64);  // a file has no images
}

// The pages that a file keeps for a later process.
TEST(PrefixCaches, RestoreTheirContents) {
  const std::vector<int32_t> ids = some_ids(320);
  PagePool pool(mixed(), {.pages = 100});
  PrefixCache prefixes(pool);
  cached(pool, prefixes, ids);
  const auto value = [](size_t group, size_t page) { return static_cast<int>(16 * group + page); };
  CachedText text;
  prefixes.begin(text, ids);
  ASSERT_EQ(text.length, 256);
  for (size_t group = 0; group < pool.groups(); ++group)
    for (size_t page = 0; page < text.pages[group].size(); ++page) {
      const Tensor bytes = full({1, pool.page_bytes(group)}, value(group, page), DType::u8);
      if (text.pages[group][page] >= 0) pool.write_page(group, text.pages[group][page], bytes, 0);
    }
  shorten(pool, text, 0);
  const PrefixCache::Contents contents = prefixes.contents(some_ids(500, 300));
  EXPECT_EQ(contents.tokens, some_ids(256));  // token 300 differs
  EXPECT_EQ(prefixes.contents(ids).tokens, ids);

  PagePool other(mixed(), {.pages = 6});
  PrefixCache restored(other);
  restored.restore(contents, 4);
  restored.begin(text, ids);
  ASSERT_EQ(text.length, 256);
  for (size_t group = 0; group < other.groups(); ++group)
    for (size_t page = 0; page < text.pages[group].size(); ++page) {
      if (text.pages[group][page] < 0) continue;
      const Tensor bytes = zeros({1, other.page_bytes(group)}, DType::u8);
      other.read_page(group, text.pages[group][page], bytes, 0);
      EXPECT_EQ(int{bytes.data_as<uint8_t>()[0]}, value(group, page)) << group << " " << page;
    }
  read_on(other, restored, text, ids);
  shorten(other, text, 0);
}

TEST(PrefixCaches, StoreEqualPagesOnce) {
  PagePool pool(mixed(), {.pages = 12});
  PrefixCache prefixes(pool);
  const std::vector<int32_t> ids = some_ids(768);
  CachedText first, second;  // both are read before the cache has a page of them
  for (CachedText* text : {&first, &second}) {
    ASSERT_TRUE(prefixes.make_room(*text, 320));
    read(pool, *text, 320);
  }
  prefixes.keep(first, ids, first.length);
  prefixes.keep(second, ids, second.length);
  for (size_t group = 0; group < pool.groups(); ++group)
    EXPECT_EQ(pool.pages(group) - pool.free_pages(group), 5) << group;
  shorten(pool, first, 0);
  read_on(pool, prefixes, second, ids);  // needs all pages of the pool
  EXPECT_EQ(second.length, 768);
  shorten(pool, second, 0);
}

TEST(PrefixCaches, GiveEveryPageBack) {
  PagePool pool(mixed(), {.pages = 30, .texts = 2, .step_tokens = 64});
  PrefixCache prefixes(pool);
  for (int32_t i = 0; i < 20; ++i) {
    std::vector<int32_t> ids(static_cast<size_t>(100 + 61 * i % 500), i % 7);
    ids[static_cast<size_t>(i * 3)] = 9;
    cached(pool, prefixes, ids);
  }
  CachedText text;  // needs all pages of group 0
  read_on(pool, prefixes, text, std::vector<int32_t>(30 * kPageTokens, 5));
  EXPECT_EQ(prefixes.pages(0), 30);
  EXPECT_EQ(pool.free_pages(), 0);
  shorten(pool, text, 0);
  CachedText other;
  while (other.length < 30 * kPageTokens) {
    ASSERT_TRUE(prefixes.make_room(other, other.length + kPageTokens));
    read(pool, other, kPageTokens);
  }
  EXPECT_EQ(prefixes.pages(0), 0);
  shorten(pool, other, 0);
  EXPECT_EQ(pool.used_bytes(), 0);
}

}  // namespace
}  // namespace fovea::model

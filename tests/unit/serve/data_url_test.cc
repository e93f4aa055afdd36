#include "serve/request/data_url.h"

#include <gtest/gtest.h>

namespace fovea::serve {
namespace {

// Only the first form was read, though clients send all of them.
TEST(DataUrl, ReadsTheFormsThatClientsSend) {
  const std::string bytes = "\xfb\xff?>";
  for (const char* url :
       {"data:image/png;base64,+/8/Pg==", "DATA:image/png;BASE64,+/8/Pg==",
        "data:image/png;charset=utf-8;base64,+/8/Pg==", "data:;base64,+/8/Pg",
        "data:image/png;base64,-_8_Pg==", "data:image/png;base64,%2B%2f8/Pg%3D%3D",
        "data:image/png;base64, +/8/\r\nPg==", "data:image/png,%fb%FF?>"}) {
    EXPECT_TRUE(is_data_url(url)) << url;
    EXPECT_EQ(data_url_bytes(url), bytes) << url;
  }
}

TEST(DataUrl, RefusesMalformedUrls) {
  EXPECT_FALSE(is_data_url("http://a/b,c"));
  for (const char* url : {"data:image/png;base64", "data:image/png;base64,+", "data:a,%f",
                          "data:a;base64,Pg=", "data:a;base64,P!==", "http://a/b,c"})
    EXPECT_EQ(data_url_bytes(url), std::nullopt) << url;
}

}  // namespace
}  // namespace fovea::serve

// The input is JSON: an accepted value is the same after writing and reading, and the event reader
// accepts every text that the tree reader accepts (it also allows duplicate keys).

#include "base/json.h"
#include "fuzz.h"

namespace fovea {
namespace {

class Events : public JsonReader {
 protected:
  void scalar(nlohmann::json&&) override {}
  void begin_object() override { ++depth_; }
  void key(std::string&&) override { require(depth_ > 0, "a key is inside an object"); }
  void end_object() override { --depth_; }
  void begin_array() override { ++depth_; }
  void end_array() override { require(--depth_ >= 0, "an array ends only after it has begun"); }

 private:
  int depth_ = 0;
};

}  // namespace
}  // namespace fovea

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fovea;
  const std::string_view text = text_of(data, size);
  nlohmann::json value;
  const bool whole = succeeds([&] { value = parse_json(text, "fuzz.json"); });
  const bool parts = succeeds([&] { Events().read(text, "fuzz.json"); });
  require(!whole || parts, "the event reader accepts a text that the tree reader accepts");
  if (whole)
    require(parse_json(pretty(value), "fuzz.json") == value,
            "a value is the same after writing and reading");
  return 0;
}

// JSON: what is accepted is written and read again as the same value, and the reader of parts takes
// the same texts as the one of trees (keys may come twice there).

#include "base/json.h"
#include "fuzz.h"

namespace fovea {
namespace {

class Events : public JsonReader {
 protected:
  void scalar(nlohmann::json&&) override {}
  void begin_object() override { ++depth_; }
  void key(std::string&&) override { require(depth_ > 0, "a key is in an object"); }
  void end_object() override { --depth_; }
  void begin_array() override { ++depth_; }
  void end_array() override { require(--depth_ >= 0, "what ends has begun"); }

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
  require(!whole || parts, "what is read as a tree is read in parts");
  if (whole) require(parse_json(pretty(value), "fuzz.json") == value, "JSON survives writing");
  return 0;
}

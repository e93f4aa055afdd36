// The input is a file of Apache Parquet: each row of an accepted file is a JSON object.

#include "records/parquet.h"
#include "base/json.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fovea;
  constexpr int64_t kMostRows = 1000;  // levels of repeated values take few bytes
  succeeds([&] {
    text::each_parquet_record(
        text_of(data, size), "fuzz.parquet",
        [](const std::string& record, const std::string&) {
          require(nlohmann::json::parse(record, nullptr, false).is_object(), "a row is an object");
        },
        kMostRows);
  });
  return 0;
}

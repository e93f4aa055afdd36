#pragma once

#include <cstdint>
#include <string>

namespace fovea {

// Returns the memory that this process may still use: the least of the machine's available memory
// and what the limits of the cgroup and of the address space leave.
uint64_t available_memory();  // bytes
uint64_t resident_memory();   // resident memory of this process, in bytes
uint64_t private_memory();    // resident memory that is not mapped from files, in bytes
uint64_t resident_peak();     // peak resident memory of this process, in bytes
uint64_t total_memory();      // memory of the machine, in bytes
std::string cpu_name();

}  // namespace fovea

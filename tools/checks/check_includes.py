#!/usr/bin/env python3
"""Checks that each C++ file includes the headers of the standard library whose names it uses, because which of them another header
brings along differs between versions of the library, and a unity build hides what is missing. A header may also be included by the
file's own header (foo.h of foo.cc) or by a header of fovea that the file includes. Prints violations; exits with 1 if there are any.
"""
import functools
import re
import sys

from check_layers import ROOT, cpp_files

NAMES = {
    "algorithm": """adjacent_find all_of any_of binary_search clamp copy copy_backward copy_if copy_n count count_if equal equal_range fill
        fill_n find find_end find_first_of find_if find_if_not for_each for_each_n generate generate_n includes inplace_merge is_heap
        is_partitioned is_permutation is_sorted is_sorted_until lexicographical_compare lower_bound make_heap max max_element merge min
        min_element minmax minmax_element mismatch move_backward next_permutation none_of nth_element partial_sort partial_sort_copy
        partition partition_copy partition_point pop_heap prev_permutation push_heap remove_copy remove_copy_if remove_if replace
        replace_copy replace_copy_if replace_if reverse reverse_copy rotate rotate_copy search search_n set_difference set_intersection
        set_symmetric_difference set_union sort sort_heap stable_partition stable_sort swap_ranges transform unique unique_copy
        upper_bound""",
    "any": "any any_cast make_any bad_any_cast",
    "array": "array to_array",
    "atomic": """atomic atomic_ref atomic_flag atomic_bool atomic_int atomic_thread_fence atomic_signal_fence memory_order
        memory_order_acquire memory_order_release memory_order_relaxed memory_order_seq_cst memory_order_acq_rel""",
    "barrier": "barrier",
    "bit": """bit_cast bit_ceil bit_floor bit_width countl_one countl_zero countr_one countr_zero has_single_bit popcount endian rotl
        rotr""",
    "bitset": "bitset",
    "charconv": "from_chars to_chars chars_format from_chars_result to_chars_result",
    "chrono": "chrono",
    "cmath": """abs fabs sqrt floor ceil round trunc lround llround rint nearbyint lrint llrint fmod remainder isnan isinf isfinite
        signbit copysign ldexp frexp ilogb logb nextafter fma sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh exp exp2
        expm1 log log2 log10 log1p pow cbrt hypot erf erfc lgamma tgamma""",
    "complex": "complex",
    "condition_variable": "condition_variable condition_variable_any cv_status",
    "cstdio": """FILE fopen fclose fread fwrite fputs fputc fgetc fgets fflush fseek ftell printf fprintf snprintf sscanf fputc puts
        putchar perror setvbuf rename tmpfile""",
    "cstdlib": "getenv strtol strtoll strtoull strtod strtof exit _Exit abort atexit quick_exit system malloc free calloc aligned_alloc",
    "cstring": """memcpy memmove memset memcmp memchr strlen strcmp strncmp strchr strrchr strstr strerror strcpy strncpy""",
    "ctime": "time localtime gmtime strftime mktime time_t tm clock",
    "deque": "deque",
    "exception": "exception exception_ptr current_exception rethrow_exception make_exception_ptr uncaught_exceptions terminate",
    "filesystem": "filesystem",
    "fstream": "ifstream ofstream fstream filebuf",
    "functional": """function bind ref cref reference_wrapper hash less greater less_equal greater_equal equal_to not_equal_to plus minus
        multiplies divides modulus logical_and logical_or invoke not_fn identity""",
    "future": "future promise packaged_task async shared_future",
    "initializer_list": "initializer_list",
    "iomanip": "setw setprecision setfill quoted put_time get_time",
    "iostream": "cout cerr cin clog",
    "iterator": """back_inserter back_insert_iterator front_inserter inserter make_move_iterator move_iterator make_reverse_iterator
        reverse_iterator istream_iterator ostream_iterator istreambuf_iterator ostreambuf_iterator advance distance next prev
        input_iterator_tag forward_iterator_tag random_access_iterator_tag iterator_traits""",
    "latch": "latch",
    "limits": "numeric_limits",
    "list": "list",
    "locale": "locale",
    "map": "map multimap",
    "memory": """unique_ptr shared_ptr weak_ptr make_unique make_shared make_unique_for_overwrite enable_shared_from_this addressof
        default_delete static_pointer_cast dynamic_pointer_cast construct_at destroy_at assume_aligned owner_less allocator
        allocator_traits""",
    "mutex": "mutex lock_guard unique_lock scoped_lock once_flag call_once recursive_mutex timed_mutex try_to_lock defer_lock adopt_lock",
    "new": "bad_alloc align_val_t nothrow launder hardware_destructive_interference_size",
    "numbers": "numbers",
    "numeric": """accumulate iota inner_product partial_sum inclusive_scan exclusive_scan reduce transform_reduce adjacent_difference gcd
        lcm midpoint""",
    "optional": "optional nullopt nullopt_t make_optional",
    "queue": "queue priority_queue",
    "random": "mt19937 mt19937_64 random_device uniform_int_distribution uniform_real_distribution normal_distribution",
    "ratio": "ratio milli micro nano",
    "regex": "regex smatch cmatch regex_match regex_search regex_replace sregex_iterator regex_error",
    "semaphore": "counting_semaphore binary_semaphore",
    "set": "set multiset",
    "shared_mutex": "shared_mutex shared_lock shared_timed_mutex",
    "source_location": "source_location",
    "span": "span as_bytes as_writable_bytes dynamic_extent",
    "sstream": "stringstream istringstream ostringstream stringbuf",
    "stack": "stack",
    "stdexcept": """runtime_error logic_error invalid_argument out_of_range length_error domain_error range_error overflow_error
        underflow_error""",
    "stop_token": "stop_token stop_source stop_callback",
    "string": "string to_string stoi stol stoll stoul stoull stof stod u32string u16string u8string wstring getline basic_string",
    "string_view": "string_view u32string_view u16string_view u8string_view wstring_view basic_string_view",
    "system_error": "system_error error_code error_condition errc generic_category system_category make_error_code",
    "thread": "thread jthread this_thread",
    "tuple": "tuple tie make_tuple forward_as_tuple apply tuple_size tuple_element ignore tuple_cat",
    "type_traits": """is_same is_same_v is_integral_v is_floating_point_v is_arithmetic_v is_enum_v is_base_of_v is_convertible_v
        is_invocable_v is_invocable_r_v is_trivially_copyable_v is_void_v is_const_v is_pointer_v is_class_v is_signed_v is_unsigned_v
        is_constructible_v is_copy_constructible_v is_move_constructible_v is_nothrow_move_constructible_v is_default_constructible_v
        enable_if_t enable_if conditional_t conditional decay_t remove_cvref_t remove_reference_t remove_const_t remove_pointer_t
        underlying_type_t make_unsigned_t make_signed_t invoke_result_t true_type false_type integral_constant void_t common_type_t
        type_identity_t type_identity add_const_t is_member_object_pointer_v is_aggregate_v""",
    "typeinfo": "type_info bad_cast",
    "unordered_map": "unordered_map unordered_multimap",
    "unordered_set": "unordered_set unordered_multiset",
    "utility": "move forward swap exchange pair make_pair as_const declval index_sequence make_index_sequence in_place piecewise_construct",
    "variant": "variant visit get_if holds_alternative monostate bad_variant_access",
    "vector": "vector",
}
HEADER_OF = {name: header for header, names in NAMES.items() for name in names.split()}
# Headers that declare a name as well: by their definition in the standard, or since no library can define them without it.
OWNERS = "algorithm array deque functional future list map memory optional queue set span string tuple unordered_map unordered_set variant vector"
ALSO = {"move": OWNERS, "forward": OWNERS, "swap": OWNERS, "pair": "map unordered_map algorithm", "make_pair": "map unordered_map",
        "in_place": "optional variant", "initializer_list": OWNERS, "errc": "charconv", "error_code": "filesystem", "less": "map set", "abs": "cstdlib",
        "hash": "string string_view memory optional variant", "terminate": "thread", "nano": "chrono", "micro": "chrono", "milli": "chrono",
        "exception": "stdexcept", "identity": "algorithm"}
ALSO = {name: set(headers.split()) for name, headers in ALSO.items()}
FIXED = re.compile(r"\b(?:u?int(?:8|16|32|64|ptr|max)_t|U?INT(?:8|16|32|64)_(?:MAX|MIN|C))\b")
STD = re.compile(r"\bstd::(?:ranges::)?(\w+)")
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:<([^>]+)>|"([^"]+)")', re.MULTILINE)
LITERAL = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'(?!\w)', re.DOTALL)


@functools.cache
def text_of(path):
    return path.read_text(encoding="utf-8")


@functools.cache
def found(header, folder):
    """The file of an include, or None for one of another project."""
    for base in (folder, ROOT / "include", *sorted((ROOT / "src").glob("*")), *(ROOT / top for top in ("contrib", "apps", "tests", "bench"))):
        path = (base / header).resolve()
        if path.is_file() and path.is_relative_to(ROOT):
            return path
    return None


@functools.cache
def included(path):
    """The headers that a file includes directly: those of the library by name, those of fovea as files."""
    names, files = set(), set()
    for angle, quoted in INCLUDE.findall(text_of(path)):
        file = found(angle or quoted, path.parent)
        if file:
            files.add(file)
        else:
            names.add(angle or quoted)
    return names, files


def provided(path, seen):
    """The headers of the library that a file includes itself or through headers of fovea."""
    seen.add(path)
    names, files = included(path)
    return names.union(*(provided(file, seen) for file in files if file not in seen))


def missing(path):
    """Yields the line of the first use of each missing header, the name that is used and the header."""
    have = provided(path, set())
    code = LITERAL.sub(lambda literal: re.sub(r"[^\n]", " ", literal[0]), text_of(path))
    uses = [(match.start(), match[1], HEADER_OF.get(match[1])) for match in STD.finditer(code)]
    if "stdint.h" in have:  # in headers for C
        have.add("cstdint")
    uses += [(match.start(), match[0], "cstdint") for match in FIXED.finditer(code)]
    for start, name, header in sorted(uses):
        if header and header not in have and have.isdisjoint(ALSO.get(name, ())):
            have.add(header)
            yield code.count("\n", 0, start) + 1, name, header


def main():
    count = 0
    for path in cpp_files():
        for line, name, header in missing(path):
            count += 1
            print(f"{path.relative_to(ROOT)}:{line}: uses {name}; expected #include <{header}>")
    print(f"check_includes: {count} problem{'s' if count != 1 else ''}")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())

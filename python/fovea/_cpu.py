"""Checks the CPU before the module is loaded, whose first instructions it may not have."""

from __future__ import annotations

# What x86-64-v3 adds, by the names of Linux.
_NEEDED = ("avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe")


def missing(cpuinfo: str) -> list[str]:
    """Returns the features that the CPU in a /proc/cpuinfo lacks; none if it does not tell."""
    for line in cpuinfo.splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "flags":
            flags = set(value.split())
            return [feature for feature in _NEEDED if feature not in flags]
    return []


def check() -> None:
    """Raises ImportError if the CPU lacks a feature."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            lacks = missing(file.read(8192))
    except OSError:
        return
    if lacks:
        raise ImportError(f"this CPU: missing {', '.join(lacks)}; expected an x86-64-v3 CPU")

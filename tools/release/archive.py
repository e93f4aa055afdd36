#!/usr/bin/env python3
"""archive.py BUILD OUT [MACHINE]: packs the program of the build folder BUILD, of the preset portable, into the folder OUT:

  fovea-VERSION-linux-x86_64.tar.gz   the program with its libraries and their licences; runs from any folder, on any system with glibc
                                      2.34 and the libstdc++ of g++ 11
  fovea-VERSION-rootfs.tar            the same with the C and C++ libraries: the file system of a container
  fovea-VERSION.spdx.json             what both contain

For the machine aarch64, of the preset aarch64-portable, it makes fovea-VERSION-linux-aarch64.tar.gz and its .spdx.json.

SOURCE_DATE_EPOCH is the time of all files; the same sources and packages of the system give the same bytes in any folder."""
import gzip
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

import elf
import sbom

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Libraries that are compiled into the program from headers: a header of each.
HEADERS = ["CLI/CLI.hpp", "boost/asio.hpp", "fmt/core.h", "hnswlib/hnswlib.h", "hwy/highway.h", "nlohmann/json.hpp"]
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}  # Debian's names of machines
LIBRARIES = "/usr/lib/x86_64-linux-gnu"
LOADER = "ld-linux-x86-64.so.2"
LICENCES = "share/doc/fovea/licences"
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
USER = 65532  # of containers: an unprivileged one by convention


class Refused(Exception):
    pass


def output_of(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise Refused(f"{' '.join(map(str, command))}: {done.stderr.strip()}; expected success")
    return done.stdout


def package_of(path):
    """Returns the name of the Debian package of a file of the system."""
    path = os.path.realpath(path)
    for spelled in (path, path.removeprefix("/usr")):  # the database has the paths from before the merge of /lib and /usr/lib
        done = subprocess.run(["dpkg-query", "-S", spelled], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
        if done.returncode == 0:
            return done.stdout.split(":")[0]
    raise Refused(f"{path}: belongs to no package; expected a library of the system")


def closure(files, known, folder=LIBRARIES):
    """Returns {name: path} of the libraries of the system, in the folder, that the files need, except the known ones."""
    found, todo = {}, [*files]
    while todo:
        for name in elf.needed(todo.pop()):
            if name in known or name in found:
                continue
            path = f"{folder}/{name}"
            if not os.path.exists(path):
                raise Refused(f"{path}: is missing; expected a library that the program needs")
            found[name] = path
            todo.append(path)
    return found


def add_licences(folder, packages):
    """Copies the terms of packages, and the common texts to which they refer."""
    folder.mkdir(parents=True, exist_ok=True)
    for package in packages:
        terms = pathlib.Path("/usr/share/doc") / package / "copyright"
        shutil.copyfile(terms, folder / package)
        for common in re.findall(r"/usr/share/common-licenses/([A-Z][A-Za-z0-9.-]*[A-Za-z0-9])", terms.read_text(errors="replace")):
            shutil.copyfile(f"/usr/share/common-licenses/{common}", folder / common)


def write_tar(file, top, name):
    """Writes a folder with sorted names, one time, and no user of this machine."""
    time = int(os.environ["SOURCE_DATE_EPOCH"])
    with tarfile.open(fileobj=file, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path in sorted([top, *top.rglob("*")]):
            inner = os.path.normpath(os.path.join(name, path.relative_to(top)))
            entry = tar.gettarinfo(path, inner)
            entry.uid = entry.gid = USER if inner == "var/lib/fovea" else 0
            entry.uname = entry.gname = ""
            entry.mtime = time
            executable = path.is_dir() or path.stat().st_mode & 0o100
            entry.mode = 0o1777 if inner == "tmp" else 0o777 if path.is_symlink() else 0o755 if executable else 0o644
            with open(path, "rb") if entry.isreg() else open(os.devnull, "rb") as content:
                tar.addfile(entry, content)


def stage_archive(build, stage, machine):
    """Installs the program with the libraries that not all systems have. Returns the packages of the libraries."""
    output_of("cmake", "--install", build, "--prefix", stage, "--component", "program", "--strip")
    libraries = closure([stage / "bin/fovea"], elf.SYSTEM, f"/usr/lib/{machine}-linux-gnu")
    for name, path in libraries.items():
        shutil.copyfile(path, stage / "lib/fovea" / name)
    packages = {package_of(path) for path in (*libraries.values(), *(f"/usr/include/{header}" for header in HEADERS))}
    add_licences(stage / LICENCES, packages)
    for name in ("LICENSE", "README.md", "CHANGELOG.md"):
        shutil.copyfile(ROOT / name, stage / "share/doc/fovea" / name)
    return packages


def stage_root(archive, stage):
    """Makes the root of a container from the staged archive. Returns the packages of the further libraries."""
    shutil.copytree(archive, stage / "usr", symlinks=True)
    shutil.move(stage / "usr/etc", stage / "etc")
    (stage / "usr/lib/fovea/fovea_mpi.so").unlink(missing_ok=True)  # a container has no mpirun
    folder = stage / LIBRARIES[1:]
    for each in (folder, stage / "var/lib/fovea", *(stage / name for name in ("dev", "proc", "sys", "tmp"))):
        each.mkdir(parents=True)
    for short in ("lib", "lib64"):
        (stage / short).symlink_to("usr/" + short)
    (stage / "usr/lib64").mkdir()
    shutil.copyfile(f"{LIBRARIES}/{LOADER}", stage / "usr/lib64" / LOADER)
    (stage / "usr/lib64" / LOADER).chmod(0o755)
    files = [path for path in (stage / "usr").rglob("*") if elf.is_elf(path)]
    libraries = closure(files, {path.name for path in files})
    for name, path in libraries.items():
        shutil.copyfile(path, folder / name)
    certificates = stage / CERTIFICATES[1:]
    certificates.parent.mkdir(parents=True)
    shutil.copyfile(CERTIFICATES, certificates)
    (stage / "etc/passwd").write_text(f"root:x:0:0::/:/\nfovea:x:{USER}:{USER}::/var/lib/fovea:/\n")
    (stage / "etc/group").write_text(f"root:x:0:\nfovea:x:{USER}:\n")
    packages = {package_of(path) for path in (*libraries.values(), f"{LIBRARIES}/{LOADER}")} | {"ca-certificates"}
    add_licences(stage / "usr" / LICENCES, packages)
    return packages


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    build, out = map(pathlib.Path, sys.argv[1:3])
    machine = sys.argv[3] if len(sys.argv) > 3 else "x86_64"
    version = re.search(r"project\(fovea VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
    name = f"fovea-{version}-linux-{machine}"
    shutil.rmtree(out, ignore_errors=True)
    archive, root = out / "stage" / name, out / "stage/rootfs"
    archive.mkdir(parents=True)
    packages = stage_archive(build, archive, machine)
    found = list(elf.problems(archive))
    if found:
        raise Refused("\n".join(found))
    with open(out / f"{name}.tar.gz", "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        write_tar(packed, archive, name)
    contents, described = {f"{name}.tar.gz": packages}, name
    if machine == "x86_64":
        further = stage_root(archive, root)
        described = f"fovea-{version}"
        rootfs = f"{described}-rootfs.tar"
        with open(out / rootfs, "wb") as file:
            write_tar(file, root, "")
        contents[rootfs] = packages | further
    sbom.write(out / f"{described}.spdx.json", version, contents, ARCHITECTURES[machine])
    shutil.rmtree(out / "stage")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Refused as refused:
        sys.exit(f"archive: {refused}")

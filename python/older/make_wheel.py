"""Makes the wheel for Python 3.10 and 3.11, with libfovea.so inside; auditwheel then adds the libraries that it needs.

Usage: make_wheel.py VERSION LIBRARY FOLDER"""

import base64
import hashlib
import pathlib
import sys
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
TAG = "py3-none-linux_x86_64"


def main() -> None:
    version, library, folder = sys.argv[1:]
    files = {
        f"fovea/{path.name}": path.read_bytes() for path in sorted((HERE / "fovea").glob("*.py"))
    }
    files["fovea/libfovea.so.0"] = pathlib.Path(library).read_bytes()
    info = f"fovea_lm-{version}.dist-info"
    files[f"{info}/METADATA"] = (
        "Metadata-Version: 2.1\n"
        f"Name: fovea-lm\nVersion: {version}\n"
        "Summary: Trains, fine-tunes, runs, serves and inspects Transformers on CPUs\n"
        "Requires-Python: >=3.10,<3.12\nRequires-Dist: numpy>=1.23\n"
        "Description-Content-Type: text/markdown\n\n"
    ).encode() + (HERE.parent / "README.md").read_bytes()
    files[f"{info}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: make_wheel.py\nRoot-Is-Purelib: false\nTag: {TAG}\n"
    ).encode()
    record = "".join(f"{name},sha256={digest(data)},{len(data)}\n" for name, data in files.items())
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    path = pathlib.Path(folder) / f"fovea_lm-{version}-{TAG}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name)  # without the time
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)


def digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


main()

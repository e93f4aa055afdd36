"""Writes which libraries the archives of a release contain, as SPDX 2.3."""
import json
import os
import re
import subprocess
import time

# The licences of the libraries, by their source packages, without the version at the end of some: of the code that is in the archives,
# not of its tests and tools.
LICENCES = {
    "boost": "BSL-1.0",
    "brotli": "MIT",
    "ca-certificates": "MPL-2.0",
    "cli11": "BSD-3-Clause",
    "curl": "curl",
    "cyrus-sasl": "BSD-3-Clause-Attribution",
    "e2fsprogs": "MIT",
    "flac": "BSD-3-Clause",
    "fmtlib": "MIT",
    "gcc": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "glibc": "LGPL-2.1-or-later",
    "gmp": "LGPL-3.0-or-later OR GPL-2.0-or-later",
    "gnutls": "LGPL-2.1-or-later",
    "highway": "Apache-2.0",
    "hnswlib": "Apache-2.0",
    "keyutils": "LGPL-2.0-or-later",
    "krb5": "MIT",
    "lame": "LGPL-2.0-or-later",
    "libbsd": "BSD-3-Clause AND BSD-2-Clause AND ISC AND MIT",
    "libedit": "BSD-3-Clause",
    "libffi": "MIT",
    "libidn2": "LGPL-3.0-or-later OR GPL-2.0-or-later",
    "libjpeg-turbo": "IJG AND BSD-3-Clause AND Zlib",
    "libmd": "BSD-3-Clause AND BSD-2-Clause AND ISC AND Beerware",
    "libogg": "BSD-3-Clause",
    "libpng": "libpng-2.0",
    "libpsl": "MIT",
    "libsndfile": "LGPL-2.1-or-later",
    "libsoxr": "LGPL-2.1-or-later",
    "libssh2": "BSD-3-Clause",
    "libtasn1": "LGPL-2.1-or-later",
    "libunistring": "LGPL-3.0-or-later OR GPL-2.0-or-later",
    "libvorbis": "BSD-3-Clause",
    "libwebp": "BSD-3-Clause",
    "libyaml": "MIT",
    "libzstd": "BSD-3-Clause",
    "mpg123": "LGPL-2.1-only",
    "ncurses": "X11-distribute-modifications-variant",
    "nettle": "LGPL-3.0-or-later OR GPL-2.0-or-later",
    "nghttp2": "MIT",
    "nlohmann-json": "MIT",
    "openldap": "OLDAP-2.8",
    "openssl": "Apache-2.0",
    "opus": "BSD-3-Clause",
    "p11-kit": "BSD-3-Clause",
    "pcre2": "BSD-3-Clause",
    "rtmpdump": "LGPL-2.1-or-later",
    "snappy": "BSD-3-Clause",
    "utf8proc": "MIT AND Unicode-DFS-2015",
    "xxhash": "BSD-2-Clause",
    "zlib": "Zlib",
}


def describe(package, architecture="amd64"):
    """Returns the SPDX entry of an installed Debian package."""
    fields = ["dpkg-query", "-W", "-f", "${source:Package} ${Version}"]
    done = subprocess.run([*fields, f"{package}:{architecture}"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    if done.returncode:  # a package for all architectures
        done = subprocess.run([*fields, package], stdout=subprocess.PIPE, text=True, check=True)
    source, version = done.stdout.split()
    library = source if source in LICENCES else re.sub(r"-?\d+(\.\d+)*$", "", source)  # gcc-12, libpng1.6
    if library not in LICENCES:
        raise SystemExit(f"sbom: {source}: its licence is unknown; expected it in the table of {os.path.basename(__file__)}")
    return {
        "SPDXID": f"SPDXRef-{package}",
        "name": package,
        "versionInfo": version,
        "supplier": "Organization: Debian",
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": LICENCES[library],
        "copyrightText": "NOASSERTION",
        "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": f"pkg:deb/debian/{package}@{version}?arch={architecture}"}],
    }


def write(path, version, contents, architecture="amd64"):
    """Writes the description of archives; `contents` has the packages of each."""
    archives = [{
        "SPDXID": f"SPDXRef-archive-{i}",
        "name": name,
        "versionInfo": version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": "Apache-2.0",
        "copyrightText": "NOASSERTION",
    } for i, name in enumerate(contents)]
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", archive["SPDXID"]) for archive in archives]
    for archive in archives:
        relations += [(archive["SPDXID"], "CONTAINS", f"SPDXRef-{package}") for package in sorted(contents[archive["name"]])]
    commit = subprocess.run(["git", "rev-parse", "HEAD"], stdout=subprocess.PIPE, text=True, check=True, cwd=os.path.dirname(__file__)).stdout.strip()
    document = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"fovea-{version}",
        "documentNamespace": f"https://spdx.org/spdxdocs/fovea-{version}-{commit}",
        "creationInfo": {
            "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"]))),
            "creators": ["Tool: tools/release/sbom.py"],
        },
        "packages": archives + [describe(package, architecture) for package in sorted(set().union(*contents.values()))],
        "relationships": [dict(zip(("spdxElementId", "relationshipType", "relatedSpdxElement"), relation)) for relation in relations],
    }
    path.write_text(json.dumps(document, indent=1) + "\n")

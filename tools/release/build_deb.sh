#!/usr/bin/env bash
# build_deb.sh OUT BUILD_PACKAGE...: builds the Debian packages of the committed tree for the release of this system, checks
# them with lintian and writes them to the folder OUT. ./run release calls it in a bare system.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
out=$1
shift
packages=$*
version=$(sed -nE 's/^project\(fovea VERSION ([0-9.]+).*/\1/p' CMakeLists.txt)
release=$(sed -nE 's/^VERSION_CODENAME=//p' /etc/os-release)
number=$(sed -nE 's/^VERSION_ID="(.*)"/\1/p' /etc/os-release)
maintainer=$(git log -1 --format='%an <%ae>')

rm -rf debian
trap 'rm -rf debian' EXIT
cp -R packaging/debian debian
sed -i "s/@BUILD_PACKAGES@/${packages// /, }/; s/@MAINTAINER@/$maintainer/" debian/control
cp deploy/systemd/fovea.service debian/fovea.service
# The version of Debian 13 is the higher one, so that an upgrade of the system replaces the packages.
cat > debian/changelog << TEXT
fovea ($version+deb$number) $release; urgency=medium

  * Version $version, built from commit $(git rev-parse HEAD).

 -- $maintainer  $(git log -1 --format=%cD)
TEXT
DEB_BUILD_OPTIONS="noautodbgsym parallel=$(nproc)" dpkg-buildpackage -b -us -uc
mkdir -p "$out"
mv ../{fovea,fovea-dev,libfovea0}_"$version+deb$number"_amd64.deb "$out/"
rm ../fovea_"$version+deb$number"_amd64.{changes,buildinfo}
lintian --fail-on error,warning "$out"/*_"$version+deb$number"_amd64.deb

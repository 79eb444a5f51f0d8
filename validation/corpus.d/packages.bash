# shellcheck shell=bash
# Package managers, all offline. Sourced by validation/corpus.

# deb NAME VERSION FILES: a Debian package with so many files.
deb() {
    mkdir -p "$1/DEBIAN"
    files "$1/usr/share/$1" "$3"
    mkdir -p "$1/etc"
    echo "version $2" >"$1/etc/$1.conf"
    ln -s "../share/$1" "$1/usr/$1"
    echo "/etc/$1.conf" >"$1/DEBIAN/conffiles"
    printf 'Package: %s\nVersion: %s\nArchitecture: all\nMaintainer: A <a@example.org>\nDescription: parts\n' "$1" "$2" >"$1/DEBIAN/control"
    dpkg-deb --root-owner-group -b "$1" "$1-$2.deb"
    rm -r "$1"
}
dpkg_root() {
    mkdir -p root/var/lib/dpkg/updates root/var/lib/dpkg/info
    touch root/var/lib/dpkg/status
}

prepare_dpkg_deb() {
    deb parts 1 900
    mkdir new
    dpkg-deb -R parts-1.deb parts
}
program dpkg-deb dpkg-deb:dpkg -- dpkg-deb --root-owner-group -Zgzip -b parts new/parts.deb

prepare_dpkg() {
    dpkg_root
    deb parts 1 900
}
program dpkg dpkg:dpkg -- dpkg --root=root --force-not-root --log=/dev/null -i parts-1.deb

prepare_dpkg_upgrade() {
    dpkg_root
    deb parts 1 500
    deb parts 2 300
    deb other 1 50
    dpkg --root=root --force-not-root --log=/dev/null -i parts-1.deb other-1.deb
}
run_dpkg_upgrade() {
    dpkg --root=root --force-not-root --log=/dev/null -i parts-2.deb
    dpkg --root=root --force-not-root --log=/dev/null -r other
    dpkg --root=root --force-not-root --log=/dev/null -P other
}
program dpkg-upgrade dpkg:dpkg

prepare_venv() { :; }
program venv python3:python3 pip3:python3-venv -- python3 -m venv v

prepare_ensurepip() { python3 -m venv --without-pip v; }
program ensurepip python3:python3 pip3:python3-venv -- v/bin/python -m ensurepip

# wheel: a Python package of 300 modules with a script, as a wheel made by hand.
wheel() {
    python3 - <<'PYTHON'
import zipfile
with zipfile.ZipFile("parts-1.0-py3-none-any.whl", "w") as z:
    for i in range(300):
        z.writestr(f"parts/part{i}.py", f"def part(x):\n    return x + {i}\n")
    z.writestr("parts/__init__.py", "")
    z.writestr("parts-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: parts\nVersion: 1.0\n")
    z.writestr("parts-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    z.writestr("parts-1.0.dist-info/entry_points.txt", "[console_scripts]\nparts = parts.part1:part\n")
    names = z.namelist() + ["parts-1.0.dist-info/RECORD"]
    z.writestr("parts-1.0.dist-info/RECORD", "".join(f"{n},,\n" for n in names))
PYTHON
}

prepare_pip_install() {
    python3 -m venv v
    wheel
}
program pip-install python3:python3 pip3:python3-venv -- v/bin/pip install -q parts-1.0-py3-none-any.whl

prepare_pip_uninstall() {
    prepare_pip_install
    v/bin/pip install -q parts-1.0-py3-none-any.whl
}
program pip-uninstall python3:python3 pip3:python3-venv -- v/bin/pip uninstall -q -y parts

# npm_package NAME: an npm package of 200 modules, packed.
npm_package() {
    mkdir "$1"
    printf '{"name": "%s", "version": "1.0.0", "main": "m1.js", "bin": {"%s": "m1.js"}, "license": "MIT"}\n' "$1" "$1" >"$1/package.json"
    for i in $(seq 200); do echo "module.exports = x => x + $i" >"$1/m$i.js"; done
    (cd "$1" && npm pack --silent --pack-destination ..)
    rm -r "$1"
}

prepare_npm() {
    npm_package parts
    npm_package other
    echo '{"name": "user", "version": "1.0.0", "private": true}' >package.json
}
program npm npm:npm node:nodejs -- npm install --silent ./parts-1.0.0.tgz ./other-1.0.0.tgz
differs npm 'logs named by the time'

prepare_npm_ci() {
    prepare_npm
    npm install --silent ./parts-1.0.0.tgz ./other-1.0.0.tgz
}
program npm-ci npm:npm node:nodejs -- npm ci --silent
differs npm-ci 'logs named by the time'

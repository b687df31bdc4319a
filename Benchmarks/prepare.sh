# SPDX-License-Identifier: Apache-2.0
#
# For scripts/bench, which reads it: what the benchmarks need, the programs and the servers.

programs=Benchmarks/.build/programs

# MARK: What it needs

wants() { [[ " ${wanted[*]} " == *" $1 "* ]]; }

install_missing() {
    local missing=() root=()
    curl-config --version >/dev/null 2>&1 || missing+=(libcurl4-openssl-dev)
    command -v nginx >/dev/null || missing+=(nginx)
    command -v curl >/dev/null || missing+=(curl)
    command -v openssl >/dev/null || missing+=(openssl)
    command -v python3 >/dev/null || missing+=(python3)
    command -v strip >/dev/null || missing+=(binutils)
    [ $instructions = no ] || command -v valgrind >/dev/null || missing+=(valgrind)
    if wants go; then command -v go >/dev/null || missing+=(golang-go); fi
    [ ${#missing[@]} -gt 0 ] || return 0

    command -v apt-get >/dev/null || stop_with "install first: ${missing[*]} (names of Debian's packages)"
    say "installing with apt-get: ${missing[*]}"
    [[ " ${missing[*]} " != *" nginx "* ]] || say "nginx's package may start a service of its own; it is not used and can be stopped"
    [ "$(id -u)" = 0 ] || root=(sudo)
    "${root[@]}" apt-get update -qq
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# As Swift programs are built for servers: with the runtime and Foundation linked into them. CURLEW_BUILD_OPTIONS replaces these options;
# .ci/run gives those of its other release builds, so that the library is not compiled once more.
swift_flags=(-c release)
[ "$(uname)" != Linux ] || swift_flags+=(--static-swift-stdlib)
[ -z "${CURLEW_BUILD_OPTIONS:-}" ] || read -ra swift_flags <<<"$CURLEW_BUILD_OPTIONS"

# swift_program PACKAGE PRODUCT NAME: without its debug information, which valgrind does not read.
swift_program() {
    # SwiftPM sees new files of a package beside it only if a manifest is newer than its plan.
    touch "$1/Package.swift"
    swift build "${swift_flags[@]}" --package-path "$1" --product "$2" >&2 || return 1
    strip --strip-debug -o "$programs/$3" "$(swift build "${swift_flags[@]}" --package-path "$1" --show-bin-path)/$2"
}

build() {
    local compiler=${CC:-cc}
    command -v "$compiler" >/dev/null || compiler=clang
    say "building ${wanted[*]} (release)"
    mkdir -p "$programs"
    # By hand: SwiftPM would link the Swift runtime into it.
    # shellcheck disable=SC2046
    "$compiler" -O2 -Wall -Wextra $(curl-config --cflags) -o "$programs/floor" Benchmarks/Floor/floor.c $(curl-config --libs) ||
        stop_with "floor does not build"
    if wants curlew; then swift_program Benchmarks CurlewBench curlew || stop_with "CurlewBench does not build"; fi
    if wants ahc; then
        swift_program Benchmarks/Peers AsyncHTTPClientBench ahc || stop_with "AsyncHTTPClientBench does not build"
    fi
    if wants urlsession; then
        swift_program Benchmarks/Peers URLSessionBench urlsession || stop_with "URLSessionBench does not build"
    fi
    if wants go; then
        (cd Benchmarks/Peers/Go && GOPROXY=off go build -o "../../../$programs/go" .) || stop_with "the program in Go does not build"
    fi
}

# MARK: The servers

# Memory if there is enough of it: a disk would be measured with every download.
workspace() {
    local available
    available=$(awk '/^MemAvailable:/ { print int($2 / 1024) }' /proc/meminfo)
    if [ -w /dev/shm ] && [ "$available" -gt 4096 ] && [ "$(df --output=avail -m /dev/shm | tail -1)" -gt 3072 ]; then
        echo /dev/shm
    else
        echo "${TMPDIR:-/tmp}"
    fi
}

servers=()
work=$(mktemp -d "${TMPDIR:-/tmp}/curlew-bench.XXXXXX")
stop_servers() {
    local server
    for server in "${servers[@]}"; do
        kill "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    done
}
finish() {
    trap - EXIT
    stop_servers
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# The right of the servers, and of the clients whose instructions are counted, to their core. Only root may ask for more than usual.
ahead=()
[ "$(nice -n -10 nice 2>/dev/null || true)" != -10 ] || ahead=(nice -n -10)
behind=(nice -n 10)

# start COMMAND...: the assignments that it prints become ours, up to READY=1.
start() {
    local line output leash=()
    READY=
    # It must not outlive this script, even if that is killed.
    if command -v setpriv >/dev/null; then leash=(setpriv --pdeathsig TERM); fi
    exec {output}< <(exec "${leash[@]}" "$@")
    servers+=("$!")
    while [ -z "$READY" ] && IFS= read -r -t 60 -u "$output" line; do
        printf -v "${line%%=*}" %s "${line#*=}"
    done
    [ -n "$READY" ] || stop_with "$1 does not start"
}

# HTTP_URL, HTTPS_URL, TLS_URL, CA_FILE, SERVE_DIR, SERVER_CPU, SLOW_URL. The servers have the first core, the client the second.
start_servers() {
    local beside=()
    # Ten thousand connections, in a server and in a client.
    ulimit -n "$(ulimit -Hn)" 2>/dev/null || true
    start "${ahead[@]}" Benchmarks/serve "$(workspace)"
    pin=()
    if [ -n "$SERVER_CPU" ]; then
        pin=(taskset -c "$(python3 -c 'import os; print(sorted(os.sched_getaffinity(0))[1])')")
        beside=(taskset -c "$SERVER_CPU")
        behind+=("${beside[@]}")
    fi
    start "${ahead[@]}" "${beside[@]}" Benchmarks/slow
}

# URLSession takes no certificate on Linux. In a mount namespace of its own the system's list of them is ours.
trusting=()
trust_for_url_session() {
    local bundle
    bundle=$(curl-config --ca 2>/dev/null | tr -d '"')
    [ -f "$bundle" ] || bundle=/etc/ssl/certs/ca-certificates.crt
    # shellcheck disable=SC2016
    trusting=(unshare -rm sh -c 'mount --bind "$1" "$2" && shift 2 && exec "$@"' sh "$CA_FILE" "$bundle")
    if ! "${trusting[@]}" true 2>/dev/null; then
        trusting=()
        say "URLSession is not measured over TLS: no namespace for its certificates"
    fi
}

# What of Curlew is measured, one word a way; a version of it may not have them all.
find_programs() {
    local program one=(get "$HTTP_URL/1k.json" 1 1)
    there="curl ${wanted[*]}"
    if wants urlsession; then trust_for_url_session; fi
    wants curlew || return 0
    for program in "${ways[@]}" "${extras[@]}" "${policies[@]}" "${sessions[@]}" curlew-fast; do
        command_for "$program" "${one[@]}"
        if "${command[@]}" >/dev/null 2>&1; then there+=" $program"; else say "not there: $program"; fi
    done
}

# The kind of machine, not its name.
describe_machine() {
    echo "$(nproc) cores of $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1), \
$(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' /etc/os-release), Linux $(uname -r | cut -d. -f1,2)"
    echo "libcurl $(curl-config --version | cut -d' ' -f2), $(openssl version | cut -d' ' -f1,2), \
$(nginx -v 2>&1 | sed 's/.*: //'), files in $(case $SERVE_DIR in /dev/shm/*) echo memory ;; *) echo "a file system" ;; esac)"
    if wants curlew; then echo "$(swift --version 2>/dev/null | grep -o 'Swift version [0-9.]*' | head -1)"; fi
    if wants ahc; then echo "async-http-client 1.37.0, $(go version | cut -d' ' -f3)"; fi
}

# MARK: Building

# build_one PACKAGE: a clean release build on the same machine, without the time to fetch what it depends on. Of the modules those count
# that are compiled: SwiftPM makes folders for all.
build_one() {
    local scratch=$work/scratch wall user system binary
    swift package --package-path "$1" --scratch-path "$scratch" resolve >&2
    { read -r wall user system < <( { time swift build -c release --package-path "$1" --scratch-path "$scratch" >"$work/log" 2>&1; } 2>&1); } ||
        true
    binary=$(swift build -c release --package-path "$1" --scratch-path "$scratch" --show-bin-path)/Hello
    [ -x "$binary" ] || { tail -20 "$work/log" >&2; stop_with "$1 does not build"; }
    strip -o "$work/stripped" "$binary"
    printf '%s\t{"wall_seconds": %s, "cpu_seconds": %s, "bytes": %s, "modules": %s}\n' "${1##*/}" "$wall" \
        "$(awk -v u="$user" -v s="$system" 'BEGIN { print u + s }')" "$(stat -c %s "$work/stripped")" \
        "$(find "$scratch"/*/release -path '*.build/*.o' | sed 's/\.build\/.*//' | sort -u | wc -l)" >>"$work/builds"
    rm -rf "$scratch"
}

build_time() {
    local arguments=()
    say "building a program on Curlew alone, then one on async-http-client"
    build_one Benchmarks/BuildTime/Curlew
    build_one Benchmarks/BuildTime/AsyncHTTPClient
    [ $write = no ] || arguments+=(--write BENCHMARKS.md)
    python3 Benchmarks/report.py "$work/builds" --build-time "${arguments[@]}"
}

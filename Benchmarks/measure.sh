# SPDX-License-Identifier: Apache-2.0
#
# For scripts/bench, which reads it: one measurement of one program.

# record CASE PROGRAM JSON
record() { printf '%s\t%s\t%s\n' "$@" >>"$work/results"; }

# The command line of a program; a way of Curlew is its program with an option.
command_for() {
    local program=$1
    shift
    case $program in
    curlew-executor) command=("$programs/curlew" "$@" --executor) ;;
    curlew-fast)
        command=("$programs/curlew" "$@" --decoder fast)
        [[ " $* " == *" --style "* ]] || command+=(--style object)
        ;;
    urlsession-curlew) command=("$programs/curlew" "$@" --style urlsession) ;;
    curlew-*) command=("$programs/curlew" "$@" --style "${program#curlew-}") ;;
    curl)
        # -q: nobody's .curlrc.
        command=(curl -q -sS --fail --noproxy '*' -o)
        if [ "$1" = download ]; then command+=("$3" "$2"); else command+=(/dev/null -H Expect: -T "$3" "$2"); fi
        ;;
    floor)
        # It knows no styles.
        command=("$programs/floor")
        while [ $# -gt 0 ]; do
            if [ "$1" = --style ]; then shift; else command+=("$1"); fi
            shift
        done
        ;;
    go)
        command=("$programs/go")
        for argument in "$@"; do [ "$argument" = --multiplex ] || command+=("$argument"); done
        ;;
    *) command=("$programs/$program" "$@") ;;
    esac
    [[ $program != urlsession || " $* " != *" --ca "* ]] || command=("${trusting[@]}" "${command[@]}")
}

# Whether a peer's failure is its own affair: it stays out of the table then.
failed() {
    [[ $1 != *curlew* ]] && [ "$1" != floor ] || stop_with "$1 failed: $2"
    say "$1 failed: $2; left out"
}

# measured CASE PROGRAM ARGUMENTS: the program measures its own loop.
measured() {
    local line limit=120 arguments=("${@:3}")
    case $2 in
    urlsession)
        [[ " $* " != *" --ca "* ]] || [ ${#trusting[@]} -gt 0 ] || return 0
        # A tenth as fast: a tenth as much.
        case $3 in get) arguments[2]=$((arguments[2] / 10)) ;; esac
        limit=60
        ;;
    esac
    command_for "$2" "${arguments[@]}"
    if line=$(timeout --foreground $limit "${pin[@]}" "${command[@]}"); then record "$1" "$2" "$line"; else failed "$2" "$1"; fi
}

requests() { measured "$1" "$2" get "${@:3}"; }
waiting() { measured "$1" "$2" wait "${@:3}"; }
decoding() { measured "$1" "$2" decode "${@:3}"; }

# transfer download|upload PROGRAM URL FILE: the whole process is measured, as `curl` has no figures of its own.
transfer() {
    local times wall user system own
    command_for "$2" "$1" "${@:3}"
    { times=$( { time timeout --foreground 120 "${pin[@]}" "${command[@]}" >"$work/line" 2>"$work/errors"; } 2>&1); } || {
        cat "$work/errors" >&2
        failed "$2" "$1"
        return 0
    }
    if [ "$1" = download ]; then rm -f "$4"; fi
    read -r wall user system <<<"$times"
    own=$(grep -o '"peak_rss_kib": *[0-9]*' "$work/line" || echo '"peak_rss_kib": 0')
    record "$1" "$2" "$(awk -v w="$wall" -v u="$user" -v s="$system" -v own="$own" 'BEGIN {
        printf "{\"wall_seconds\": %s, \"process_cpu_seconds\": %.3f, %s}", w, u + s, own }')"
}

# A client that reads before the server has answered takes another turn of its loop, 5 k instructions a request: whether it does must not be
# a matter of what else runs. So it is counted on the server's core, with less right to it: the server answers within the client's `send`.
# collected COMMAND...: prints the user-mode instructions of a run, as a processor counts them.
collected() {
    local log all
    log=$(mktemp "$work/callgrind.XXXXXX")
    timeout --foreground 300 "${behind[@]}" valgrind --tool=callgrind --collect-atstart=yes --cache-sim=no --branch-sim=no \
        --fair-sched=yes --dump-instr=yes --compress-pos=no --compress-strings=no \
        --callgrind-out-file="$log.profile" --log-file="$log" "$@" >/dev/null 2>"$log.errors" || {
        cat "$log" "$log.errors" >&2
        return 1
    }
    all=$(awk '/Collected/ { print $4 }' "$log")
    echo $((all - $(python3 Benchmarks/repeats.py "$log.profile")))
    rm -f "$log.profile"
}

# Both runs at the same time: their counts do not depend on it. Sets `low` and `high`.
collect_both() { # FEWER-COMMAND... -- MORE-COMMAND...
    local fewer=() first
    while [ "$1" != -- ]; do fewer+=("$1"); shift; done
    shift
    collected "${fewer[@]}" >"$work/low-$lane" &
    first=$!
    high=$(collected "$@") || return 1
    wait "$first" || return 1
    low=$(cat "$work/low-$lane")
}

# counted CASE PROGRAM COMMAND TARGET FEWER MORE [ARGUMENTS]: start-up is the same in both runs and drops out. Sets `low` and `high`.
counted() {
    local fewer
    if [ "$2" = urlsession ] && [[ " $* " == *" --ca "* ]]; then return 0; fi
    command_for "$2" "$3" "$4" "$5" "${@:7}"
    fewer=("${command[@]}")
    command_for "$2" "$3" "$4" "$6" "${@:7}"
    if collect_both "${fewer[@]}" -- "${command[@]}"; then
        record "$1" "$2" "{\"instructions\": $(((high - low) / ($6 - $5)))}"
    else
        failed "$2" "$1 (callgrind)"
    fi
}

count_requests() { counted "$1" "$2" get "${@:3}"; }
count_decoding() { counted "$1" "$2" decode "${@:3}"; }

# count_transfer CASE PROGRAM download|upload: 192 MiB less 64 MiB, times 8, is a GiB without the start-up.
count_transfer() {
    local commands=() size low high
    for size in 64m 192m; do
        if [ "$3" = download ]; then
            command_for "$2" download "$HTTP_URL/$size" "$SERVE_DIR/received-$size"
        else
            command_for "$2" upload "$HTTP_URL/upload" "$SERVE_DIR/files/$size"
        fi
        commands+=("${command[@]}")
        [ $size = 192m ] || commands+=(--)
    done
    collect_both "${commands[@]}" || stop_with "$2 failed: $1 (callgrind)"
    rm -f "$SERVE_DIR"/received-*
    record "$1" "$2" "{\"instructions\": $(((high - low) * 8))}"
}

# The first gigabyte in memory costs several times the next: a virtual machine has to ask its host for it.
touch_memory() {
    head -c 1G /dev/zero >"$SERVE_DIR/received"
    rm -f "$SERVE_DIR/received"
}

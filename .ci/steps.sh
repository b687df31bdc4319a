# SPDX-License-Identifier: Apache-2.0
#
# For .ci/run and .ci/full, which read it: steps with their times, a table of them, and the lines that say why one failed.

table=()
work=$(mktemp -d "${TMPDIR:-/tmp}/curlew-ci.XXXXXX")
output=$work/output

print_table() {
    printf '\n%-20s %8s   %s\n' step time result
    ((${#table[@]} == 0)) || printf '%s\n' "${table[@]}"
}

add_row() { # NAME SECONDS RESULT
    table+=("$(printf '%-20s %5d:%02d   %s' "$1" $(($2 / 60)) $(($2 % 60)) "$3")")
}

# What has to be done before the files are removed; .ci/run replaces it.
before_end() { :; }
trap 'before_end; rm -rf "$work"; print_table' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# A descriptor that only the script itself is to have open; none while it is empty.
leash=

without_leash() {
    [[ -z $leash ]] || exec {leash}>&-
}

# Runs a command, adds a row to the table, and repeats what failed. Returns the command's status.
step() { # NAME COMMAND…
    local name=$1 start=$SECONDS status=0 result=passed
    shift
    printf '\n== %s: %s\n' "$name" "$*"
    { without_leash; "$@"; } 2>&1 | { without_leash; tee "$output"; } || status=$?
    if ((status != 0)); then
        result="failed ($status)"
        # Repeated at the end: what failed is between thousands of lines about what did not. They may have colours.
        printf '\n== %s failed:\n' "$name"
        sed $'s/\e\\[[0-9;]*m//g' "$output" |
            grep -E '^[✘↳]|: (error|fatal error):|^error:|(WARNING|ERROR|SUMMARY): [A-Z][A-Za-z]+Sanitizer|^ *# *[0-9]+ .*(Curlew|Tests)' |
            cut -c1-400 | head -60 || true
    fi
    add_row "$name" $((SECONDS - start)) "$result"
    return "$status"
}

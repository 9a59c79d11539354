# Says how far a go command is; sourced by build. The clock is that of the whole set-up, if there is one.
# shellcheck shell=bash

begun=${UNBOUNDED_SETUP_BEGUN:-$(date +%s)}

# Packages that "go build -v" has named, in this run or in one that was interrupted.
count_compiled() { sed '/ /d' "$1" | sort -u | wc -l; }

describe() { # LOG WHAT PACKAGES BEFORE SECONDS
  local total=$3 before=$4 seconds=$5 done
  printf '%5d s: %s' $(($(date +%s) - begun)) "$2"
  [ -n "$total" ] || return 0
  done=$(count_compiled "$1")
  printf ', %d of %d packages' "$done" "$total"
  [ $((done - before)) -lt 50 ] || printf ', about %d s left' $(((total - done) * seconds / (done - before)))
}

# Waits until a go command ends, and says meanwhile how far it is: each second on a terminal, else four times a minute.
exec {never}<> <(:) # nothing comes: to wait without a process
follow() { # PID LOG WHAT [PACKAGES]
  local pid=$1 log=$2 what=$3 total=${4:-} before start=$SECONDS said=$SECONDS every=15
  touch "$log"; before=$(count_compiled "$log")
  [ ! -t 1 ] || every=1
  while kill -0 "$pid" 2>/dev/null; do
    read -rt 0.2 -u "$never" || true
    [ $((SECONDS - said)) -ge $every ] || continue
    said=$SECONDS
    if [ -t 1 ]; then printf '\r\033[K%s' "$(describe "$log" "$what" "$total" "$before" $((SECONDS - start)))"
    else describe "$log" "$what" "$total" "$before" $((SECONDS - start)); echo; fi
  done
  [ ! -t 1 ] || printf '\r\033[K'
  wait "$pid" || { tail -20 "$log" >&2; rm -f "$log"; exit 1; }
}

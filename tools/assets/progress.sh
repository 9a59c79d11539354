# Says how far a go command is; sourced by build. The clock is that of the whole set-up, if there is one.
# shellcheck shell=bash

begun=${UNBOUNDED_SETUP_BEGUN:-$(date +%s)}

# Packages that "go build -v" has named, in this run or in one that was interrupted.
count_compiled() { sed '/ /d' "$1" | sort -u | wc -l; }

describe() { # LOG PACKAGES BEFORE SECONDS
  local log=$1 total=$2 before=$3 seconds=$4 done left=
  printf '%5d s: ' $(($(date +%s) - begun))
  if [ -z "$total" ]; then printf 'fetched %d Go modules' "$(grep -c downloading "$log")"; return; fi
  done=$(count_compiled "$log")
  [ $((done - before)) -lt 50 ] || left=", about $(((total - done) * seconds / (done - before))) s left"
  printf 'compiled %d of %d Go packages%s' "$done" "$total" "$left"
}

# Waits until a go command ends, and says meanwhile how far it is: each second on a terminal, else four times a minute.
exec {never}<> <(:) # nothing comes: to wait without a process
follow() { # PID LOG [PACKAGES]
  local pid=$1 log=$2 total=${3:-} before start=$SECONDS said=$SECONDS every=15
  touch "$log"; before=$(count_compiled "$log")
  [ ! -t 1 ] || every=1
  while kill -0 "$pid" 2>/dev/null; do
    read -rt 0.2 -u "$never" || true
    [ $((SECONDS - said)) -ge $every ] || continue
    said=$SECONDS
    if [ -t 1 ]; then printf '\r\033[K%s' "$(describe "$log" "$total" "$before" $((SECONDS - start)))"
    else describe "$log" "$total" "$before" $((SECONDS - start)); echo; fi
  done
  [ ! -t 1 ] || printf '\r\033[K'
  wait "$pid" || { tail -20 "$log" >&2; rm -f "$log"; exit 1; }
}

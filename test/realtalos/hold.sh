#!/bin/bash
# Starts a cluster as up.sh does, says "up" on standard output, and ends it when standard input closes:
# so nothing stays even where the process that wanted the cluster was killed.
set -uo pipefail
. "$(dirname "$0")/lib.sh"

exec 3<&0 </dev/null
# closed SECONDS: waits so long for the end of the input.
closed() {
  read -r -t "$1" -u 3
  local code=$?
  [ $code -gt 0 ] && [ $code -le 128 ]
}

"$here/up.sh" "$@" 3<&- >/dev/null &
up=$!
while kill -0 $up 2>/dev/null; do
  if closed 0.5; then
    kill -TERM $up 2>/dev/null
    break
  fi
done
# An up.sh that fails or is ended has tidied up.
wait $up || exit
echo up
until closed 3600; do :; done
exec "$here/down.sh"

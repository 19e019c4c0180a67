#!/bin/bash
# Ends what up.sh started: machines, the programs that serve them, the namespace; puts system-wide settings back.
set -uo pipefail
. "$(dirname "$0")/lib.sh"

for file in "$state"/machines/*/box.pid "$state"/*.pid; do
  [ -e "$file" ] && end_process "$file"
done
# Clients that still run in the namespace.
[ -e /run/netns/$netns ] && ip netns pids $netns | grep -vx $$ | xargs -r kill -KILL 2>/dev/null

# The kernel ends a machine with its box, and with a machine's process 1 all the others.
# Wait for the last one, and end what a lost box may have left behind.
group=$(cgroup2)/$netns
left() { find "$group" -name cgroup.procs -exec cat {} + 2>/dev/null; }
for i in $(seq 150); do
  [ -z "$(left)" ] && break
  [ "$i" -gt 30 ] && left | xargs -r kill -KILL 2>/dev/null
  sleep 0.1
done
# A group can only go once its dead processes have been reaped.
for _ in $(seq 150); do
  find "$group" -depth -type d -exec rmdir {} \; 2>/dev/null
  [ -e "$group" ] || break
  sleep 0.1
done

[ -e /run/netns/$netns ] && ip netns delete $netns
[ -e "$state/system-settings" ] && restore_system_settings "$state/system-settings"
rm -rf "$state"
say "down"

#!/bin/sh
# restart.sh COMMAND...: runs a training, and runs it again after every end that a restart can mend:
# a rank that was killed or lost, a watchdog that ended it, a machine that failed. Give the command
# --resume=auto, so that each run goes on from the last checkpoint:
#
#   restart.sh ./train_resnet --processes=8 --data-dir=/data --checkpoint-every=500 --resume=auto
#   restart.sh mpirun --hostfile hosts ./train_resnet --data-dir=/data --checkpoint-every=500 --resume=auto
#
# It ends with the command's status when that is 0 (done), 2 (a wrong flag), or twice in a row 1 (a
# bad file, or the training diverged; a launcher that has lost a machine ends with 1, too). SIGTERM,
# SIGINT and SIGHUP are passed on to the command, which saves, and end this script.
#
# PAUSE: seconds before each new run (5). TRIES: how many runs in a row may end within QUICK (60)
# seconds before this script gives up (5).
[ $# -gt 0 ] || { echo "usage: restart.sh COMMAND..." >&2; exit 2; }
pause=${PAUSE:-5} tries=${TRIES:-5} quick=${QUICK:-60}
child='' asked='' ones=0 short=0 runs=0

stop() {
  asked=yes
  [ -z "$child" ] || kill -TERM "$child" 2>/dev/null
}
trap stop TERM INT HUP

while :; do
  runs=$((runs + 1))
  began=$(date +%s)
  "$@" &
  child=$!
  [ -z "$asked" ] || kill -TERM "$child"
  wait "$child"
  status=$?
  while kill -0 "$child" 2>/dev/null; do # a signal ended the wait, not the command
    wait "$child"
    status=$?
  done
  child=''
  [ -z "$asked" ] || exit "$status"
  case $status in
    0 | 2) exit "$status" ;;
    1) ones=$((ones + 1)) ;;
    *) ones=0 ;;
  esac
  [ "$ones" -lt 2 ] || exit 1
  if [ $(($(date +%s) - began)) -lt "$quick" ]; then short=$((short + 1)); else short=0; fi
  if [ "$short" -ge "$tries" ]; then
    echo "restart.sh: $short runs in a row ended within $quick s: giving up" >&2
    exit "$status"
  fi
  echo "restart.sh: run $runs ended with status $status; the next one in $pause s" >&2
  left=$pause
  while [ "$left" -gt 0 ] && [ -z "$asked" ]; do
    sleep 1
    left=$((left - 1))
  done
  [ -z "$asked" ] || exit "$status"
done

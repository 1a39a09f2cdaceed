# To be sourced: how the shell checks wait for a live system.

# patience is in seconds, as long as in the tests of deploy/check/e2e: a busy machine is not a fault.
patience=180

# ready PID FILE LOG waits until `navlog-dev up` has written its ready file.
ready() {
  local deadline=$((SECONDS + patience))
  until [ -e "$2" ]; do
    kill -0 "$1" 2>/dev/null || { echo "navlog-dev up ended before it was ready:"; tail -20 "$3"; return 1; }
    [ "$SECONDS" -lt "$deadline" ] || { echo "navlog-dev up is not ready after $patience s:"; tail -20 "$3"; return 1; }
    sleep 0.5
  done
}

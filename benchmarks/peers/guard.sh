#!/usr/bin/env bash
# The hook with bash, jq and flock.
set -euo pipefail
payload=$(cat)
{ read -r session && read -r event && read -r key; } < <(
    jq -rS '.session_id, .hook_event_name, ([.tool_name, .tool_input] | tojson)' <<<"$payload"
)
state=${XDG_STATE_HOME:-$HOME/.local/state}/guard-sh
mkdir -p "$state"
exec 9>"$state/$session.lock"
flock 9
before='' count=0
[ ! -e "$state/$session" ] || { read -r count && read -r before; } <"$state/$session"
[ "$key" = "$before" ] && count=$((count + 1)) || count=1
printf '%s\n%s\n' "$count" "$key" >"$state/$session"
case $count in
3 | 5 | 8)
    jq -nc --arg event "$event" --arg text "The same call was made $count times in a row." \
        '{hookSpecificOutput: {hookEventName: $event, additionalContext: $text}}'
    ;;
esac

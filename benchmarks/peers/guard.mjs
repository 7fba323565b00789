// The hook with Node, without dependencies and without a lock, for which Node has none of its own.
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";

const sorted = (value) =>
  Array.isArray(value)
    ? value.map(sorted)
    : value && typeof value === "object"
      ? Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]))
      : value;

const event = JSON.parse(readFileSync(0, "utf8"));
const state = `${process.env.XDG_STATE_HOME ?? `${process.env.HOME}/.local/state`}/guard-mjs`;
mkdirSync(state, { recursive: true });
const file = `${state}/${event.session_id}.json`;
let before = { key: "", count: 0 };
try {
  before = JSON.parse(readFileSync(file, "utf8"));
} catch {}
const key = JSON.stringify([event.tool_name, sorted(event.tool_input)]);
const count = before.key === key ? before.count + 1 : 1;
writeFileSync(`${file}.${process.pid}`, JSON.stringify({ key, count }));
renameSync(`${file}.${process.pid}`, file);
if ([3, 5, 8].includes(count)) {
  const additionalContext = `${event.tool_name} was called ${count} times in a row with identical arguments.`;
  console.log(JSON.stringify({ hookSpecificOutput: { hookEventName: event.hook_event_name, additionalContext } }));
}

// The module "opdev" as scripts see it, and the surroundings they run in: frozen inputs, a clock that stands still,
// random numbers with a seed, and no other way to the outside than the functions of `host`.
const host = globalThis.__opdev;
delete globalThis.__opdev;

const pass = { self: undefined, namespace: undefined, owns: [], byKind: new Map(), events: [], conditions: [], open: false };

// --- values that come in ---

function freeze(value) {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    for (const key in value) freeze(value[key]);
    Object.freeze(value);
  }
  return value;
}

// Integers that a number cannot hold arrive as marked strings and become BigInts.
function widen(value) {
  if (typeof value === "string") return value.startsWith(host.mark) ? BigInt(value.slice(host.mark.length)) : value;
  if (typeof value === "object" && value !== null) for (const key in value) value[key] = widen(value[key]);
  return value;
}

function read(text) {
  const value = JSON.parse(text);
  return freeze(text.includes(host.marked) ? widen(value) : value);
}

// Lists of one kind, so that `replicas` knows what to make even when the list is empty; `filter`, `slice` and `map` keep it.
const lists = new Map();
function listOf(apiVersion, kind, items) {
  const key = apiVersion + "/" + kind;
  let List = lists.get(key);
  if (!List) {
    List = class Objects extends Array {};
    Object.defineProperty(List.prototype, "apiVersion", { value: apiVersion });
    Object.defineProperty(List.prototype, "kind", { value: kind });
    lists.set(key, List);
  }
  const list = new List();
  for (const item of items) list.push(item);
  return Object.freeze(list);
}

function inside(what) {
  if (!pass.open) throw new Error(`${what} can only be called while an object is reconciled, not while the file is loaded`);
}

function text(what, value, optional) {
  if (optional && (value === undefined || value === null)) return undefined;
  if (typeof value !== "string" || value === "") throw new TypeError(`${what} must be a text that is not empty, not ${show(value)}`);
  return value;
}

function show(value) {
  if (typeof value === "string") return JSON.stringify(value);
  if (Array.isArray(value)) return "a list";
  if (value !== null && typeof value === "object") return "an object";
  if (typeof value === "function") return "a function";
  return String(value);
}

function plain(what, value) {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new TypeError(`${what} must be an object, not ${show(value)}`);
  return value;
}

// --- reading ---

export function owned(kind) {
  inside("owned");
  const [apiVersion, name] = host.kind(text("owned: the kind", kind));
  const items = pass.byKind.get(name + "." + apiVersion);
  if (items === undefined) {
    throw new Error(`owned: ${name} ${apiVersion} is not in \`owns\` of this file; add "${apiVersion}/${name}"`);
  }
  return listOf(apiVersion, name, items());
}

export function get(kind, name, namespace) {
  inside("get");
  const found = host.get(text("get: the kind", kind), text("get: the name", name), text("get: the namespace", namespace, true) ?? pass.namespace);
  return found === null ? undefined : read(found);
}

export function list(kind, selector, namespace) {
  inside("list");
  let labels = "";
  if (typeof selector === "string") labels = host.selector(selector, false);
  else if (selector !== undefined && selector !== null) labels = host.selector(JSON.stringify(plain("list: the selector", selector)), true);
  const [apiVersion, name, found] = host.list(text("list: the kind", kind), labels, text("list: the namespace", namespace, true) ?? pass.namespace);
  return listOf(apiVersion, name, read(found));
}

// Where children stand in what was observed, so that they need not be handed back to be looked at.
const origins = new Map();

export function ready(object) {
  if (object === undefined || object === null) return false;
  const origin = origins.get(object);
  if (origin !== undefined) return host.readyChild(origin[0], origin[1]);
  return host.ready(JSON.stringify(plain("ready: the object", object), (_, value) => (typeof value === "bigint" ? Number(value) : value)));
}

// --- wishes ---

function created(object) {
  return object.metadata?.creationTimestamp ?? "";
}

function finished(object) {
  return object.kind === "Pod" && (object.status?.phase === "Failed" || object.status?.phase === "Succeeded");
}

export function replicas(live, count, template) {
  if (!Array.isArray(live)) throw new TypeError(`replicas: the first argument must be a list of objects, not ${show(live)}`);
  if (typeof count === "bigint") count = Number(count);
  if (!Number.isInteger(count) || count < 0) throw new TypeError(`replicas: the count must be a whole number from 0 on, not ${show(count)}`);
  if (count > 10000) throw new RangeError(`replicas: ${count} are too many`);
  plain("replicas: the template", template);
  const first = live.length > 0 ? live[0] : live;
  const only = pass.owns.length === 1 ? pass.owns[0] : [];
  const apiVersion = template.apiVersion ?? first.apiVersion ?? only[0];
  const kind = template.kind ?? first.kind ?? only[1];
  if (!apiVersion || !kind) throw new TypeError("replicas: the template needs apiVersion and kind");
  const metadata = template.metadata ?? {};
  const { name, generateName, ...rest } = metadata;
  const prefix = generateName ?? (name !== undefined ? name + "-" : pass.self?.metadata?.name !== undefined ? pass.self.metadata.name + "-" : undefined);
  if (prefix === undefined) throw new TypeError("replicas: the template needs metadata.generateName");
  const order = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
  const kept = live
    .filter((object) => !object.metadata?.deletionTimestamp && !finished(object))
    .map((object) => ({ object, ready: ready(object) ? 0 : 1 }))
    .sort((a, b) => a.ready - b.ready || order(created(a.object), created(b.object)) || order(a.object.metadata.name, b.object.metadata.name))
    .slice(0, count)
    .map(({ object }) => ({
      ...template,
      apiVersion,
      kind,
      metadata: { ...rest, name: object.metadata.name, ...(object.metadata.namespace ? { namespace: object.metadata.namespace } : {}) },
    }));
  const wanted = Array.from(kept);
  while (wanted.length < count) wanted.push({ ...template, apiVersion, kind, metadata: { ...rest, generateName: prefix } });
  return wanted;
}

export function patch(object, fields, options) {
  plain("patch: the object", object);
  plain("patch: the fields", fields);
  const { apiVersion, kind } = object;
  const name = object.metadata?.name;
  if (!apiVersion || !kind || !name) throw new TypeError("patch: the object needs apiVersion, kind and metadata.name");
  const namespace = object.metadata.namespace ?? pass.namespace;
  const { metadata, ...rest } = fields;
  return {
    apiVersion: host.own,
    kind: "Patch",
    own: options?.own === true,
    create: options?.create === true,
    object: { ...rest, apiVersion, kind, metadata: { ...metadata, name, ...(namespace ? { namespace } : {}) } },
  };
}

const RELEASE_OPTIONS = [
  "annotations", "failureRollbacks", "helm", "maxReleaseHistory", "rollbackForce", "status", "storage", "storageOwnerReference",
];

export function release(wish) {
  const { name, chart, values, namespace, ...options } = plain("release: the argument", wish);
  const unknown = Object.keys(options).find((key) => !RELEASE_OPTIONS.includes(key));
  if (unknown !== undefined) throw new TypeError(`release: ${show(unknown)} is unknown; known are name, chart, values, namespace, ${RELEASE_OPTIONS.join(", ")}`);
  return {
    apiVersion: host.own,
    kind: "Release",
    name: text("release: name", name ?? pass.self?.metadata?.name),
    chart: text("release: chart", chart),
    values: values === undefined ? {} : plain("release: values", values),
    namespace: text("release: namespace", namespace, true),
    options,
  };
}

export function wait(why, partial) {
  return { ...(partial === undefined ? {} : plain("wait: the second argument", partial)), waiting: text("wait: the reason", why) };
}

export function event(type, reason, message) {
  inside("event");
  if (type !== "Normal" && type !== "Warning") throw new TypeError(`event: the type is Normal or Warning, not ${show(type)}`);
  const wish = Object.freeze({ type, reason: text("event: the reason", reason), message: text("event: the message", message) });
  pass.events.push(wish);
  return wish;
}

export function condition(type, status, reason, message) {
  inside("condition");
  if (typeof status === "boolean") status = status ? "True" : "False";
  const wish = Object.freeze({
    type: text("condition: the type", type),
    status,
    reason: text("condition: the reason", reason ?? type),
    message: message ?? "",
  });
  pass.conditions.push(wish);
  return wish;
}

// --- the outside ---

export async function fetch(url, init) {
  inside("fetch");
  const { method, headers, body, ...other } = init === undefined ? {} : plain("fetch: the second argument", init);
  const unknown = Object.keys(other)[0];
  if (unknown !== undefined) throw new TypeError(`fetch: ${show(unknown)} is unknown; known are method, headers and body`);
  if (body !== undefined && body !== null && typeof body !== "string") throw new TypeError("fetch: the body must be a text; use JSON.stringify");
  const sent = {};
  for (const [key, value] of Object.entries(headers ?? {})) sent[key] = String(value);
  const answer = JSON.parse(host.fetch(JSON.stringify({ method: method ?? "GET", url: text("fetch: the address", String(url)), headers: sent, body: body ?? null })));
  const fields = new Map(Object.entries(answer.headers));
  return Object.freeze({
    ok: answer.status >= 200 && answer.status < 300,
    status: answer.status,
    headers: Object.freeze({
      get: (name) => fields.get(String(name).toLowerCase()) ?? null,
      has: (name) => fields.has(String(name).toLowerCase()),
      entries: () => fields.entries(),
    }),
    text: async () => answer.body,
    json: async () => JSON.parse(answer.body),
  });
}

export async function exec(program, args, options) {
  inside("exec");
  if (args !== undefined && !Array.isArray(args)) throw new TypeError("exec: the arguments must be a list of texts");
  const input = options?.input ?? null;
  if (input !== null && typeof input !== "string") throw new TypeError("exec: the input must be a text");
  return Object.freeze(JSON.parse(host.exec(JSON.stringify({ program: text("exec: the program", program), arguments: (args ?? []).map(String), input }))));
}

function write(level, parts) {
  const line = parts.map((part) => {
    if (typeof part === "string") return part;
    if (part instanceof Error) return part.stack ? `${part.message}\n${part.stack}` : String(part);
    try {
      return JSON.stringify(part, (_, value) => (typeof value === "bigint" ? value.toString() + "n" : value)) ?? String(part);
    } catch {
      return String(part);
    }
  });
  host.log(level, line.join(" "));
}

export function log(...parts) {
  write("info", parts);
}

globalThis.console = Object.freeze({
  debug: (...parts) => write("debug", parts),
  log: (...parts) => write("info", parts),
  info: (...parts) => write("info", parts),
  warn: (...parts) => write("warn", parts),
  error: (...parts) => write("error", parts),
});

// --- the clock and chance ---

const RealDate = Date;
function FrozenDate(...parts) {
  const made = parts.length === 0 ? new RealDate(host.now) : parts.length === 1 ? new RealDate(zoned(parts[0])) : new RealDate(RealDate.UTC(...parts));
  if (new.target === undefined) return made.toISOString();
  if (new.target !== FrozenDate) Object.setPrototypeOf(made, new.target.prototype);
  return made;
}
// Times without a zone are UTC, whatever zone the machine is in.
function zoned(value) {
  return typeof value === "string" && /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?$/.test(value) ? value + "Z" : value;
}
FrozenDate.prototype = RealDate.prototype;
Object.defineProperty(RealDate.prototype, "constructor", { value: FrozenDate, writable: true, configurable: true });
Object.defineProperty(FrozenDate, "name", { value: "Date" });
FrozenDate.now = () => host.now;
FrozenDate.UTC = RealDate.UTC;
FrozenDate.parse = (value) => RealDate.parse(zoned(value));
for (const part of ["FullYear", "Month", "Date", "Day", "Hours", "Minutes", "Seconds", "Milliseconds"]) {
  RealDate.prototype["get" + part] = RealDate.prototype["getUTC" + part];
  if (part !== "Day") RealDate.prototype["set" + part] = RealDate.prototype["setUTC" + part];
}
RealDate.prototype.getTimezoneOffset = () => 0;
for (const name of ["toString", "toLocaleString"]) RealDate.prototype[name] = RealDate.prototype.toUTCString;
for (const name of ["toDateString", "toLocaleDateString"]) RealDate.prototype[name] = function () { return this.toISOString().slice(0, 10); };
for (const name of ["toTimeString", "toLocaleTimeString"]) RealDate.prototype[name] = function () { return this.toISOString().slice(11, 19); };
globalThis.Date = FrozenDate;

// xorshift64* over 32-bit halves would lose bits in numbers; BigInt keeps them.
let state = BigInt.asUintN(64, host.seed ^ 0x9e3779b97f4a7c15n) || 1n;
Math.random = () => {
  state ^= state >> 12n;
  state ^= BigInt.asUintN(64, state << 25n);
  state ^= state >> 27n;
  return Number(BigInt.asUintN(64, state * 0x2545f4914f6cdd1dn) >> 11n) / 2 ** 53;
};
delete globalThis.Atomics;
delete globalThis.SharedArrayBuffer;
delete globalThis.performance;
globalThis.fetch = fetch;

// --- the way in ---

host.facts = (exports) => {
  const known = { kind: exports.kind, owns: exports.owns, allow: exports.allow };
  for (const name of ["reconcile", "sync", "finalize", "customize", ...CHART]) known[name] = typeof exports[name];
  if (exports.watches !== undefined && exports.reconcile === undefined && exports.sync === undefined) {
    if (!Array.isArray(exports.watches)) throw new TypeError("`watches` must be a list of { kind, map }");
    known.watches = exports.watches.map((watch, at) => {
      if (typeof plain(`watches[${at}]`, watch).map !== "function") throw new TypeError(`watches[${at}].map must be a function, not ${show(watch.map)}`);
      return text(`watches[${at}].kind`, watch.kind);
    });
  }
  return known;
};

// What a script beside a chart may export.
const CHART = ["values", "before", "after", "paused", "render", "onEvent", "namespaces", "serviceAccountName"];

host.chart = (exports, name, at, given) => {
  pass.open = true;
  pass.self = read(host.parent);
  pass.namespace = pass.self.metadata?.namespace;
  const values = given.map((text) => (text === "" ? pass.self : read(text)));
  return name === "watches" ? exports.watches[at].map(...values) : exports[name](...values);
};

host.call = (exports, name, owns) => {
  pass.open = true;
  pass.self = read(host.parent);
  pass.namespace = pass.self.metadata?.namespace;
  pass.owns = owns;
  const children = {};
  owns.forEach(([apiVersion, kind], at) => {
    let items;
    const key = kind + "." + apiVersion;
    const load = () => {
      if (items === undefined) {
        items = read(host.children(at));
        items.forEach((object, index) => origins.set(object, [at, index]));
      }
      return items;
    };
    pass.byKind.set(key, load);
    let named;
    const map = () => (named ??= Object.freeze(Object.fromEntries(load().map((object) => [
      pass.namespace === undefined && object.metadata.namespace ? object.metadata.namespace + "/" + object.metadata.name : object.metadata.name,
      object,
    ]))));
    Object.defineProperty(children, key, { enumerable: true, get: map });
  });
  Object.freeze(children);
  const related = Object.freeze({});
  const finalizing = host.finalizing;
  let releases;
  const installed = () => (releases ??= Object.freeze(Object.fromEntries(read(host.releases()).map((release) => [release.name, release]))));
  if (exports.reconcile === undefined && exports.sync !== undefined) {
    return exports[name](Object.freeze({ controller: Object.freeze({}), parent: pass.self, children, related, finalizing, get releases() { return installed(); } }));
  }
  return exports[name](pass.self, Object.freeze({ children, related, finalizing, now: host.nowText, get releases() { return installed(); } }));
};

// What was said with event() and condition(), without what the answer lists as well.
host.said = (answer) => {
  pass.open = false;
  const listed = Array.isArray(answer?.events) ? answer.events : [];
  return { events: pass.events.filter((wish) => !listed.includes(wish)), conditions: pass.conditions };
};

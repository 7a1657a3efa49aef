declare module "opdev" {
  import type { AnyObject, Condition, Kinds, ObjectMeta } from "opdev:types";

  /** `v1/Pod`, `apps/v1/Deployment`, `Deployment.apps/v1`; `Pod` or `Deployment` for kinds that are clear. */
  type KindText = keyof Kinds | (string & {});
  type ObjectOf<K> = K extends keyof Kinds ? Kinds[K] : AnyObject;

  /** The live objects of a kind in `owns` that this object controls, by namespace and name. Frozen. */
  export function owned<K extends KindText>(kind: K): ReadonlyArray<ObjectOf<K>>;
  /** One object, `undefined` where there is none. Read from a cache; its changes run this reconciler again. */
  export function get<K extends KindText>(kind: K, name: string, namespace?: string): ObjectOf<K> | undefined;
  /** All objects that a selector picks. Without a namespace that of the parent; `"*"` is all of them. */
  export function list<K extends KindText>(kind: K, selector?: string | Selector | null, namespace?: string): ReadonlyArray<ObjectOf<K>>;
  /** Whether an object does what it is there for, as `kubectl rollout status` and `helm --wait` mean it. */
  export function ready(object: object | null | undefined): boolean;

  /**
   * `count` children of one template. Keeps live ones by their names (ready ones first, then the oldest, then by name),
   * drops what is too many, and adds nameless ones with `generateName` for what is missing. Objects that are being
   * deleted, and Pods that failed or succeeded, do not count.
   */
  export function replicas(live: ReadonlyArray<object>, count: number, template: Template): Child[];
  /** Sets fields of an object that somebody else created; never pruned. `own` makes the parent an owner of it; `create` makes
   * the object where there is none, and what it set stays when it is no longer listed. */
  export function patch(object: { apiVersion: string; kind: string; metadata: { name: string; namespace?: string } }, fields: object, options?: { own?: boolean; create?: boolean }): Wish;
  /** Installs a chart as a child: a folder or archive below the project's root. The name is the parent's by default. */
  export function release(wish: { name?: string; chart: string; values?: object; namespace?: string } & ReleaseOptions): Wish;
  /** Not done yet: what is listed stays, nothing is deleted, and changes of what was read run this again. */
  export function wait<T extends object>(why: string, partial?: T): T & { waiting: string };
  /** Records a Kubernetes Event. */
  export function event(type: "Normal" | "Warning", reason: string, message: string): Event;
  /** Sets a condition; its times are opdev's part. */
  export function condition(type: string, status: boolean | "True" | "False" | "Unknown", reason?: string, message?: string): Condition;
  /** A line for the log of this pass. */
  export function log(...parts: unknown[]): void;
  /** An HTTP request to a host in `allow`. */
  export function fetch(url: string, init?: { method?: string; headers?: { [name: string]: string }; body?: string }): Promise<Response>;
  /** Runs a program in `allow`; never through a shell. */
  export function exec(program: string, args?: ReadonlyArray<string>, options?: { input?: string }): Promise<{ code: number; stdout: string; stderr: string }>;

  export type Selector =
    | { [label: string]: string }
    | { matchLabels?: { [label: string]: string }; matchExpressions?: { key: string; operator: "In" | "NotIn" | "Exists" | "DoesNotExist"; values?: string[] }[] };

  export interface Response {
    ok: boolean;
    status: number;
    headers: { get(name: string): string | null; has(name: string): boolean; entries(): IterableIterator<[string, string]> };
    text(): Promise<string>;
    json(): Promise<any>;
  }

  /** An object as it should be. */
  export interface Child {
    apiVersion: string;
    kind: string;
    metadata: Partial<ObjectMeta>;
    [key: string]: any;
  }
  export interface Template {
    apiVersion?: string;
    kind?: string;
    metadata: Partial<ObjectMeta>;
    [key: string]: any;
  }
  /** What `patch` and `release` make. */
  export interface Wish {
    apiVersion: "opdev.dev/v1";
    kind: "Patch" | "Release";
    [key: string]: any;
  }
  export interface Event {
    type: "Normal" | "Warning";
    reason: string;
    message: string;
  }
  type Absent = null | undefined | false;

  /** What `reconcile`, `finalize` and `sync` return; all of it optional. */
  export interface Answer<Status = any> {
    /** The whole status; left as it is where it is absent. */
    status?: Status;
    /** Every child there should be; owned ones that are not listed are deleted. */
    children?: ReadonlyArray<Child | Wish | Absent>;
    patches?: ReadonlyArray<Wish | Absent>;
    releases?: ReadonlyArray<Wish | Absent>;
    conditions?: ReadonlyArray<{ type: string; status: boolean | string; reason?: string; message?: string } | Absent>;
    events?: ReadonlyArray<Event | Absent>;
    waiting?: string;
    /** Seconds, or a text such as `"30s"` or `"1h30m"`. */
    requeueAfter?: number | string;
    resyncAfterSeconds?: number;
    /** Of `finalize`: nothing is left to do. */
    finalized?: boolean;
  }

  /** The state of a chart that was released. */
  export interface Release {
    name: string;
    namespace: string;
    /** Name and version, such as `memcached-0.1.0`. */
    chart: string;
    values: any;
    /** `deployed`, `failed`, `pending-install` and so on. */
    status: string;
    revision: number;
    ready: boolean;
    /** Why it is not ready. */
    message: string;
    objects: ReadonlyArray<AnyObject>;
  }

  /** The second argument of `reconcile` and `finalize`. */
  export interface Context {
    /** `Kind.apiVersion`, such as `Pod.v1` or `Deployment.apps/v1` → name → object. */
    children: { [kind: string]: { [name: string]: AnyObject } };
    related: { [kind: string]: { [name: string]: AnyObject } };
    releases: { [name: string]: Release };
    finalizing: boolean;
    /** The time of this pass, RFC 3339; `Date.now()` is the same. */
    now: string;
  }

  /** How a release is made; the same words as for `charts` in opdev.yaml. */
  export interface ReleaseOptions {
    maxReleaseHistory?: number;
    failureRollbacks?: boolean;
    rollbackForce?: boolean;
    storage?: "secret" | "configmap";
    storageOwnerReference?: boolean;
    annotations?: { install?: (string | object)[]; upgrade?: (string | object)[]; uninstall?: (string | object)[] };
    helm?: { install?: ActionOptions; upgrade?: ActionOptions; uninstall?: ActionOptions; rollback?: ActionOptions };
    /** Writes the condition `Deployed` and `status.deployedRelease`. */
    status?: boolean;
  }
  export interface ActionOptions {
    wait?: boolean;
    waitForJobs?: boolean;
    timeout?: string;
    disableHooks?: boolean;
    description?: string;
    skipCRDs?: boolean;
    disableOpenAPIValidation?: boolean;
  }

  /** The release of a chart as the script beside it sees it; `null` where nothing is installed. */
  export interface ChartRelease {
    name: string;
    namespace: string;
    revision: number;
    status: string;
    values: any;
    manifest: string;
    notes: string;
  }
  /** What `before` and `after` are told. */
  export interface ChartHook {
    values: any;
    release: ChartRelease | null;
    action: "install" | "upgrade" | "reconcile";
  }
  /** What `before` and `after` may return; `waiting` of `before` holds the release back. */
  export type HookAnswer = Pick<Answer, "patches" | "conditions" | "events" | "waiting" | "requeueAfter" | "resyncAfterSeconds"> | void;
  /** What a script beside a chart may export; all of it optional. */
  export interface ChartScript<Self = AnyObject> {
    values?(self: Self, ctx: { values: any; release: ChartRelease | null }): object | Promise<object>;
    before?(self: Self, hook: ChartHook): HookAnswer | Promise<HookAnswer>;
    after?(self: Self, hook: ChartHook): HookAnswer | Promise<HookAnswer>;
    paused?(self: Self): boolean | Promise<boolean>;
    render?(objects: ReadonlyArray<AnyObject>, self: Self): object[] | Promise<object[]>;
    onEvent?(event: Event, self: Self): Event | null | void | false;
    namespaces?(self: Self): { release?: string; storage?: string } | null;
    serviceAccountName?(self: Self): string | null;
    watches?: { kind: string; map(object: AnyObject): (string | { namespace?: string; name: string })[] }[];
  }

  /** Metacontroller's request, for files that export `sync`. */
  export interface SyncRequest<Parent = AnyObject> {
    controller: object;
    parent: Parent;
    children: Context["children"];
    related: Context["related"];
    releases: Context["releases"];
    finalizing: boolean;
  }
}

declare var console: { [level in "debug" | "log" | "info" | "warn" | "error"]: (...parts: unknown[]) => void };

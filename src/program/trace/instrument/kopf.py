"""opdev puts this file before the modules of a Python program, so that an operator written with kopf tells what it does:
each pass with its causes, and an id on each call. It is no part of the project, and changes nothing in it. Without the
environment variable OPDEV_TRACE it does nothing; where anything in it fails, the program runs as it would without it."""

import os
import sys


def _give_way():
    """Imports the sitecustomize of the project or of the machine, in whose place Python has found this one."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != here]
    own = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    except ImportError:
        pass
    finally:
        if own is not None:
            sys.modules.setdefault("sitecustomize", own)


def _trace(socket_path):
    import asyncio
    import contextvars
    import functools
    import inspect
    import itertools
    import json
    import queue
    import socket
    import threading
    import time
    import uuid

    MARK = "X-Opdev-Reconcile"
    ROOM = 8192
    OBJECTS = 20000
    current = contextvars.ContextVar("opdev_pass", default=None)

    class Speaker:
        """Writes records from a thread of its own: the program never waits for whoever reads them."""

        def __init__(self):
            self.records = queue.Queue(ROOM)
            self.lock = threading.Lock()
            self.begun = False
            self.dropped = 0

        def say(self, record, **fields):
            self.begin()
            try:
                self.records.put_nowait({"record": record, **fields})
            except queue.Full:
                self.dropped += 1

        def begin(self):
            with self.lock:
                if not self.begun:
                    self.begun = True
                    threading.Thread(target=self.write, name="opdev", daemon=True).start()

        def write(self):
            try:
                line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                line.connect(socket_path)
                self.send(line, {"record": "hello", "pid": os.getpid(), "rung": "kopf"})
                while True:
                    record = self.records.get()
                    if self.dropped:
                        dropped, self.dropped = self.dropped, 0
                        self.send(line, {"record": "dropped", "records": dropped})
                    self.send(line, record)
            except OSError:
                # Nobody listens any more: what is said from now on finds no room.
                pass

        @staticmethod
        def send(line, record):
            line.sendall((json.dumps(record) + "\n").encode())

    speaker = Speaker()
    controllers = set()
    versions = {}
    ends = {}

    def about(resource, body):
        metadata = body.get("metadata") or {}
        return {
            "group": resource.group,
            "version": resource.version,
            "kind": body.get("kind") or resource.kind or "",
            "namespace": metadata.get("namespace") or "",
            "name": metadata.get("name") or "",
            "uid": metadata.get("uid") or "",
            "rv": metadata.get("resourceVersion") or "",
        }

    def keep(known, key, value):
        """Keeps what was seen of an object; of the oldest ones nothing."""
        known.pop(key, None)
        known[key] = value
        if len(known) > OBJECTS:
            del known[next(iter(known))]

    class Pass:
        """One pass. It is told once it does something: most events lead to nothing."""

        def __init__(self, resource, body, causes):
            self.id = uuid.uuid4().hex
            self.controller = resource.plural + ("." + resource.group if resource.group else "")
            self.object = about(resource, body)
            self.causes = causes
            self.task = asyncio.current_task()
            self.lock = threading.Lock()
            self.told = self.over = False
            self.error = ""
            self.after = 0
            if self.controller not in controllers:
                controllers.add(self.controller)
                kind = self.object["kind"]
                hooks = ["reconciler"]
                speaker.say("controller", name=self.controller, group=resource.group, kind=kind, workers=1, hooks=hooks)

        def tell(self):
            with self.lock:
                if self.told:
                    return
                self.told = True
            namespace, name = self.object["namespace"], self.object["name"]
            speaker.say(
                "begin",
                t=time.time_ns(),
                id=self.id,
                controller=self.controller,
                namespace=namespace,
                name=name,
                causes=self.causes,
            )

        def failed(self, error):
            self.error = self.error or "{}: {}".format(type(error).__name__, error)

        def end(self):
            with self.lock:
                if self.over:
                    return
                self.over = True
            if self.told:
                speaker.say("end", t=time.time_ns(), id=self.id, error=self.error, requeueAfter=self.after)

    def arguments(function, args, kwargs):
        return inspect.signature(function).bind_partial(*args, **kwargs).arguments

    def event_cause(resource, event):
        thing = about(resource, event["object"])
        old = versions.get(thing["uid"], "")
        if event["type"] == "DELETED":
            versions.pop(thing["uid"], None)
        else:
            keep(versions, thing["uid"], thing["rv"])
        what = {None: "add", "ADDED": "add", "DELETED": "delete"}.get(event["type"], "update")
        return {
            "t": time.time_ns(),
            "why": "event",
            "event": what,
            "initial": event["type"] is None,
            "object": thing,
            "old": old,
        }

    def processing(module):
        process = module.process_resource_event

        @functools.wraps(process)
        async def traced(*args, **kwargs):
            named = arguments(process, args, kwargs)
            resource, event = named["resource"], named["raw_event"]
            one = Pass(resource, event["object"], [event_cause(resource, event)])
            token = current.set(one)
            try:
                return await process(*args, **kwargs)
            except asyncio.CancelledError:
                raise
            except Exception as error:
                one.failed(error)
                raise
            finally:
                one.end()
                current.reset(token)

        module.process_resource_event = traced

    def execution(module):
        execute = module.execute_handler_once

        def of_timer(cause, handler):
            """A timer has passes of its own; what a daemon does is not divided into passes."""
            if not hasattr(handler, "interval"):
                current.set(None)
                return None
            before, _ = ends.get((cause.body.get("metadata", {}).get("uid"), handler.id), ("", ""))
            after = int((handler.interval or handler.idle or 0) * 1e9)
            causes = [{"t": time.time_ns(), "why": "requeue", "pass": before, "after": after}]
            one = Pass(cause.resource, cause.body, causes)
            current.set(one)
            return one

        @functools.wraps(execute)
        async def traced(*args, **kwargs):
            named = arguments(execute, args, kwargs)
            cause, handler, state = named["cause"], named["handler"], named["state"]
            sort = type(cause).__name__
            if sort == "DaemonCause":
                one = of_timer(cause, handler)
            elif sort in ("ChangingCause", "WatchingCause"):
                one = current.get()
            else:
                one = None
            if one is None:
                return await execute(*args, **kwargs)
            key = (one.object["uid"], handler.id)
            if state.retries and not one.told:
                before, error = ends.get(key, ("", ""))
                retry = {"t": time.time_ns(), "why": "retry", "pass": before, "attempt": state.retries, "error": error}
                one.causes.insert(0, retry)
            one.tell()
            outcome = await execute(*args, **kwargs)
            if outcome.exception is not None and type(outcome.exception).__name__ != "HandlerChildrenRetry":
                one.failed(outcome.exception)
            if outcome.delay is not None:
                one.after = int(outcome.delay * 1e9)
            keep(ends, key, (one.id, one.error))
            return outcome

        module.execute_handler_once = traced

    class Waiting:
        """A pass is over before kopf waits for the next one."""

        def __init__(self, module):
            self.module = module

        def __getattr__(self, name):
            return getattr(self.module, name)

        async def sleep(self, *args, **kwargs):
            one = current.get()
            if one is not None and one.task is asyncio.current_task():
                one.end()
                current.set(None)
            return await self.module.sleep(*args, **kwargs)

    def waiting(module):
        module.aiotime = Waiting(module.aiotime)

    def mark(headers):
        one = current.get()
        if one is None or one.over:
            return headers
        one.tell()
        return {**(headers or {}), MARK: one.id + " ctx"}

    def kopf_calls(module):
        request = module.request

        @functools.wraps(request)
        async def traced(*args, **kwargs):
            kwargs["headers"] = mark(kwargs.get("headers"))
            return await request(*args, **kwargs)

        module.request = traced

    def client_calls(module):
        """The official clients, with and without asyncio: a method or a coroutine, which are called alike."""
        request = module.RESTClientObject.request
        headers_at = list(inspect.signature(request).parameters).index("headers")

        @functools.wraps(request)
        def traced(*args, **kwargs):
            if len(args) > headers_at:
                args = (*args[:headers_at], mark(args[headers_at]), *args[headers_at + 1 :])
            else:
                kwargs["headers"] = mark(kwargs.get("headers"))
            return request(*args, **kwargs)

        module.RESTClientObject.request = traced

    return {
        "kopf._core.reactor.processing": processing,
        "kopf._core.actions.execution": execution,
        "kopf._core.actions.application": waiting,
        "kopf._core.engines.daemons": waiting,
        "kopf._cogs.clients.api": kopf_calls,
        "kubernetes.client.rest": client_calls,
        "kubernetes_asyncio.client.rest": client_calls,
    }


class _Finder:
    """Changes a module right after it was loaded."""

    def __init__(self, changes):
        self.changes = changes

    def find_spec(self, name, path=None, target=None):
        change = self.changes.get(name)
        if change is None:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is None:
                continue
            if spec.loader is not None and hasattr(spec.loader, "exec_module"):
                load = spec.loader.exec_module

                def load_and_change(module):
                    load(module)
                    try:
                        change(module)
                    except Exception:
                        pass

                spec.loader.exec_module = load_and_change
            return spec
        return None


try:
    _give_way()
finally:
    _socket = os.environ.get("OPDEV_TRACE")
    if _socket:
        try:
            sys.meta_path.insert(0, _Finder(_trace(_socket)))
        except Exception:
            pass

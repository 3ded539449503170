# SPDX-License-Identifier: MIT
"""A second simulator of a machine with several processors, to compare `peet simulate` with.

usage: machine.py compare PROTOCOLS SIMULATED INFO TRACE SETTING=VALUE...   differences from the JSON of peet simulate
       machine.py random SEED THREADS BYTES PROCESSES         a random trace, as text for peet import
       machine.py ordered SEED THREADS BYTES PROCESSES        the same with fences and atomics
       machine.py settings SEED                               settings of a random machine, as one line
       machine.py orders SEED                                 settings of a random store buffer, as one line

It shares no code with peet. PROTOCOLS is docs/protocols.md, whose tables are what its caches do. Settings and their
defaults are those of docs/machine-config.md. TRACE is what
`peet dump --format json` writes, INFO what `peet info --format json` does: the processes of threads.

marks=TEXT names the trace's text: the instructions of ordered traces that are fences or atomics.

It knows the fabrics ideal and bus, the replacements lru and fifo, wired barriers, and threads that are created and
joined, no more than there are processors. It is slow and simple: a set is a list, a line has one state for each
processor, and for each processor that lost a line to a write there is the set of bytes that others wrote since then.
"""
import json
import random
import re
import sys

# ---- settings ----

LEVEL = {"bytes": 0, "ways": 8, "line": 64, "latency": 0, "replacement": "lru", "shared": False, "write_through": False,
         "allocate": True, "inclusion": "none"}
DEFAULTS = {"cpus": 1, "turn": "block", "coherence.protocol": "mesi", "fabric.kind": "bus", "fabric.width": 8,
            "fabric.clock": 1, "fabric.address": 1, "fabric.memory": 100, "fabric.transfer": 40, "tlb.entries": 0,
            "tlb.ways": 4, "tlb.page": 4096, "tlb.cost": 30, "tlb.replacement": "lru", "barrier.kind": "central",
            "barrier.cost": 10, "scheduler.wait": "yield", "order.model": "sc", "order.stores": 32,
            "order.outstanding": 4, "order.delay": 0, "order.forwarding": True, "order.fence": 0, "order.atomic": 0,
            "order.domain": "context", "order.group": 2, "marks": ""}
for _name, _changes in (("l1", {"bytes": 32768}), ("l2", {"latency": 10}),
                        ("l3", {"ways": 16, "latency": 30, "shared": True})):
    for _key, _value in {**LEVEL, **_changes}.items():
        DEFAULTS[f"cache.{_name}.{_key}"] = _value


def read_settings(words):
    settings = dict(DEFAULTS)
    for word in words:
        path, value = word.split("=", 1)
        if path not in settings:
            sys.exit(f"machine.py: the second simulator does not know {path}")
        kind = type(settings[path])
        if kind is bool:
            settings[path] = value == "true"
        elif kind is int:
            factor = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(value[-1], 1)
            settings[path] = int(value.rstrip("KMG")) * factor
        else:
            settings[path] = value
    return settings


# ---- protocols, from their tables ----

TRANSACTIONS = ("read to own", "read", "invalidate", "update and memory", "update", "write back")


def own_cell(text):
    """For a cache's own processor: transaction, state if alone, state if shared, what comes behind if shared."""
    text = text.strip()
    if "→" not in text:
        return None, text, text, None
    first, rest = (part.strip() for part in text.split("→", 1))
    if "if shared, " in rest:
        alone, behind = (part.strip() for part in rest.split("; if shared, "))
        then, shared = (part.strip() for part in behind.split("→"))
        return first, alone, shared, then.replace(" and memory", "")
    alone, _, shared = rest.partition("; ")
    return first.replace(" and memory", ""), alone, shared.replace(" if shared", "") or alone, None


def read_protocols(path):
    """By name: for each state its rights, what reads and writes do, and what it does when it snoops a transaction."""
    protocols, name, heads = {}, None, []
    for line in open(path, encoding="utf-8"):
        if line.startswith("## "):
            name = line[3:].strip()
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
        if cells and cells[0] == "state":
            heads, protocols[name] = cells, {}
        elif cells and cells[0].startswith("**") and name in protocols:
            row = dict(zip(heads, cells))
            rights = cells[1] if cells[1] != "–" else ""
            snoops = {}
            for head in heads:
                if head.startswith("snoops ") and row[head] != "–":
                    words = [word.strip().strip("*") for word in row[head].split(",")]
                    snoops[head[7:]] = (words[0], set(words[1:]))
            protocols[name][cells[0].strip("*")] = {
                "rights": rights, "read": own_cell(row["reads"]), "write": own_cell(row["writes"]), "snoops": snoops}
    return protocols


# ---- caches ----

class Cache:
    """Sets of lines; in each the next victim stands first."""

    def __init__(self, size, ways, line, replacement):
        lines = size // line
        self.ways = ways or lines
        self.sets = [[] for _ in range(lines // self.ways)]
        self.moves = {"lru": True, "fifo": False}[replacement]

    def set_of(self, key):
        return self.sets[key[1] % len(self.sets)]

    def has(self, key):
        return key in self.set_of(key)

    def use(self, key):
        here = self.set_of(key)
        if key not in here:
            return False
        if self.moves:
            here.remove(key)
            here.append(key)
        return True

    def drop(self, key):
        here = self.set_of(key)
        if key in here:
            here.remove(key)

    def put(self, key):
        """The line that has to go, or None."""
        here = self.set_of(key)
        gone = here.pop(0) if len(here) == self.ways else None
        here.append(key)
        return gone


ORDER_COUNTS = ("stores", "forwarded", "most", "occupied", "full_stall", "fence_stall", "atomic_stall", "load_stall",
                "sync_stall")
COUNTS = ("reads", "writes", "hits_l1", "hits_l2", "hits_l3", "misses", "cold", "replaced", "true_sharing",
          "false_sharing", "from_caches", "upgrades", "updates", "invalidations", "write_backs", "throughs",
          "tlb_misses")
PROGRAM_COUNTS = ("misses", "cold", "replaced", "true_sharing", "false_sharing", "from_caches", "tlb_misses")


class Memory:
    def __init__(self, settings, protocol):
        self.s = settings
        self.protocol = protocol
        self.absent = next(iter(protocol))  # the first state: not here
        self.cpus = settings["cpus"]
        names = [n for n in ("l1", "l2", "l3") if settings[f"cache.{n}.bytes"]]
        self.level = [{k: settings[f"cache.{n}.{k}"] for k in LEVEL} for n in names]
        self.private = [l for l in self.level if not l["shared"]]
        self.line = self.level[0]["line"]
        make = lambda l: Cache(l["bytes"], l["ways"], l["line"], l["replacement"])
        self.own = [[make(l) for l in self.private] for _ in range(self.cpus)]
        self.shared = [make(l) for l in self.level[len(self.private):]]
        self.tlb = [Cache(settings["tlb.entries"] * settings["tlb.page"], settings["tlb.ways"], settings["tlb.page"],
                          settings["tlb.replacement"]) if settings["tlb.entries"] else None for _ in range(self.cpus)]
        self.through = all(l["write_through"] for l in self.private)
        self.state = [{} for _ in range(self.cpus)]  # of lines that a processor has
        self.had = [set() for _ in range(self.cpus)]
        self.taken = [{} for _ in range(self.cpus)]  # lines lost to a write: the bytes that others wrote since
        self.count = [dict.fromkeys(COUNTS, 0) for _ in range(self.cpus)]
        self.programs = {}  # by process: counts of its references
        self.waited = 0  # cycles of the reference that is on its way
        self.free_at = self.busy = 0  # of the bus

    # fabric

    def transfer(self, now, latency, size):
        """When a transaction that begins now is over."""
        if self.s["fabric.kind"] == "ideal":
            return now + latency
        grant = max(now, self.free_at)
        data = -(-size // self.s["fabric.width"]) * self.s["fabric.clock"]
        self.free_at = grant + self.s["fabric.address"] * self.s["fabric.clock"] + latency + data
        self.busy += self.free_at - grant
        self.waited += grant - now
        return self.free_at

    def send(self, now, size):
        """To memory; no processor waits for it."""
        waited = self.waited
        self.transfer(now, 0, size)
        self.waited = waited

    # lines that go

    def is_dirty(self, cpu, key):
        return "d" in self.protocol[self.state[cpu][key]]["rights"]

    def lose(self, cpu, key, is_taken):
        for cache in self.own[cpu]:
            cache.drop(key)
        del self.state[cpu][key]
        self.taken[cpu].pop(key, None)
        if is_taken:
            self.taken[cpu][key] = set()
            self.count[cpu]["invalidations"] += 1

    def put_shared(self, level, key):
        gone = self.shared[level].put(key)
        if gone is None or self.level[len(self.private) + level]["inclusion"] != "inclusive":
            return
        for cache in self.shared[:level]:
            cache.drop(gone)
        for cpu in range(self.cpus):
            if gone in self.state[cpu]:
                self.count[cpu]["write_backs"] += self.is_dirty(cpu, gone) and not self.through
                self.lose(cpu, gone, False)

    def take_back(self, key):
        """Memory gets a line: the first shared level has it then."""
        if self.shared and not self.shared[0].use(key):
            self.put_shared(0, key)

    def write_back(self, cpu, key, now):
        self.count[cpu]["write_backs"] += 1
        self.send(now, self.line)
        self.take_back(key)

    def write_through(self, cpu, now):
        self.count[cpu]["throughs"] += 1
        self.send(now, 8)

    def push_out(self, cpu, level, key, now):
        """A private level has given up a line."""
        if key not in self.state[cpu]:
            return
        before, behind = self.own[cpu][:level], self.own[cpu][level + 1:]
        if self.private[level]["inclusion"] == "inclusive":
            for cache in before:
                cache.drop(key)
        elif any(cache.has(key) for cache in before):
            return
        if any(cache.has(key) for cache in behind):
            return
        is_dirty = self.is_dirty(cpu, key)
        if is_dirty and behind:
            gone = behind[0].put(key)
            if gone is not None:
                self.push_out(cpu, level + 1, gone, now)
            return
        self.lose(cpu, key, False)
        if is_dirty and not self.through:
            self.write_back(cpu, key, now)

    def fill(self, cpu, levels, key, now):
        gone = [cache.put(key) for cache in self.own[cpu][:levels]]
        for level in reversed(range(levels)):
            if gone[level] is not None:
                self.push_out(cpu, level, gone[level], now)

    # transactions

    def give(self, cpu, key):
        """What is behind private caches gives a line; after how many cycles."""
        found = next((i for i, cache in enumerate(self.shared) if cache.use(key)), len(self.shared))
        for level in reversed(range(found)):
            self.put_shared(level, key)
        if found == len(self.shared):
            return self.s["fabric.memory"]
        number = len(self.private) + found
        self.count[cpu][f"hits_l{number + 1}"] += 1
        return self.level[number]["latency"]

    def transact(self, cpu, key, what, now):
        """All others see it. When it is over, and whether another one keeps a copy."""
        is_shared, supplier = False, None
        for other in range(self.cpus):
            if other == cpu or key not in self.state[other]:
                continue
            then, acts = self.protocol[self.state[other][key]]["snoops"][what]
            is_shared = is_shared or "shared" in acts
            supplier = other if "supplies" in acts else supplier
            if "flushes" in acts:
                self.take_back(key)
            if then == self.absent:
                self.lose(other, key, True)
            else:
                self.state[other][key] = then
        if what in ("read", "read to own"):
            latency = self.s["fabric.transfer"] if supplier is not None else self.give(cpu, key)
            self.count[cpu]["from_caches"] += supplier is not None
            return self.transfer(now, latency, self.line), is_shared
        self.count[cpu]["updates"] += what == "update"
        self.count[cpu]["upgrades"] += what == "invalidate"
        return self.transfer(now, 0, 8 if what == "update" else 0), is_shared

    # references

    def written(self, cpu, key, wanted):
        for other in range(self.cpus):
            if other != cpu and key in self.taken[other]:
                self.taken[other][key] |= wanted

    def cause(self, cpu, key, wanted):
        if key not in self.had[cpu]:
            return "cold"
        if key not in self.taken[cpu]:
            return "replaced"
        return "true_sharing" if self.taken[cpu][key] & wanted else "false_sharing"

    def write_around(self, cpu, key, wanted, now):
        owner = None
        for other in range(self.cpus):
            if key in self.state[other]:
                owner = other if self.is_dirty(other, key) and not self.through else owner
                self.lose(other, key, True)
        if owner is not None:
            self.write_back(owner, key, now)
        self.written(cpu, key, wanted)
        self.write_through(cpu, now)

    def miss(self, cpu, key, wanted, kind, now):
        is_write = kind in ("store", "update")
        self.count[cpu]["misses"] += 1
        self.count[cpu][self.cause(cpu, key, wanted)] += 1
        if kind == "store" and not self.private[0]["allocate"]:
            self.write_around(cpu, key, wanted, now)
            return now
        what, alone, shared, then = self.protocol[self.absent]["write" if is_write else "read"]
        end, is_shared = self.transact(cpu, key, what, now)
        if then and is_shared:
            end, is_shared = self.transact(cpu, key, then, end)
        self.taken[cpu].pop(key, None)
        self.had[cpu].add(key)
        self.state[cpu][key] = shared if is_shared else alone
        if is_write:
            self.written(cpu, key, wanted)
        self.fill(cpu, len(self.private), key, now)
        if is_write and self.through:
            self.write_through(cpu, now)
        return end

    def refer_line(self, cpu, key, wanted, kind, now):
        level = next((i for i, cache in enumerate(self.own[cpu]) if cache.use(key)), None)
        if level is None:
            return self.miss(cpu, key, wanted, kind, now)
        self.count[cpu][f"hits_l{level + 1}"] += 1
        end = now + self.private[level]["latency"]
        self.fill(cpu, level, key, now)
        if kind not in ("store", "update"):
            return end
        what, alone, shared, _ = self.protocol[self.state[cpu][key]]["write"]
        is_shared = False
        if what:
            over, is_shared = self.transact(cpu, key, what, now)
            end += over - now
        self.state[cpu][key] = shared if is_shared else alone
        self.written(cpu, key, wanted)
        if self.through:
            self.write_through(cpu, now)
        return end

    def refer(self, cpu, process, addr, size, kind, now):
        """When the reference is over. The process has it, too."""
        before = dict(self.count[cpu])
        end = self.refer_lines(cpu, process, addr, size, kind, now)
        program = self.programs.setdefault(process, dict.fromkeys(COUNTS, 0))
        for name in COUNTS:
            program[name] += self.count[cpu][name] - before[name]
        return end

    def refer_lines(self, cpu, process, addr, size, kind, now):
        while size > 0:
            here = min(size, self.line - addr % self.line)
            begin, self.waited = now, 0
            self.count[cpu]["reads"] += kind != "store"
            self.count[cpu]["writes"] += kind in ("store", "update")
            if self.tlb[cpu]:
                page = (process, addr // self.s["tlb.page"])
                if not self.tlb[cpu].use(page):
                    self.tlb[cpu].put(page)
                    self.count[cpu]["tlb_misses"] += 1
                    now += self.s["tlb.cost"]
            first = addr % self.line
            now = self.refer_line(cpu, (process, addr // self.line), set(range(first, first + here)), kind, now)
            if kind == "prefetch":
                now = begin
            addr += here
            size -= here
        return now


# ---- store buffers ----

class Buffer:
    """Stores that were issued and have not performed, oldest first. Each is a dictionary."""

    def __init__(self, machine):
        self.m = machine
        self.s = machine.s
        self.model = self.s["order.model"]
        self.stores = []
        self.barrier = []  # stores before the last store fence
        self.at = self.free_at = 0

    @staticmethod
    def overlap(a, b):
        return a["addr"] < b["addr"] + b["size"] and b["addr"] < a["addr"] + a["size"]

    def may_leave(self, store):
        for other in self.stores:
            if other is store:
                return True
            if (self.model == "tso" or self.overlap(store, other) or other in store["after"]
                    or (self.model in ("rcsc", "rcpc") and "release" in store["flags"])):
                return False
        return True

    def change(self):
        """The next change: cycle, store, whether it leaves; None if there is none."""
        leaving = [x for x in self.stores if x["end"] is not None]
        best = min(((x["end"], i, x, False) for i, x in enumerate(leaving)), key=lambda c: c[:2], default=None)
        best = (best[0], best[2], False) if best else None
        if len(leaving) < self.s["order.outstanding"]:
            for x in self.stores:
                if x["end"] is None and self.may_leave(x):
                    when = max(x["issued"] + self.s["order.delay"], self.at, self.free_at)
                    if best is None or when < best[0]:
                        best = (when, x, True)
                    break
        return best

    def step(self):
        when, store, leaves = self.change()
        if leaves:
            over = self.m.memory.refer(store["cpu"], store["process"], store["addr"], store["size"], "store", when)
            store["end"] = when + 1 + max(0, over - when - self.m.hit)
            self.free_at = when + 1
        else:
            self.stores.remove(store)
            self.m.order["occupied"] += store["end"] - store["issued"]
        self.at = max(self.at, when)
        return when

    def advance(self, now):
        while self.change() and self.change()[0] <= now:
            self.step()

    def wait(self, cpu, why, condition):
        """Until the condition no longer holds."""
        begin = self.m.clock[cpu]
        while condition():
            self.m.clock[cpu] = max(self.m.clock[cpu], self.step())
        self.m.order[why + "_stall"] += self.m.clock[cpu] - begin

    def touches(self, piece):
        return any(self.overlap(piece, x) for x in self.stores)

    def hidden(self, piece):
        return sum(any(x["addr"] <= a < x["addr"] + x["size"] for x in self.stores)
                   for a in range(piece["addr"], piece["addr"] + piece["size"]))

    def load(self, cpu, process, piece):
        def waits():
            if self.model == "rcsc" and "acquire" in piece["flags"] and any("release" in x["flags"] for x in self.stores):
                return True
            if not self.s["order.forwarding"]:
                return self.touches(piece)
            return 0 < self.hidden(piece) < piece["size"]
        self.wait(cpu, "load", waits)
        if self.hidden(piece):
            self.m.order["forwarded"] += 1
            self.m.clock[cpu] += self.m.hit
        else:
            self.m.access(cpu, process, piece, "load")

    def store(self, cpu, process, piece):
        self.wait(cpu, "full", lambda: len(self.stores) == self.s["order.stores"])
        self.stores.append({**piece, "cpu": cpu, "process": process, "issued": self.m.clock[cpu], "end": None,
                            "after": [x for x in self.barrier if x in self.stores]})
        self.m.order["stores"] += 1
        self.m.order["most"] = max(self.m.order["most"], len(self.stores))
        self.advance(self.m.clock[cpu])

    def atomic(self, cpu, process, piece, kind):
        def waits():
            if self.model == "tso" or (self.model in ("rcsc", "rcpc") and "release" in piece["flags"]):
                return bool(self.stores)
            released = any("release" in x["flags"] for x in self.stores)
            if any(x in self.stores for x in self.barrier):
                return True
            return self.touches(piece) or (self.model == "rcsc" and "acquire" in piece["flags"] and released)
        self.wait(cpu, "atomic", waits)
        self.m.clock[cpu] += self.s["order.atomic"]
        self.m.order["atomic_stall"] += self.s["order.atomic"]
        self.m.access(cpu, process, piece, kind)

    def refer(self, cpu, process, piece, kind):
        self.advance(self.m.clock[cpu])
        if "atomic" in piece["flags"] and kind != "load":
            self.atomic(cpu, process, piece, kind)
            return
        if kind == "prefetch":
            self.m.access(cpu, process, piece, kind)
        if kind in ("load", "update"):
            self.load(cpu, process, piece)
        if kind in ("store", "update"):
            self.store(cpu, process, piece)

    def empty(self, cpu, why):
        self.advance(self.m.clock[cpu])
        self.wait(cpu, why, lambda: self.stores)

    def fence(self, cpu, flags):
        if "fence_full" in flags:
            self.empty(cpu, "fence")
            self.m.clock[cpu] += self.s["order.fence"]
            self.m.order["fence_stall"] += self.s["order.fence"]
        if "fence_ss" in flags:
            self.barrier = list(self.stores)


def read_marks(path):
    """By address of a block: address and flags of its instructions that order memory."""
    marks, block, first = {}, [], False
    for line in open(path, encoding="utf-8") if path else []:
        words = line.replace(",", " ").split()
        if line.startswith("block"):
            block, first = [], True
        elif line.startswith("  0x"):
            if first:
                marks[int(words[0], 16)] = block
            first = False
            flags = {w for w in words[3:] if w in ("atomic", "acquire", "release", "fence_full", "fence_ss", "fence_ll")}
            if flags:
                block.append((int(words[0], 16), flags))
    return marks


# ---- threads ----

def read_trace(info, path):
    """By thread, in the order of their numbers: its steps, and its process."""
    threads = {}
    rows = json.load(open(info, encoding="utf-8"))["threads"]["rows"]
    process = {row["thread"]: row["process"] for row in rows}
    for line in open(path, encoding="utf-8"):
        r = json.loads(line)
        steps = threads.setdefault(r["thread"], [])
        kind = r["kind"]
        if kind == "block":
            steps.append(("block", r["size"], r["pc"]))
        elif kind in ("load", "store", "update", "prefetch"):
            steps.append((kind, r["addr"], r["size"], r.get("pc")))
        elif kind in ("thread_create", "thread_join"):
            steps.append((kind, r["arguments"].get("child", r["arguments"].get("thread"))))
        elif kind == "thread_end":
            steps.append((kind,))
        elif kind == "barrier_wait":
            steps.append((kind, r["arguments"]["barrier"], r["arguments"]["count"]))
        elif kind in ("range_read", "range_write", "range_copy", "range_compare"):
            a = list(r["arguments"].values())
            if kind in ("range_read", "range_write"):
                steps.append(("ranges", [("load" if kind == "range_read" else "store", a[0], a[1])]))
            else:
                first, second = (a[1], a[0]) if kind == "range_copy" else (a[0], a[1])
                what = "store" if kind == "range_copy" else "load"
                steps.append(("ranges", [("load", first, a[2]), (what, second, a[2])]))
        elif re.match("mutex|cond|rwlock|sem|spin", kind):
            sys.exit(f"machine.py: the second simulator does not know what '{kind}' does")
    return threads, process


EVENTS = ("thread_create", "thread_join", "thread_end", "barrier_wait", "ranges")


class Machine:
    """The processor with the smallest clock goes on; of several, the one with the smallest number."""

    def __init__(self, settings, protocol, trace):
        self.s = settings
        self.steps, self.process = trace
        self.memory = Memory(settings, protocol)
        self.clock = [0] * settings["cpus"]
        self.runs = [None] * settings["cpus"]  # the thread that a processor has
        self.waits = set()                     # threads that cannot go on
        self.at = dict.fromkeys(self.steps, 0)
        self.ended, self.joins, self.barriers = set(), {}, {}
        self.hit = settings["cache.l1.latency"] if settings["cache.l1.bytes"] else 0
        self.order = dict.fromkeys(ORDER_COUNTS, 0)
        part = settings["order.group"] if settings["order.domain"] == "group" else 1
        self.buffers = [Buffer(self) for _ in range(-(-settings["cpus"] // part))] if settings["order.model"] != "sc" else []
        self.part = part
        self.marks = read_marks(settings["marks"])
        self.left = {t: [] for t in self.steps}  # instructions of a thread's block that order memory, not yet executed
        self.instructions = self.references = 0
        created = {step[1] for steps in self.steps.values() for step in steps if step[0] == "thread_create"}
        for thread in sorted(self.steps):
            if thread not in created:
                self.start(thread, 0)

    def pass_marks(self, cpu, thread, pc):
        """Executes the fences before an instruction; returns its flags."""
        left = self.left[thread]
        while left and (pc is None or left[0][0] < pc):
            self.buffers[cpu // self.part].fence(cpu, left.pop(0)[1])
        return left[0][1] if left and left[0][0] == pc else set()

    def synchronize(self, cpu, thread):
        if self.buffers:
            self.pass_marks(cpu, thread, None)
            self.buffers[cpu // self.part].empty(cpu, "sync")

    def access(self, cpu, process, piece, kind):
        self.clock[cpu] = self.memory.refer(cpu, process, piece["addr"], piece["size"], kind, self.clock[cpu])

    def advance_all(self, now):
        while True:
            changes = [(b.change()[0], i) for i, b in enumerate(self.buffers) if b.change()]
            if not changes or min(changes)[0] > now:
                return
            self.buffers[min(changes)[1]].step()

    def start(self, thread, now):
        cpu = self.runs.index(None)
        self.runs[cpu] = thread
        self.clock[cpu] = max(self.clock[cpu], now)

    def wake(self, thread, now):
        self.waits.discard(thread)
        cpu = self.runs.index(thread)
        self.clock[cpu] = max(self.clock[cpu], now)

    def end(self, cpu, thread):
        self.ended.add(thread)
        self.runs[cpu] = None
        for other in [t for t, wanted in self.joins.items() if wanted == thread]:
            del self.joins[other]
            self.wake(other, self.clock[cpu])

    def move(self, cpu, thread, kind, addr, size):
        """Library code refers to bytes line by line, at one instruction for 16 of them."""
        while size > 0:
            here = min(size, self.memory.line - addr % self.memory.line)
            self.clock[cpu] += (here + 15) // 16
            self.refer(cpu, thread, (kind, addr, here, None))
            addr += here
            size -= here

    def event(self, cpu, thread, step):
        if step[0] == "ranges":
            for part in step[1]:
                self.move(cpu, thread, *part)
        elif step[0] == "thread_create":
            self.start(step[1], self.clock[cpu])
        elif step[0] == "thread_join" and step[1] not in self.ended:
            self.joins[thread] = step[1]
            self.waits.add(thread)
        elif step[0] == "barrier_wait":
            there = self.barriers.setdefault(step[1], [])
            there.append(thread)
            self.waits.add(thread)
            if len(there) == step[2]:
                for other in there:
                    self.wake(other, self.clock[cpu] + self.s["barrier.cost"])
                there.clear()

    def refer(self, cpu, thread, step):
        self.references += 1
        if self.buffers:
            flags = self.pass_marks(cpu, thread, step[3]) if step[3] is not None else set()
            part, addr, left = min(64, self.memory.line), step[1], step[2]
            while left > 0:
                here = min(left, part - addr % part)
                self.buffers[cpu // self.part].refer(cpu, self.process[thread],
                                                     {"addr": addr, "size": here, "flags": flags}, step[0])
                addr += here
                left -= here
            return
        self.clock[cpu] = self.memory.refer(cpu, self.process[thread], step[1], step[2], step[0], self.clock[cpu])

    def turn(self, cpu):
        """A block of instructions and its first reference, or all of them; or the next reference; or an event."""
        thread = self.runs[cpu]
        steps, at = self.steps[thread], self.at[thread]
        if at == len(steps):
            self.synchronize(cpu, thread)
            self.end(cpu, thread)
            return
        if steps[at][0] not in EVENTS:
            self.advance_all(self.clock[cpu])
        if steps[at][0] == "block":
            if self.buffers:
                self.pass_marks(cpu, thread, None)
                self.left[thread] = list(self.marks.get(steps[at][2], []))
            self.instructions += steps[at][1]
            self.clock[cpu] += steps[at][1]
            at += 1
        elif steps[at][0] in EVENTS:
            self.at[thread] = at + 1
            if steps[at][0] != "ranges":
                self.synchronize(cpu, thread)
            elif self.buffers:
                self.pass_marks(cpu, thread, None)
            self.event(cpu, thread, steps[at])
            return
        while at < len(steps) and steps[at][0] in ("load", "store", "update", "prefetch"):
            self.refer(cpu, thread, steps[at])
            at += 1
            if self.s["turn"] == "reference":
                break
        self.at[thread] = at

    def run(self):
        while True:
            ready = [(self.clock[cpu], cpu) for cpu, thread in enumerate(self.runs)
                     if thread is not None and thread not in self.waits]
            if not ready:
                break
            self.turn(min(ready)[1])
        if any(thread is not None for thread in self.runs):
            sys.exit("machine.py: threads wait for each other")
        cycles = max(self.clock)
        m = self.memory
        return {"run": {"cycles": cycles, "instructions": self.instructions, "references": self.references,
                        "misses": sum(c["misses"] for c in m.count), "utilisation": m.busy / cycles if cycles else 0},
                "memory": m.count, "programs": m.programs, "order": self.order if self.buffers else {}}


# ---- comparing ----

def compare(simulated, expected):
    """Lines that say what differs."""
    wrong = []
    run, rows = simulated["runs"]["rows"][0], simulated["memory"]["rows"]
    for name, value in expected["run"].items():
        if abs(run[name] - value) > 1e-9 * abs(value):
            wrong.append(f"{name}: {run[name]}, not {value}")
    for cpu, counts in enumerate(expected["memory"]):
        for name in COUNTS:
            if rows[cpu][name] != counts[name]:
                wrong.append(f"processor {cpu}, {name}: {rows[cpu][name]}, not {counts[name]}")
    for name, value in expected["order"].items():
        row = simulated["orders"]["rows"][0]
        if name != "occupied" and row[name] != value:
            wrong.append(f"store buffers, {name}: {row[name]}, not {value}")
        if name == "occupied" and run["cycles"]:
            value /= run["cycles"] * run["processors"]
            if abs(row["occupancy"] - value) > 1e-9 * value:
                wrong.append(f"store buffers, occupancy: {row['occupancy']}, not {value}")
    programs = expected["programs"] if len(expected["programs"]) > 1 else {}
    for row in simulated.get("programs", {"rows": []})["rows"]:
        counts = programs.pop(row["process"])
        for name in PROGRAM_COUNTS:
            if row[name] != counts[name]:
                wrong.append(f"process {row['process']}, {name}: {row[name]}, not {counts[name]}")
    return wrong + [f"process {process}: it is not told" for process in programs]


# ---- random traces ----

def random_marks(r, kind):
    """Flags of an instruction with that reference, and a fence behind it or None."""
    flags = r.choice((["atomic"], ["atomic", "acquire"], ["atomic", "release"])) if kind == "update" else []
    flags = flags if r.random() < 0.5 else []
    if kind in ("load", "store") and r.random() < 0.15:
        flags = ["acquire" if kind == "load" else "release"]
    return flags, r.choice(("fence_full", "fence_ss", "fence_ss", "fence_ll")) if r.random() < 0.15 else None


def random_trace(seed, threads, size, processes, is_ordered=False):
    """Private strides, lines that all threads want, neighbours of one thread each, references of any size."""
    r = random.Random(seed)
    print("peet text 1")
    for p in range(1, processes + 1):
        print(f'process {p} parent 0 program "random" command "random"')
    for t in range(1, threads + 1):
        print(f'thread {t} process {1 + (t - 1) % processes} parent 0 ordinal {t - 1} name ""')
    blocks = []
    for b in range(1, 41):
        operands = [(r.choice(("load", "load", "load", "store", "store", "update", "prefetch")),
                     r.choice((1, 1, 2, 4, 8, 8, 16, 32, 100))) for _ in range(r.choice((0, 1, 1, 2, 3)))]
        print(f"block b{b} slots {len(operands)}")
        for i, (kind, length) in enumerate(operands):
            flags, fence = random_marks(r, kind) if is_ordered else ([], None)
            print(f"  {hex(0x401000 + 256 * b + 8 * i)} 4 " + " ".join(["plain"] + flags) + f", {kind} {length} [s{i}]")
            if fence:
                print(f"  {hex(0x401000 + 256 * b + 8 * i + 4)} 4 fence {fence}")
        print(f"  {hex(0x401000 + 256 * b + 64)} 4 plain")
        blocks.append([length for _, length in operands])
    base, walk = 0x7f0000000000, [0] * (threads + 1)

    def address(t, length):
        kind = r.randrange(8)
        if kind < 2:
            walk[t] += length
            return size * t // 2 + walk[t] % (size // 2)
        if kind < 4:
            return r.randrange(192)
        if kind < 6:
            return 1024 + 64 * r.randrange(3) + t * length
        return r.randrange(2 * size)

    for _ in range(700):
        for t in range(1, threads + 1):
            b = r.randrange(len(blocks))
            print(f"{t} - b{b + 1} " + " ".join(hex(base + address(t, n)) for n in blocks[b]))
    for t in range(1, threads + 1):
        print(f"{t} - thread_end 0 0")
    print("end")


def random_settings(seed):
    """Caches of a few dozen lines, so that a short trace fills them."""
    r = random.Random(seed)
    line = r.choice((4, 16, 32, 64, 64, 64, 128, 256, 1024, 4096))
    words = [f"turn={r.choice(('reference', 'reference', 'block'))}", f"fabric.kind={r.choice(('ideal', 'bus'))}",
             f"fabric.width={r.choice((1, 3, 8, 32))}", f"fabric.clock={r.randint(1, 3)}",
             f"fabric.address={r.randint(0, 3)}",
             f"fabric.memory={r.randint(10, 100)}", f"fabric.transfer={r.randint(5, 50)}"]
    if r.random() < 0.3:
        ways, page = r.randint(1, 4), r.choice((512, 1024, 4096))
        words += [f"tlb.entries={ways * r.randint(1, 4)}", f"tlb.ways={ways}", f"tlb.page={page}",
                  f"tlb.cost={r.randint(1, 40)}"]
    is_shared, lines = False, r.choice((4, 8, 16))
    for level in range(1, r.randint(1, 3) + 1):
        is_shared = is_shared or (level > 1 and r.random() < 0.5)
        ways, switch = r.choice((1, 2, 4, 8)), lambda part: str(r.random() < part).lower()
        lines = lines * r.choice((1, 2, 4)) // ways * ways or ways
        words += [f"cache.l{level}.{text}" for text in (
            f"bytes={lines * line}", f"ways={r.choice((ways, ways, 0))}", f"line={line}", f"latency={r.randint(0, 20)}",
            f"replacement={r.choice(('lru', 'lru', 'fifo'))}", f"shared={str(is_shared).lower()}",
            f"write_through={switch(0.3)}", f"allocate={switch(0.75)}", f"inclusion={r.choice(('none', 'inclusive'))}")]
    print(" ".join(words))


def random_orders(seed):
    """Buffers of a few stores, so that they are often full."""
    r = random.Random(seed)
    print(" ".join([f"order.stores={r.choice((1, 2, 4, 8, 64))}", f"order.outstanding={r.choice((1, 2, 4, 64))}",
                    f"order.delay={r.choice((0, 0, 5, 100))}", f"order.forwarding={r.choice(('true', 'true', 'false'))}",
                    f"order.fence={r.choice((0, 7))}", f"order.atomic={r.choice((0, 3))}",
                    f"order.domain={r.choice(('context', 'context', 'core', 'group'))}", f"order.group={r.randint(1, 3)}"]))


def main():
    what, args = sys.argv[1], sys.argv[2:]
    if what in ("random", "ordered"):
        random_trace(*map(int, args), what == "ordered")
        return 0
    if what == "orders":
        random_orders(int(args[0]))
        return 0
    if what == "settings":
        random_settings(int(args[0]))
        return 0
    settings = read_settings(args[4:])
    protocol = read_protocols(args[0])[settings["coherence.protocol"]]
    expected = Machine(settings, protocol, read_trace(args[2], args[3])).run()
    wrong = compare(json.load(open(args[1], encoding="utf-8")), expected)
    print("\n".join(wrong[:10]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

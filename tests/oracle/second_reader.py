# SPDX-License-Identifier: MIT
"""usage: python3 tests/oracle/second_reader.py FILE.peet

A second reader of traces, made from docs/trace-format.md alone, and compared with the library by second_reader.sh: it
shows that the document says everything. It is near to the document's words instead of fast, and shares nothing with the
library. Whoever changes the format changes the document, and then this reader from the document.

Prints for each thread, by its id, what it did, with loops expanded and long ranges in pieces:
    T b ITEM ADDR NINSNS           a block
    T l|s|u|p INSN_ADDR ADDR SIZE  a load, store, update or prefetch of the block before it
    T e NAME SITE ARGUMENT...      an event; set_register is not shown
Says on standard error what is damaged or missing. Exit status: 0 whole, 3 not a trace, 4 damaged or not whole.
"""
import ctypes, struct, sys
from types import SimpleNamespace

ZSTD, XXHASH = ctypes.CDLL("libzstd.so.1"), ctypes.CDLL("libxxhash.so.0")
for function in ZSTD.ZSTD_decompress, ZSTD.ZSTD_getFrameContentSize, XXHASH.XXH3_64bits:
    function.restype = ctypes.c_uint64
    function.argtypes = [ctypes.c_char_p, ctypes.c_size_t] * (2 if function is ZSTD.ZSTD_decompress else 1)

MASK, PIECE, DEFS, STREAM, TIME, INDEX = 2**64 - 1, 2**24 - 1, 1, 2, 3, 4

class Damage(Exception):
    """A part of the file is not as the document wants it."""

def must(condition, what):
    if not condition:
        raise Damage(what)

# ---- section 1: numbers; section 3: packed parts ----
def checked(data, check):
    return struct.unpack("<Q", check)[0] == XXHASH.XXH3_64bits(data, len(data))

def unzigzag(z):
    return (z >> 1) ^ -(z & 1)

class Bytes:
    """Some bytes, from which fields are taken one after the other."""
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        must(n <= len(self.data) - self.at, "it ends in the middle")
        self.at += n
        return self.data[self.at - n : self.at]

    def leb(self, low=0, high=MASK):
        value, shift, byte = 0, 0, 128
        while byte & 128:
            byte = self.take(1)[0]
            must(shift < 63 or byte <= 1, "a number of more than 64 bits")
            value, shift = value | (byte & 127) << shift, shift + 7
        must(low <= value <= high, f"{value} where {low} to {high} are possible")
        return value

    def sleb(self):
        return unzigzag(self.leb())

    def string(self):
        text = self.take(self.leb())
        must(0 not in text, "a string with a zero byte")
        return text.decode("utf-8", "replace")

    def fields(self, types):
        """Numbers n, signed ones z and strings s; the types behind a star are there as often as a number says."""
        take = {"n": self.leb, "z": self.sleb, "s": self.string}
        once, *several = types.split("*")
        return [take[t]() for t in once] + [[take[t]() for t in group] for group in several for _ in range(self.leb())]

    def packed(self, most=2**28):
        method, size = self.leb(high=1), self.leb(high=most)
        data = self.take(self.leb())
        if method == 1:
            must(ZSTD.ZSTD_getFrameContentSize(data, len(data)) in (size, MASK), "a zstd frame of another size")
            buffer = ctypes.create_string_buffer(size + 1)
            must(ZSTD.ZSTD_decompress(buffer, size, data, len(data)) == size, "zstd cannot unpack it")
            data = buffer.raw[:size]
        must(size == len(data), "a raw part has two sizes")
        return Bytes(data)

# ---- sections 2, 3, 4 and 11: the file and its chunks ----
class Chunk:
    """What a header says; fields are its bytes 8 to 63."""
    def __init__(self, at, fields):
        self.at, self.fields = at, fields
        numbers = struct.unpack("<BBxxIQQQQQQ", fields)
        self.type, self.flags, self.thread, self.size, self.sequence, self.before, *self.counts = numbers
        self.end = at + 80 + (self.size + 7) // 8 * 8

    def __str__(self):
        insns = f", instructions {self.before} to {self.before + self.counts[0]}" if self.type == STREAM else ""
        return f"thread {self.thread}{insns} (chunk {self.sequence} of type {self.type}, at byte {self.at})"

def read_header(data, at):
    header = data[at : at + 80]
    must(len(header) == 80 and header[:8] == b"\x8apeetchk", "no chunk is there")
    must(checked(header[:72], header[72:]), "the checksum of its header is wrong")
    chunk = Chunk(at, header[8:64])
    must(chunk.size <= 2**28 and DEFS <= chunk.type <= INDEX and chunk.thread < 2**32 - 1, "its header cannot be")
    return chunk

def read_payload(data, chunk):
    payload = data[chunk.at + 80 : chunk.at + 80 + chunk.size]
    must(len(payload) == chunk.size, "it is cut off")
    must(checked(payload, data[chunk.at + 64 : chunk.at + 72]), "its checksum is wrong")
    return Bytes(payload)

def chunks_by_index(data, complain):
    magic, at, count, check = struct.unpack("<8sQQ8s", data[-32:])
    must(magic == b"\x8bpeetend" and checked(data[-32:-8], check), "it does not end with a trailer")
    index = read_header(data, at)
    must(index.type == INDEX, "the trailer does not tell where the index is")
    entries = read_payload(data, index).packed().data
    must(len(entries) == 64 * count, "the index has another size than the trailer says")
    chunks = [Chunk(*entry) for entry in struct.iter_unpack("<Q56s", entries)]
    must(all(c.at % 8 == 0 and 32 <= c.at and c.end <= at for c in chunks), "the index names impossible places")
    for chunk in chunks:
        try:
            must(read_header(data, chunk.at).fields == chunk.fields, "the index says something else of it")
            yield chunk
        except Damage as damage:
            complain(f"lost: {chunk}: {damage}")

def chunks_by_scan(data, complain):
    at = expected = 32
    while at < len(data):
        try:
            chunk = read_header(data, at)
            yield chunk
            at = expected = chunk.end
        except Damage as damage:
            if at == expected:
                complain(f"byte {at}: {damage}")
            at += 8

def read_chunks(data, complain):
    if len(data) < 32 or data[:16] != b"\x89PEET\r\n\x1a\1\0\0\0\0\0\0\0" or not checked(data[:24], data[24:32]):
        raise ValueError("not a peet trace of version 1")
    try:
        return list(chunks_by_index(data, complain))
    except Damage as damage:
        complain(f"it is read without its index: {damage}")
        return list(chunks_by_scan(data, complain))

# ---- sections 6 to 9: definitions ----
def read_block(f, _):
    number, slots = f.leb(), f.leb(high=64)
    insns, operands, computes, effects, used, end, at = [], [], [], [], [0], 0, 0

    def source(low=0):
        used.append(f.leb(low, 144))
        must(used[-1] <= 16 + slots or used[-1] > 80, "a slot that the block does not have")
        return used[-1]

    for _ in range(f.leb(1, 4096)):
        insns.append((end + f.sleb()) & MASK)
        end = insns[-1] + f.leb(high=255)
        f.leb(high=16), f.leb(high=2**16 - 1), f.leb(high=1) and f.sleb()  # class, flags, target
    for _ in range(f.leb(high=1024)):
        at, kind, size = f.leb(at, len(insns) - 1), f.leb(1, 4), f.leb(1, PIECE)
        address, more = (source(), source(), f.leb(high=63), f.sleb()), f.leb(high=15)
        count = source(1) if more & 1 else None
        predicate = (source(1), f.leb(high=63)) if more & 4 else None
        if more & 8:
            f.leb(17, 17 + slots - (size + 7) // 8)
            must(count is None, "an operand with a value and an element count")
        operands.append((insns[at], "lsup"[kind - 1], size, address, count, more >> 1 & 1, predicate))
    for i in range(f.leb(high=64)):
        computes.append((f.leb(high=10), source(), source(), f.leb(high=63), f.leb(4, 8), f.sleb()))
        must(computes[i][4] in (4, 8) and max(computes[i][1:3]) <= 80 + i, "a compute that cannot be")
    for _ in range(f.leb(high=2**16 - 1)):
        effects.append((f.leb(high=15), source(), f.sleb()))
    must(max(used) <= 80 + len(computes), "a temporary that is not defined")
    return SimpleNamespace(kind="block", number=number, slots=slots, insns=insns, operands=operands, computes=computes,
                           effects=effects)

def read_loop(f, items):
    number, values, counts, n = f.leb(), f.leb(high=64), f.leb(high=64), f.leb(1, 256)
    taken = 0

    def node(limit, depth):
        """Takes a node and those inside it."""
        nonlocal taken
        taken += 1
        block, end, in_slot, trips, entry, body = f.leb(), taken, 0, 0, 0, []
        if block == 0:
            end, in_slot, trips, entry = f.leb(taken, limit), f.leb(high=1), f.leb(), f.leb()
            must(depth <= 8 and (depth > 1 or end == n) and (trips < counts or not in_slot), "a loop that cannot be")
        else:
            block = items.get(block)
            must(depth > 1 and block and block.kind == "block", "a node that is neither loop nor block")
            must(not block.effects and all(o[4] is o[6] is None for o in block.operands), "a block not for loops")
        assignments = [(f.leb(), f.leb(), f.sleb()) for _ in range(f.leb(entry, 2**16 - 1))]
        must(all((source & 255 < values or source & 255 == 255) and source >> 8 <= values for _, source, _ in assignments),
             "a value that is not there")
        must(all(to == i if block else to < values for i, (to, _, _) in enumerate(assignments)), "a wrong assignment")
        while taken < end:
            body.append(node(end, depth + 1))
        must(len(assignments) == block.slots if block else any(inner.block for inner in body), "an incomplete node")
        return SimpleNamespace(block=block, entry=assignments[:entry], step=assignments[entry:], body=body, trips=trips,
                               slot=values + trips if in_slot else None)

    return SimpleNamespace(kind="loop", number=number, slots=values + counts, root=node(n, 1))

def read_event(f, _):
    number, name, slots, site = f.fields("nsnn")
    return SimpleNamespace(kind="event", number=number, slots=slots, name=name, site=site)

FIELDS = {1: "ss", 2: "nnss", 3: "nssn*nnnn*nnns", 4: "nnnns", 5: "nnnns", 6: "ns"}  # of meta, process, module, ...
ITEMS = {7: read_block, 8: read_loop, 9: read_event}

def read_definitions(payload, items, threads, complain):
    records = payload.packed()
    while records.at < len(records.data):
        kind, f = records.leb(), Bytes(records.take(records.leb()))
        try:
            if kind in ITEMS:
                item = ITEMS[kind](f, items)
                must(1 <= item.number < 2**26 and item.slots <= 64, f"item {item.number} cannot be")
                must(items.setdefault(item.number, item) is item, f"item {item.number} is defined twice")
            fields = f.fields(FIELDS.get(kind, ""))
            if kind == 5:
                must(fields[0] < 2**32 - 1 and fields[0] not in threads, f"thread {fields[0]} cannot be defined")
                threads.add(fields[0])
        except Damage as damage:
            complain(f"lost: a definition of kind {kind}: {damage}")

# ---- section 5: streams ----
def differences(classes, b0, b1, b2, b3, high):
    n = len(b0.data)
    must(len(classes.data) == (n + 3) // 4, "its planes do not fit each other")
    for i in range(n):
        c = classes.data[i // 4] >> (2 * (i % 4)) & 3
        number = b0.take(1) + b1.take(1) + b2.take(c >= 1) + b3.take(c >= 2) + high.take(4 if c == 3 else 0)
        yield unzigzag(int.from_bytes(number, "little"))
    must(all(plane.at == len(plane.data) for plane in (b1, b2, b3, high)), "its planes do not fit each other")

def next_run(runs):
    run = runs.take(1)[0]
    while runs.data[runs.at - 1] == 255:
        run += runs.take(1)[0]
    return run

def new_state(item, slots):
    return SimpleNamespace(item=item, successors=[None] * 3, missed=0, last=[0] * slots, stride=[0] * slots)

def decode(payload, items):
    """Registers at the beginning of a chunk, and the items that it executes with the values of their slots."""
    count, mask = payload.leb(high=2**22 + 64), payload.leb(high=2**16 - 1)
    registers = [payload.leb() if mask >> i & 1 else 0 for i in range(16)]
    runs, tokens, numbers, masks, *others = [payload.packed(2**25) for _ in range(10)]
    left = differences(*others)
    states, executed, now, run = {}, [], new_state(None, 0), next_run(runs)
    for _ in range(count):
        token = tokens.take(1)[0] if run == 0 else 0
        rank = token & 3
        must(token <= 7, "a token that cannot be")
        if rank == 3:
            number = numbers.leb()
            must(number in items, f"item {number} is not defined")
            state = states.setdefault(number, new_state(items[number], items[number].slots))
        else:
            state = now.successors[rank]
            must(state, "a successor that is not there")
        before = state.missed
        if run > 0:
            run -= 1
        else:
            if token & 4:
                state.missed = int.from_bytes(masks.take((state.item.slots + 7) // 8), "little")
                must(state.missed >> state.item.slots == 0, "a mask for slots that are not there")
            del now.successors[min(rank, 2)]
            now.successors.insert(0, state)
            run = next_run(runs)
        for i in range(state.item.slots):
            d = state.stride[i]
            if state.missed >> i & 1:
                d = next(left, None)
                must(d is not None, "too few differences")
                if before >> i & 1:
                    state.stride[i] = d
            state.last[i] = (state.last[i] + d) & MASK
        executed.append((state.item, list(state.last)))
        now = state
    must(next(left, None) is None, "too many differences")
    return registers, executed

# ---- sections 7, 8 and 9: what items do ----
def compute(operation, a, b, shift, width, immediate):
    n = 8 * width
    x, b = a % 2**n, b % 2**n
    y, by = b + immediate, (b + immediate) % n
    return (
        x + (b << shift) + immediate if operation == 0 else
        x - y if operation == 1 else x * y if operation == 2 else
        x & y if operation == 3 else x | y if operation == 4 else x ^ y if operation == 5 else
        x << by if operation == 6 else x >> by if operation == 7 else
        (x - (x >> n - 1) * 2**n) >> by if operation == 8 else
        x if by == 0 else x % 2**by - (x >> by - 1 & 1) * 2**by if operation == 9 else x % 2**by
    ) % 2**n

class Execution:
    """Makes lines of what a chunk executes."""
    def __init__(self, chunk, registers):
        self.chunk, self.thread, self.registers, self.lines, self.counts = chunk, chunk.thread, registers, [], [0, 0, 0]

    def item(self, item, slots):
        if item.kind == "block":
            self.block(item, slots)
        elif item.kind == "loop":
            self.loop(item.root, slots)
        elif item.name == "set_register":
            must(len(slots) == 2 and slots[0] < 16, "a register that is not there")
            self.registers[slots[0]] = slots[1]
        else:
            self.counts[2] += 1
            self.lines.append(" ".join([f"{self.thread} e {item.name} {item.site:#x}"] + [hex(s) for s in slots]))

    def block(self, block, slots):
        sources = [0] + self.registers + slots + [0] * (64 - len(slots))
        for operation, a, b, *rest in block.computes:
            sources.append(compute(operation, sources[a], sources[b], *rest))
        self.counts[0] += len(block.insns)
        must(self.counts[0] <= self.chunk.counts[0], "it has more instructions than its header says")
        self.lines.append(f"{self.thread} b {block.number} {block.insns[0]:#x} {len(block.insns)}")
        for insn, kind, size, (base, index, scale, displacement), count, downwards, predicate in block.operands:
            if predicate and not sources[predicate[0]] >> predicate[1] & 1:
                continue
            elements = 1 if count is None else sources[count]
            address = sources[base] + (sources[index] << scale) + displacement - (elements - 1) * size * downwards
            left = elements * size
            must(left < 2**32, "a range is too long")
            while left > 0:
                piece = min(left, PIECE)
                self.counts[1] += 1
                self.lines.append(f"{self.thread} {kind} {insn:#x} {address & MASK:#x} {piece}")
                address, left = address + piece, left - piece
        for register, source, addend in block.effects:
            self.registers[register] = sources[1 + register] = (sources[source] + addend) & MASK

    def loop(self, node, slots):
        def assign(assignments, to):
            for destination, source, addend in assignments:
                first, second = 0 if source & 255 == 255 else slots[source & 255], slots[(source >> 8) - 1] if source >> 8 else 0
                to[destination] = (first + second + addend) & MASK
            return to
        if node.block:
            return self.block(node.block, assign(node.step, [0] * node.block.slots))
        assign(node.entry, slots)
        for _ in range(node.trips if node.slot is None else slots[node.slot]):
            for inner in node.body:
                self.loop(inner, slots)
            assign(node.step, slots)

# ---- the whole ----
def show(path, complain):
    data, items, threads, chains = open(path, "rb").read(), {}, set(), {}
    for chunk in read_chunks(data, complain):
        chains.setdefault((chunk.type, chunk.thread), []).append(chunk)

    def each(kind, thread, act):
        """Acts on the payloads of one kind and thread in sequence; returns whether the last chunk is there."""
        expected = flags = 0
        for chunk in sorted(chains.get((kind, thread), []), key=lambda chunk: chunk.sequence):
            if chunk.sequence != expected:
                complain(f"lost, or there twice: something before {chunk}")
            if chunk.sequence >= expected:
                expected, flags = chunk.sequence + 1, chunk.flags
                try:
                    act(chunk, read_payload(data, chunk))
                except Damage as damage:
                    complain(f"lost: {chunk}: {damage}")
        return flags & 1

    def execute(chunk, payload):
        registers, executed = decode(payload, items)
        execution = Execution(chunk, registers)
        for item, slots in executed:
            execution.item(item, slots)
        must(execution.counts == chunk.counts, "its header counts otherwise")
        sys.stdout.writelines(line + "\n" for line in execution.lines)

    each(DEFS, 0, lambda _, payload: read_definitions(payload, items, threads, complain))
    for thread in sorted(threads | {thread for kind, thread in chains if kind == STREAM}):
        if not each(STREAM, thread, execute):
            complain(f"lost: thread {thread} lacks its end")
        each(TIME, thread, lambda _, payload: payload.packed().fields("*zzn"))

def main(path):
    complaints = []
    try:
        show(path, complaints.append)
        status = 4 if complaints else 0
    except (OSError, ValueError) as error:
        complaints, status = [error], 3
    print("".join(f"{path}: {complaint}\n" for complaint in complaints), end="", file=sys.stderr)
    return status

if __name__ == "__main__":
    sys.exit(main(sys.argv[1]) if len(sys.argv) == 2 else __doc__)

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# usage: petri.py NET INSTRUCTIONS [least number of locks]
# Checks a net in PNML by its grammar for place/transition nets, and plays it: in any order that its tokens allow, each transition fires
# once, no transition is left, each lock is free again, and the transitions have all instructions.
import random
import sys
import xml.etree.ElementTree as tree

NS = "{http://www.pnml.org/version-2009/grammar/pnml}"
PTNET = "http://www.pnml.org/version-2009/grammar/ptnet"
CHILDREN = {
    "pnml": {"net"}, "net": {"name", "page"}, "page": {"place", "transition", "arc"}, "name": {"text"},
    "place": {"name", "initialMarking"}, "initialMarking": {"text"}, "transition": {"name", "toolspecific"},
    "arc": {"inscription"}, "inscription": {"text"}, "text": set(),
}


def fail(what):
    print("# " + what)
    sys.exit(1)


def check_grammar(e, ids):
    name = e.tag.removeprefix(NS)
    if name == "toolspecific":
        if set(e.attrib) != {"tool", "version"}:
            fail("toolspecific lacks an attribute")
        return
    if name not in CHILDREN:
        fail(f"unknown element {name}")
    if name in ("net", "page", "place", "transition", "arc"):
        if not e.get("id") or e.get("id") in ids:
            fail(f"{name}: no id, or one that is used twice")
        ids[e.get("id")] = name
    for child in e:
        if child.tag.removeprefix(NS) not in CHILDREN[name] | {"toolspecific"}:
            fail(f"{child.tag} in {name}")
        check_grammar(child, ids)


def number(e, what, least):
    found = e.find(f"{NS}{what}/{NS}text")
    value = int(found.text) if found is not None else 0
    if found is not None and value < least:
        fail(f"{what} of {e.get('id')} is {value}")
    return value


root, ids = tree.parse(sys.argv[1]).getroot(), {}
check_grammar(root, ids)
net = root.find(f"{NS}net")
if net.get("type") != PTNET:
    fail("the net has another type")
page = net.find(f"{NS}page")
tokens = {p.get("id"): number(p, "initialMarking", 0) for p in page.findall(f"{NS}place")}
first = dict(tokens)
takes, puts, reached = {}, {}, {}
instructions = 0
for t in page.findall(f"{NS}transition"):
    takes[t.get("id")], puts[t.get("id")] = {}, {}
    instructions += int(t.find(f"{NS}toolspecific/{NS}instructions").text)
for a in page.findall(f"{NS}arc"):
    source, target, weight = a.get("source"), a.get("target"), number(a, "inscription", 1)
    if source in tokens and target in takes:
        takes[target][source] = takes[target].get(source, 0) + weight
        reached.setdefault(source, []).append(target)
    elif source in takes and target in tokens:
        puts[source][target] = puts[source].get(target, 0) + weight
    else:
        fail(f"arc {a.get('id')} does not lead between a place and a transition")
if instructions != int(sys.argv[2]):
    fail(f"{instructions} instructions in the net, {sys.argv[2]} in the trace")
locks = [p for p in tokens if p.startswith("l")]
if len(locks) < int((sys.argv[3:] or ["0"])[0]):
    fail(f"{len(locks)} locks")
for seed in range(5):
    draw = random.Random(seed)
    tokens = dict(first)
    left, ready = set(takes), sorted(takes)
    while ready:
        at = draw.randrange(len(ready))
        ready[at], ready[-1] = ready[-1], ready[at]
        t = ready.pop()
        if t not in left or any(tokens[p] < n for p, n in takes[t].items()):
            continue
        left.remove(t)
        for p, n in takes[t].items():
            tokens[p] -= n
        for p, n in puts[t].items():
            tokens[p] += n
            ready += [x for x in reached.get(p, []) if x in left]
    if left:
        fail(f"seed {seed}: {len(left)} of {len(takes)} transitions cannot fire, as {sorted(left)[:3]}")
    for p, n in tokens.items():
        if n != (first[p] if p in locks else 0):
            fail(f"seed {seed}: place {p} has {n} tokens at the end")
    if any(takes[t].get(p, 0) == 0 for p in tokens if not p.startswith("l") for t in reached.get(p, [])):
        fail("a place leads nowhere")
print(f"# {len(takes)} transitions, {len(tokens)} places, {len(locks)} locks")

# SPDX-License-Identifier: MIT
"""Whether the tables of `peet simulate` and `peet profile` of one run say the same of each quantity.

usage: adds_up.py SIMULATE.json PROFILE.json MACHINE-OPTIONS   (of --top 0; each difference is a line of output)
"""
import json
import sys

TITLES = {
    "compute": "compute", "stall": "miss stall", "bus": "bus wait", "fetch": "fetch stall", "issue": "issue wait",
    "lock": "lock wait", "barrier": "barrier", "other": "other waits", "change": "switching", "idle": "idle",
}
KIND_OF = {"lock": "lock", "rwlock": "lock", "barrier": "barrier"}  # of an object; all others: "other"
MISSES = ("cold", "capacity", "conflict", "true sharing", "false sharing", "unknown")


def rows(result, table):
    return result.get(table, {}).get("rows", [])


def total(table, column):
    return sum(row.get(column) or 0 for row in table)


def same(what, *values):
    if any(v != values[0] for v in values):
        print(f"{what}: {', '.join(str(v) for v in values)}")


def whole(what, table, column="share", rest=0.0):
    share = total(table, column) + rest
    if table and abs(share - 1) > 1e-9:
        print(f"{what}: shares add up to {100 * share} %")


def check_simulate(s):
    run, times, objects = rows(s, "runs")[-1], rows(s, "times"), rows(s, "objects")
    for p in times:
        same(f"processor {p['processor']}", run["cycles"], sum(p[kind] for kind in TITLES))
    for kind in ("lock", "barrier", "other"):
        spent = [o for o in objects if KIND_OF.get(o["kind"], "other") == kind]
        same(f"{kind}: processors, objects", total(times, kind), total(spent, "spent"))
    for o in objects:
        if o["spent"] > o["waited"] or o["longest"] > o["waited"]:
            print(f"{o['kind']} {o['name']}: {o['waited']} cycles waited, {o['spent']} on processors, "
                  f"{o['longest']} the longest")
    if len(times) >= run["threads"] and "wait=busy" in sys.argv[3]:  # each thread has a processor for itself
        same("waited, and on processors", total(objects, "waited"), total(objects, "spent"))
    memory = rows(s, "memory")
    same("misses: run, processors", run["misses"], total(memory, "misses"))
    causes = ("cold", "replaced", "true_sharing", "false_sharing")
    same("misses: processors, causes", total(memory, "misses"), sum(total(memory, c) for c in causes))


def check_time(s, p):
    times, summary = rows(s, "times"), rows(p, "summary")[0]
    told = {row["kind"]: row["cycles"] for row in rows(p, "time")}
    for kind, title in TITLES.items():
        same(f"{title}: simulate, profile", total(times, kind), told.get(title, 0))
    same("cycles: simulate, profile", rows(s, "runs")[-1]["cycles"], summary["cycles"])
    same("all time", sum(told.values()), summary["cycles"] * len(times))
    whole("time", rows(p, "time"))
    waits = told.get("lock wait", 0) + told.get("barrier", 0) + told.get("other waits", 0)
    same("waits: summary, time, calls", summary["wait"], waits, total(rows(p, "waits"), "cycles"))
    same("compute: summary, time", summary["compute"], told.get("compute", 0))
    same("stall: summary, time", summary["stall"], told.get("miss stall", 0) + told.get("bus wait", 0))
    same("fetch: summary, time", summary["fetch"], told.get("fetch stall", 0))
    used = sum(told.values()) - told.get("idle", 0)
    elsewhere = told.get("switching", 0) + told.get("issue wait", 0)  # of no procedure
    whole("procedures", rows(p, "procedures"), rest=elsewhere / used if used else 0)


def check_tables(s, p):
    summary, procedures = rows(p, "summary")[0], rows(p, "procedures")
    tables = ("objects", "objects_by_procedure", "lines", "procedures")
    for column in ("stall", "misses", "references"):
        same(f"{column}: summary, {', '.join(tables)}", summary[column], *(total(rows(p, t), column) for t in tables))
    nowhere = total([w for w in rows(p, "waits") if w["object"] is None], "cycles")
    same("wait: summary, procedures", summary["wait"], total(procedures, "wait"))
    for t in tables[:3]:
        same(f"wait: summary, {t}", summary["wait"], total(rows(p, t), "wait") + nowhere)
    for column in ("compute", "fetch"):
        same(f"{column}: summary, procedures", summary[column], total(procedures, column))
    same("references: simulate, profile", rows(s, "runs")[-1]["references"], summary["references"])
    causes = rows(p, "causes")
    same("stall: summary, causes", summary["stall"], total(causes, "stall"))
    if summary["stall"]:
        for t in tables:
            whole(t, rows(p, t), "stall_share")
        whole("causes", causes, "stall_share")
        same("misses: summary, causes", summary["misses"], total([c for c in causes if c["cause"] in MISSES], "times"))
    same("over time", summary["misses"], total(rows(p, "over_time"), "misses"))
    same("over time", summary["stall"], total(rows(p, "over_time"), "stall"))
    met = total(rows(p, "evictions"), "misses") + total(rows(p, "sharing"), "misses")
    cold = total([c for c in causes if c["cause"] == "cold"], "times")
    if summary["stall"]:
        same("misses: summary, cold and pairs", summary["misses"], met + cold)


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        simulated = json.load(f)
    with open(sys.argv[2], encoding="utf-8") as f:
        profiled = json.load(f)
    check_simulate(simulated)
    check_time(simulated, profiled)
    check_tables(simulated, profiled)


main()

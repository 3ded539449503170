/* SPDX-License-Identifier: MIT */
#include "sim/config/settings.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/opt.h"

/* ---- registries ---- */

/* X(name of the function, type, its table) */
/* clang-format off */
#define REGISTRY_TYPES(X) \
    X(protocol, protocol, protocols) X(lock, lock_kind, lock_kinds) X(barrier, barrier_kind, barrier_kinds) \
    X(scheduler, sched_kind, schedulers) X(fabric, fabric_kind, fabrics) X(replacement, replacement, replacements) \
    X(order, order_model, memory_orders)
/* clang-format on */

#define X(what, type, table) \
    static const void *what##_at(size_t i, const char **ret_name, const char **ret_summary) \
    { \
        const struct type *k = table[i]; \
\
        if (k) { \
            *ret_name = k->name; \
            *ret_summary = k->summary; \
        } \
        return k; \
    }
REGISTRY_TYPES(X)
#undef X

/* Indices into `registries`. */
enum registry_number { PROTOCOLS_OF, LOCKS_OF, BARRIERS_OF, SCHEDULERS_OF, FABRICS_OF, REPLACEMENTS_OF, ORDERS_OF };

const struct registry registries[REGISTRIES] = {
    [PROTOCOLS_OF] = { "protocols", "Coherence protocols", protocol_at },
    [LOCKS_OF] = { "locks", "Locks", lock_at },
    [BARRIERS_OF] = { "barriers", "Barriers", barrier_at },
    [SCHEDULERS_OF] = { "schedulers", "Schedulers", scheduler_at },
    [FABRICS_OF] = { "fabrics", "Fabrics", fabric_at },
    [REPLACEMENTS_OF] = { "replacements", "Replacements", replacement_at },
    [ORDERS_OF] = { "orders", "Memory orders", order_at },
};

/* ---- the table ---- */

static const char *const INCLUSIONS[] = { "none", "inclusive", NULL };
static const char *const GRANTS[] = { "fifo", "lifo", "priority", "random", NULL };
static const char *const WAITS[] = { "yield", "busy", NULL };
static const char *const DRAINS[] = { "oldest", "random", NULL };
static const char *const GRAINS[] = { "sync", "access", NULL };
static const char *const DOMAINS[] = { "context", "core", "group", NULL };
static const char *const POLICIES[] = { "none", "barrier", "adaptive", NULL };
static const char *const DROPS[] = { "all", "written", NULL };
static const char *const TURNS[] = { "block", "reference", NULL };

enum { MOST_CYCLES = 1000000, MOST_LINE = 4096, MOST_WAYS = 1 << 16, GIB = 1 << 30 };

/* clang-format off */
#define AT(member) .offset = offsetof(struct machine_config, member), .size = sizeof ((struct machine_config *)NULL)->member
#define TEXT(p, member, i, h) { .path = p, .type = SETTING_TEXT, AT(member), .initial = i, .help = h }
#define NUMBER(p, member, from, to, i, h) \
    { .path = p, .type = SETTING_NUMBER, AT(member), .least = from, .most = to, .initial = i, .help = h }
#define BYTES(p, member, from, to, power, i, h) \
    { .path = p, .type = SETTING_BYTES, AT(member), .least = from, .most = to, .is_power = power, .initial = i, .help = h }
#define SWITCH(p, member, i, h) { .path = p, .type = SETTING_SWITCH, AT(member), .initial = i, .help = h }
#define WORD(p, member, w, i, h) { .path = p, .type = SETTING_WORD, AT(member), .words = w, .initial = i, .help = h }
#define KIND(p, member, r, i, h) \
    { .path = p, .type = SETTING_KIND, AT(member), .registry = &registries[r], .initial = i, .help = h }

/* What every cache has. */
#define CACHE(p, member, bytes_, ways_, latency_) \
    BYTES(p ".bytes", member.bytes, 0, GIB, false, bytes_, "size; 0: there is no such cache"), \
    NUMBER(p ".ways", member.ways, 0, MOST_WAYS, ways_, "lines of a set; 1: direct-mapped; 0: one set only"), \
    BYTES(p ".line", member.line, 4, MOST_LINE, true, "64", "size of a line"), \
    NUMBER(p ".latency", member.latency, 0, MOST_CYCLES, latency_, "cycles of what is found here, beyond the instruction's"), \
    KIND(p ".replacement", member.replacement, REPLACEMENTS_OF, "lru", "which line goes when another one comes")

/* What a cache for data has besides. */
#define LEVEL(p, member, bytes_, ways_, latency_, shared_) \
    CACHE(p, member, bytes_, ways_, latency_), \
    SWITCH(p ".shared", member.is_shared, shared_, "one for all processors; else each has its own"), \
    SWITCH(p ".write_through", member.is_write_through, "false", "every write goes on to the next level"), \
    SWITCH(p ".allocate", member.allocates, "true", "a write that misses brings the line"), \
    WORD(p ".inclusion", member.inclusion, INCLUSIONS, "none", "inclusive: it has whatever the levels before it have")

static const struct setting SETTINGS[] = {
    TEXT("name", name, "", "what the machine is called; if nothing is said, as its file"),
    TEXT("summary", summary, "", "one line about it"),
    NUMBER("cpus", cpus, 1, CONFIG_MAX_CPUS, "1", "processors"),
    NUMBER("contexts", core_threads, 1, CONFIG_MAX_CONTEXTS, "1", "hardware contexts of each processor"),

#define X(class) NUMBER("core.cost." #class, cost[PEET_CL_##class], 0, MOST_CYCLES, "1", \
                        "cycles of an instruction of this class, without its references"),
    PEET_CLASSES(X)
#undef X

    LEVEL("cache.l1", level[0], "32K", "8", "0", "false"),
    LEVEL("cache.l2", level[1], "0", "8", "10", "false"),
    LEVEL("cache.l3", level[2], "0", "16", "30", "true"),
    CACHE("cache.i1", instructions, "0", "8", "0"),
    NUMBER("cache.i1.miss", instructions.miss, 0, MOST_CYCLES, "0",
           "cycles of what is not found here, and always in a cache behind it; 0: it comes from memory"),

    NUMBER("tlb.entries", tlb.entries, 0, 1 << 20, "0", "pages that it knows; 0: there is none"),
    NUMBER("tlb.ways", tlb.ways, 0, MOST_WAYS, "4", "entries of a set; 0: one set only"),
    BYTES("tlb.page", tlb.page, 512, GIB, true, "4K", "size of a page; also of those of memory.first_touch"),
    NUMBER("tlb.cost", tlb.cost, 0, MOST_CYCLES, "30", "cycles of a miss"),
    KIND("tlb.replacement", tlb.replacement, REPLACEMENTS_OF, "lru", "which entry goes when another one comes"),

    KIND("coherence.protocol", protocol, PROTOCOLS_OF, "mesi", "how private caches agree"),

    KIND("order.model", order.model, ORDERS_OF, "sc", "which loads and stores may perform ahead of earlier ones; sc: no store buffers"),
    NUMBER("order.stores", order.stores, 1, ORDER_SLOTS, "32", "stores in a store buffer"),
    WORD("order.drain", order.drain, DRAINS, "oldest", "which store leaves the buffer next, of those that may"),
    NUMBER("order.outstanding", order.outstanding, 1, ORDER_SLOTS, "4", "stores of a buffer on their way to memory at a time, if the model allows it"),
    NUMBER("order.delay", order.delay, 0, MOST_CYCLES, "0", "least cycles that a store waits in the buffer"),
    SWITCH("order.forwarding", order.forwards, "true", "a load reads a store in the buffer; else it waits for it"),
    NUMBER("order.fence", order.fence, 0, MOST_CYCLES, "0", "cycles of a full fence, besides its instruction and the wait for stores"),
    NUMBER("order.atomic", order.atomic, 0, MOST_CYCLES, "0", "cycles of an atomic, besides its instruction and the wait for stores"),
    WORD("order.domain", order.domain, DOMAINS, "context", "what has a store buffer: each hardware context, each processor, each group"),
    NUMBER("order.group", order.group, 1, CONFIG_MAX_CPUS, "2", "processors of a group"),
    WORD("order.grain", order.at_accesses, GRAINS, "sync", "where threads of a program that runs see each other's stores: at synchronization, or at each access"),

    KIND("fabric.kind", fabric_kind, FABRICS_OF, "bus", "what connects processors and memory"),
    NUMBER("fabric.width", fabric.width, 1, MOST_LINE, "8", "bytes that are moved in one bus cycle"),
    NUMBER("fabric.clock", fabric.clock, 1, 1000, "1", "processor cycles of one bus cycle"),
    NUMBER("fabric.address", fabric.address, 0, 1000, "1", "bus cycles that a request or an invalidation takes"),
    NUMBER("fabric.hop", fabric.hop, 0, MOST_CYCLES, "2", "cycles from one node of a mesh to the next"),
    NUMBER("fabric.port", fabric.port, 0, MOST_CYCLES, "1", "cycles for which a message occupies a port or a link, besides its data"),
    NUMBER("fabric.memory", fabric.memory, 0, MOST_CYCLES, "100", "cycles until memory answers"),
    NUMBER("fabric.transfer", fabric.transfer, 0, MOST_CYCLES, "40", "cycles until another cache answers"),
    NUMBER("fabric.banks", fabric.banks, 1, 1024, "8", "banks of memory, in a crossbar"),

    KIND("lock.kind", lock, LOCKS_OF, "ttas", "how locks are taken"),
    NUMBER("lock.spin", sync.spin, 1, MOST_CYCLES, "10", "cycles between two attempts of one that spins over the bus"),
    NUMBER("lock.backoff", sync.backoff, 0, MOST_CYCLES, "0", "cycles that are added after each failure; 0: none"),
    WORD("lock.grant", sync.grant, GRANTS, "fifo", "the waiter that gets an ideal lock"),

    KIND("barrier.kind", barrier, BARRIERS_OF, "central", "how barriers work"),
    NUMBER("barrier.cost", sync.cost, 0, MOST_CYCLES, "10",
           "cycles from the last arrival until a wired or ideal barrier opens, and of an ideal lock's operations"),
    NUMBER("barrier.fan_in", sync.fan_in, 2, CONFIG_MAX_CPUS, "4", "of a combining tree"),

    WORD("speculation.policy", speculation.policy, POLICIES, "none",
         "barrier: a processor that has arrived at a barrier continues speculatively until it opens; adaptive: unless that has cost more than it has gained"),
    NUMBER("speculation.save", speculation.save, 0, MOST_CYCLES, "5", "cycles in which a processor that begins to speculate saves its state"),
    NUMBER("speculation.roll_back", speculation.roll_back, 0, MOST_CYCLES, "10", "cycles in which its state is restored after a failure"),
    WORD("speculation.drop", speculation.drop, DROPS, "all",
         "lines that a failure makes invalid: all that were accessed speculatively, or those that were written, and the one that caused it"),

    KIND("scheduler.kind", scheduler, SCHEDULERS_OF, "robin", "which thread runs where"),
    NUMBER("scheduler.quantum", quantum, 0, UINT64_MAX, "100000", "cycles of a turn; 0: threads run until they wait"),
    NUMBER("scheduler.switch_cost", switch_cost, 0, MOST_CYCLES, "0", "cycles of a change of threads"),
    WORD("scheduler.wait", waits_busily, WAITS, "yield", "busy: a thread that waits for a lock or a barrier keeps its processor"),

    WORD("turn", by_reference, TURNS, "block", "how often processors take turns"),
    NUMBER("slack", slack, 0, 1000000, "0", "bounded lag: cycles by which a processor may be ahead of the next one when its turn ends"),
    SWITCH("memory.first_touch", first_touch, "false",
           "a page's home is the node that touches it first; else pages go round"),
    NUMBER("jitter", jitter, 0, MOST_CYCLES, "0",
           "cycles by which a thread that begins, or has waited, may be late, by the seed; 0: it never is"),
    NUMBER("seed", seed, 0, UINT64_MAX, "1", "of whatever is random"),
};
/* clang-format on */
enum { SETTING_COUNT = sizeof SETTINGS / sizeof *SETTINGS };

const struct setting *setting_at(size_t i)
{
    return i < SETTING_COUNT ? &SETTINGS[i] : NULL;
}

size_t setting_index(const struct setting *s)
{
    return (size_t)(s - SETTINGS);
}

const struct setting *setting_find(const char *path)
{
    for (size_t i = 0; i < SETTING_COUNT; i++)
        if (!strcmp(SETTINGS[i].path, path))
            return &SETTINGS[i];
    return NULL;
}

/* ---- paths ---- */

/* Whether the first n letters of `path` are a group that holds s. */
static bool is_in(const struct setting *s, const char *path, size_t n)
{
    return n == 0 || (!strncmp(s->path, path, n) && s->path[n] == '.');
}

static bool is_group(const char *path, size_t n)
{
    for (size_t i = 0; i < SETTING_COUNT; i++)
        if (is_in(&SETTINGS[i], path, n))
            return true;
    return false;
}

bool setting_is_group(const char *path)
{
    return *path && is_group(path, strlen(path));
}

/* What stands in a group, each once. */
struct members {
    size_t count;
    char name[SETTING_COUNT + 1][24];
};

static void add_member(struct members *m, const char *name, size_t n)
{
    for (size_t i = 0; i < m->count; i++)
        if (strlen(m->name[i]) == n && !memcmp(m->name[i], name, n))
            return;
    snprintf(m->name[m->count++], sizeof m->name[0], "%.*s", (int)n, name);
}

static void list_members(const char *group, size_t n, struct members *m)
{
    m->count = 0;
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        if (!is_in(&SETTINGS[i], group, n))
            continue;
        const char *rest = SETTINGS[i].path + (n ? n + 1 : 0);
        add_member(m, rest, strcspn(rest, "."));
    }
    if (n == 0)
        add_member(m, "base", 4); /* a machine file's, not a machine's */
}

static const char *member_name(size_t i, const void *members)
{
    return ((const struct members *)members)->name[i];
}

/* "a, b, c" */
static void join_members(const struct members *m, char *buffer, size_t size)
{
    size_t at = 0;

    for (size_t i = 0; i < m->count && at < size; i++)
        at += (size_t)snprintf(buffer + at, size - at, "%s%s", i ? ", " : "", m->name[i]);
}

/* The path goes wrong somewhere: *ret_group letters of it are a group, and *ret_end letters are none. */
static void find_wrong(const char *path, size_t *ret_group, size_t *ret_end)
{
    size_t group = 0, n = strcspn(path, ".");

    while (path[n] && is_group(path, n)) {
        group = n;
        n += 1 + strcspn(path + n + 1, ".");
    }
    *ret_group = group;
    *ret_end = n;
}

int setting_unknown(const char *path, struct peet_err *err)
{
    struct members members;
    char all[300] = "", until[100];
    size_t group, n;

    find_wrong(path, &group, &n);
    snprintf(until, sizeof until, "%.*s", (int)n, path);
    if (setting_find(until))
        return err_set(err, PEET_ERR_USAGE, "%s: a setting, and no group: '%s' cannot be in it", until, path + n + 1);
    bool is_whole = setting_is_group(until);
    list_members(path, is_whole ? n : group, &members);
    join_members(&members, all, sizeof all);
    if (is_whole)
        return err_set(err, PEET_ERR_USAGE, "%s: a group; say which of it: %s", until, all);
    if (!strcmp(until, "base"))
        return err_set(err, PEET_ERR_USAGE, "base: for files of machines alone; say by --machine which one it is");
    const char *nearest = opt_nearest(until + (group ? group + 1 : 0), members.count, member_name, &members);
    if (nearest)
        return err_set(err, PEET_ERR_USAGE, "%s: no such setting; did you mean '%s'?", until, nearest);
    return err_set(err, PEET_ERR_USAGE, "%s: no such setting; here are %s", until, all);
}

/* SPDX-License-Identifier: MIT */
/* Protocols with speculative states: table 1 of Sato, Nakashima and Ohno (1999) and its extension of MESI, cell by cell; all that can happen to
 * one line; mistakes; the bit operations of table 2; and docs/protocols.md. */
#include "check.h"
#include "sim/coherence/tag_store.h"
#include "speculative.h"

static struct spec_exploration exploration;

static unsigned spec_state(const struct protocol *p, const char *name)
{
    for (unsigned s = 0; s < p->states; s++)
        if (p->state[s].name && !strcmp(p->state[s].name, name))
            return s;
    return PROTOCOL_STATES;
}

/* ---- table 1 ---- */

enum { NO_RB, RB };
enum { FROM_NONE, FROM_MEMORY, FROM_CACHE };

/* An event of the own core: r(n), w(s), v …; the state of the line in the other cache, which decides what supplies the line. */
struct own_row {
    const char *state, *other;
    enum own_event event;
    const char *next;
    unsigned op; /* BUS_WRITE_BACK: +WB */
    unsigned roll_back, source;
};
/* A transaction of another core: R, W(n), W(s). */
struct snoop_row {
    const char *state, *other; /* other: state of the line in the cache that issues it */
    enum own_event event;      /* of the other core */
    const char *next;
    unsigned roll_back, source;
    bool flushes;
};
struct bulk_row {
    const char *state;
    const char *arrive, *confirm, *roll_back, *roll_back_written;
};

#define RN OWN_READ
#define WN OWN_WRITE
#define RS OWN_READ_SPEC
#define WS OWN_WRITE_SPEC
#define V OWN_EVICT

/* clang-format off */
/* S10 to S16: the cells of table 1, and those that it leaves out. */
static const struct own_row MSI_OWN[] = {
    { "I",  "UM", RS, "I",  BUS_READ,            RB,    FROM_MEMORY }, /* r(s,s)+RB */
    { "I",  "I",  RN, "S",  BUS_READ,            NO_RB, FROM_MEMORY }, /* r(n,n) */
    { "I",  "S",  RN, "S",  BUS_READ,            NO_RB, FROM_MEMORY },
    { "I",  "M",  RN, "S",  BUS_READ,            NO_RB, FROM_CACHE },
    { "I",  "I",  WN, "M",  BUS_READ_OWN,        NO_RB, FROM_MEMORY }, /* w(n)+W(n) */
    { "I",  "M",  WN, "M",  BUS_READ_OWN,        NO_RB, FROM_CACHE },
    { "I",  "UM", WN, "M",  BUS_READ_OWN,        NO_RB, FROM_MEMORY },
    { "I",  "I",  RS, "US", BUS_READ,            NO_RB, FROM_MEMORY }, /* r(s,n) */
    { "I",  "M",  RS, "US", BUS_READ,            NO_RB, FROM_CACHE },
    { "I",  "XP", RS, "US", BUS_READ,            NO_RB, FROM_MEMORY },
    { "I",  "I",  WS, "UM", BUS_READ_OWN_SPEC,   NO_RB, FROM_MEMORY }, /* w(s)+W(s) */
    { "I",  "M",  WS, "UM", BUS_READ_OWN_SPEC,   NO_RB, FROM_CACHE },
    { "I",  "UM", WS, "UM", BUS_READ_OWN_SPEC,   NO_RB, FROM_MEMORY },
    { "I",  "UM", RN, "XP", BUS_READ,            NO_RB, FROM_MEMORY }, /* r(n,s) */
    { "S",  "S",  V,  "I",  BUS_NONE,            NO_RB, FROM_NONE },   /* v */
    { "S",  "S",  RN, "S",  BUS_NONE,            NO_RB, FROM_NONE },
    { "S",  "S",  WN, "M",  BUS_INVALIDATE,      NO_RB, FROM_NONE },
    { "S",  "S",  RS, "US", BUS_NONE,            NO_RB, FROM_NONE },
    { "S",  "S",  WS, "UM", BUS_INVALIDATE_SPEC, NO_RB, FROM_NONE },
    { "M",  "I",  V,  "I",  BUS_WRITE_BACK,      NO_RB, FROM_NONE },   /* v+WB */
    { "M",  "I",  RN, "M",  BUS_NONE,            NO_RB, FROM_NONE },
    { "M",  "I",  WN, "M",  BUS_NONE,            NO_RB, FROM_NONE },
    { "M",  "I",  RS, "US", BUS_WRITE_BACK,      NO_RB, FROM_NONE },   /* r(s)+WB */
    { "M",  "I",  WS, "UM", BUS_WRITE_BACK,      NO_RB, FROM_NONE },   /* w(s)+WB */
    { "US", "S",  V,  "I",  BUS_NONE,            RB,    FROM_NONE },   /* v+RB */
    { "US", "S",  RS, "US", BUS_NONE,            NO_RB, FROM_NONE },
    { "US", "S",  WS, "UM", BUS_INVALIDATE_SPEC, NO_RB, FROM_NONE },
    { "UM", "XP", V,  "I",  BUS_NONE,            RB,    FROM_NONE },
    { "UM", "XP", RS, "UM", BUS_NONE,            NO_RB, FROM_NONE },
    { "UM", "XP", WS, "UM", BUS_NONE,            NO_RB, FROM_NONE },
    { "XP", "UM", V,  "I",  BUS_NONE,            NO_RB, FROM_NONE },
    { "XP", "UM", WN, "M",  BUS_INVALIDATE,      NO_RB, FROM_NONE },
    { "XP", "UM", RN, "XP", BUS_NONE,            NO_RB, FROM_NONE },
    { "XP", "UM", RS, "I",  BUS_NONE,            RB,    FROM_NONE },   /* left out: S16 */
    { "XP", "UM", WS, "UM", BUS_INVALIDATE_SPEC, NO_RB, FROM_NONE },   /* left out: S16 */
};
static const struct snoop_row MSI_SNOOP[] = {
    { "S",  "I",  RN, "S",  NO_RB, FROM_MEMORY, false }, /* left out: S16 */
    { "S",  "I",  WN, "I",  NO_RB, FROM_MEMORY, false }, /* W(n), of a miss and of a hit */
    { "S",  "S",  WN, "I",  NO_RB, FROM_NONE,   false },
    { "S",  "I",  WS, "XP", NO_RB, FROM_MEMORY, false }, /* W(s) */
    { "S",  "S",  WS, "XP", NO_RB, FROM_NONE,   false },
    { "M",  "I",  RN, "S",  NO_RB, FROM_CACHE,  true },  /* R(c); S17: memory takes the line */
    { "M",  "I",  WN, "I",  NO_RB, FROM_CACHE,  false }, /* W(n,c) */
    { "M",  "I",  WS, "XP", NO_RB, FROM_CACHE,  true },  /* W(s,c); S17 */
    { "US", "I",  RN, "US", NO_RB, FROM_MEMORY, false }, /* left out: S16 */
    { "US", "I",  WN, "I",  RB,    FROM_MEMORY, false }, /* W(*)+RB */
    { "US", "S",  WN, "I",  RB,    FROM_NONE,   false },
    { "US", "I",  WS, "I",  RB,    FROM_MEMORY, false },
    { "US", "US", WS, "I",  RB,    FROM_NONE,   false },
    { "UM", "I",  RN, "UM", NO_RB, FROM_MEMORY, false }, /* R(m) */
    { "UM", "I",  RS, "UM", NO_RB, FROM_MEMORY, false },
    { "UM", "I",  WN, "I",  RB,    FROM_MEMORY, false }, /* W(*,m)+RB */
    { "UM", "XP", WN, "I",  RB,    FROM_NONE,   false },
    { "UM", "I",  WS, "I",  RB,    FROM_MEMORY, false },
    { "UM", "XP", WS, "I",  RB,    FROM_NONE,   false },
    { "XP", "I",  RN, "XP", NO_RB, FROM_MEMORY, false }, /* left out: S16 */
    { "XP", "I",  WN, "I",  NO_RB, FROM_MEMORY, false }, /* W(n) */
    { "XP", "XP", WN, "I",  NO_RB, FROM_NONE,   false },
    { "XP", "I",  WS, "XP", NO_RB, FROM_MEMORY, false }, /* left out: S16 */
    { "XP", "XP", WS, "XP", NO_RB, FROM_NONE,   false },
};
/* Events B^a, B^g and RB, and RB that leaves what was only read (S50). */
static const struct bulk_row MSI_BULK[] = {
    { "I", "I", "I", "I", "I" },     { "S", "S", "S", "S", "S" },      { "M", "M", "M", "M", "M" },
    { "XP", "I", "I", "I", "I" },    { "US", NULL, "S", "I", "S" },    { "UM", NULL, "M", "I", "I" },
};

/* S21, S22: what E and UE add. A line in M that is read speculatively becomes UE, and one that no other cache has is fetched as E or UE. */
static const struct own_row MESI_OWN[] = {
    { "I",  "I",  RN, "E",  BUS_READ,       NO_RB, FROM_MEMORY },
    { "I",  "S",  RN, "S",  BUS_READ,       NO_RB, FROM_MEMORY },
    { "I",  "XP", RN, "S",  BUS_READ,       NO_RB, FROM_MEMORY },
    { "I",  "I",  RS, "UE", BUS_READ,       NO_RB, FROM_MEMORY },
    { "I",  "S",  RS, "US", BUS_READ,       NO_RB, FROM_MEMORY },
    { "M",  "I",  RS, "UE", BUS_WRITE_BACK, NO_RB, FROM_NONE },
    { "E",  "I",  RN, "E",  BUS_NONE,       NO_RB, FROM_NONE },
    { "E",  "I",  WN, "M",  BUS_NONE,       NO_RB, FROM_NONE },
    { "E",  "I",  RS, "UE", BUS_NONE,       NO_RB, FROM_NONE },
    { "E",  "I",  WS, "UM", BUS_NONE,       NO_RB, FROM_NONE },
    { "E",  "I",  V,  "I",  BUS_NONE,       NO_RB, FROM_NONE },
    { "UE", "I",  RS, "UE", BUS_NONE,       NO_RB, FROM_NONE },
    { "UE", "I",  WS, "UM", BUS_NONE,       NO_RB, FROM_NONE },
    { "UE", "I",  V,  "I",  BUS_NONE,       RB,    FROM_NONE },
};
static const struct snoop_row MESI_SNOOP[] = {
    { "E",  "I", RN, "S",  NO_RB, FROM_MEMORY, false },
    { "E",  "I", WN, "I",  NO_RB, FROM_MEMORY, false },
    { "E",  "I", WS, "XP", NO_RB, FROM_MEMORY, false },
    { "UE", "I", RN, "US", NO_RB, FROM_MEMORY, false },
    { "UE", "I", RS, "US", NO_RB, FROM_MEMORY, false },
    { "UE", "I", WN, "I",  RB,    FROM_MEMORY, false },
    { "UE", "I", WS, "I",  RB,    FROM_MEMORY, false },
};
static const struct bulk_row MESI_BULK[] = { { "E", "E", "E", "E", "E" }, { "UE", NULL, "E", "I", "E" } };
/* clang-format on */

/* Two caches with the line in those states, as the bits of words go with them. */
static struct spec_line spec_pair(const struct protocol *p, const char *own, const char *other, enum own_event event,
                                  unsigned actor)
{
    const char *name[] = { own, other };
    struct spec_line s = { .caches = 2, .memory = SPEC_ALL };

    for (unsigned i = 0; i < 2; i++) {
        s.state[i] = (uint8_t)spec_state(p, name[i]);
        s.newest[i] = s.state[i] ? SPEC_ALL : 0;
        s.memory = !strcmp(name[i], "M") ? 0 : s.memory;
        s.mode[i] = p->flags[s.state[i]] & STATE_UNSAFE || (i == actor && event >= OWN_BASE_EVENTS) ? MODE_SPECULATES
                                                                                                    : MODE_BEFORE;
    }
    return s;
}

static unsigned spec_source(const struct spec_did *did)
{
    unsigned op = coherence_untagged(did->op);

    return op != BUS_READ && op != BUS_READ_OWN ? FROM_NONE : did->supplier == SPEC_MEMORY ? FROM_MEMORY : FROM_CACHE;
}

static bool own_row_holds(const struct protocol *p, const struct own_row *row)
{
    struct spec_line s = spec_pair(p, row->state, row->other, row->event, 0);
    struct spec_did did = spec_step(p, &s, 0, row->event, 0, BULK_ROLL_BACK);

    return s.state[0] == spec_state(p, row->next) && did.op == row->op && (did.rolled_back & 1) == row->roll_back
           && spec_source(&did) == row->source;
}

static bool snoop_row_holds(const struct protocol *p, const struct snoop_row *row)
{
    struct spec_line s = spec_pair(p, row->state, row->other, row->event, 1);
    struct spec_did did = spec_step(p, &s, 1, row->event, 0, BULK_ROLL_BACK);

    return s.state[0] == spec_state(p, row->next) && (did.rolled_back & 1) == row->roll_back
           && spec_source(&did) == row->source && did.flushes == row->flushes;
}

static bool bulk_row_holds(const struct protocol *p, const struct bulk_row *row)
{
    const char *next[BULK_EVENTS] = { row->arrive, row->confirm, row->roll_back, row->roll_back_written };
    bool ok = true;

    for (unsigned e = 0; e < BULK_EVENTS; e++)
        ok &= !next[e] || p->bulk[e][spec_state(p, row->state)] == spec_state(p, next[e]);
    return ok;
}

#define ROWS(rows) (sizeof(rows) / sizeof *(rows))

/* Whether the cells with that number hold; cells are numbered through all lists of the protocol. Returns their number if `at` is beyond them. */
static unsigned table_1_cells(const struct protocol *p, bool is_mesi, unsigned at, bool *ret)
{
    const struct own_row *own[] = { MSI_OWN, MESI_OWN };
    const struct snoop_row *snoop[] = { MSI_SNOOP, MESI_SNOOP };
    const struct bulk_row *bulk[] = { MSI_BULK, MESI_BULK };
    unsigned owns[] = { ROWS(MSI_OWN), ROWS(MESI_OWN) }, snoops[] = { ROWS(MSI_SNOOP), ROWS(MESI_SNOOP) };
    unsigned bulks[] = { ROWS(MSI_BULK), ROWS(MESI_BULK) }, n = 0;

    for (unsigned k = 0; k <= is_mesi; k++) {
        for (unsigned i = 0; i < owns[k]; i++, n++) {
            const struct own_row *row = &own[k][i];
            /* MESI fetches a line alone as exclusive, and keeps a modified line exclusive */
            bool differs = is_mesi && k == 0 && (row->event == RN || row->event == RS)
                           && ((!strcmp(row->state, "I") && !strcmp(row->other, "I")) || !strcmp(row->state, "M"))
                           && strcmp(row->next, "M") != 0;
            if (n == at)
                *ret = differs || own_row_holds(p, row);
        }
        for (unsigned i = 0; i < snoops[k]; i++, n++)
            if (n == at)
                *ret = snoop_row_holds(p, &snoop[k][i]);
        for (unsigned i = 0; i < bulks[k]; i++, n++)
            if (n == at)
                *ret = bulk_row_holds(p, &bulk[k][i]);
    }
    return n;
}

static void each_cell_of_table_1_is_as_published(void)
{
    for (unsigned i = 0; speculative_protocols[i]; i++) {
        const struct protocol *p = speculative_protocols[i];
        bool is_mesi = p == &protocol_smesi, ok = true;
        unsigned n = table_1_cells(p, is_mesi, UINT32_MAX, &ok);
        for (unsigned at = 0; at < n; at++) {
            ok = false;
            table_1_cells(p, is_mesi, at, &ok);
            if (!CHECK(ok))
                printf("# %s: row %u of the lists\n", p->name, at);
        }
        printf("# %s: %u cells\n", p->name, n);
    }
}

/* ---- exploration ---- */

static void no_speculation_reads_old_words_or_loses_a_write(void)
{
    for (unsigned i = 0; speculative_protocols[i]; i++)
        for (unsigned how = BULK_ROLL_BACK; how <= BULK_ROLL_BACK_WRITTEN; how++)
            for (unsigned caches = 1; caches <= SPEC_CACHES; caches++) {
                const struct protocol *p = speculative_protocols[i];
                spec_explore(&exploration, p, caches, how);
                if (!CHECK_EQ(exploration.complaint, NULL))
                    printf("# %s with %u caches: %s\n", p->name, caches, exploration.complaint);
                else if (caches == SPEC_CACHES)
                    printf("# %s: %u states of %u caches and memory\n", p->name, exploration.nodes, caches);
            }
}

/* A core can be rolled back for another line, whatever the state of this one. */
static struct spec_used spec_use(const struct protocol *p)
{
    struct spec_used *used = &exploration.used;

    spec_explore(&exploration, p, SPEC_CACHES, BULK_ROLL_BACK);
    used->bulk[BULK_ROLL_BACK] |= used->bulk[BULK_CONFIRM];
    used->bulk[BULK_ROLL_BACK_WRITTEN] = used->bulk[BULK_ROLL_BACK];
    return *used;
}

/* Cells without content are those that cannot be reached. Only write-backs, which change nothing, have a cell in every state. */
static void all_of_the_tables_is_used(void)
{
    for (unsigned i = 0; speculative_protocols[i]; i++) {
        const struct protocol *p = speculative_protocols[i];
        struct spec_used used = spec_use(p);
        for (unsigned s = 0; s < p->states; s++) {
            bool ok = used.state[s] == (p->state[s].name != NULL);
            for (unsigned k = 0; k < OWN_EVENTS; k++) {
                const struct own_cell *c = &p->own[s][k];
                ok &= used.own[s][k] || !(c->op | c->alone | c->shared | c->then | c->acts | c->old);
                ok &= used.own[s][k] & 4 || !c->old;
                ok &= !c->then && (used.own[s][k] & 2 || c->alone == c->shared);
            }
            for (unsigned op = 0; op < BUS_OPS; op++)
                ok &= used.snoop[op] >> s & 1 || !(p->snoop[s][op].next | p->snoop[s][op].acts) || op == BUS_WRITE_BACK;
            if (!CHECK(ok))
                printf("# %s: state %u\n", p->name, s);
        }
    }
}

/* Without speculation, an extension is its base. */
static void the_plain_part_of_an_extension_is_its_base(void)
{
    unsigned extensions = 0;

    for (unsigned i = 0; protocols[i]; i++) {
        const struct protocol *base = protocols[i], *p = base->extension;
        if (!p)
            continue;
        extensions++;
        for (unsigned s = 0; s < base->states; s++) {
            unsigned t = spec_state(p, base->state[s].name);
            CHECK_EQ(p->flags[t], base->flags[s]);
            CHECK_EQ(p->state[t].meaning, base->state[s].meaning);
            for (unsigned k = 0; k < OWN_BASE_EVENTS; k++) {
                const struct own_cell *a = &base->own[s][k], *b = &p->own[t][k];
                CHECK(a->op == b->op && a->then == b->then && a->acts == b->acts);
                CHECK(!strcmp(base->state[a->alone].name, p->state[b->alone].name));
                CHECK(!strcmp(base->state[a->shared].name, p->state[b->shared].name));
            }
            for (unsigned op = 0; op < BUS_BASE_OPS; op++) {
                const struct snoop_cell *a = &base->snoop[s][op], *b = &p->snoop[t][op];
                CHECK(a->acts == b->acts && !strcmp(base->state[a->next].name, p->state[b->next].name));
            }
        }
    }
    CHECK_EQ(extensions, 2);
    CHECK(protocol_msi.extension == &protocol_smsi && protocol_mesi.extension == &protocol_smesi);
}

/* ---- table 2 ---- */

/* The operations as the paper writes them, bit by bit. */
static unsigned bits_reset(unsigned code, unsigned bit)
{
    return code & ~(1u << bit);
}

static unsigned bits_msk_reset(unsigned code, unsigned m, unsigned bit)
{
    return code >> m & 1 ? bits_reset(code, bit) : code;
}

static unsigned bits_after(unsigned code, unsigned event)
{
    return event == BULK_ROLL_BACK ? bits_reset(bits_msk_reset(bits_msk_reset(code, 2, 1), 2, 0), 2)
                                   : bits_reset(code, 2);
}

static void bulk_operations_do_what_the_tables_say(void)
{
    for (unsigned code = 0; code < TAG_CODES; code++)
        for (unsigned event = 0; event < BULK_EVENTS; event++) {
            unsigned want =
                event == BULK_ROLL_BACK_WRITTEN ? code & 4 ? code & 1 ? code & 3 : 0 : code : bits_after(code, event);
            uint64_t tag = UINT64_C(0x123456789abcdef0) | code;
            CHECK_EQ(tag_apply(tag, event), (tag & ~(uint64_t)TAG_BITS) | want);
            /* every position of a vector, and the words after the last whole vector */
            for (unsigned words = 1; words <= 3 * TAG_VECTOR + 1; words++)
                for (unsigned at = 0; at < words; at++) {
                    uint64_t store[3 * TAG_VECTOR + 1];
                    for (unsigned k = 0; k < words; k++)
                        store[k] = (uint64_t)k << 4 | ((code + k) % TAG_CODES);
                    store[at] = tag;
                    CHECK_EQ(tag_store_apply(store, words, event), (words + TAG_VECTOR - 1) / TAG_VECTOR);
                    bool ok = store[at] == ((tag & ~(uint64_t)TAG_BITS) | want);
                    for (unsigned k = 0; k < words; k++)
                        ok &= k == at || store[k] == tag_apply((uint64_t)k << 4 | ((code + k) % TAG_CODES), event);
                    CHECK(ok);
                }
            for (unsigned i = 0; speculative_protocols[i]; i++) {
                const struct protocol *p = speculative_protocols[i];
                bool is_unsafe = p->flags[code] & STATE_UNSAFE;
                if (code < p->states && p->state[code].name && !(is_unsafe && event == BULK_ARRIVE))
                    CHECK_EQ(p->bulk[event][code], want);
            }
        }
}

static void start_success_and_failure_touch_each_vector_once(void)
{
    enum { WORDS = 4096 }; /* lines of the paper's cache */
    static uint64_t store[WORDS];

    for (unsigned used = 0; used <= WORDS; used += WORDS / 8)
        for (unsigned event = 0; event < BULK_EVENTS; event++) {
            for (unsigned i = 0; i < WORDS; i++)
                store[i] = i < used ? (uint64_t)i << 4 | (i % 4 + 4) : 0;
            CHECK_EQ(tag_store_apply(store, WORDS, event), WORDS / TAG_VECTOR);
        }
}

static void codes_are_those_of_table_2(void)
{
    static const char *const CODES[TAG_CODES] = { "I", "S", "M", "E", "XP", "US", "UM", "UE" };

    for (unsigned i = 0; speculative_protocols[i]; i++)
        for (unsigned s = 0; s < speculative_protocols[i]->states; s++)
            if (speculative_protocols[i]->state[s].name)
                CHECK_EQ(speculative_protocols[i]->state[s].name, CODES[s]);
}

/* ---- the document ---- */

static const char *const OP_TEXTS[BUS_OPS] = { "",       "read",       "read to own",        "invalidate",
                                               "update", "write back", "tagged read to own", "tagged invalidate" };

static void print_own(FILE *out, const struct protocol *p, const struct own_cell *c, unsigned answers)
{
    bool rolls_back = c->acts & OWN_ROLLS_BACK;

    if (c->op)
        fprintf(out, "%s → ", OP_TEXTS[c->op]);
    fprintf(out, "%s%s", p->state[c->alone].name, rolls_back && !c->alone ? ", *rolls back*" : "");
    if (c->shared != c->alone)
        fprintf(out, "; %s if shared", p->state[c->shared].name);
    if (answers & 4 && c->old != c->alone)
        fprintf(out, "; %s if old%s", p->state[c->old].name, rolls_back && !c->old ? ", *rolls back*" : "");
}

static void print_snoop(FILE *out, const struct protocol *p, const struct snoop_cell *c)
{
    fprintf(out, "%s%s%s%s%s%s", p->state[c->next].name, c->acts & SNOOP_SHARED ? ", *shared*" : "",
            c->acts & SNOOP_SUPPLY ? ", *supplies*" : "", c->acts & SNOOP_FLUSH ? ", *flushes*" : "",
            c->acts & SNOOP_OLD ? ", *old*" : "", c->acts & SNOOP_ROLLS_BACK ? ", *rolls back*" : "");
}

static void print_bulk(FILE *out, const struct protocol *p, const struct spec_used *u, unsigned s, unsigned event)
{
    fprintf(out, " %s |", u->bulk[event] >> s & 1 ? p->state[p->bulk[event][s]].name : "–");
}

/* The protocol's tables as the document has them: own events and those of all lines, then snooped transactions. To be freed. */
static char *spec_table_of(const struct protocol *p, const struct spec_used *u)
{
    static const unsigned EVENTS[] = { RN, WN, V, RS, WS };
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        abort();
    fprintf(
        out,
        "| state of a line | | reads | writes | evicts | reads speculatively | writes speculatively | arrives | is confirmed | is "
        "rolled back | likewise, read lines stay |\n|---|---|---|---|---|---|---|---|---|---|---|\n");
    for (unsigned s = 0; s < p->states; s++) {
        if (!p->state[s].name)
            continue;
        fprintf(out, "| **%s** | %s%s%s%s |", p->state[s].name, p->flags[s] & STATE_READABLE ? "r" : "–",
                p->flags[s] & STATE_WRITABLE ? "w" : "", p->flags[s] & STATE_DIRTY ? "d" : "",
                p->flags[s] & STATE_UNSAFE ? "u" : "");
        for (unsigned k = 0; k < ROWS(EVENTS); k++) {
            fprintf(out, u->own[s][EVENTS[k]] ? " " : " –");
            if (u->own[s][EVENTS[k]])
                print_own(out, p, &p->own[s][EVENTS[k]], u->own[s][EVENTS[k]]);
            fprintf(out, " |");
        }
        for (unsigned e = 0; e < BULK_EVENTS; e++)
            print_bulk(out, p, u, s, e);
        fprintf(out, "\n");
    }
    fprintf(out, "\n| holder |");
    for (unsigned op = 0; op < BUS_OPS; op++)
        if (u->snoop[op])
            fprintf(out, " snoops %s |", OP_TEXTS[op]);
    fprintf(out, "\n|---|");
    for (unsigned op = 0; op < BUS_OPS; op++)
        if (u->snoop[op])
            fprintf(out, "---|");
    fprintf(out, "\n");
    for (unsigned s = 1; s < p->states; s++) {
        if (!p->state[s].name)
            continue;
        fprintf(out, "| **%s** |", p->state[s].name);
        for (unsigned op = 0; op < BUS_OPS; op++) {
            if (!u->snoop[op])
                continue;
            fprintf(out, u->snoop[op] >> s & 1 ? " " : " –");
            if (u->snoop[op] >> s & 1)
                print_snoop(out, p, &p->snoop[s][op]);
            fprintf(out, " |");
        }
        fprintf(out, "\n");
    }
    if (fclose(out))
        abort();
    return text;
}

/* ---- mistakes ---- */

struct spec_tally {
    struct spec_judge judge;
    const struct protocol *right;
    const struct spec_used *used;
    const char *table;
    unsigned mistakes, explored, by_cells, missed;
};

static void spec_try_mistake(struct spec_judge *j, const struct protocol *wrong)
{
    struct spec_tally *t = (struct spec_tally *)j;
    bool is_mesi = t->right == &protocol_smesi, ok = true, found = false, explored = false;
    unsigned n = table_1_cells(wrong, is_mesi, UINT32_MAX, &ok);

    for (unsigned how = BULK_ROLL_BACK; how <= BULK_ROLL_BACK_WRITTEN && !explored; how++)
        for (unsigned caches = 2; caches <= SPEC_CACHES && !explored; caches++) {
            spec_explore(&exploration, wrong, caches, how);
            explored = exploration.complaint != NULL;
        }
    for (unsigned at = 0; at < n && !found; at++) {
        ok = false;
        table_1_cells(wrong, is_mesi, at, &ok);
        found = !ok;
    }
    char *table = spec_table_of(wrong, t->used);
    t->mistakes++;
    t->explored += explored;
    t->by_cells += found;
    t->missed += !found && !explored && !strcmp(table, t->table);
    free(table);
}

/* What neither exploration nor cells find is a signal that no cache uses, or the next state of a line that the roll-back drops anyway. The
 * document says it, too. */
static void each_mistake_in_a_cell_is_found(void)
{
    for (unsigned i = 0; speculative_protocols[i]; i++) {
        const struct protocol *p = speculative_protocols[i];
        struct spec_used used = spec_use(p);
        char *table = spec_table_of(p, &used);
        struct spec_tally t = { .judge = { spec_try_mistake }, .right = p, .used = &used, .table = table };
        spec_make_mistakes(&t.judge, p, &used);
        printf("# %s: of %u mistakes %u are found by exploration, %u by the cells of table 1\n", p->name, t.mistakes,
               t.explored, t.by_cells);
        CHECK(t.mistakes > 500 && t.explored * 2 > t.mistakes);
        CHECK_EQ(t.missed, 0);
        free(table);
    }
}

static void the_document_has_the_speculative_tables(void)
{
    static char document[1 << 16];
    FILE *f = fopen("docs/protocols.md", "r");

    document[f ? fread(document, 1, sizeof document - 1, f) : 0] = 0;
    if (f)
        fclose(f);
    for (unsigned i = 0; speculative_protocols[i]; i++) {
        const struct protocol *p = speculative_protocols[i];
        struct spec_used used = spec_use(p);
        char heading[64], *table = spec_table_of(p, &used), line[200];
        snprintf(heading, sizeof heading, "\n## %s\n", p->name);
        const char *section = strstr(document, heading);
        bool ok = section && strstr(section, p->summary) && strstr(section, table);
        for (unsigned s = 0; ok && s < p->states; s++) {
            snprintf(line, sizeof line, "\n- **%s** %s\n", p->state[s].name, p->state[s].meaning);
            ok &= !p->state[s].name || strstr(section, line);
        }
        if (!CHECK(ok))
            printf("# %s: docs/protocols.md should have\n%s", p->name, table);
        free(table);
    }
}

int main(void)
{
    RUN(each_cell_of_table_1_is_as_published);
    RUN(no_speculation_reads_old_words_or_loses_a_write);
    RUN(all_of_the_tables_is_used);
    RUN(the_plain_part_of_an_extension_is_its_base);
    RUN(each_mistake_in_a_cell_is_found);
    RUN(codes_are_those_of_table_2);
    RUN(bulk_operations_do_what_the_tables_say);
    RUN(start_success_and_failure_touch_each_vector_once);
    RUN(the_document_has_the_speculative_tables);
    return check_done();
}

/* SPDX-License-Identifier: MIT */
/* Coherence protocols. All that can happen to one line in a few caches is explored, for every protocol (test_coherence_mistakes
 * asks whether that would find mistakes). Whether a protocol is the one that was published is another question: Berkeley and MESI
 * are compared cell by cell with what their papers say, and all of them with docs/protocols.md. */
#include <ctype.h>

#include "check.h"
#include "coherence_explore.h"

static void no_protocol_reads_old_words_or_loses_a_write(void)
{
    for (size_t i = 0; protocols[i]; i++)
        for (unsigned caches = 1; caches <= MOST_CACHES; caches++) {
            struct exploration *e = new_exploration(protocols[i], caches);
            if (!CHECK_EQ(e->complaint, NULL)) {
                printf("# %s with %u caches: %s, when\n", protocols[i]->name, caches, e->complaint);
                print_way(e, protocols[i], e->nodes - 1);
            } else if (caches == CACHES) {
                printf("# %s: %u states of %u caches and memory\n", protocols[i]->name, e->nodes, caches);
            }
            free(e);
        }
}

/* A protocol table has no cell that cannot be reached. Only write-backs, which change nothing, have a cell in every state. */
static void all_of_every_table_is_used(void)
{
    for (size_t i = 0; protocols[i]; i++) {
        const struct protocol *p = protocols[i];
        struct exploration *e = new_exploration(p, CACHES);
        for (unsigned s = 0; s < p->states; s++) {
            bool ok = e->used.state[s];
            for (unsigned k = 0; k < OWN_BASE_EVENTS; k++) {
                const bool *response = e->used.own[s][k];
                const struct own_cell *c = &p->own[s][k];
                ok &= response[0] || response[1] || !(c->op | c->alone | c->shared | c->then | c->acts);
                ok &= (response[0] && response[1]) || c->alone == c->shared;
            }
            for (unsigned op = 0; op < BUS_BASE_OPS; op++)
                ok &= e->used.snoop[op] >> s & 1 || !(p->snoop[s][op].next | p->snoop[s][op].acts)
                      || op == BUS_WRITE_BACK;
            if (!CHECK(ok))
                printf("# %s: not all that is said of state %s can happen\n", p->name, p->state[s].name);
        }
        free(e);
    }
}

/* ---- the registry, and what tables may say ---- */

static void protocols_are_found_by_their_names(void)
{
    static const char *const NAMES[] = {
#define X(name) #name,
        PROTOCOLS(X)
#undef X
    };
    size_t n = sizeof NAMES / sizeof *NAMES;

    for (size_t i = 0; i < n; i++) {
        const struct protocol *p = protocols[i];
        if (!CHECK(p) || !CHECK_EQ(p->name, NAMES[i]) || !CHECK_EQ(protocol_find(NAMES[i]), p))
            return;
        for (size_t k = 0; k < i; k++)
            CHECK(strcmp(NAMES[k], p->name) && strcmp(protocols[k]->summary, p->summary));
        for (const char *c = p->name; *c; c++)
            CHECK(islower((unsigned char)*c));
        CHECK(strlen(p->summary) > 20 && strlen(p->summary) < 100 && !strchr(p->summary, '\n'));
    }
    CHECK(!protocols[n]);
    CHECK(!protocol_find("") && !protocol_find("MESI") && !protocol_find("mes") && !protocol_find("zebra"));
}

/* Nothing is said of states that there are not, and nothing happens to a line that is not here. */
static bool nothing_is_said_of_others(const struct protocol *p)
{
    static const struct protocol NOTHING;
    bool ok =
        !p->flags[PROTOCOL_ABSENT] && !memcmp(p->snoop[PROTOCOL_ABSENT], NOTHING.snoop[0], sizeof NOTHING.snoop[0]);
    const struct own_cell *evict = &p->own[PROTOCOL_ABSENT][OWN_EVICT];

    ok &= !memcmp(evict, &NOTHING.own[0][0], sizeof *evict);
    for (unsigned s = p->states; s < PROTOCOL_STATES; s++) {
        ok &= !p->state[s].name && !p->state[s].meaning && !p->flags[s]
              && !memcmp(p->own[s], NOTHING.own[s], sizeof p->own[s]);
        ok &= !memcmp(p->snoop[s], NOTHING.snoop[s], sizeof p->snoop[s]);
    }
    return ok;
}

static bool own_cell_makes_sense(const struct protocol *p, unsigned s, enum own_event event)
{
    const struct own_cell *c = &p->own[s][event];
    uint8_t flags = p->flags[s], after = p->flags[c->alone];
    bool fetches = c->op == BUS_READ || c->op == BUS_READ_OWN, updates = c->op == BUS_UPDATE || c->then == BUS_UPDATE;

    if (c->alone >= p->states || c->shared >= p->states || c->op >= BUS_BASE_OPS || c->acts & ~OWN_WRITES_MEMORY)
        return false;
    if ((c->op == BUS_NONE && c->alone != c->shared) || (c->acts & OWN_WRITES_MEMORY && !updates))
        return false;
    if (c->then && (s != PROTOCOL_ABSENT || event != OWN_WRITE || c->op != BUS_READ || c->then >= BUS_WRITE_BACK))
        return false;
    if (s == PROTOCOL_ABSENT) /* a miss brings the line */
        return event == OWN_EVICT || (fetches && c->alone && c->shared && !(event == OWN_READ && c->op != BUS_READ));
    if (event == OWN_READ)
        return c->op == BUS_NONE && c->alone == s;
    if (event == OWN_EVICT)
        return !c->alone && !c->shared && c->op == (flags & STATE_DIRTY ? BUS_WRITE_BACK : BUS_NONE);
    if (flags & STATE_WRITABLE)
        return c->op == BUS_NONE && after & STATE_DIRTY && after & STATE_WRITABLE;
    return c->op != BUS_NONE && c->op != BUS_READ && c->op != BUS_WRITE_BACK && c->alone && c->shared;
}

static bool snoop_cell_makes_sense(const struct protocol *p, unsigned s, enum bus_op op)
{
    const struct snoop_cell *c = &p->snoop[s][op];
    bool fetches = op == BUS_READ || op == BUS_READ_OWN;

    if (c->next >= p->states || c->acts & ~(SNOOP_SHARED | SNOOP_SUPPLY | SNOOP_FLUSH | SNOOP_UPDATE))
        return false;
    if (op == BUS_NONE || op == BUS_WRITE_BACK)
        return c->next == (op == BUS_NONE ? PROTOCOL_ABSENT : s) && !c->acts;
    if ((op == BUS_READ_OWN || op == BUS_INVALIDATE) && c->next != PROTOCOL_ABSENT)
        return false;
    return !(c->acts & SNOOP_SHARED && !c->next) && !(c->acts & SNOOP_SUPPLY && !fetches)
           && !(c->acts & SNOOP_FLUSH && !(c->acts & SNOOP_SUPPLY)) && !(c->acts & SNOOP_UPDATE && op != BUS_UPDATE);
}

static void tables_say_only_what_has_a_meaning(void)
{
    for (size_t i = 0; protocols[i]; i++) {
        const struct protocol *p = protocols[i];
        if (!CHECK(p->states > 1 && p->states <= PROTOCOL_STATES) || !CHECK(nothing_is_said_of_others(p)))
            printf("# %s\n", p->name);
        for (unsigned s = 0; s < p->states; s++) {
            bool ok = p->state[s].name && *p->state[s].name && strlen(p->state[s].name) <= 2;
            ok &= p->state[s].meaning && strlen(p->state[s].meaning) > 10;
            for (unsigned k = 0; ok && k < s; k++)
                ok = strcmp(p->state[k].name, p->state[s].name) != 0;
            ok &= s == PROTOCOL_ABSENT || p->flags[s] & STATE_READABLE;
            for (unsigned k = 0; k < OWN_BASE_EVENTS; k++)
                ok &= own_cell_makes_sense(p, s, k);
            for (unsigned op = 0; s && op < BUS_BASE_OPS; op++)
                ok &= snoop_cell_makes_sense(p, s, op);
            if (!CHECK(ok))
                printf("# %s, state %u\n", p->name, s);
        }
    }
}

/* ---- as published ---- */

struct paper_state {
    const char *state;
    unsigned flags;
};
struct paper_own {
    const char *state;
    enum own_event event;
    unsigned op;
    const char *alone, *shared;
};
struct paper_snoop {
    const char *state;
    unsigned op;
    const char *next;
    unsigned acts;
};
struct paper {
    const char *name;
    struct paper_state states[PROTOCOL_STATES];
    struct paper_own own[PROTOCOL_STATES * OWN_BASE_EVENTS];
    struct paper_snoop snoop[PROTOCOL_STATES * BUS_BASE_OPS];
};

static unsigned state_named(const struct protocol *p, const char *name)
{
    for (unsigned s = 0; s < p->states; s++)
        if (!strcmp(p->state[s].name, name))
            return s;
    CHECK_EQ(name, NULL);
    return PROTOCOL_ABSENT;
}

/* All that the paper says is in the table, and all of the table that is used is in the paper. */
static void conforms(const struct paper *paper)
{
    const struct protocol *p = protocol_find(paper->name);
    struct exploration *e = new_exploration(p, CACHES);
    unsigned states = 0, left = 0;

    for (const struct paper_state *t = paper->states; t->state; t++, states++)
        CHECK_EQ(p->flags[state_named(p, t->state)], t->flags);
    CHECK_EQ(p->states, states);
    for (const struct paper_own *t = paper->own; t->state; t++) {
        unsigned s = state_named(p, t->state);
        const struct own_cell *c = &p->own[s][t->event];
        bool same = c->op == t->op && !strcmp(p->state[c->alone].name, t->alone)
                    && !strcmp(p->state[c->shared].name, t->shared);
        if (!CHECK(same && !c->then && !c->acts))
            printf("# %s: %s, event %u\n", p->name, t->state, t->event);
        memset(e->used.own[s][t->event], 0, sizeof e->used.own[s][t->event]);
    }
    for (const struct paper_snoop *t = paper->snoop; t->state; t++) {
        unsigned s = state_named(p, t->state);
        const struct snoop_cell *c = &p->snoop[s][t->op];
        if (!CHECK(!strcmp(p->state[c->next].name, t->next) && c->acts == t->acts))
            printf("# %s: %s snoops transaction %u\n", p->name, t->state, t->op);
        e->used.snoop[t->op] &= (uint8_t) ~(1u << s);
    }
    for (unsigned s = 0; s < PROTOCOL_STATES; s++)
        for (unsigned k = 0; k < OWN_BASE_EVENTS; k++)
            left += e->used.own[s][k][0] || e->used.own[s][k][1];
    for (unsigned op = 0; op < BUS_BASE_OPS; op++)
        left += e->used.snoop[op] != 0;
    CHECK_EQ(left, 0);
    free(e);
}

/* Katz, Eggers, Wood, Perkins and Sheldon, Implementing a Cache Consistency Protocol, 1985. In their words: a block is owned by at
 * most one cache, else by memory; the owner answers requests for it, and updates memory when it replaces it. */
static void berkeley_is_as_katz_and_others_published_it(void)
{
    static const char INVALID[] = "I", UNOWNED[] = "UO", EXCLUSIVELY[] = "OE", NON_EXCLUSIVELY[] = "ON";
    enum { NO_BUS = BUS_NONE, READ_SHARED = BUS_READ, READ_FOR_OWNERSHIP = BUS_READ_OWN };
    enum { WRITE_FOR_INVALIDATION = BUS_INVALIDATE, WRITE_WITHOUT_INVALIDATION = BUS_WRITE_BACK };
    enum { IGNORES = 0, SUPPLIES = SNOOP_SUPPLY };

    conforms(&(struct paper){
        .name = "berkeley",
        .states = { { INVALID, 0 },
                    { UNOWNED, STATE_READABLE },
                    { EXCLUSIVELY, STATE_READABLE | STATE_WRITABLE | STATE_DIRTY },
                    { NON_EXCLUSIVELY, STATE_READABLE | STATE_DIRTY } },
        .own = { /* a read miss gives no ownership, whichever cache supplies */
                 { INVALID, OWN_READ, READ_SHARED, UNOWNED, UNOWNED },
                 { INVALID, OWN_WRITE, READ_FOR_OWNERSHIP, EXCLUSIVELY, EXCLUSIVELY },
                 /* read hits are silent */
                 { UNOWNED, OWN_READ, NO_BUS, UNOWNED, UNOWNED },
                 { EXCLUSIVELY, OWN_READ, NO_BUS, EXCLUSIVELY, EXCLUSIVELY },
                 { NON_EXCLUSIVELY, OWN_READ, NO_BUS, NON_EXCLUSIVELY, NON_EXCLUSIVELY },
                 /* write hits: all but the exclusive owner invalidate */
                 { EXCLUSIVELY, OWN_WRITE, NO_BUS, EXCLUSIVELY, EXCLUSIVELY },
                 { UNOWNED, OWN_WRITE, WRITE_FOR_INVALIDATION, EXCLUSIVELY, EXCLUSIVELY },
                 { NON_EXCLUSIVELY, OWN_WRITE, WRITE_FOR_INVALIDATION, EXCLUSIVELY, EXCLUSIVELY },
                 /* replacement: owners give the block back to memory, and other copies stay */
                 { UNOWNED, OWN_EVICT, NO_BUS, INVALID, INVALID },
                 { EXCLUSIVELY, OWN_EVICT, WRITE_WITHOUT_INVALIDATION, INVALID, INVALID },
                 { NON_EXCLUSIVELY, OWN_EVICT, WRITE_WITHOUT_INVALIDATION, INVALID, INVALID } },
        .snoop = { /* the owner supplies, memory is not updated, and it knows that it is not the only one any more */
                   { EXCLUSIVELY, READ_SHARED, NON_EXCLUSIVELY, SUPPLIES },
                   { NON_EXCLUSIVELY, READ_SHARED, NON_EXCLUSIVELY, SUPPLIES },
                   { UNOWNED, READ_SHARED, UNOWNED, IGNORES },
                   /* ownership moves with the block */
                   { EXCLUSIVELY, READ_FOR_OWNERSHIP, INVALID, SUPPLIES },
                   { NON_EXCLUSIVELY, READ_FOR_OWNERSHIP, INVALID, SUPPLIES },
                   { UNOWNED, READ_FOR_OWNERSHIP, INVALID, IGNORES },
                   /* or without it; the exclusive owner cannot see this, because no other cache has a copy to write to */
                   { NON_EXCLUSIVELY, WRITE_FOR_INVALIDATION, INVALID, IGNORES },
                   { UNOWNED, WRITE_FOR_INVALIDATION, INVALID, IGNORES },
                   { UNOWNED, WRITE_WITHOUT_INVALIDATION, UNOWNED, IGNORES } },
    });
}

/* Papamarcos and Patel, A Low-Overhead Coherence Solution for Multiprocessors with Private Cache Memories, 1984; but clean blocks
 * come from memory. */
static void mesi_is_as_papamarcos_and_patel_published_it(void)
{
    static const char INVALID[] = "I", SHARED[] = "S", EXCLUSIVE[] = "E", MODIFIED[] = "M";
    enum { RAISES = SNOOP_SHARED, SUPPLIES = SNOOP_SUPPLY, UPDATES_MEMORY = SNOOP_FLUSH };

    conforms(&(struct paper){
        .name = "mesi",
        .states = { { INVALID, 0 },
                    { SHARED, STATE_READABLE },
                    { EXCLUSIVE, STATE_READABLE | STATE_WRITABLE },
                    { MODIFIED, STATE_READABLE | STATE_WRITABLE | STATE_DIRTY } },
        .own = { /* a read miss learns whether others have the block */
                 { INVALID, OWN_READ, BUS_READ, EXCLUSIVE, SHARED },
                 { INVALID, OWN_WRITE, BUS_READ_OWN, MODIFIED, MODIFIED },
                 { SHARED, OWN_READ, BUS_NONE, SHARED, SHARED },
                 { EXCLUSIVE, OWN_READ, BUS_NONE, EXCLUSIVE, EXCLUSIVE },
                 { MODIFIED, OWN_READ, BUS_NONE, MODIFIED, MODIFIED },
                 /* write hits: only in Shared, copies are invalidated */
                 { SHARED, OWN_WRITE, BUS_INVALIDATE, MODIFIED, MODIFIED },
                 { EXCLUSIVE, OWN_WRITE, BUS_NONE, MODIFIED, MODIFIED },
                 { MODIFIED, OWN_WRITE, BUS_NONE, MODIFIED, MODIFIED },
                 /* replacement: only modified blocks are written back */
                 { SHARED, OWN_EVICT, BUS_NONE, INVALID, INVALID },
                 { EXCLUSIVE, OWN_EVICT, BUS_NONE, INVALID, INVALID },
                 { MODIFIED, OWN_EVICT, BUS_WRITE_BACK, INVALID, INVALID } },
        .snoop = { /* a cache that has the block keeps it, Shared; a modified one is written to memory at the same time */
                   { SHARED, BUS_READ, SHARED, RAISES },
                   { EXCLUSIVE, BUS_READ, SHARED, RAISES },
                   { MODIFIED, BUS_READ, SHARED, RAISES | SUPPLIES | UPDATES_MEMORY },
                   { SHARED, BUS_READ_OWN, INVALID, 0 },
                   { EXCLUSIVE, BUS_READ_OWN, INVALID, 0 },
                   { MODIFIED, BUS_READ_OWN, INVALID, SUPPLIES },
                   { SHARED, BUS_INVALIDATE, INVALID, 0 } },
    });
}

/* ---- the document ---- */

static const char *const OP_NAMES[BUS_BASE_OPS] = { "", "read", "read to own", "invalidate", "update", "write back" };

static void print_own_cell(FILE *out, const struct protocol *p, const struct own_cell *c)
{
    const char *memory = c->acts & OWN_WRITES_MEMORY ? " and memory" : "";

    if (c->op || (*memory && !c->then))
        fprintf(out, "%s%s → ", OP_NAMES[c->op], c->then ? "" : memory);
    fprintf(out, "%s", p->state[c->alone].name);
    if (c->then)
        fprintf(out, "; if shared, %s%s → %s", OP_NAMES[c->then], memory, p->state[c->shared].name);
    else if (c->shared != c->alone)
        fprintf(out, "; %s if shared", p->state[c->shared].name);
}

static void print_snoop_cell(FILE *out, const struct protocol *p, const struct snoop_cell *c)
{
    fprintf(out, "%s%s%s%s%s", p->state[c->next].name, c->acts & SNOOP_SHARED ? ", *shared*" : "",
            c->acts & SNOOP_SUPPLY ? ", *supplies*" : "", c->acts & SNOOP_FLUSH ? ", *flushes*" : "",
            c->acts & SNOOP_UPDATE ? ", *takes*" : "");
}

/* A row for each state; a column for each event, and for each transaction of other caches that a cache can see. */
static void print_row(FILE *out, const struct protocol *p, const struct used *u, unsigned s)
{
    uint8_t flags = p->flags[s];

    fprintf(out, "| **%s** | %s%s%s |", p->state[s].name, flags & STATE_READABLE ? "r" : "–",
            flags & STATE_WRITABLE ? "w" : "", flags & STATE_DIRTY ? "d" : "");
    for (unsigned k = 0; k < OWN_BASE_EVENTS; k++) {
        bool is_used = u->own[s][k][0] || u->own[s][k][1];
        fprintf(out, is_used ? " " : " –");
        if (is_used)
            print_own_cell(out, p, &p->own[s][k]);
        fprintf(out, " |");
    }
    for (unsigned op = 0; op < BUS_BASE_OPS; op++) {
        if (!u->snoop[op])
            continue;
        fprintf(out, u->snoop[op] >> s & 1 ? " " : " –");
        if (u->snoop[op] >> s & 1)
            print_snoop_cell(out, p, &p->snoop[s][op]);
        fprintf(out, " |");
    }
    fprintf(out, "\n");
}

/* The protocol's table as the document has it. To be freed. */
static char *table_of(const struct protocol *p, const struct used *u)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        abort();
    fprintf(out, "| state | | reads | writes | evicts |");
    for (unsigned op = 0; op < BUS_BASE_OPS; op++)
        if (u->snoop[op])
            fprintf(out, " snoops %s |", OP_NAMES[op]);
    fprintf(out, "\n|---|---|---|---|---|");
    for (unsigned op = 0; op < BUS_BASE_OPS; op++)
        if (u->snoop[op])
            fprintf(out, "---|");
    fprintf(out, "\n");
    for (unsigned s = 0; s < p->states; s++)
        print_row(out, p, u, s);
    if (fclose(out))
        abort();
    return text;
}

static char *read_document(void)
{
    static char text[1 << 16];
    FILE *f = fopen("docs/protocols.md", "r");

    text[f ? fread(text, 1, sizeof text - 1, f) : 0] = 0;
    if (f)
        fclose(f);
    return text;
}

/* Whether the section explains each state on a separate line. */
static bool document_has_states(const struct protocol *p, const char *section, const char *end)
{
    char line[160];
    bool has = true;

    for (unsigned s = 0; s < p->states; s++) {
        snprintf(line, sizeof line, "\n- **%s** %s\n", p->state[s].name, p->state[s].meaning);
        const char *found = strstr(section, line);
        has &= found && (!end || found < end);
    }
    return has;
}

/* The section "## NAME" has the summary, the states and, before the next heading, the table. */
static void the_document_has_the_tables(void)
{
    const char *document = read_document();
    unsigned tables = 0, known = 0;

    for (const char *at = document; (at = strstr(at, "\n| state |")); at++)
        tables++;
    for (; protocols[known]; known++) {
        const struct protocol *p = protocols[known];
        struct exploration *e = new_exploration(p, CACHES);
        char heading[32], *table = table_of(p, &e->used);
        snprintf(heading, sizeof heading, "\n## %s\n", p->name);
        const char *section = strstr(document, heading), *end = section ? strstr(section + 1, "\n## ") : NULL;
        const char *summary = section ? strstr(section, p->summary) : NULL,
                   *found = section ? strstr(section, table) : NULL;
        if (!CHECK(found && (!end || found < end)))
            printf("# %s: docs/protocols.md should have\n%s", p->name, table);
        CHECK(summary && (!end || summary < end));
        CHECK(section && document_has_states(p, section, end));
        free(table);
        free(e);
    }
    CHECK_EQ(tables, known);
}

struct reader {
    struct judge judge;
    const struct exploration *right;
    char *table;
};

static void read_table(struct judge *j, const struct protocol *wrong)
{
    struct reader *r = (struct reader *)j;
    char *table = table_of(wrong, &r->right->used);

    CHECK(strcmp(table, r->table));
    free(table);
}

static void the_tables_in_the_document_leave_nothing_out(void)
{
    for (size_t i = 0; protocols[i]; i++) {
        struct exploration *e = new_exploration(protocols[i], CACHES);
        struct reader r = { { read_table }, e, table_of(protocols[i], &e->used) };
        make_mistakes(&r.judge, protocols[i], &e->used);
        free(r.table);
        free(e);
    }
}

int main(void)
{
    RUN(protocols_are_found_by_their_names);
    RUN(tables_say_only_what_has_a_meaning);
    RUN(no_protocol_reads_old_words_or_loses_a_write);
    RUN(all_of_every_table_is_used);
    RUN(berkeley_is_as_katz_and_others_published_it);
    RUN(mesi_is_as_papamarcos_and_patel_published_it);
    RUN(the_document_has_the_tables);
    RUN(the_tables_in_the_document_leave_nothing_out);
    return check_done();
}

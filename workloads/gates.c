/* SPDX-License-Identifier: MIT */
/* Event-driven simulation of a synchronous circuit at the gate level, each gate with one unit of delay.
 *
 * The textbook algorithm (Ulrich, "Exclusive simulation of activity in digital networks", CACM 12, 1969), its elements
 * dealt out to the threads as distributed simulators do: only elements with a changed input are evaluated. A clock
 * cycle loads the flip-flops and applies fresh inputs; changes then spread, unit of time by unit of time, until none is
 * left. Each thread owns a share of the elements and keeps two queues of events (a pin, its new value): one private,
 * one under a lock for what other threads' elements send.
 *
 * A unit of time has two phases, each ended by a barrier. In the first a thread takes its events, sets the pins and
 * evaluates their elements; in the second it gives its changed elements their new values and sends events to all that
 * they drive. A pin gets one event at most and an element is evaluated once, after all of them, whatever their order:
 * so no result depends on timing or on the thread count.
 *
 * The circuit is random: levels of gates, each fed mostly by the level before it from about the same place along the
 * level; its elements, linked by pointers, lie in memory in random order, so threads share wires all over.
 *
 * The self-check: all values after some cycles against evaluation of the circuit level by level, without events or
 * delays; at the end every gate's value against its inputs'.
 * Leaves out: other delays, unknown and high-impedance values, and loops without a flip-flop. */
#include "common.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

enum kind { INPUT, FLIP_FLOP, AND, OR, NAND, NOR, XOR, NOT, KINDS };
enum { MAX_PINS = 4, CHECKED_CYCLES = 8, NEARBY = 64, FAR = 8 };

/* A gate's output: begins with first, continues with fold[that][next pin], ends with last[that]. */
static const struct {
    uint8_t first, fold[2][2], last[2];
} logic[KINDS] = {
    /* clang-format off */
    [AND]  = { 1, { { 0, 0 }, { 0, 1 } }, { 0, 1 } },
    [NAND] = { 1, { { 0, 0 }, { 0, 1 } }, { 1, 0 } },
    [OR]   = { 0, { { 0, 1 }, { 1, 1 } }, { 0, 1 } },
    [NOR]  = { 0, { { 0, 1 }, { 1, 1 } }, { 1, 0 } },
    [XOR]  = { 0, { { 0, 1 }, { 1, 0 } }, { 0, 1 } },
    [NOT]  = { 0, { { 0, 1 }, { 1, 1 } }, { 1, 0 } },
    /* clang-format on */
};

/* The circuit as it is drawn, sources first and then gates level by level: every gate after those that feed it. */
struct drawing {
    uint8_t *kind, *pins;
    int32_t (*from)[MAX_PINS];
    int32_t *place;  /* which element in memory */
    int64_t sources; /* inputs and flip-flops */
};

/* An element as it is simulated, known to its owner only; others know its address. */
struct element {
    uint8_t kind, pins, value, next_value;
    uint8_t pin[MAX_PINS];
    int32_t number, drives; /* place in the drawing; how many pins it feeds */
    struct wire *wire;
    int64_t evaluated; /* at which unit of time, lest it be done twice */
};

struct wire {
    struct element *to;
    int32_t owner, pin;
};

struct event {
    struct element *to;
    uint8_t pin, value;
};

struct queue {
    struct event *event;
    int64_t length;
};

struct list {
    struct element **element;
    int64_t length;
};

struct worker {
    pthread_mutex_t lock;
    struct queue inbox; /* under the lock while changes are applied, the owner's while evaluating */
    struct queue own;
    struct list touched, changed, sources;
    int64_t evaluations, changes;
    char apart[64]; /* the next worker's lock lies in another line */
};

struct circuit {
    int64_t elements, cycles, levels;
    int threads;
    struct drawing drawing;
    struct element *element;
    struct wire *wires;
    struct event *events;   /* room for all queues */
    struct element **slots; /* room for all lists */
    struct worker *worker;
    uint8_t *snapshot; /* values after CHECKED_CYCLES, by number */
    pthread_barrier_t barrier;
    pthread_mutex_t lock;
    int64_t sent[2]; /* events of even and of odd units of time; under the lock */
};

static inline uint8_t input_value(int64_t cycle, int32_t number)
{
    struct wl_random r = { (uint64_t)cycle << 32 ^ (uint64_t)number };

    return (uint8_t)(wl_random_next(&r) >> 63);
}

static inline void change(struct worker *w, struct element *e, uint8_t value)
{
    if (value != e->value) {
        e->next_value = value;
        w->changed.element[w->changed.length++] = e;
    }
}

static void evaluate(struct worker *w, struct element *e)
{
    uint8_t value = logic[e->kind].first;

    for (int i = 0; i < e->pins; i++)
        value = logic[e->kind].fold[value][e->pin[i]];
    w->evaluations++;
    change(w, e, logic[e->kind].last[value]);
}

/* Sets pins and notes their gates; flip-flops wait for the clock. */
static void take_events(struct worker *w, struct queue *q, int64_t time)
{
    for (int64_t i = 0; i < q->length; i++) {
        struct element *e = q->event[i].to;
        e->pin[q->event[i].pin] = q->event[i].value;
        if (e->evaluated != time && e->kind != FLIP_FLOP) {
            e->evaluated = time;
            w->touched.element[w->touched.length++] = e;
        }
    }
    q->length = 0;
}

static void evaluate_touched(struct worker *w)
{
    for (int64_t i = 0; i < w->touched.length; i++)
        evaluate(w, w->touched.element[i]);
    w->touched.length = 0;
}

/* A clock edge: flip-flops take what they see, inputs what the cycle brings. */
static void clock_sources(struct worker *w, int64_t cycle)
{
    for (int64_t i = 0; i < w->sources.length; i++) {
        struct element *e = w->sources.element[i];
        change(w, e, e->kind == INPUT ? input_value(cycle, e->number) : e->pin[0]);
    }
}

static void send(struct circuit *c, int id, const struct wire *wire, uint8_t value)
{
    struct event event = { wire->to, (uint8_t)wire->pin, value };
    struct worker *w = &c->worker[wire->owner];

    if (wire->owner == id) {
        w->own.event[w->own.length++] = event;
        return;
    }
    pthread_mutex_lock(&w->lock);
    w->inbox.event[w->inbox.length++] = event;
    pthread_mutex_unlock(&w->lock);
}

/* Second phase of a unit of time. Returns whether any thread has sent an event. */
static bool apply(struct circuit *c, int id, int64_t time)
{
    struct worker *w = &c->worker[id];
    int64_t sent = 0;

    for (int64_t i = 0; i < w->changed.length; i++) {
        struct element *e = w->changed.element[i];
        e->value = e->next_value;
        for (int32_t k = 0; k < e->drives; k++)
            send(c, id, &e->wire[k], e->value);
        sent += e->drives;
    }
    w->changes += w->changed.length;
    w->changed.length = 0;
    if (id == 0)
        c->sent[(time + 1) & 1] = 0; /* all threads have read it before the last barrier and add to it after the next */
    pthread_mutex_lock(&c->lock);
    c->sent[time & 1] += sent;
    pthread_mutex_unlock(&c->lock);
    pthread_barrier_wait(&c->barrier);
    return c->sent[time & 1] > 0;
}

static void take_snapshot(struct circuit *c, int64_t first, int64_t end)
{
    for (int64_t i = first; i < end; i++)
        c->snapshot[c->element[i].number] = c->element[i].value;
}

static void simulate(int id, void *arg)
{
    struct circuit *c = arg;
    struct worker *w = &c->worker[id];
    int64_t first, end, time = 0;

    wl_share(c->elements, c->threads, id, &first, &end); /* power on: look at every gate once, all pins being 0 */
    for (int64_t i = first; i < end; i++)
        if (c->element[i].kind != INPUT && c->element[i].kind != FLIP_FLOP)
            evaluate(w, &c->element[i]);
    for (int64_t cycle = 0; cycle < c->cycles; cycle++) {
        if (cycle > 0)
            clock_sources(w, cycle);
        pthread_barrier_wait(&c->barrier);
        for (; apply(c, id, time); time++) {
            take_events(w, &w->own, time);
            take_events(w, &w->inbox, time);
            evaluate_touched(w);
            pthread_barrier_wait(&c->barrier);
        }
        time++;
        if (cycle == CHECKED_CYCLES)
            take_snapshot(c, first, end);
    }
}

/* Drawing a random circuit. */

/* A number of that range, near the place that is share of the range's length from its beginning. */
static int32_t pick_near(struct wl_random *r, int64_t first, int64_t end, double share)
{
    int64_t window = end - first < NEARBY ? end - first : NEARBY;
    int64_t low = first + (int64_t)(share * (double)(end - first)) - window / 2;

    low = low < first ? first : low > end - window ? end - window : low;
    return (int32_t)(low + (int64_t)(wl_random_next(r) % (uint64_t)window));
}

static int64_t level_first(const struct circuit *c, int64_t level)
{
    int64_t gates = c->elements - c->drawing.sources;

    return level < 0 ? 0 : c->drawing.sources + level * gates / c->levels;
}

static void draw_gate(struct circuit *c, struct wl_random *r, int64_t level, int64_t number)
{
    static const uint8_t kinds[] = { AND, AND, OR, OR, NAND, NAND, NOR, NOR, XOR, XOR, XOR, NOT };
    struct drawing *d = &c->drawing;
    uint8_t kind = kinds[wl_random_next(r) % sizeof kinds];
    int64_t first = level_first(c, level), end = level_first(c, level + 1);
    double share = (double)(number - first) / (double)(end - first);

    d->kind[number] = kind;
    d->pins[number] = (uint8_t)(kind == NOT ? 1 : kind == XOR ? 2 : 2 + wl_random_next(r) % (MAX_PINS - 1));
    for (int pin = 0; pin < d->pins[number]; pin++) {
        bool far = pin > 0 && wl_random_next(r) % FAR == 0; /* from anywhere before */
        d->from[number][pin] = far ? (int32_t)(wl_random_next(r) % (uint64_t)first)
                                   : pick_near(r, level_first(c, level - 1), first, share);
    }
}

static void draw(struct circuit *c)
{
    struct drawing *d = &c->drawing;
    struct wl_random r = { 1969 };
    size_t n = (size_t)c->elements;

    d->kind = wl_alloc(n * sizeof *d->kind);
    d->pins = wl_alloc(n * sizeof *d->pins);
    d->from = wl_alloc(n * sizeof *d->from);
    d->place = wl_alloc(n * sizeof *d->place);
    d->sources = c->elements / 8;
    for (int64_t i = 0; i < d->sources; i++) {
        d->kind[i] = i % 4 == 0 ? INPUT : FLIP_FLOP;
        d->pins[i] = d->kind[i] == FLIP_FLOP;
        int64_t level = (int64_t)(wl_random_next(&r) % (uint64_t)c->levels);
        double share = (double)i / (double)d->sources;
        d->from[i][0] = pick_near(&r, level_first(c, level), level_first(c, level + 1), share);
    }
    for (int64_t level = 0; level < c->levels; level++)
        for (int64_t i = level_first(c, level); i < level_first(c, level + 1); i++)
            draw_gate(c, &r, level, i);
    for (int64_t i = 0; i < c->elements; i++) { /* shuffled as it grows */
        int64_t other = (int64_t)(wl_random_next(&r) % (uint64_t)(i + 1));
        d->place[i] = d->place[other];
        d->place[other] = (int32_t)i;
    }
}

/* Building the elements that are simulated. */

static void link_elements(struct circuit *c)
{
    const struct drawing *d = &c->drawing;
    int64_t used = 0;

    for (int64_t i = 0; i < c->elements; i++)
        c->element[d->place[i]] =
            (struct element){ .kind = d->kind[i], .pins = d->pins[i], .number = (int32_t)i, .evaluated = -1 };
    for (int64_t i = 0; i < c->elements; i++)
        for (int pin = 0; pin < d->pins[i]; pin++)
            c->element[d->place[d->from[i][pin]]].drives++;
    for (int64_t i = 0; i < c->elements; i++) {
        c->element[i].wire = &c->wires[used];
        used += c->element[i].drives;
        c->element[i].drives = 0;
    }
    for (int id = 0; id < c->threads; id++) { /* threads own stretches of memory, not of the drawing */
        int64_t first, end;
        wl_share(c->elements, c->threads, id, &first, &end);
        for (int64_t i = first; i < end; i++) {
            struct element *to = &c->element[i];
            for (int pin = 0; pin < to->pins; pin++) {
                struct element *from = &c->element[d->place[d->from[to->number][pin]]];
                from->wire[from->drives++] = (struct wire){ to, id, pin };
            }
        }
    }
}

/* Queues and lists are as long as a thread's share can ever need: one event for each pin. */
static void make_workers(struct circuit *c)
{
    struct event *event = c->events;
    struct element **slot = c->slots;

    for (int id = 0; id < c->threads; id++) {
        struct worker *w = &c->worker[id];
        int64_t first, end, pins = 0;
        wl_share(c->elements, c->threads, id, &first, &end);
        w->touched.element = slot;
        w->changed.element = slot + (end - first);
        w->sources.element = slot + 2 * (end - first);
        slot += 3 * (end - first);
        for (int64_t i = first; i < end; i++) {
            pins += c->element[i].pins;
            if (c->element[i].kind == INPUT || c->element[i].kind == FLIP_FLOP)
                w->sources.element[w->sources.length++] = &c->element[i];
        }
        w->own.event = event;
        w->inbox.event = event + pins;
        event += 2 * pins;
        pthread_mutex_init(&w->lock, NULL);
    }
}

static void circuit_init(struct circuit *c)
{
    size_t n = (size_t)c->elements;

    draw(c);
    c->element = wl_alloc(n * sizeof *c->element);
    c->wires = wl_alloc(n * MAX_PINS * sizeof *c->wires);
    c->events = wl_alloc(n * MAX_PINS * 2 * sizeof *c->events);
    c->slots = wl_alloc(n * 3 * sizeof *c->slots);
    c->worker = wl_alloc((size_t)c->threads * sizeof *c->worker);
    c->snapshot = wl_alloc(n);
    link_elements(c);
    make_workers(c);
    pthread_barrier_init(&c->barrier, NULL, (unsigned)c->threads);
}

static void circuit_release(struct circuit *c)
{
    pthread_barrier_destroy(&c->barrier);
    for (int id = 0; id < c->threads; id++)
        pthread_mutex_destroy(&c->worker[id].lock);
    void *memory[] = { c->drawing.kind, c->drawing.pins, c->drawing.from, c->drawing.place, c->element,
                       c->wires,        c->events,       c->slots,        c->worker,        c->snapshot };
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        free(memory[i]);
}

/* Checking. */

/* What a gate of the drawing gives; deliberately not by the table that the simulation uses. */
static uint8_t drawn_gate(const struct drawing *d, int64_t number, const uint8_t *value)
{
    int ones = 0, pins = d->pins[number];

    for (int pin = 0; pin < pins; pin++)
        ones += value[d->from[number][pin]];
    switch (d->kind[number]) {
    case AND: return ones == pins;
    case NAND: return ones < pins;
    case OR: return ones > 0;
    case XOR: return ones & 1;
    default: return ones == 0;
    }
}

/* Level by level, cycle by cycle; returns how many values differ from the snapshot's. */
static int64_t compare_with_levels(const struct circuit *c)
{
    const struct drawing *d = &c->drawing;
    uint8_t *value = wl_alloc((size_t)c->elements), *next = wl_alloc((size_t)d->sources);
    int64_t wrong = 0;

    for (int64_t cycle = 0; cycle <= CHECKED_CYCLES; cycle++) {
        for (int64_t i = 0; cycle > 0 && i < d->sources; i++)
            next[i] = d->kind[i] == INPUT ? input_value(cycle, (int32_t)i) : value[d->from[i][0]];
        for (int64_t i = 0; i < c->elements; i++)
            value[i] = i < d->sources ? next[i] : drawn_gate(d, i, value);
    }
    for (int64_t i = 0; i < c->elements; i++)
        wrong += value[i] != c->snapshot[i];
    free(value);
    free(next);
    return wrong;
}

/* Returns how many gates do not hold what their inputs say. */
static int64_t unsettled(struct circuit *c)
{
    int64_t wrong = 0;

    take_snapshot(c, 0, c->elements);
    for (int64_t i = c->drawing.sources; i < c->elements; i++)
        wrong += c->snapshot[i] != drawn_gate(&c->drawing, i, c->snapshot);
    return wrong;
}

static uint64_t checksum(const struct circuit *c)
{
    struct wl_random mix = { 0 };

    for (int64_t i = 0; i < c->elements; i++)
        mix.state = wl_random_next(&mix) ^ c->snapshot[i];
    return mix.state;
}

int main(int argc, char **argv)
{
    static struct circuit c = { .elements = 6500, .cycles = 200, .levels = 8, .lock = PTHREAD_MUTEX_INITIALIZER };
    const struct wl_option options[] = {
        { 'n', &c.elements, 64, 1 << 26, "elements: 1000 and -c 21 for 10^6 references, 100k and -c 5000 for 10^10" },
        { 'c', &c.cycles, CHECKED_CYCLES + 1, 1 << 24, "clock cycles" },
        { 'l', &c.levels, 1, 32, "levels of gates" },
        { 0 },
    };

    c.threads = wl_parse(argc, argv, "event-driven simulation of a circuit at the gate level", options);
    circuit_init(&c);
    wl_parallel(c.threads, simulate, &c);
    int64_t evaluations = 0, changes = 0, wrong = compare_with_levels(&c), loose = unsettled(&c);
    for (int id = 0; id < c.threads; id++) {
        evaluations += c.worker[id].evaluations;
        changes += c.worker[id].changes;
    }
    uint64_t sum = checksum(&c);
    circuit_release(&c);
    return wl_verdict(wrong == 0 && loose == 0,
                      "%lld elements, %lld cycles, %lld evaluations, %lld changes, %lld values wrong, %lld unsettled, "
                      "checksum %016" PRIx64,
                      (long long)c.elements, (long long)c.cycles, (long long)evaluations, (long long)changes,
                      (long long)wrong, (long long)loose, sum);
}

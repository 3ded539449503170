/* SPDX-License-Identifier: MIT */
/* The filter: passes the words that --level, --region, --only and --skip select.
 *
 * Before the next recorded word, a gap event has the number of instructions and references that were left out. Abstract events are never left
 * out. Blocks may read %rsp from a register of the trace. So the filter follows %rsp through blocks that it leaves out, and sets the register
 * before the first block that reads it. */
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "capture/recorder/live.h"

bool filter_is_wanted(const struct recorder *s)
{
    const struct producer_config *c = s->config;

    return s->code.layout.strips_operands || c->regions.count || c->only.count || c->skip.count;
}

void filter_release(struct live_filter *f)
{
    free(f->word);
}

static int filter_flush(struct live_thread *t, struct peet_err *err)
{
    struct live_filter *f = &t->filter;
    int r = f->words ? live_put(t, f->word, f->words, err) : 0;

    f->words = 0;
    return r;
}

static void filter_push(struct live_filter *f, uint64_t key, const uint64_t *slots, size_t n)
{
    f->word[f->words++] = key;
    if (n)
        memcpy(f->word + f->words, slots, n * sizeof *slots);
    f->words += n;
}

/* Iteration counts of the loops in these words. */
static void filter_count_iterations(const struct live_item *item, const uint64_t *slots, uint64_t trips[X86_PASSES])
{
    uint64_t own[PEET_SLOTS];

    memcpy(own, slots, item->slots * sizeof *own);
    x86_path_resolve(item->node, own);
    memcpy(trips, own + item->slots - item->loops, item->loops * sizeof *trips);
}

/* ---- what is left out ---- */

static void filter_put_gap(struct live_filter *f)
{
    if (f->instructions)
        filter_push(f, raw_event_key(PEET_EV_gap, 0), (uint64_t[]){ f->instructions, f->references }, 2);
    f->instructions = f->references = 0;
}

static uint64_t filter_references(const struct live_item *item, const uint64_t *slots)
{
    uint64_t n = 0;

    for (const struct x86_node *i = item->node; i; i = i->parent)
        for (unsigned k = 0; k < i->own_operands; k++) {
            const struct peet_operand *o = &i->operand[k];
            uint64_t elements = o->size_src >= PEET_SRC_SLOT ? slots[o->size_src - PEET_SRC_SLOT] : 1;
            n += o->size_src ? (elements * o->size + PEET_MAX_SIZE - 1) / PEET_MAX_SIZE : 1;
        }
    return n;
}

static void filter_count(const struct live_item *item, const uint64_t *slots, uint64_t *ret_insns,
                         uint64_t *ret_references)
{
    uint64_t trips[X86_PASSES];

    if (item->loops)
        filter_count_iterations(item, slots, trips);
    x86_path_totals(item->node, trips, ret_insns, ret_references);
}

uint64_t filter_instructions(const struct live_item *item, const uint64_t *slots)
{
    uint64_t insns, references;

    filter_count(item, slots, &insns, &references);
    return insns;
}

static void filter_leave_out(struct live_filter *f, const struct live_item *item, const uint64_t *slots)
{
    uint64_t insns, references;

    filter_count(item, slots, &insns, &references);
    f->instructions += insns;
    f->references += item->has_strings ? filter_references(item, slots) : references;
}

/* Applies a block's change of %rsp, if it is known; a path with loops changes nothing. */
static void follow_stack(struct live_filter *f, const struct live_item *item, const uint64_t *slots)
{
    const struct x86_track *rsp = &item->node->track[X86_RSP];

    if (item->loops || !rsp->known)
        return;
    if (rsp->source >= PEET_SRC_SLOT)
        f->stack = slots[rsp->source - PEET_SRC_SLOT] + (uint64_t)rsp->add;
    else if (rsp->source == PEET_SRC_REGISTER + X86_SP_REGISTER)
        f->stack += (uint64_t)rsp->add;
}

/* ---- regions ---- */

enum { REGION_KNOWN = 1, REGION_WANTED = 2, REGION_BEGAN = 4 };

static bool is_named(const struct recorder *s, const char *region)
{
    for (size_t i = 0; i < s->config->regions.count; i++)
        if (!strncmp(s->config->regions.item[i], region, RAW_STRING_BYTES - 1))
            return true;
    return false;
}

/* Whether the region is selected. name: number of its string; also: further REGION_ flags to be set. */
static bool region_is_wanted(struct recorder *s, uint64_t name, unsigned also)
{
    if (name == 0 || name > RAW_STRINGS)
        return false;
    uint8_t *known = &s->region[name - 1];
    if (!*known)
        *known = REGION_KNOWN | (is_named(s, s->header->string[name - 1]) ? REGION_WANTED : 0);
    *known |= (uint8_t)also;
    return *known & REGION_WANTED;
}

static void filter_take_event(struct live_thread *t, const uint64_t *words, size_t slots)
{
    struct live_filter *f = &t->filter;
    unsigned kind = (unsigned)(words[0] >> 48 & 0x7fff);

    filter_put_gap(f);
    filter_push(f, words[0], words + 1, slots);
    if (kind == PEET_EV_region_begin)
        f->open_regions += region_is_wanted(t->recorder, words[1], REGION_BEGAN);
    else if (kind == PEET_EV_region_end && f->open_regions)
        f->open_regions -= region_is_wanted(t->recorder, words[1], 0);
}

static void warn_of_regions(struct recorder *s)
{
    char *there = NULL;
    for (uint32_t i = 0; i < RAW_STRINGS; i++) {
        if (!(s->region[i] & REGION_BEGAN))
            continue;
        char *more = there ? mem_format("%s, %s", there, s->header->string[i]) : mem_string(s->header->string[i]);
        free(there);
        there = more;
    }
    for (size_t i = 0; i < s->config->regions.count; i++) {
        bool began = false;
        for (uint32_t k = 0; k < RAW_STRINGS; k++)
            began |= s->region[k] & REGION_BEGAN
                     && !strncmp(s->config->regions.item[i], s->header->string[k], RAW_STRING_BYTES - 1);
        if (!began)
            recording_warn(s->ret, "there was no region '%s'; %s%s", s->config->regions.item[i],
                           there ? "those that were: " : "the program has named none", there ? there : "");
    }
    free(there);
}

/* ---- functions ---- */

/* Whether a pattern matches a function, or the function from which the compiler made it: f.cold, f.part.0, f._omp_fn.0. */
static bool filter_fits(const char *pattern, const char *name)
{
    char whole[256];
    const char *dot = name[0] ? strchr(name + 1, '.') : NULL;

    if (fnmatch(pattern, name, 0) == 0)
        return true;
    if (!dot || (size_t)(dot - name) >= sizeof whole)
        return false;
    memcpy(whole, name, (size_t)(dot - name));
    whole[dot - name] = '\0';
    return fnmatch(pattern, whole, 0) == 0;
}

/* Whether a pattern matches one of the names of the function at the address. */
static bool filter_matches(const struct opt_list *patterns, const struct live_module *m, uint64_t address)
{
    size_t low = module_functions_up_to(m, address);
    uint64_t start = low ? m->functions[low - 1].start : 0;
    for (; low > 0 && m->functions[low - 1].start == start; low--) {
        const struct live_function *f = &m->functions[low - 1];
        for (size_t i = 0; i < patterns->count; i++)
            if ((f->size == 0 || address < f->start + f->size) && filter_fits(patterns->item[i], f->name))
                return true;
    }
    return false;
}

static bool filter_selects(const struct recorder *s, const struct live_module *m, struct live_item *item)
{
    const struct producer_config *c = s->config;
    uint64_t address = item->node->insn->insn.addr; /* all its instructions are in one function */

    if (!item->selection)
        item->selection =
            (c->only.count == 0 || filter_matches(&c->only, m, address)) && !filter_matches(&c->skip, m, address)
                ? LIVE_SELECTED
                : LIVE_SKIPPED;
    return item->selection == LIVE_SELECTED;
}

/* All functions of all modules, for opt_nearest. */
static const char *function_name(size_t i, const void *context)
{
    const struct live_code *c = context;
    size_t m = 0;

    for (; i >= c->module[m]->function_count; m++)
        i -= c->module[m]->function_count;
    return c->module[m]->functions[i].name;
}

static size_t count_functions(const struct live_code *c)
{
    size_t n = 0;

    for (size_t i = 0; i < c->modules; i++)
        n += c->module[i]->function_count;
    return n;
}

static bool is_anywhere(const struct live_code *c, const char *pattern)
{
    for (size_t i = 0; i < c->modules; i++)
        for (size_t k = 0; k < c->module[i]->function_count; k++)
            if (filter_fits(pattern, c->module[i]->functions[k].name))
                return true;
    return false;
}

/* The message for a pattern without a match; to be freed. */
static char *filter_describe(const struct live_code *c, const char *option, const char *pattern)
{
    const char *nearest = opt_nearest(pattern, count_functions(c), function_name, c);

    return mem_format("%s: the program has no function '%s'%s%s%s", option, pattern, nearest ? "; did you mean '" : "",
                      nearest ? nearest : "", nearest ? "'?" : "");
}

static void warn_of_functions(struct recorder *s, const char *option, const struct opt_list *patterns)
{
    for (size_t i = 0; i < patterns->count; i++) {
        if (is_anywhere(&s->code, patterns->item[i]))
            continue;
        char *text = filter_describe(&s->code, option, patterns->item[i]);
        recording_warn(s->ret, "%s", text);
        free(text);
    }
}

/* Only a program without further instrumented libraries can be checked: it has no other functions. */
int filter_foresee(struct recorder *s, struct peet_err *err)
{
    const struct opt_list *only = &s->config->only;
    struct live_module **module = NULL;
    struct mappings m;
    size_t modules = 0;

    if (only->count == 0 || mappings_read(s->pid, &m, err) < 0)
        return 0;
    int r = code_scan(&s->code, s->pid, &m, &module, &modules, err);
    mappings_release(&m);
    bool knows = r == 0 && modules == 1 && !module[0]->needs_others;
    for (size_t i = 0; knows && i < only->count; i++)
        knows = !is_anywhere(&s->code, only->item[i]);
    free(module);
    if (r < 0 || !knows)
        return r;
    char *text = filter_describe(&s->code, "--only", only->item[0]);
    r = err_set(err, PEET_ERR_USAGE, "%s", text);
    free(text);
    return r;
}

void filter_warn(struct recorder *s)
{
    warn_of_regions(s);
    warn_of_functions(s, "--only", &s->config->only);
    warn_of_functions(s, "--skip", &s->config->skip);
}

/* ---- words ---- */
static int filter_take_calls(struct live_thread *t, uint64_t key, struct live_item *item, struct peet_err *err)
{
    struct recorder *s = t->recorder;
    int r = 0;

    pthread_mutex_lock(&s->code_lock);
    if (!item->is_defined)
        r = code_define(&s->code, t->reader.last, key, item, err);
    pthread_mutex_unlock(&s->code_lock);
    if (r == 0 && (item->entry || item->item))
        filter_put_gap(&t->filter);
    if (r == 0)
        s->limit.instructions += (uint64_t)(item->entry != 0) + (item->item != 0);
    if (r == 0 && item->entry)
        filter_push(&t->filter, key | LIVE_ENTRY, NULL, 0);
    if (r == 0 && item->item)
        filter_push(&t->filter, key | LIVE_LAST, NULL, 0);
    return r;
}

static void filter_take_whole(struct live_filter *f, const uint64_t *words, const struct live_item *item)
{
    filter_put_gap(f);
    if (item->sp_in_register && f->stack != f->recorded_stack)
        filter_push(f, raw_event_key(PEET_EV_set_register, 0), (uint64_t[]){ X86_SP_REGISTER, f->stack }, 2);
    filter_push(f, words[0], words + 1, item->slots);
    follow_stack(f, item, words + 1);
    f->recorded_stack = f->stack;
}

static int filter_take_block(struct live_thread *t, const uint64_t *words, struct live_item *item, struct peet_err *err)
{
    struct recorder *s = t->recorder;
    struct live_filter *f = &t->filter;
    enum level level = s->code.level;

    if (level == LEVEL_events)
        return 0;
    if ((s->config->regions.count && !f->open_regions) || !filter_selects(s, t->reader.last, item)) {
        filter_leave_out(f, item, words + 1);
        follow_stack(f, item, words + 1);
        return 0;
    }
    if (level == LEVEL_calls)
        return item->loops ? 0 : filter_take_calls(t, words[0], item, err);
    if (s->config->max)
        s->limit.instructions += filter_instructions(item, words + 1);
    if (level == LEVEL_blocks) {
        uint64_t trips[X86_PASSES];
        if (item->loops)
            filter_count_iterations(item, words + 1, trips);
        filter_put_gap(f);
        filter_push(f, words[0], trips, item->loops);
    } else {
        filter_take_whole(f, words, item);
    }
    return 0;
}

int filter_put(struct live_thread *t, const uint64_t *words, size_t n, struct peet_err *err)
{
    struct live_filter *f = &t->filter;
    int r = 0;

    if (!f->word)
        f->word = mem_alloc(LIVE_FILTER_WORDS, sizeof *f->word);
    for (size_t i = 0, next; r == 0 && i < n; i = next) {
        struct live_item *item = NULL;
        bool is_event = words[i] & RAW_EVENT;
        if ((t->recorder->limit.is_cut = live_is_enough(t)))
            break;
        int slots = is_event ? peet_event_arity((uint32_t)(words[i] >> 48 & 0x7fff)) : 0;
        if (!is_event && (r = live_find(&t->reader, words[i], &item, err)) < 0)
            return r;
        next = i + 1 + (size_t)(is_event ? slots : item->slots);
        if (slots < 0 || next > n)
            return err_set(err, PEET_ERR_FORMAT, "the words of 0x%016" PRIx64 " make no sense", words[i]);
        if (f->words + 2 * RAW_MAX_WORDS > LIVE_FILTER_WORDS && (r = filter_flush(t, err)) < 0)
            return r;
        if (is_event)
            filter_take_event(t, words + i, (size_t)slots);
        else
            r = filter_take_block(t, words + i, item, err);
    }
    return r < 0 ? r : filter_flush(t, err);
}

int filter_end(struct live_thread *t, struct peet_err *err)
{
    if (!t->filter.word)
        return 0;
    filter_put_gap(&t->filter);
    return filter_flush(t, err);
}

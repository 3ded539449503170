/* SPDX-License-Identifier: MIT */
/* The table of functions whose calls are events of a guest's trace. */
#include <string.h>

#include "capture/qemu/calls.h"
#include "capture/qemu/guest.h"
#include "peet/record.h"
#include "tests/unit/check.h"

static void every_function_is_found_by_its_name_and_no_other_is(void)
{
    for (size_t i = 0; i < CALL_RULE_COUNT; i++)
        CHECK(call_rule_find(CALL_RULES[i].function) == &CALL_RULES[i]);
    CHECK(call_rule_find("pthread_mutex") == NULL);
    CHECK(call_rule_find("") == NULL);
    CHECK(call_rule_find("zzz") == NULL);
}

static void each_row_tells_as_many_arguments_as_its_event_has(void)
{
    for (size_t i = 0; i < CALL_RULE_COUNT; i++) {
        const struct call_rule *r = &CALL_RULES[i];
        size_t words = r->moment == CALL_SITE ? 0 : (size_t)peet_event_arity(r->event);
        if (!CHECK_EQ(strlen(r->words), words))
            printf("# that was %s\n", r->function);
        for (const char *p = r->words; *p; p++)
            CHECK(strchr("012nrp*bct", *p) != NULL);
    }
}

/* An event that is recorded before the function runs cannot depend on its result. */
static void results_are_told_behind_functions_only(void)
{
    for (size_t i = 0; i < CALL_RULE_COUNT; i++) {
        const struct call_rule *r = &CALL_RULES[i];
        bool is_before = r->moment == CALL_BEFORE || r->moment == CALL_NO_RETURN;
        CHECK(!is_before || strpbrk(r->words, "rp*c") == NULL);
        CHECK(r->moment != CALL_POINTER || strchr(r->words, 'p') != NULL);
    }
}

#define X(name) &guest_##name,
static const struct guest_isa *const guests[] = { GUESTS(X) };
#undef X

static void every_architecture_has_registers_for_arguments_and_results(void)
{
    for (size_t i = 0; i < sizeof guests / sizeof *guests; i++) {
        for (unsigned k = 0; k < CALL_ARGUMENTS; k++)
            CHECK(guests[i]->arg[k] != NULL);
        CHECK(guests[i]->result != NULL);
    }
}

int main(void)
{
    RUN(every_function_is_found_by_its_name_and_no_other_is);
    RUN(each_row_tells_as_many_arguments_as_its_event_has);
    RUN(results_are_told_behind_functions_only);
    RUN(every_architecture_has_registers_for_arguments_and_results);
    return check_done();
}

/* SPDX-License-Identifier: MIT */
/* Definitions stand and fall alone. */
#include "check.h"
#include "format/schema/schema.h"

static const struct peet_insn INSN = { .addr = 0x1000, .length = 4 };

static void put_block(struct buf *b, uint32_t id)
{
    defs_put_block(b, &(struct peet_block){ .id = id, .insns = 1, .insn = &INSN });
}

/* An event of the name and with the number of arguments, as a later version might have it. */
static void put_event(struct buf *b, uint32_t id, const char *name, unsigned arguments)
{
    struct buf body = { 0 };

    buf_leb(&body, id);
    buf_string(&body, name);
    buf_leb(&body, arguments);
    buf_leb(&body, 0);
    buf_leb(b, 9);
    buf_leb(b, body.size);
    buf_bytes(b, body.data, body.size);
    buf_release(&body);
}

static void a_broken_definition_does_not_take_others_with_it(void)
{
    struct schema *s = schema_new();
    struct buf b = { 0 };
    struct peet_err err;

    put_block(&b, 1);
    buf_bytes(&b, "\x07\x03\xff\xff\xff", 5); /* a block that makes no sense */
    put_block(&b, 2);
    put_block(&b, 1); /* again */
    put_block(&b, 3);
    CHECK_EQ(defs_read(s, b.data, b.size, &err), PEET_ERR_DAMAGED);
    CHECK(strstr(err.text, "kind 7") != NULL);
    for (uint32_t i = 1; i <= 3; i++)
        CHECK(schema_item(s, i) != NULL);
    buf_release(&b);
    schema_free(s);
}

static void what_a_later_version_defines_is_passed_over(void)
{
    struct schema *s = schema_new();
    struct buf b = { 0 };
    struct peet_err err;

    buf_bytes(&b, "\x63\x02hi", 4); /* a kind that there is not yet */
    put_event(&b, 1, "zebra", 3);
    put_event(&b, 2, "mutex_lock", 1);
    put_event(&b, 3, "mutex_lock", 2); /* with an argument more than now */
    put_block(&b, 4);
    CHECK_EQ(defs_read(s, b.data, b.size, &err), PEET_ERR_FORMAT);
    CHECK(strstr(err.text, "event 'zebra' with 3 arguments is not known") != NULL);
    CHECK(schema_item(s, 1) && schema_item(s, 1)->slots == 3);
    CHECK_EQ(schema_item(s, 1)->event->kind, PEET_EVENT_KINDS);
    CHECK_EQ(schema_item(s, 2)->event->kind, PEET_EV_mutex_lock);
    CHECK_EQ(schema_item(s, 3)->event->kind, PEET_EVENT_KINDS);
    CHECK(schema_item(s, 4) != NULL);
    buf_release(&b);
    schema_free(s);
}

int main(void)
{
    RUN(a_broken_definition_does_not_take_others_with_it);
    RUN(what_a_later_version_defines_is_passed_over);
    return check_done();
}

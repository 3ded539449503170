/* SPDX-License-Identifier: MIT */
/* Store buffers in time: a store enters the buffer of its hardware thread's domain when it issues, and performs later. src/sim/order has the
 * rules. docs/design/orders.md, "Time". */
#ifndef SIM_ENGINE_STORE_BUFFER_H
#define SIM_ENGINE_STORE_BUFFER_H

#include "base/map.h"
#include "sim/engine/sim.h"

struct hw_thread;

/* A store in a buffer. */
struct buffered_store {
    uint64_t issued;      /* cycle */
    uint64_t end;         /* cycle in which it has performed; of slots in `leaving` */
    uint64_t page_offset; /* of its address (l1_filter.page_offset) */
    unsigned number;      /* of its hardware thread */
};

/* The store buffer of a domain. */
struct store_buffer {
    struct order_buffer order;
    struct buffered_store store[ORDER_SLOTS]; /* by slot of `order` */
    uint64_t leaving;                         /* slots of stores on their way to memory */
    uint64_t lines;                           /* a bit for each line of a pending store, by store_buffer_line */
    uint64_t at;                              /* cycle of its last change */
    uint64_t free_at;                         /* cycle from which another store can leave */
    uint64_t next_at;                         /* cycle of its next change; UINT64_MAX: none */
    int next;                                 /* slot that changes then */
};

/* The store buffers of a machine. */
struct store_buffers {
    struct store_buffer *buffer; /* NULL: stores perform when they issue */
    uint32_t count;
    uint64_t next_at;            /* least of all buffers */
    struct order_counts *counts; /* by hardware thread */
    uint64_t random;             /* state of the generator for order.drain */
    struct map location;         /* struct order_location, by number of the instruction, or call site, and kind */
};

/* An access of an instruction to at most ORDER_MAX_BYTES in one line. */
struct ordered_access {
    uint64_t addr;        /* the machine's address */
    uint64_t page_offset; /* of it */
    uint32_t size, insn;
    uint8_t kind;   /* enum peet_kind */
    uint8_t flags;  /* ORDER_ACQUIRE, ORDER_RELEASE */
    bool is_atomic; /* LOCK-prefixed, or marked so */
};

int store_buffers_init(struct sim *s, struct peet_err *err);
void store_buffers_release(struct store_buffers *b);
void store_buffers_result(struct sim *s, struct sim_result *ret);

/* A random number of 31 bits, by the machine's seed. */
uint64_t store_buffers_random(struct sim *s);

/* Performs the stores of all buffers that leave up to cycle `now`. */
void store_buffers_advance_all(struct sim *s, uint64_t now);
static inline void store_buffers_advance(struct sim *s, struct store_buffers *b, uint64_t now)
{
    if (b->next_at <= now)
        store_buffers_advance_all(s, now);
}

/* Does an access of a hardware thread, whose clock advances. */
void store_buffer_access(struct sim *s, struct hw_thread *hw, const struct ordered_access *a);

/* Executes a fence. */
void store_buffer_fence(struct sim *s, struct hw_thread *hw, enum order_fence fence, uint32_t insn);

/* Waits until the buffer is empty: acquire and release at a lock, a barrier or a join. site: return address of the call; 0: not known. */
void store_buffer_drain(struct sim *s, struct hw_thread *hw, uint64_t site);

#endif

/* SPDX-License-Identifier: MIT */
/* A set of states: words of equal number, each state once. */
#ifndef LITMUS_STATE_SET_H
#define LITMUS_STATE_SET_H

#include <stddef.h>
#include <stdint.h>

/* A hash set of states of equal length. */
struct state_set {
    size_t words;    /* 64-bit words of a state; at least 1 */
    size_t count;    /* states */
    uint64_t *state; /* state by state, in the order of their addition */
    size_t room;     /* states for which there is memory */
    uint32_t *slot;  /* hash table: number of a state + 1; 0: free */
    size_t slots;    /* elements of `slot`: a power of two, or 0 */
};

/* 1: added; 0: it was there; -1: no memory. All but words is zero at first. */
int state_set_add(struct state_set *s, const uint64_t *state);

void state_set_release(struct state_set *s);

#endif

/* SPDX-License-Identifier: MIT */
/* Addresses as they would be if data lay elsewhere: what a program does is as it was, and the machine sees other addresses.
 *
 * A file of rules, one a line, '#' begins a comment:
 *   move OBJECT to ADDRESS                               the object as it is, elsewhere
 *   spread OBJECT every BYTES to BYTES [at ADDRESS]      its elements farther apart: padding
 *   split OBJECT every BYTES from OFFSET for BYTES [at ADDRESS]   a member of each element goes to an array of its own
 * An OBJECT is ADDRESS+BYTES, the name of a variable, what a program has named by a mark (peet/mark.h), or
 * heap:FUNCTION or heap:FUNCTION#N: what that function has allocated, all of it or the N-th block, from 0. Without `at` it goes to where no
 * program has anything. Each process has its own objects, and bytes that are named by their address are moved in each of them. Objects that a rule
 * names and that never appear are reported. */
#ifndef MAP_REMAP_H
#define MAP_REMAP_H

#include <stdbool.h>

#include "peet/trace.h"

struct remap;

int remap_read(const char *path, const struct peet_trace *t, struct remap **ret, struct peet_err *err);
void remap_free(struct remap *r);

/* An event of a thread of that process: blocks of memory come and go, bytes get names. */
void remap_event(struct remap *r, uint32_t process, const struct peet_event *e);

/* Where the byte at addr of a process would be, in the same process. A reference is moved by its first byte. */
uint64_t remap_addr(const struct remap *r, uint32_t process, uint64_t addr);

/* Rules that have not found their objects; NULL at the end. */
const char *remap_unused(const struct remap *r, size_t i);

#endif

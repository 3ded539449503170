/* SPDX-License-Identifier: MIT */
/* Remapping: the program runs as it did, and the machine sees some of its data at other addresses.
 *
 * A file of rules, one a line, '#' begins a comment:
 *   move OBJECT to ADDRESS                               the object as it is, elsewhere
 *   spread OBJECT every BYTES to BYTES [at ADDRESS]      its elements farther apart: padding
 *   split OBJECT every BYTES from OFFSET for BYTES [at ADDRESS]   a member of each element goes to a separate array
 * An OBJECT is ADDRESS+BYTES, the name of a variable, a name given by a mark (peet/mark.h), or heap:FUNCTION or heap:FUNCTION#N: all blocks
 * that the function allocates, or the N-th one, from 0. Without `at`, the new address is one that no program uses. Rules apply to the objects
 * of each process. */
#ifndef MAP_REMAP_H
#define MAP_REMAP_H

#include <stdbool.h>

#include "peet/trace.h"

struct remap;

int remap_read(const char *path, const struct peet_trace *t, struct remap **ret, struct peet_err *err);
void remap_free(struct remap *r);

/* Notes an event of a thread of a process: heap blocks are allocated, bytes get names. */
void remap_event(struct remap *r, uint32_t process, const struct peet_event *e);

/* The new address of the byte at addr of a process. A reference is moved by its first byte. */
uint64_t remap_addr(const struct remap *r, uint32_t process, uint64_t addr);

/* Objects of rules that never appeared, by index; NULL at the end. */
const char *remap_unused(const struct remap *r, size_t i);

#endif

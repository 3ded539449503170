/* SPDX-License-Identifier: MIT */
/* The section .peet.schema of an instrumented object: one entry for each block, loop and loop exit (docs/design/instrumentation.md). The
 * assembler writes it (capture/asm/entry.c), the recorder reads it (capture/recorder/elf.c) and plans each block again from the
 * linked bytes. Entries are aligned to RAW_ALIGN and begin with:
 *   u32 enum raw_entry_kind
 *   i32 address of the block's first instruction, of a loop's lowest one, minus the address of this field
 *   u16 instructions, u16 slots, u32 flags
 *   i32 address of the parent's entry, minus the address of this one; 0: the block is a root
 *   i32 address of the same place in the counting copy, minus the address of this field; 0: there is none */
#ifndef CAPTURE_PROTOCOL_SCHEMA_SECTION_H
#define CAPTURE_PROTOCOL_SCHEMA_SECTION_H

#define RAW_SECTION ".peet.schema"

enum { RAW_ALIGN = 16 };

enum raw_entry_kind { RAW_BLOCK = 1, RAW_LOOP = 2, RAW_LOOP_EXIT = 3 };

/* Flags of an entry. */
enum {
    RAW_SP_IN_REGISTER = 1, /* the stack pointer is in register 0 of the trace; otherwise it is the first slot */
    RAW_ALL_ADDRESSES = 2,  /* each operand has a slot for its address */
    RAW_NO_OPERANDS = 8,    /* no slots; a loop has only those from which its trip count follows */
    RAW_CALLS_ONLY =
        16, /* with RAW_NO_OPERANDS: one instruction, and the file records calls, returns and entries only */
    RAW_FUNCTION_ENTRY = 32, /* a function begins with the block */
    RAW_IN_PREDECESSOR = 64, /* no slots; the record of the block before may stand for this block, too */
    RAW_PRIVATE_SHIFT = 8,   /* bits 8 to 23 of a loop: words of the stack, from %rsp up, to which no pointer leads */
    RAW_PRIVATE_MAX = 0xffff
};

/* Bytes above the return address that an entry stub copies as arguments on the stack. */
enum { RAW_STACK_ARGUMENTS = 128 };

#endif

/* SPDX-License-Identifier: MIT */
/* Those parts of QEMU's plugin interface that are used here, version 4 (QEMU 10.0), declared from its documentation: no package
 * ships QEMU's own header. What later versions add is weak, and asked for at run time. */
#ifndef CAPTURE_QEMU_PLUGIN_QEMU_H
#define CAPTURE_QEMU_PLUGIN_QEMU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { QEMU_INTERFACE = 4 };

/* What QEMU says of itself when it loads a plugin. */
struct qemu_info {
    const char *target_name;
    struct {
        int min, cur;
    } version;
    bool system_emulation;
    struct {
        int smp_vcpus, max_vcpus;
    } system;
};

struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_scoreboard;
struct qemu_plugin_register;
struct qemu_plugin_hwaddr;

/* A word of each processor's entry in a scoreboard. */
struct qemu_word {
    struct qemu_plugin_scoreboard *score;
    size_t offset;
};

/* A register of a processor; an element of the array that QEMU returns. */
struct qemu_register {
    struct qemu_plugin_register *handle;
    const char *name, *feature;
};

/* The heads of glib's arrays. */
struct qemu_array {
    char *data;
    unsigned len;
};
/* The head of an array of bytes. */
struct qemu_bytes {
    uint8_t *data;
    unsigned len;
};
struct qemu_bytes *g_byte_array_new(void);
struct qemu_bytes *g_byte_array_set_size(struct qemu_bytes *, unsigned);

enum { QEMU_NO_REGISTERS, QEMU_READS_REGISTERS };
enum { QEMU_LOADS = 1, QEMU_STORES = 2 };
enum { QEMU_ADD, QEMU_STORE };
enum { QEMU_NEVER, QEMU_ALWAYS, QEMU_EQ, QEMU_NE };

void qemu_plugin_reset(uint64_t id, void (*done)(uint64_t id));
void qemu_plugin_register_vcpu_init_cb(uint64_t id, void (*f)(uint64_t id, unsigned cpu));
void qemu_plugin_register_vcpu_idle_cb(uint64_t id, void (*f)(uint64_t id, unsigned cpu));
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, void (*f)(uint64_t id, struct qemu_plugin_tb *tb));
void qemu_plugin_register_atexit_cb(uint64_t id, void (*f)(uint64_t id, void *user), void *user);

void qemu_plugin_register_vcpu_tb_exec_cond_cb(struct qemu_plugin_tb *tb, void (*f)(unsigned cpu, void *user),
                                               int flags, int condition, struct qemu_word word, uint64_t value,
                                               void *user);
void qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(struct qemu_plugin_tb *tb, int operation, struct qemu_word word,
                                                       uint64_t value);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, void (*f)(unsigned cpu, void *user),
                                            int flags, void *user);
void qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(struct qemu_plugin_insn *insn, int operation,
                                                         struct qemu_word word, uint64_t value);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn,
                                      void (*f)(unsigned cpu, uint32_t info, uint64_t addr, void *user), int flags,
                                      int accesses, void *user);

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t i);
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *into, size_t n);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
void *qemu_plugin_insn_haddr(const struct qemu_plugin_insn *insn);

unsigned qemu_plugin_mem_size_shift(uint32_t info);
bool qemu_plugin_mem_is_store(uint32_t info);
struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(uint32_t info, uint64_t addr);
uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *at);

struct qemu_array *qemu_plugin_get_registers(void);
int qemu_plugin_read_register(struct qemu_plugin_register *handle, struct qemu_bytes *into);
bool qemu_plugin_read_memory_vaddr(uint64_t addr, struct qemu_bytes *into, size_t n);

struct qemu_plugin_scoreboard *qemu_plugin_scoreboard_new(size_t bytes);
void *qemu_plugin_scoreboard_find(struct qemu_plugin_scoreboard *score, unsigned cpu);
int qemu_plugin_num_vcpus(void);
void qemu_plugin_outs(const char *text);

/* Since version 5. */
__attribute__((weak)) bool qemu_plugin_translate_vaddr(uint64_t addr, uint64_t *ret);

#endif

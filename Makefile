# SPDX-License-Identifier: MIT
# Everything is made from here, into build/. Sources are found by wildcards: adding a file is adding a file.
# `make help` lists the targets. Variables for the command line:
#   CC CFLAGS LDFLAGS   as ever              V=1     show whole commands
#   SAN=address,undefined or SAN=thread: build with sanitizers, in a folder of their own
#   WERROR=1            warnings are errors  ONLY=…  the tests whose names contain this
#   PREFIX DESTDIR      where to install     DEPS=:  do not look for packages
#   D3=FILE             d3.min.js, which draws the plots of HTML pages; D3= leaves them out

ifeq ($(origin CC),default)
CC := gcc
endif
CFLAGS := -O2 -g
LDFLAGS :=
PREFIX := /usr/local
DESTDIR :=
FUZZ_SECONDS := 60
FUZZ_CC := clang
FOR := build
D3 := /usr/share/nodejs/d3/dist/d3.min.js
D3_LICENCE := /usr/share/doc/node-d3/copyright
DEPS := scripts/deps

# As many jobs as there are processors, unless the command line says something else.
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell nproc)
endif

comma := ,
B := build$(if $(SAN),/san-$(if $(findstring clang,$(CC)),clang-)$(subst $(comma),-,$(SAN)))

STD := -std=c17 -D_GNU_SOURCE
WARN := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wundef -Wcast-qual \
	-Wformat=2 $(if $(WERROR),-Werror)
INCLUDE := -Iinclude -Isrc -I.
SANITIZE := $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer)
# Position-independent, for libpeet-machine.so has the same objects; hidden, so that this costs nothing.
COMPILE = $(CC) $(STD) $(WARN) $(CFLAGS) -fPIC -fvisibility=hidden $(SANITIZE) $(INCLUDE)
LINK = $(CC) $(CFLAGS) $(SANITIZE) $(LDFLAGS)
LIBS := -lzstd -lxxhash -lZydis -Wl,--as-needed -ldw -Wl,--no-as-needed -lelf -lconfig -lpthread -lm

# ---- what there is ----

# What only libpeet-machine.so has: the allocator of a machine that shares a process with the program.
INSIDE_C := src/capture/control/heap.c
# What runs inside subjects and inside QEMU is no part of the library.
LIB_C := $(filter-out src/capture/runtime/% $(INSIDE_C) src/capture/qemu/plugin/% src/capture/qemu/mark/% src/capture/system/guest/%,$(shell find src -name '*.c' | LC_ALL=C sort))
# libpeet.a, for everybody, reads and writes traces; the rest is for peet alone.
OPEN_C := $(filter src/base/% src/format/%,$(LIB_C))
CLI_C := $(sort $(wildcard cli/*.c))
RT_C := $(sort $(wildcard src/capture/runtime/*.c))

# What runs inside QEMU: the plugin, and of the library what it needs.
PLUGIN_C := $(sort $(wildcard src/capture/qemu/plugin/*.c))
PLUGIN_LIB_C := $(OPEN_C) $(addprefix src/capture/qemu/,guest.c guest_aarch64.c guest_riscv64.c guest_x86_64.c \
	pattern.c threads.c calls.c) $(addprefix src/capture/x86/,class.c decode.c address.c) src/capture/modules.c
MARK_C := $(sort $(wildcard src/capture/qemu/mark/*.c))
UNIT_C := $(sort $(wildcard tests/unit/test_*.c))
# Programs that the scripts beside them use: tests/e2e/x.c is build/tests/e2e/x, experiments/x.c is build/experiments/x.
HELPER_C := $(sort $(wildcard tests/cli/*.c tests/golden/*.c tests/oracle/*.c tests/e2e/*.c bench/*.c experiments/*.c))
FUZZ_C := $(sort $(wildcard tests/fuzz/*.c))
# Machines that are part of peet itself.
MACHINES := $(sort $(wildcard machines/*.cfg))
WORKLOAD_C := $(filter-out workloads/common.c,$(sort $(wildcard workloads/*.c)))
GUEST_C := $(sort $(wildcard src/capture/system/guest/*.c))
ALL_C := $(LIB_C) $(RT_C) $(INSIDE_C) $(PLUGIN_C) $(MARK_C) $(GUEST_C) $(CLI_C) $(UNIT_C) $(HELPER_C) $(FUZZ_C) workloads/common.c $(WORKLOAD_C)
ALL_H := $(shell find include src cli workloads tests bench -name '*.h' 2>/dev/null | LC_ALL=C sort)
SCRIPTS := $(shell grep -rlIE '^\#!.*[/ ](ba)?sh( |$$)' scripts .ci tests bench experiments 2>/dev/null | LC_ALL=C sort)

LIB := $(B)/libpeet.a
REST := $(B)/obj/librest.a
PEET := $(B)/peet
UNIT := $(UNIT_C:tests/unit/%.c=$(B)/tests/%)
HELPERS := $(HELPER_C:%.c=$(B)/%)
WORKLOADS := $(WORKLOAD_C:workloads/%.c=$(B)/workloads/plain/%)
# What is linked into subjects: the runtime, its part for OpenMP, both once more for static programs, the list of --wrap.
RT := $(addprefix $(B)/lib/peet/,libpeet-rt.a libpeet-omp.a libpeet-rt-static.a libpeet-omp-static.a wrap)
# What is loaded into subjects that are simulated while they run; not with sanitizers, which want a process of their own.
MACHINE := $(if $(SAN),,$(B)/lib/peet/libpeet-machine.so)
PLUGIN := $(B)/libpeet-qemu.so
# What marks threads in a guest: for this machine, and for others where there is a compiler.
HOST := $(shell uname -m)
GUESTS := $(HOST) $(foreach a,$(filter-out $(HOST),x86_64 aarch64 riscv64),$(if $(shell command -v $a-linux-gnu-gcc),$a))
MARKS := $(B)/libpeet-mark.so $(B)/libpeet-mark.a $(foreach a,$(GUESTS),$(B)/$a/libpeet-mark.so $(B)/$a/libpeet-mark.a)
# The first process of guests, and what gets QEMU and kernels for them.
GUEST := $(B)/lib/peet/get-system $(GUESTS:%=$(B)/lib/peet/%/init)
# Made by peet cc, once there is a runtime to link.
PEET_WORKLOADS := $(if $(wildcard src/capture/runtime/*.c),$(WORKLOAD_C:workloads/%.c=$(B)/workloads/peet/%))
PAGES := $(patsubst docs/man/%.scd,$(B)/man/%,$(sort $(wildcard docs/man/*.scd)))
FUZZERS := $(FUZZ_C:tests/fuzz/%.c=$(B)/fuzz/%)

object = $(1:%.c=$(B)/obj/%.o)
fuzz_object = $(1:%.c=$(B)/fuzz/obj/%.o)

Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-6s %s\n' '$(1)' '$(2)')

.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: FORCE all man everything deps demo test test-unit test-real soak bench experiments fuzz tidy format install clean help
.PHONY: lint lint-deps lint-format lint-gcc lint-clang lint-cppcheck lint-scripts
.DEFAULT_GOAL := all

# ---- targets for people: a line with two hashes is their description ----

all: $(PEET) $(B)/lib/peet/as $(RT) $(MACHINE) $(PLUGIN) $(MARKS) $(GUEST) $(LIB) $(WORKLOADS) $(PEET_WORKLOADS) man ## peet, libpeet.a, the workloads and the manual pages

man: $(PAGES)
	@command -v scdoc >/dev/null || echo '  note   no manual pages: they need scdoc (make deps)'

everything: all $(UNIT) $(HELPERS) $(call object,$(FUZZ_C))

deps: ## install what is missing (FOR=all: all that tests can use; FOR="build lint": scripts/deps lists the words)
	@$(DEPS) $(if $(filter deps,$(MAKECMDGOALS)),,--quiet) $(FOR)

demo: all ## the best that peet can do in two minutes
	@PEET_BUILD=$(abspath $(B)) scripts/demo

test: all $(UNIT) $(HELPERS) ## all tests; ends with "N passed, N failed"
	@CC='$(CC)' SAN='$(SAN)' PEET_BUILD=$(abspath $(B)) tests/run $(ONLY)

test-unit: $(PEET) $(UNIT) ## the unit tests alone; CC=clang SAN=address,undefined: with clang's sanitizers
	@CC='$(CC)' SAN='$(SAN)' PEET_BUILD=$(abspath $(B)) tests/run unit/$(ONLY)

soak: all $(HELPERS) ## the long tests, one after the other: hours; ONLY=equal runs those with equal in their names
	@status=0; for f in tests/soak/*$(ONLY)*; do if [ -f $$f ] && [ -x $$f ]; then \
	  echo "== $$f"; PEET_BUILD=$(abspath $(B)) $$f || { echo "$$f failed with status $$?"; status=1; }; \
	fi; done; exit $$status

test-real: all ## real programs from Debian's sources pass their own tests while they are recorded (ONLY=zlib: one); minutes
	@PEET_BUILD=$(abspath $(B)) tests/real/run $(ONLY)

bench: all $(HELPERS) ## measure what is claimed about speed, one script after the other
	@status=0; for f in bench/*; do if [ -f $$f ] && [ -x $$f ]; then \
	  echo "== $$f"; PEET_BUILD=$(abspath $(B)) $$f || { echo "$$f failed with status $$?"; status=1; }; \
	fi; done; exit $$status

experiments: all $(HELPERS) ## the figures of the papers, into experiments/out; QUICK=1: less of each
	@status=0; for f in experiments/*; do if [ -f $$f ] && [ -x $$f ]; then \
	  echo "== $$f"; PEET_BUILD=$(abspath $(B)) $$f $(if $(QUICK),--quick); s=$$?; \
	  [ $$s = 0 ] || [ $$s = 77 ] || { echo "$$f failed with status $$s"; status=1; }; \
	fi; done; exit $$status

# What a target begins with, besides tests/golden and tests/fuzz/seeds/TARGET.
FUZZ_SEEDS_machine := machines
FUZZ_SEEDS_schema := $(B)/fuzz/seeds/schema
FUZZ_SEEDS_source := tests/e2e/subjects

fuzz: $(FUZZERS) $(B)/fuzz/seeds/schema ## run every fuzz target for FUZZ_SECONDS=60 (ONLY=view: one)
	@status=0; $(foreach f,$(filter $(B)/fuzz/$(or $(ONLY),%),$(FUZZERS)),$(call fuzz_one,$(notdir $f));) exit $$status

define fuzz_one
mkdir -p $(B)/fuzz/corpus/$1; \
echo "== $1 for $(FUZZ_SECONDS) s"; \
if $(B)/fuzz/$1 -max_total_time=$(FUZZ_SECONDS) -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 \
  -artifact_prefix=$(B)/fuzz/$1- $(B)/fuzz/corpus/$1 $(wildcard tests/fuzz/seeds/$1) tests/golden $(FUZZ_SEEDS_$1) \
  >$(B)/fuzz/$1.log 2>&1; \
then awk '/^stat::number_of_executed_units:/ { n = $$2 } /^stat::average_exec_per_sec:/ { rate = $$2 } \
  END { print "   nothing found; runs: " n ", " rate " each second" }' $(B)/fuzz/$1.log; \
else tail -n 60 $(B)/fuzz/$1.log; status=1; fi
endef

lint: lint-format lint-gcc lint-clang lint-cppcheck lint-scripts ## format, warnings as errors (gcc, clang), cppcheck, shellcheck
	@echo 'lint: clean'

lint-deps:
	@$(DEPS) --quiet build lint
lint-format lint-gcc lint-clang lint-cppcheck lint-scripts: | lint-deps

lint-format:
	$(call say,FORMAT,$(words $(ALL_C) $(ALL_H)) files)
	$(Q)clang-format --dry-run -Werror $(ALL_C) $(ALL_H)

lint-gcc lint-clang: lint-%:
	+$(Q)$(MAKE) --no-print-directory B=build/lint-$* CC=$* SAN= WERROR=1 DEPS=: everything

lint-cppcheck:
	$(call say,CHECK,$(words $(CHECKED_C)) files)
	@mkdir -p build/cppcheck
	$(Q)cppcheck -q -j $$(nproc) --std=c11 --enable=warning,performance,portability --inline-suppr --error-exitcode=1 \
	  $(addprefix --suppress=,$(CPPCHECK_NOT)) -D_GNU_SOURCE -D__linux__ -D__x86_64__ \
	  --cppcheck-build-dir=build/cppcheck $(INCLUDE) $(CHECKED_C)

lint-scripts:
	$(call say,SHELL,$(words $(SCRIPTS)) files)
	$(Q)if command -v shellcheck >/dev/null; then shellcheck -x -S warning $(SCRIPTS); else echo 'skip scripts are clean: needs shellcheck'; fi

# The unit tests' header has a _Generic, which cppcheck cannot read.
CHECKED_C := $(filter-out tests/%,$(ALL_C))
# Not for cppcheck: it takes the address of a variable for its value (the compilers' and the sanitizers' work anyway), and
# it does not know that every compiler here shifts signed numbers arithmetically.
CPPCHECK_NOT := missingIncludeSystem uninitvar legacyUninitvar shiftTooManyBitsSigned normalCheckLevelMaxBranches

# Slow, and often wrong. One file per call (version 14 reports falsely in batches); clean files are not looked at again.
tidy: $(patsubst %.c,$(B)/tidy/%.ok,$(LIB_C) $(CLI_C)) ## what clang-tidy thinks: advice, minutes long; use with -k

$(B)/tidy/%.ok: %.c $(ALL_H)
	$(call say,TIDY,$<)
	@mkdir -p $(@D)
	$(Q)clang-tidy --quiet --warnings-as-errors='*' --checks='$(TIDY_CHECKS)' $< -- $(STD) $(INCLUDE) >$@.log 2>&1 || \
	  { cat $@.log; exit 1; }
	@touch $@

TIDY_CHECKS := -*,clang-analyzer-*,bugprone-*,-clang-analyzer-optin.performance.*,-clang-analyzer-deadcode.*,$\
  -clang-analyzer-security.insecureAPI.DeprecatedOrUnsafeBufferHandling,-bugprone-easily-swappable-parameters,$\
  -bugprone-reserved-identifier,-bugprone-narrowing-conversions,-bugprone-implicit-widening-of-multiplication-result,$\
  -bugprone-assignment-in-if-condition,-bugprone-macro-parentheses,-bugprone-branch-clone,$\
  -bugprone-suspicious-string-compare,-bugprone-multi-level-implicit-pointer-conversion,-bugprone-switch-missing-default-case

format: ## give every C file its standard form
	$(Q)clang-format -i $(ALL_C) $(ALL_H)

# For others: one object that shows only peet_*, so that our names do not meet theirs.
$(B)/install/libpeet.a: $(LIB)
	$(call say,AR,$@)
	$(Q)mkdir -p $(@D)
	$(Q)rm -f $@
	$(Q)ld -r -o $(@D)/peet.o --whole-archive $<
	$(Q)objcopy --wildcard --keep-global-symbol='peet_*' $(@D)/peet.o
	$(Q)$(AR) rcs $@ $(@D)/peet.o

install: all $(B)/install/libpeet.a ## install into DESTDIR/PREFIX (/usr/local)
	$(Q)install -d $(addprefix $(DESTDIR)$(PREFIX)/,bin lib include/peet share/man/man1 share/doc/peet)
	$(Q)install -m 755 $(PEET) $(DESTDIR)$(PREFIX)/bin
	$(Q)install -d $(DESTDIR)$(PREFIX)/lib/peet
	$(Q)sed 's|/peet" as|/bin/peet" as|' $(B)/lib/peet/as >$(DESTDIR)$(PREFIX)/lib/peet/as
	$(Q)chmod 755 $(DESTDIR)$(PREFIX)/lib/peet/as
	$(Q)install -m 644 $(RT) $(MACHINE) $(DESTDIR)$(PREFIX)/lib/peet
	$(Q)for f in $(GUEST:$(B)/lib/peet/%=%); do install -D -m 755 $(B)/lib/peet/$$f $(DESTDIR)$(PREFIX)/lib/peet/$$f || exit 1; done
	$(Q)for f in $(patsubst $(B)/%,%,$(PLUGIN) $(filter-out $(B)/libpeet-mark.%,$(MARKS))); do \
	  install -D -m 644 $(B)/$$f $(DESTDIR)$(PREFIX)/lib/peet/$$f || exit 1; done
	$(Q)install -m 644 $(B)/install/libpeet.a $(DESTDIR)$(PREFIX)/lib
	$(Q)install -m 644 include/peet/*.h $(DESTDIR)$(PREFIX)/include/peet
	$(Q)install -m 644 LICENSE $(DESTDIR)$(PREFIX)/share/doc/peet
	$(Q)for p in $(PAGES); do [ ! -f $$p ] || \
	  install -D -m 644 $$p $(DESTDIR)$(PREFIX)/share/man/man$${p##*.}/$${p##*/} || exit 1; done
	$(Q)[ ! -f cli/completion.bash ] || \
	  install -D -m 644 cli/completion.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/peet
	$(call say,DONE,$(DESTDIR)$(PREFIX))

clean: ## remove everything that was made
	rm -rf build

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{ printf "make %-11s %s\n", $$1, $$2 } /^#   /{ v = v "\n" substr($$0, 3) } \
	  END { print v }' Makefile

# ---- rules ----

# Packages come before the first compilation, where the goal is one that installs them.
ifneq ($(filter deps demo test soak bench experiments,$(MAKECMDGOALS)),)
$(B)/flags: | deps
$(PAGES): | deps
endif
ifneq ($(filter fuzz,$(MAKECMDGOALS)),)
$(B)/flags: | deps
deps: FOR := build fuzz
endif

# Other flags than last time, or other files, make what depends on them anew.
define remember
@mkdir -p $(@D)
@printf '%s\n' '$(1)' | cmp -s - $@ || printf '%s\n' '$(1)' >$@
endef

$(B)/flags: FORCE
	$(call remember,$(COMPILE) / $(LINK) $(LIBS) / $(FUZZ_CC))
$(B)/lib.files: FORCE
	$(call remember,$(LIB_C))
$(B)/cli.files: FORCE
	$(call remember,$(CLI_C))
$(B)/machines.files: FORCE
	$(call remember,$(MACHINES))
$(B)/page.files: FORCE | $(B)/flags
	$(call remember,$(D3) $(if $(D3),$(shell cat $(D3) 2>/dev/null | cksum)))

$(B)/obj/%.o: %.c $(B)/flags
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(COMPILE) -MMD -MP -c -o $@ $<

$(call object,$(INSIDE_C)): COMPILE += -fno-builtin

# The machine files as strings of C; their summaries stand in lines of their own, so that nobody has to parse all to list them.
$(B)/presets.c: $(MACHINES) $(B)/machines.files Makefile
	$(call say,MAKE,$@)
	$(Q)awk 'BEGIN { print "#include \"sim/config/config_load.h\"\n\nconst struct preset presets[] = {" } \
	  function flush() { if (name != "") printf "    { \"%s\", \"%s\",\n%s    },\n", name, summary, text } \
	  FNR == 1 { flush(); name = FILENAME; gsub(/.*\/|\.cfg$$/, "", name); summary = text = "" } \
	  /^summary = ".*";$$/ { summary = substr($$0, 12, length($$0) - 13) } \
	  { gsub(/\\/, "\\\\"); gsub(/"/, "\\\""); text = text "      \"" $$0 "\\n\"\n" } \
	  END { flush(); print "    { NULL, NULL, NULL },\n};" }' $(MACHINES) >$@
$(B)/obj/presets.o: $(B)/presets.c $(B)/flags
	$(Q)mkdir -p $(@D)
	$(Q)$(COMPILE) -MMD -MP -c -o $@ $<

# What is in every HTML page, as arrays of C: style, script, and D3 below its licence. All but D3 has to be there.
$(B)/page.c: src/view/html.css src/view/html.js $(B)/page.files Makefile
	$(call say,MAKE,$@)
	@[ -r '$(D3)' ] || echo '  note   no plots in HTML pages: they need node-d3 (make deps)'
	$(Q)array() { printf 'const char %s[] = {\n' "$$1"; od -An -v -td1 | sed 's/[0-9]\{1,\}/&,/g'; echo '0 };'; }; \
	  library() { [ ! -r '$(D3)' ] || { echo '/*!'; cat '$(D3_LICENCE)' 2>/dev/null | sed 's|[*]/|* /|g'; echo '*/'; \
	    sed 's|</script|<\\/script|g; s|<!--|<\\!--|g' '$(D3)'; }; }; \
	  { echo '#include "view/html.h"'; array html_style <src/view/html.css; array html_script <src/view/html.js; \
	    library | array html_library; } >$@
$(B)/obj/page.o: $(B)/page.c $(B)/flags
	$(Q)mkdir -p $(@D)
	$(Q)$(COMPILE) -MMD -MP -c -o $@ $<

$(LIB): $(call object,$(OPEN_C)) $(B)/lib.files
	$(call say,AR,$@)
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $(filter %.o,$^)

$(REST): $(call object,$(filter-out $(OPEN_C),$(LIB_C))) $(B)/obj/presets.o $(B)/obj/page.o $(B)/lib.files
	$(call say,AR,$@)
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $(filter %.o,$^)

$(PEET): $(call object,$(CLI_C)) $(REST) $(LIB) $(B)/cli.files
	$(call say,LINK,$@)
	$(Q)$(LINK) -o $@ $(filter %.o,$^) $(REST) $(LIB) $(LIBS)

$(B)/lib/peet/libpeet-machine.so: $(call object,$(CLI_C) $(INSIDE_C)) $(REST) $(LIB) $(B)/cli.files
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(LINK) -shared -Wl,-z,now -o $@ $(filter %.o,$^) $(REST) $(LIB) $(LIBS)

$(B)/tests/test_%: $(B)/obj/tests/unit/test_%.o $(REST) $(LIB)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(LINK) -o $@ $^ $(LIBS)

$(HELPERS): $(B)/%: $(B)/obj/%.o $(REST) $(LIB)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(LINK) -o $@ $^ $(LIBS)

$(WORKLOADS): $(B)/workloads/plain/%: $(B)/obj/workloads/%.o $(B)/obj/workloads/common.o
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(LINK) -o $@ $^ -lpthread -lm

# What runs inside subjects: no sanitizers, no help from the compiler that calls functions which it stands in front of, and
# one object whose names are its own, but for those that it wraps.
RT_COMPILE = $(CC) $(STD) $(WARN) -O2 -g -fPIC -fvisibility=hidden -fno-builtin -fno-stack-protector -fno-lto -U_FORTIFY_SOURCE \
	$(INCLUDE)
# Compilers put calls where structures are copied: these are not for the functions that string.c defines. Clang does it, gcc may.
rt_own_names = $(if $(filter string,$(1)),,$(Q)objcopy --redefine-sym memcpy=peet_rt_memcpy --redefine-sym memset=peet_rt_memset $@)
$(B)/obj/src/capture/runtime/%.o: src/capture/runtime/%.c $(B)/flags
	$(call say,RTCC,$<)
	@mkdir -p $(@D)
	$(Q)$(RT_COMPILE) -MMD -MP -c -o $@ $<
	$(call rt_own_names,$*)

$(B)/obj/src/capture/runtime/static/%.o: src/capture/runtime/%.c $(B)/flags
	$(call say,RTCC,$< (static))
	@mkdir -p $(@D)
	$(Q)$(RT_COMPILE) -DRT_STATIC -MMD -MP -c -o $@ $<
	$(call rt_own_names,$*)

# Memory orders, for programs whose accesses they decide.
RT_ORDER_O := $(patsubst src/sim/order/%.c,$(B)/obj/src/capture/runtime/order/%.o,$(sort $(wildcard src/sim/order/*.c)))
$(B)/obj/src/capture/runtime/order/%.o: src/sim/order/%.c $(B)/flags
	$(call say,RTCC,$<)
	@mkdir -p $(@D)
	$(Q)$(RT_COMPILE) -DNDEBUG -Wno-unused -MMD -MP -c -o $@ $<
	$(call rt_own_names,$*)

RT_O := $(call object,$(RT_C))
RT_OMP_O := $(B)/obj/src/capture/runtime/omp.o
RT_REST_O := $(filter-out $(RT_OMP_O),$(RT_O))
# These know how the real functions are found, and that libraries are not to be.
RT_STATIC_O := $(addprefix $(B)/obj/src/capture/runtime/static/,real.o omp.o host.o)
define one_object
$(call say,AR,$@)
@mkdir -p $(@D)
$(Q)rm -f $@
$(Q)ld -r -o $(B)/obj/$(basename $(@F)).o $(filter %.o,$^)
$(Q)objcopy --localize-hidden $(1) $(B)/obj/$(basename $(@F)).o
$(Q)$(AR) rcs $@ $(B)/obj/$(basename $(@F)).o
endef

$(B)/lib/peet/libpeet-rt.a: $(RT_REST_O) $(RT_ORDER_O)
	$(call one_object)
$(B)/lib/peet/libpeet-omp.a: $(RT_OMP_O)
	$(call one_object)
$(B)/lib/peet/libpeet-rt-static.a: $(filter-out %/real.o %/host.o,$(RT_REST_O)) $(RT_ORDER_O) $(filter-out %/omp.o,$(RT_STATIC_O)) $(B)/obj/wrap.names
	$(call one_object,--redefine-syms=$(B)/obj/wrap.names)
$(B)/lib/peet/libpeet-omp-static.a: $(filter %/omp.o,$(RT_STATIC_O)) $(B)/obj/wrap.names
	$(call one_object,--redefine-syms=$(B)/obj/wrap.names)

# Whatever the runtime defines and is not called peet_… it stands in front of.
$(B)/obj/wrap.names: $(RT_O)
	$(Q)nm --defined-only --extern-only $^ | awk '$$2 == "W" && $$3 !~ /^(peet_|dlclose$$)/ { print $$3, "__wrap_" $$3 }' >$@
$(B)/lib/peet/wrap: $(B)/obj/wrap.names
	@mkdir -p $(@D)
	$(Q)sed 's/ .*//; s/^/--wrap=/' $< >$@

# What runs inside QEMU: no sanitizers, and nothing of it is seen there but what QEMU calls.
pic_object = $(1:%.c=$(B)/obj/pic/%.o)
PLUGIN_O := $(call pic_object,$(PLUGIN_C) $(PLUGIN_LIB_C))
$(B)/obj/pic/%.o: %.c $(B)/flags
	$(call say,PICCC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(STD) $(WARN) -O2 -g -fPIC -fvisibility=hidden $(INCLUDE) -MMD -MP -c -o $@ $<
$(PLUGIN): $(PLUGIN_O)
	$(call say,LINK,$@)
	$(Q)$(CC) -shared -o $@ $^ -lzstd -lxxhash -lZydis -lelf -lpthread

# What runs inside the guest's programs.
MARK_FLAGS := $(STD) $(WARN) -O2 -g -fPIC -fno-stack-protector -U_FORTIFY_SOURCE -Iinclude
guest_cc = $(if $(filter $(HOST),$(1)),$(CC),$(1)-linux-gnu-gcc)
$(foreach a,$(GUESTS),$(B)/$a/libpeet-mark.so): $(B)/%/libpeet-mark.so: $(MARK_C) include/peet/mark_guest.h include/peet/mark_bare.h $(B)/flags
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(call guest_cc,$*) $(MARK_FLAGS) -shared -o $@ $(MARK_C) -ldl -lpthread
$(foreach a,$(GUESTS),$(B)/$a/libpeet-mark.a): $(B)/%/libpeet-mark.a: $(MARK_C) include/peet/mark_guest.h include/peet/mark_bare.h $(B)/flags
	$(call say,AR,$@)
	@mkdir -p $(@D)
	$(Q)$(call guest_cc,$*) $(MARK_FLAGS) -DMARK_STATIC -c -o $(@:.a=.o) $(MARK_C)
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $(@:.a=.o)
$(B)/libpeet-mark.so $(B)/libpeet-mark.a: $(B)/libpeet-mark.%: $(B)/$(HOST)/libpeet-mark.%
	$(Q)cp $< $@

# What GCC calls when peet cc tells it to look here for its assembler.
$(B)/lib/peet/as: Makefile
	@mkdir -p $(@D)
	$(Q)printf '#!/bin/sh\nexec "$${0%%/*}/../../peet" as "$$@"\n' >$@
	$(Q)chmod +x $@

# Finds and gets QEMU and kernels.
$(B)/lib/peet/get-system: scripts/get-system
	@mkdir -p $(@D)
	$(Q)install -m 755 $< $@

# The first process of guests.
$(B)/lib/peet/%/init: src/capture/system/guest/init.c include/peet/mark_guest.h include/peet/mark_bare.h $(B)/flags
	$(call say,GUEST,$@)
	@mkdir -p $(@D)
	$(Q)$(call guest_cc,$*) $(STD) $(WARN) -Os -static -s -Iinclude -o $@ $<

$(PEET_WORKLOADS): $(B)/workloads/peet/%: workloads/%.c workloads/common.c workloads/common.h $(PEET) $(B)/lib/peet/as \
    $(RT)
	$(call say,PEETCC,$@)
	@mkdir -p $(@D)
	$(Q)$(PEET) cc -O2 -g $(STD) -Iinclude -Isrc -I. -o $@ $(filter %.c,$^) -lpthread -lm

$(B)/man/%: docs/man/%.scd
	@mkdir -p $(@D)
	$(Q)! command -v scdoc >/dev/null || scdoc <$< >$@

FUZZ_SANITIZE := address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
$(B)/fuzz/obj/%.o: %.c $(B)/flags
	$(call say,FUZZCC,$<)
	@mkdir -p $(@D)
	$(Q)$(FUZZ_CC) $(STD) $(WARN) -O1 -g -fsanitize=fuzzer-no-link,$(FUZZ_SANITIZE) $(INCLUDE) -MMD -MP -c -o $@ $<

$(FUZZERS): $(B)/fuzz/%: $(B)/fuzz/obj/tests/fuzz/%.o $(call fuzz_object,$(LIB_C)) $(B)/obj/presets.o $(B)/obj/page.o
	$(call say,LINK,$@)
	$(Q)$(FUZZ_CC) -fsanitize=fuzzer,$(FUZZ_SANITIZE) -o $@ $^ $(LIBS)

# A program of peet cc that is linked where the target expects its code, with nothing else in it.
$(B)/fuzz/seeds/schema: tests/e2e/subjects/loops.c $(PEET) $(B)/lib/peet/as $(RT)
	@mkdir -p $@
	$(Q)$(PEET) cc -O1 -w -c -o $(B)/fuzz/seeds/loops.o $<
	$(Q)ld -e 0 --unresolved-symbols=ignore-all -z max-page-size=4096 -Ttext=0x1000 -o $@/loops $(B)/fuzz/seeds/loops.o
	$(Q)strip -g $@/loops
	@touch $@

-include $(patsubst %.o,%.d,$(call object,$(ALL_C)) $(B)/obj/presets.o $(B)/obj/page.o $(RT_STATIC_O) $(PLUGIN_O) $(call fuzz_object,$(LIB_C) $(FUZZ_C)))

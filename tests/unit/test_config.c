/* SPDX-License-Identifier: MIT */
/* Machine files: one table of settings, read from files and from the command line to the same effect; mistakes that name their place; the
 * presets and the document that describe what there is. */
#include "sim/coherence/protocol.h"
#include "sim/config/settings.h"
#include "sim/exec/exec_blocks.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "check.h"

static char folder[200];
static uint64_t state = 1;

static uint64_t draw(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 33;
}

/* libconfig 1.5 forgets strings that stand before a syntax error. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libconfig.so\n";
}

/* ---- helpers ---- */

/* A file in the folder of this test; returns its path, to be freed. */
static char *write_file(const char *name, const char *text)
{
    char *path = mem_format("%s/%s", folder, name);
    FILE *f = fopen(path, "w");

    if (CHECK(f != NULL)) {
        CHECK(fputs(text, f) >= 0);
        CHECK_EQ(fclose(f), 0);
    }
    return path;
}

static int load(struct machine_config *c, const char *name, const char *text, struct peet_err *err)
{
    char *path = write_file(name, text);
    int r = config_load(c, path, NULL, 0, err);

    free(path);
    return r;
}

static bool loads(struct machine_config *c, const char *text)
{
    struct peet_err err = { 0 };
    bool ok = CHECK_EQ(load(c, "good.cfg", text, &err), 0);

    if (!ok)
        printf("# %s\n", err.text);
    return ok;
}

/* The text as x.cfg is refused, and the complaint, without the folder, is this. */
static void refuses(const char *text, const char *complaint)
{
    struct machine_config c = { .cpus = 77 };
    struct peet_err err = { 0 };
    size_t n = strlen(folder) + 1;

    CHECK_EQ(load(&c, "x.cfg", text, &err), PEET_ERR_FORMAT);
    CHECK_EQ(err.code, PEET_ERR_FORMAT);
    bool has_folder = !strncmp(err.text, folder, n - 1);
    CHECK_EQ((const char *)err.text + (has_folder ? n : 0), complaint);
    CHECK_EQ(c.cpus, 77); /* what fails changes nothing */
}

static void refuses_set(const char *set, const char *complaint)
{
    struct machine_config c;
    struct peet_err err = { 0 };

    CHECK_EQ(config_load(&c, "sato1999", &set, 1, &err), PEET_ERR_USAGE);
    CHECK_EQ((const char *)err.text, complaint);
}

/* Every setting says the same in both. */
static bool same(const struct machine_config *a, const struct machine_config *b)
{
    const struct setting *s;
    char x[200], y[200];
    bool ok = true;

    for (size_t i = 0; (s = setting_at(i)); i++) {
        setting_show(s, a, x, sizeof x);
        setting_show(s, b, y, sizeof y);
        if (!CHECK_EQ((const char *)x, (const char *)y)) {
            printf("# %s\n", s->path);
            ok = false;
        }
    }
    return ok;
}

/* ---- the table ---- */

static void the_defaults_are_those_of_the_table_and_make_sense(void)
{
    struct machine_config c;
    struct peet_err err = { 0 };
    const struct setting *s;
    char shown[200];

    config_defaults(&c);
    CHECK_EQ(config_check(&c, &err), 0);
    for (size_t i = 0; (s = setting_at(i)); i++) {
        setting_show(s, &c, shown, sizeof shown);
        CHECK_EQ((const char *)shown, s->initial);
        CHECK_EQ(setting_find(s->path), s);
        CHECK_EQ(setting_index(s), i);
        CHECK(s->help && *s->help);
    }
}

static void no_two_settings_share_memory(void)
{
    static char taken[sizeof(struct machine_config)];
    const struct setting *s;

    for (size_t i = 0; (s = setting_at(i)); i++)
        for (size_t k = 0; k < s->size; k++)
            CHECK(!taken[s->offset + k]++);
}

/* Another value than the default, such that all these values together make sense. */
static void sample(const struct setting *s, char *buffer, size_t size)
{
    const char *name = "", *summary;
    uint64_t v = 0;

    switch (s->type) {
    case SETTING_TEXT: snprintf(buffer, size, "some %s", s->path); return;
    case SETTING_SWITCH: snprintf(buffer, size, "%s", !strcmp(s->initial, "true") ? "false" : "true"); return;
    case SETTING_WORD: /* speculation excludes several contexts */
        snprintf(buffer, size, "%s", s->words[strcmp(s->path, "speculation.policy") != 0]);
        return;
    case SETTING_KIND:
        for (size_t i = 0; s->registry->at(i, &name, &summary) && !strcmp(name, s->initial); i++)
            ;
        snprintf(buffer, size, "%s", name);
        return;
    case SETTING_NUMBER:
    case SETTING_BYTES: CHECK(setting_number(s->initial, &v)); snprintf(buffer, size, "%" PRIu64, v ? v * 2 : 4096);
    }
}

/* Of "a.b.c" the text "a = { b = { c = value; }; };" cannot be said twice, so a file is written group by group. */
static void print_group(FILE *f, const char *prefix)
{
    const struct setting *s;
    size_t n = strlen(prefix);
    char value[200], last[100] = "";

    for (size_t i = 0; (s = setting_at(i)); i++) {
        if (strncmp(s->path, prefix, n) != 0)
            continue;
        const char *rest = s->path + n;
        size_t to = strcspn(rest, ".");
        sample(s, value, sizeof value);
        bool quoted = s->type != SETTING_SWITCH && (s->type != SETTING_NUMBER || i % 2);
        if (!rest[to]) {
            fprintf(f, "%s = %s%s%s;\n", rest, quoted ? "\"" : "", value, quoted ? "\"" : "");
        } else if (strncmp(last, rest, to) != 0 || last[to]) {
            char *inner = mem_format("%.*s.", (int)(n + to), s->path);
            snprintf(last, sizeof last, "%.*s", (int)to, rest);
            fprintf(f, "%s = {\n", last);
            print_group(f, inner);
            fprintf(f, "};\n");
            free(inner);
        }
    }
}

static bool stays(const struct setting *s)
{
    return !strcmp(s->path, "cache.l1.shared") || !strcmp(s->path, "cache.l3.shared")
           || !strcmp(s->path, "speculation.policy");
}

static void every_setting_can_be_said_in_a_file_and_behind_set_to_the_same_effect(void)
{
    struct machine_config by_file, by_set;
    struct peet_err err = { 0 };
    const struct setting *s;
    size_t sets = 0, size;
    char *set[200], *text, value[200], shown[200];

    FILE *f = open_memstream(&text, &size);
    print_group(f, "");
    fclose(f);
    /* the first level is private, and a private level after a shared one makes no sense: these two stay as they are (stays) */
    char *l3 = strstr(text, "shared = false"), *l1 = strstr(text, "shared = true;");
    if (!CHECK(l3 && l1))
        return;
    memcpy(l3, "shared = true ", 14);
    memcpy(l1, "shared=false; ", 14);
    if (!loads(&by_file, text))
        return;
    for (; (s = setting_at(sets)); sets++) {
        sample(s, value, sizeof value);
        set[sets] = mem_format("%s=%s", s->path, stays(s) ? s->initial : value);
    }
    CHECK_EQ(config_load(&by_set, "ideal", (const char *const *)set, sets, &err), 0);
    CHECK_EQ((const char *)err.text, "");
    same(&by_file, &by_set);
    for (size_t i = 0; i < sets; i++) {
        s = setting_at(i);
        setting_show(s, &by_file, shown, sizeof shown);
        if (!CHECK(strcmp(shown, s->initial) != 0 || stays(s)))
            printf("# %s\n", s->path);
        free(set[i]);
    }
    CHECK_EQ(by_file.fabric.cpus, by_file.cpus);
    CHECK_EQ(by_file.fabric.line, by_file.level[0].line);
    free(text);
}

static void a_private_last_level_can_be_said(void)
{
    struct machine_config c;

    if (loads(&c, "cache = { l2 = { bytes = \"1M\"; }; l3 = { bytes = \"2M\"; shared = false; }; };"))
        CHECK(!c.level[2].is_shared);
}

static void speculation_needs_a_machine_that_can_undo(void)
{
    static const char *const WRONG[] = {
        "coherence.protocol=moesi", "coherence.protocol=dragon", "barrier.kind=central", "cache.l1.write_through=true",
        "cache.l1.allocate=false",  "cache.l1.bytes=0",          "contexts=2",           "order.model=tso"
    };
    const char *set[] = { "speculation.policy=barrier", NULL };
    struct machine_config c;
    struct peet_err err = { 0 };

    CHECK_EQ(config_load(&c, "sato1999", set, 1, &err), 0);
    CHECK(c.speculation.policy == SPECULATE_BARRIER && c.speculation.save == 5 && c.speculation.roll_back == 10);
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++) {
        set[1] = WRONG[i];
        CHECK(config_load(&c, "sato1999", set, 2, &err) == PEET_ERR_USAGE && strstr(err.text, "speculation.policy"));
    }
}

static void numbers_are_plain_hexadecimal_or_have_a_letter(void)
{
    struct machine_config c;
    uint64_t v = 5;
    static const char *const WRONG[] = {
        "", "K", "-1", " 1", "1 ", "1KB", "0x", "1.5", "18446744073709551616", "17179869184G"
    };

    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++)
        CHECK(!setting_number(WRONG[i], &v));
    CHECK_EQ(v, 5);
    CHECK(setting_number("18446744073709551615", &v) && v == UINT64_MAX);
    CHECK(setting_number("0x1fK", &v) && v == 31 * 1024);
    CHECK(setting_number("3g", &v) && v == (uint64_t)3 << 30);
    static const char *const SAME[] = { "65536", "0x10000", "\"64K\"", "\"64k\"", "\"65536\"", "65536L" };
    for (size_t i = 0; i < sizeof SAME / sizeof *SAME; i++) {
        char *text = mem_format("cache = { l1 = { bytes = %s; }; };", SAME[i]);
        if (loads(&c, text))
            CHECK_EQ(c.level[0].bytes, 65536);
        free(text);
    }
    if (loads(&c, "seed = \"18446744073709551615\"; scheduler = { quantum = 3000000000L; };")) {
        CHECK_EQ(c.seed, UINT64_MAX);
        CHECK_EQ(c.quantum, 3000000000);
    }
}

/* ---- mistakes ---- */

static void unknown_names_are_told_with_the_nearest(void)
{
    char no_zebra[200] = "x.cfg:1: coherence.protocol: there is no 'zebra'; there are ";
    size_t length = strlen(no_zebra);

    for (size_t k = 0; protocols[k]; k++)
        length +=
            (size_t)snprintf(no_zebra + length, sizeof no_zebra - length, "%s%s", k ? ", " : "", protocols[k]->name);
    refuses("cpus = 4;\n\ncache = {\n  l1 = {\n    byts = 3;\n  };\n};\n",
            "x.cfg:5: cache.l1.byts: no such setting; did you mean 'bytes'?");
    refuses("cach = { l1 = { bytes = 3; }; };", "x.cfg:1: cach: no such setting; did you mean 'cache'?");
    refuses("\ncache = { l4 = { bytes = 3; }; };", "x.cfg:2: cache.l4: no such setting; did you mean 'l1'?");
    refuses("bas = \"ideal\";", "x.cfg:1: bas: no such setting; did you mean 'base'?");
    refuses("tlb = { zebra = 3; };",
            "x.cfg:1: tlb.zebra: no such setting; here are entries, ways, page, cost, replacement");
    refuses("cache = 3;", "x.cfg:1: cache: expected a group, cache = { … };");
    refuses("cache = { i1 = { shared = true; }; };",
            "x.cfg:1: cache.i1.shared: no such setting; here are bytes, ways, line, latency, replacement, miss");
    refuses("coherence = {\nprotocol = \"mesj\"; };",
            "x.cfg:2: coherence.protocol: there is no 'mesj'; did you mean 'mesi'?");
    refuses("coherence = { protocol = \"zebra\"; };", no_zebra);
    refuses("scheduler = { wait = \"bussy\"; };", "x.cfg:1: scheduler.wait: there is no 'bussy'; did you mean 'busy'?");
}

static void values_of_another_type_or_out_of_range_are_told(void)
{
    refuses("cpus = \"four\";", "x.cfg:1: cpus: expected a number, found \"four\"");
    refuses("cpus = true;", "x.cfg:1: cpus: expected a number, found true");
    refuses("cpus = 4.0;", "x.cfg:1: cpus: expected a number, found a number with a point");
    refuses("cpus = [ 1, 2 ];", "x.cfg:1: cpus: expected a number, found an array");
    refuses("cpus = ( 1, 2 );", "x.cfg:1: cpus: expected a number, found a list");
    refuses("cpus = { a = 1; };", "x.cfg:1: cpus: expected a number, found a group");
    refuses("cache = { l1 = { bytes = \"64KB\"; }; };",
            "x.cfg:1: cache.l1.bytes: expected a size such as 65536 or \"64K\", found \"64KB\"");
    refuses("memory = { first_touch = 1; };",
            "x.cfg:1: memory.first_touch: expected true or false, found the number 1");
    refuses("memory = { first_touch = \"true\"; };",
            "x.cfg:1: memory.first_touch: expected true or false, found \"true\"");
    refuses("coherence = { protocol = 3; };",
            "x.cfg:1: coherence.protocol: expected a name in quotes, found the number 3");
    refuses("name = 3;", "x.cfg:1: name: expected a string, found the number 3");
    refuses("cpus = 65;", "x.cfg:1: cpus: 65 is too much; it is at most 64");
    refuses("cpus = 0;", "x.cfg:1: cpus: 0 is too little; it is at least 1");
    refuses("cpus = -3;", "x.cfg:1: cpus: -3 is too little; it is at least 1");
    refuses("cache = { l1 = { bytes = \"2G\"; }; };", "x.cfg:1: cache.l1.bytes: 2G is too much; it is at most 1G");
    refuses("cache = { l1 = { line = 48; }; };", "x.cfg:1: cache.l1.line: 48 is not a power of two");
    refuses("tlb = { page = 5000; };", "x.cfg:1: tlb.page: 5000 is not a power of two");
    refuses("name = \"0123456789012345678901234567890123456789012345678901234567890123\";",
            "x.cfg:1: name: its 64 bytes are too many; there is room for 63");
}

static void settings_that_do_not_go_together_are_blamed_on_a_line(void)
{
    refuses("cache = { l1 = {\n ways = 7; }; };", "x.cfg:2: cache.l1.ways: 7 ways do not divide 512 lines into sets");
    refuses("cache = { l1 = {\n bytes = 100; }; };",
            "x.cfg:2: cache.l1.bytes: 100 bytes are no whole number of lines of 64 bytes");
    refuses("cache = { i1 = { bytes = 192;\n ways = 2; }; };",
            "x.cfg:2: cache.i1.ways: 2 ways do not divide 3 lines into sets");
    refuses("\ntlb = { entries = 6; };", "x.cfg:2: tlb.ways: 4 ways do not divide 6 lines into sets");
    refuses("cache = { l2 = { bytes = \"1M\";\n line = 32; }; };",
            "x.cfg:2: cache.l2.line: 32 is not cache.l1.line, 64; all levels have the same line");
    refuses("cache = { l2 = { bytes = \"1M\"; };\n l1 = { line = 32; }; };",
            "x.cfg:2: cache.l2.line: 64 is not cache.l1.line, 32; all levels have the same line");
    refuses("cache = { l1 = {\n shared = true; }; };",
            "x.cfg:2: cache.l1.shared: the first level is each processor's own");
    refuses("cache = { l1 = {\n shared = true; }; l2 = { bytes = \"1M\"; }; };",
            "x.cfg:2: cache.l1.shared: a shared level cannot stand before a private one; set cache.l2.shared, too");
    refuses("cache = { l3 = { bytes = \"1M\"; }; };",
            "x.cfg:1: cache.l3.bytes: there is no level before it; give cache.l2.bytes a size, too");
    refuses("cache = { l1 = { ways = 64;\n replacement = \"rrip\"; }; };",
            "x.cfg:2: cache.l1.replacement: rrip can have 32 ways at most, and here are 64; take lru or fewer ways");
    refuses("cache = { l1 = { ways = 0; replacement = \"plru\"; }; };",
            "x.cfg:1: cache.l1.replacement: plru can have 64 ways at most, and here are 512; take lru or fewer ways");
    refuses("cache = { l1 = { bytes = 2112; ways = 33; replacement = \"rrip\"; }; };",
            "x.cfg:1: cache.l1.replacement: rrip can have 32 ways at most, and here are 33; take lru or fewer ways");
    refuses("cache = { l1 = { bytes = 4160; ways = 65; replacement = \"plru\"; }; };",
            "x.cfg:1: cache.l1.replacement: plru can have 64 ways at most, and here are 65; take lru or fewer ways");
    refuses("tlb = { entries = 128; ways = 128; replacement = \"plru\"; };",
            "x.cfg:1: tlb.replacement: plru can have 64 ways at most, and here are 128; take lru or fewer ways");
}

static void most_ways_of_each_replacement_are_taken(void)
{
    struct machine_config c;

    loads(&c, "cache = { l1 = { ways = 32; replacement = \"rrip\"; }; };");
    loads(&c, "cache = { l1 = { ways = 64; replacement = \"plru\"; }; };");
    loads(&c, "cache = { l1 = { ways = 0; }; i1 = { bytes = \"12K\"; line = 32; ways = 3; }; };");
}

static void what_is_behind_set_is_told_as_such(void)
{
    struct machine_config c;
    struct peet_err err = { 0 };

    refuses_set("cache.l1.byts=5", "--set cache.l1.byts=5: cache.l1.byts: no such setting; did you mean 'bytes'?");
    refuses_set("cach.l1.bytes=5", "--set cach.l1.bytes=5: cach: no such setting; did you mean 'cache'?");
    refuses_set("cache.l1=5", "--set cache.l1=5: cache.l1: a group; say which of it: bytes, ways, line, latency, "
                              "replacement, shared, write_through, allocate, inclusion");
    refuses_set("cpus.x=5", "--set cpus.x=5: cpus: a setting, and no group: 'x' cannot be in it");
    refuses_set("cpus", "--set cpus: expected PATH=VALUE, such as cpus=4");
    refuses_set("cpus=", "--set cpus=: cpus: expected a number, found \"\"");
    refuses_set("cpus=65", "--set cpus=65: cpus: 65 is too much; it is at most 64");
    refuses_set("cache.l1.ways=3", "--set cache.l1.ways=3: cache.l1.ways: 3 ways do not divide 4096 lines into sets");
    refuses_set("memory.first_touch=yes",
                "--set memory.first_touch=yes: memory.first_touch: expected true or false, found \"yes\"");
    CHECK_EQ(config_load(&c, "sato199", NULL, 0, &err), PEET_ERR_USAGE);
    CHECK_EQ((const char *)err.text, "there is no machine 'sato199'; did you mean 'sato1999'?");
    CHECK_EQ(config_load(&c, "zebra", NULL, 0, &err), PEET_ERR_USAGE);
    CHECK_EQ((const char *)err.text,
             "there is no machine 'zebra'; see 'peet list machines', or give a file, as ./zebra or zebra.cfg");
    CHECK_EQ(config_load(&c, "nowhere.cfg", NULL, 0, &err), PEET_ERR_IO);
    CHECK_EQ((const char *)err.text, "nowhere.cfg: No such file or directory");
    CHECK_EQ(config_load(&c, ".", NULL, 0, &err), PEET_ERR_IO);
    CHECK_EQ(config_load(&c, "nowhere.cfg", NULL, 0, NULL), PEET_ERR_IO); /* the error is not wanted */
}

static void files_that_cannot_be_parsed_are_told_with_their_line(void)
{
    refuses("cpus = 4;\nseed = ;\n", "x.cfg:2: syntax error here or just before; a setting is name = value; and a "
                                     "group is name = { … };");
    refuses("cpus = 4;\n\ncpus = 5;\n", "x.cfg:3: duplicate setting name");
}

/* libconfig 1.5 would take the low 32 bits. */
static void numbers_too_great_for_libconfig_are_refused_and_never_cut(void)
{
    struct machine_config c;

    refuses("/* 99999999999\n */ cpus = 4294967300;",
            "x.cfg:2: 4294967300 is too great for a plain number; write it in quotes: \"4294967300\"");
    refuses("seed = 2147483648;",
            "x.cfg:1: 2147483648 is too great for a plain number; write it in quotes: \"2147483648\"");
    refuses("# 99999999999\nseed = 0x1FFFFFFFF;",
            "x.cfg:2: 0x1FFFFFFFF is too great for a plain number; write it in quotes: \"0x1FFFFFFFF\"");
    refuses(
        "name = \"a\\\"99999999999\n\";\nseed = 99999999999999999999L;",
        "x.cfg:3: 99999999999999999999 is too great for a plain number; write it in quotes: \"99999999999999999999\"");
    loads(&c, "// 4294967300\nname = \"4294967300\"; cpus = 4; # 4294967300\n /* 4294967300 */ seed = 2147483647;");
}

/* libconfig 1.5 would report the last line of the file. */
static void a_string_without_an_end_is_refused_where_it_begins(void)
{
    refuses("cpus = 4;\nname = \"abc\\\"\ncpus = 5;\n", "x.cfg:2: the string that begins here has no end");
}

/* ---- one file and others ---- */

static void a_machine_starts_from_a_preset_and_changes_it(void)
{
    struct machine_config c, preset;
    struct peet_err err;

    CHECK_EQ(config_load(&preset, "sato1999", NULL, 0, &err), 0);
    if (!loads(&c, "cpus = 8;\nbase = \"sato1999\";\n"))
        return;
    CHECK_EQ(c.cpus, 8);
    CHECK_EQ((const char *)c.name, "good"); /* as its file */
    CHECK_EQ((const char *)c.summary, "");
    c.cpus = 4;
    snprintf(c.name, sizeof c.name, "%s", preset.name);
    snprintf(c.summary, sizeof c.summary, "%s", preset.summary);
    same(&c, &preset);
}

static void a_machine_starts_from_a_file_beside_it(void)
{
    struct machine_config c;

    free(write_file("first.cfg", "base = \"memspy-1m\"; cpus = 3;"));
    if (loads(&c, "base = \"first.cfg\"; name = \"mine\"; contexts = 2;")) {
        CHECK_EQ((const char *)c.name, "mine");
        CHECK_EQ(c.cpus, 3);
        CHECK_EQ(c.core_threads, 2);
        CHECK_EQ(c.level[0].bytes, 1 << 20);
    }
    free(write_file("bad.cfg", "\n\ncpus = 99;"));
    refuses("base = \"bad.cfg\";", "bad.cfg:3: cpus: 99 is too much; it is at most 64");
    refuses("\nbase = \"idael\";", "x.cfg:2: there is no machine 'idael'; did you mean 'ideal'?");
    refuses("base = 3;", "x.cfg:1: base: expected the name of a preset or of a file, in quotes");
    refuses("base = \"x.cfg\";", "x.cfg:1: base: more than 8 machines in a row; does one start from itself?");
    /* the line of a base's setting is known to the end */
    free(write_file("ways.cfg", "\ncache = { l1 = { ways = 7; }; };"));
    refuses("base = \"ways.cfg\";", "ways.cfg:2: cache.l1.ways: 7 ways do not divide 512 lines into sets");
}

static void files_include_others(void)
{
    struct machine_config c;
    char *inner = mem_format("%s/sub", folder);

    free(write_file("part.cfg", "bytes = \"128K\";\nways = 2;\n"));
    if (loads(&c, "cache = { l1 = {\n  @include \"part.cfg\"\n line = 32; }; };\n# @include \"gone.cfg\"\n")) {
        CHECK_EQ(c.level[0].bytes, 128 << 10);
        CHECK_EQ(c.level[0].ways, 2);
        CHECK_EQ(c.level[0].line, 32);
    }
    free(write_file("odd.cfg", "\nways = 3;"));
    refuses("cache = { l1 = {\n@include \"odd.cfg\"\n}; };",
            "odd.cfg:2: cache.l1.ways: 3 ways do not divide 512 lines into sets");
    free(write_file("great.cfg", "\n\nseed = 4294967296;"));
    refuses("\n@include \"great.cfg\"\n",
            "great.cfg:3: 4294967296 is too great for a plain number; write it in quotes: \"4294967296\"");
    free(write_file("self.cfg", "@include \"self.cfg\"\n"));
    refuses("@include \"self.cfg\"\n", "self.cfg:1: @include goes more than 10 files deep; does one include itself?");
    refuses("@include \"/etc/passwd\"\n",
            "x.cfg:1: @include takes names in the folder of the machine file, not '/etc/passwd'");
    CHECK(mkdir(inner, 0700) == 0);
    char *complaint = mem_format("x.cfg:2: %s/sub: Is a directory", folder);
    refuses("\n@include \"sub\"\n", complaint);
    free(complaint);
    complaint = mem_format(
        "x.cfg:1: there is no file '%s/sato1999'; to start from the preset say: base = \"sato1999\";", folder);
    refuses("@include \"sato1999\"\n", complaint);
    free(complaint);
    free(inner);
}

static void an_error_in_the_folder_of_the_caller_names_no_folder(void)
{
    struct machine_config c;
    struct peet_err err = { 0 };
    char *here = realpath(".", NULL);

    free(write_file("near.cfg", "base = \"bad.cfg\";"));
    free(write_file("bad.cfg", "@include \"worse.cfg\"\n"));
    free(write_file("worse.cfg", "\ncpu = 3;"));
    CHECK_EQ(chdir(folder), 0);
    CHECK_EQ(config_load(&c, "near.cfg", NULL, 0, &err), PEET_ERR_FORMAT);
    CHECK_EQ((const char *)err.text, "worse.cfg:2: cpu: no such setting; did you mean 'cpus'?");
    CHECK_EQ(chdir(here), 0);
    free(here);
}

/* ---- against slower or blinder judges ---- */

/* Whether sets of `ways` lines make up the cache, counted one by one. */
static bool fits(uint64_t bytes, uint64_t line, uint64_t ways)
{
    uint64_t sum = 0;

    while (sum < bytes)
        sum += ways ? line * ways : line;
    return sum == bytes;
}

static void a_cache_passes_the_check_when_whole_sets_make_it_up(void)
{
    struct machine_config c;
    unsigned good = 0;

    for (unsigned round = 0; round < 20000; round++) {
        config_defaults(&c);
        struct level_config *l = draw() % 2 ? &c.level[0] : &c.instructions;
        l->line = 4u << draw() % 5;
        l->ways = (uint32_t)(draw() % 9);
        l->bytes = draw() % 3 ? draw() % 3000 : l->line * (draw() % 60);
        bool ok = config_check(&c, NULL) == 0;
        good += ok;
        if (!CHECK_EQ(ok, fits(l->bytes, l->line, l->ways)))
            printf("# %" PRIu64 " bytes, %u ways, lines of %u\n", l->bytes, l->ways, l->line);
        struct cache_config k = { l->bytes, l->ways, l->line, l->replacement, 1 };
        struct cache cache;
        if (ok && l->bytes && CHECK_EQ(cache_init(&cache, &k), 0)) /* it asserts what it needs */
            cache_release(&cache);
    }
    CHECK(good > 2000 && good < 18000);
}

static void a_machine_made_by_hand_is_checked_like_a_file(void)
{
    struct machine_config c;
    struct peet_err err;

    config_defaults(&c);
    c.cpus = 65;
    CHECK(config_check(&c, &err) < 0);
    config_defaults(&c);
    c.protocol = NULL;
    CHECK(config_check(&c, &err) < 0);
    config_defaults(&c);
    c.sync.grant = 4;
    CHECK(config_check(&c, &err) < 0);
}

/* Damage: whatever a file says, it is a machine that passes the check, or a complaint. */
static void damaged_files_are_refused_or_still_machines(void)
{
    static const char LETTERS[] = "{}()[]=;:\"'#/*@\\\n 0919xLlGK.-truefalse";
    static char text[5000];
    unsigned good = 0;

    FILE *f = fopen("machines/modern.cfg", "r");
    if (!CHECK(f))
        return;
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    for (unsigned round = 0; round < 1000; round++) {
        struct machine_config c;
        struct peet_err err = { 0 };
        char *copy = mem_string(text);
        for (uint64_t k = 1 + draw() % 3; k; k--)
            copy[draw() % n] = LETTERS[draw() % (sizeof LETTERS - 1)];
        if (draw() % 8 == 0)
            copy[draw() % n] = 0;
        int r = load(&c, "damaged.cfg", copy, &err);
        good += r == 0;
        CHECK(r == 0 ? config_check(&c, &err) == 0 : err.code == r && strstr(err.text, "damaged.cfg") != NULL);
        free(copy);
    }
    CHECK(good > 50 && good < 950);
}

/* ---- presets and the document ---- */

static const struct machine_config *preset(const char *name)
{
    static struct machine_config c;
    struct peet_err err = { 0 };

    if (!CHECK_EQ(config_load(&c, name, NULL, 0, &err), 0))
        printf("# %s\n", err.text);
    return &c;
}

static void every_preset_loads_and_says_its_name_and_summary(void)
{
    const char *name, *summary = NULL;
    size_t n = 0;

    for (; (name = config_preset(n, &summary)); n++) {
        CHECK_EQ((const char *)preset(name)->name, name);
        CHECK_EQ((const char *)preset(name)->summary, summary);
        CHECK(*summary);
    }
    CHECK(n >= 7);
}

static void the_core_of_modern_is_profiled_fast(void)
{
    const struct machine_config *c = preset("core");

    CHECK(blocks_can_run(c));
    CHECK_EQ(c->level[2].bytes, 16 << 20);
    CHECK(!blocks_can_run(preset("modern")));
}

static void presets_have_the_numbers_of_their_papers(void)
{
    const struct machine_config *c = preset("sato1999");
    const struct level_config *l = &c->level[0];

    CHECK_EQ(c->cpus, 4);
    CHECK_EQ(l->bytes / l->line / l->ways, 1024);
    CHECK(l->bytes == 64 << 10 && l->line == 16 && l->ways == 4 && !c->level[1].bytes && !l->latency);
    CHECK(c->protocol == &protocol_mesi && c->barrier == &barrier_wired && c->sync.cost == 10);
    CHECK(c->fabric_kind == &fabric_ideal && c->fabric.memory == 20 && c->fabric.transfer == 20);
    for (unsigned i = 0; i < PEET_CLASS_COUNT; i++)
        CHECK_EQ(c->cost[i], 1);

    static const struct {
        const char *name;
        uint32_t bytes, line;
    } MEMSPY[] = { { "memspy-16k", 16 << 10, 16 }, { "memspy-128k", 128 << 10, 32 }, { "memspy-1m", 1 << 20, 64 } };
    for (size_t i = 0; i < 3; i++) {
        c = preset(MEMSPY[i].name);
        CHECK(c->cpus == 1 && l->ways == 1 && l->bytes == MEMSPY[i].bytes && l->line == MEMSPY[i].line);
        CHECK(c->fabric_kind == &fabric_ideal && !c->level[1].bytes);
    }
    c = preset("shallow-bus");
    CHECK(c->cpus == 8 && l->bytes == 128 << 10 && l->line == 8);
    CHECK(c->protocol == &protocol_berkeley && c->fabric_kind == &fabric_bus);
    c = preset("ideal");
    CHECK(c->cpus == 16 && !l->bytes && !c->fabric.memory && !c->fabric.transfer && !c->tlb.entries && !c->sync.cost);
    CHECK(c->lock == &lock_ideal && c->barrier == &barrier_ideal && c->fabric_kind == &fabric_ideal);
    c = preset("modern");
    CHECK(c->cpus == 8 && l[0].bytes == 48 << 10 && l[0].ways == 12 && l[1].bytes == 1 << 20 && l[1].ways == 16);
    CHECK(l[2].bytes == 16 << 20 && l[2].ways == 16 && l[2].is_shared && l[2].inclusion == INCLUSION_INCLUSIVE);
    CHECK(!l[0].is_shared && !l[1].is_shared && l[0].line == 64 && c->tlb.entries);
    CHECK(c->protocol == &protocol_moesi && c->fabric_kind == &fabric_crossbar);
}

static void the_document_has_every_setting_with_its_values_and_default_and_every_preset(void)
{
    static char text[200000];
    char range[300];
    const struct setting *s;
    const char *name, *summary;
    size_t rows = 0, presets_there = 0;

    FILE *f = fopen("docs/machine-config.md", "r");
    if (!CHECK(f))
        return;
    CHECK(fread(text, 1, sizeof text - 1, f) < sizeof text - 1);
    fclose(f);
    for (const char *at = text; (at = strstr(at, "\n| `")); at++)
        rows++;
    for (size_t i = 0; (s = setting_at(i)); i++) {
        setting_range(s, range, sizeof range);
        char *row = mem_format("\n| `%s` | %s | %s | %s |\n", s->path, range, s->initial, s->help);
        if (!CHECK(strstr(text, row)))
            printf("# the document lacks: %s", row + 1);
        rows--;
        free(row);
    }
    for (; (name = config_preset(presets_there, &summary)); presets_there++) {
        char *row = mem_format("\n| `%s` | %s |\n", name, summary);
        if (!CHECK(strstr(text, row)))
            printf("# the document lacks: %s", row + 1);
        free(row);
    }
    CHECK_EQ(rows, presets_there); /* and nothing else */
}

int main(void)
{
    const char *tmp = getenv("TMP");

    snprintf(folder, sizeof folder, "%s/config.XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(folder))
        return 1;
    RUN(the_defaults_are_those_of_the_table_and_make_sense);
    RUN(no_two_settings_share_memory);
    RUN(every_setting_can_be_said_in_a_file_and_behind_set_to_the_same_effect);
    RUN(a_private_last_level_can_be_said);
    RUN(speculation_needs_a_machine_that_can_undo);
    RUN(numbers_are_plain_hexadecimal_or_have_a_letter);
    RUN(unknown_names_are_told_with_the_nearest);
    RUN(values_of_another_type_or_out_of_range_are_told);
    RUN(settings_that_do_not_go_together_are_blamed_on_a_line);
    RUN(most_ways_of_each_replacement_are_taken);
    RUN(what_is_behind_set_is_told_as_such);
    RUN(files_that_cannot_be_parsed_are_told_with_their_line);
    RUN(numbers_too_great_for_libconfig_are_refused_and_never_cut);
    RUN(a_string_without_an_end_is_refused_where_it_begins);
    RUN(a_machine_starts_from_a_preset_and_changes_it);
    RUN(a_machine_starts_from_a_file_beside_it);
    RUN(files_include_others);
    RUN(an_error_in_the_folder_of_the_caller_names_no_folder);
    RUN(a_cache_passes_the_check_when_whole_sets_make_it_up);
    RUN(a_machine_made_by_hand_is_checked_like_a_file);
    RUN(damaged_files_are_refused_or_still_machines);
    RUN(every_preset_loads_and_says_its_name_and_summary);
    RUN(presets_have_the_numbers_of_their_papers);
    RUN(the_core_of_modern_is_profiled_fast);
    RUN(the_document_has_every_setting_with_its_values_and_default_and_every_preset);
    return check_done();
}

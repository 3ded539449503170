/* SPDX-License-Identifier: MIT */
#include "base/opt.h"

#include <stdlib.h>

#include "base/utf8.h"
#include "tests/unit/check.h"

static bool calls;
static bool events;
static const char *out;
static uint64_t from;
static const char *format;
static struct opt_list threads, apps;
static const char *const formats[] = { "text", "json", "csv", NULL };

static const struct opt table[] = {
    { .name = "calls", .letter = 'c', .type = OPT_FLAG, .value = &calls },
    { .name = "events", .letter = 'e', .type = OPT_FLAG, .value = &events },
    { .name = "out", .letter = 'o', .type = OPT_STRING, .arg = "FILE", .value = &out },
    { .name = "from", .type = OPT_NUMBER, .arg = "N", .value = &from },
    { .name = "format", .type = OPT_CHOICE, .value = &format, .choices = formats },
    { .name = "thread", .letter = 't', .type = OPT_LIST, .arg = "LIST", .value = &threads },
    { .name = "app", .type = OPT_EACH, .arg = "LINE", .value = &apps },
    { 0 },
};

static struct peet_err err;
static char *operand[10];

/* Parses words that are separated by blanks; yields the number of operands, or the error. */
static int parse(const char *line)
{
    static char copy[500];
    char *argv[20] = { copy };
    int argc = 1, operands = -99;

    calls = events = false;
    out = format = NULL;
    from = 0;
    opt_list_release(&threads);
    opt_list_release(&apps);
    err = (struct peet_err){ 0 };
    snprintf(copy, sizeof copy, "%s", line);
    for (char *save, *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save))
        argv[argc++] = w;
    int r = opt_parse(table, argc, argv, &operands, &err);
    CHECK_EQ(r, err.code);
    for (int i = 0; r == 0 && i < operands && i < 10; i++)
        operand[i] = argv[i + 1];
    if (r < 0)
        CHECK_EQ(operands, -99); /* untouched on failure */
    return r < 0 ? r : operands;
}

static void refuses(const char *line, const char *text)
{
    CHECK_EQ(parse(line), PEET_ERR_USAGE);
    CHECK_EQ((const char *)err.text, text);
}

static void what_is_given_each_time_keeps_its_commas(void)
{
    CHECK_EQ(parse("--app a,b x --app=c --app ,"), 1);
    CHECK_EQ(apps.count, 3);
    CHECK_EQ((const char *)apps.item[0], "a,b");
    CHECK_EQ((const char *)apps.item[1], "c");
    CHECK_EQ((const char *)apps.item[2], ",");
}

static void options_stand_anywhere_and_operands_keep_their_order(void)
{
    CHECK_EQ(parse("a --calls b --out=x c -e"), 3);
    CHECK(calls && events);
    CHECK_EQ(out, "x");
    CHECK_EQ(operand[0], "a");
    CHECK_EQ(operand[1], "b");
    CHECK_EQ(operand[2], "c");
}

static void values_stand_behind_a_sign_a_blank_or_nothing(void)
{
    CHECK_EQ(parse("--out x"), 0);
    CHECK_EQ(out, "x");
    CHECK_EQ(parse("--out=x=y"), 0);
    CHECK_EQ(out, "x=y");
    CHECK_EQ(parse("-ox"), 0);
    CHECK_EQ(out, "x");
    CHECK_EQ(parse("-o x y"), 1);
    CHECK_EQ(out, "x");
    CHECK_EQ(parse("-ceo x"), 0);
    CHECK(calls && events);
    CHECK_EQ(out, "x");
    CHECK_EQ(parse("--out --calls"), 0); /* a value may look like an option */
    CHECK_EQ(out, "--calls");
    CHECK_EQ(parse("--out="), 0);
    CHECK_EQ(out, "");
}

static void two_dashes_end_the_options_and_one_dash_is_an_operand(void)
{
    CHECK_EQ(parse("- -c -- -e -- x"), 4);
    CHECK(calls && !events);
    CHECK_EQ(operand[0], "-");
    CHECK_EQ(operand[1], "-e");
    CHECK_EQ(operand[2], "--");
    CHECK_EQ(operand[3], "x");
}

static void numbers_are_decimal_or_hexadecimal_and_may_have_a_unit(void)
{
    CHECK_EQ(parse("--from 18446744073709551615"), 0);
    CHECK_EQ(from, UINT64_MAX);
    CHECK_EQ(parse("--from 0xfF"), 0);
    CHECK_EQ(from, 255);
    CHECK_EQ(parse("--from 010"), 0);
    CHECK_EQ(from, 10);
    CHECK_EQ(parse("--from 3k"), 0);
    CHECK_EQ(from, 3072);
    CHECK_EQ(parse("--from 2G"), 0);
    CHECK_EQ(from, 2ull << 30);
}

static void what_is_no_number_is_refused(void)
{
    static const char *const bad[] = { "-1", "+1", "x", "0x", "0xg", "12q", "1kk", "1.5", "k" };
    char line[40];

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(line, sizeof line, "--from %s", bad[i]);
        CHECK_EQ(parse(line), PEET_ERR_USAGE);
        CHECK_EQ(from, 0);
    }
    refuses("--from 12q", "option '--from': '12q' is not a number");
    refuses("--from 18446744073709551616", "option '--from': 18446744073709551616 is more than 64 bits hold");
    refuses("--from=17179869184g", "option '--from': 17179869184g is more than 64 bits hold");
    CHECK_EQ(parse("--from="), PEET_ERR_USAGE);
}

static void lists_grow_by_commas_and_by_repetition(void)
{
    CHECK_EQ(parse("-t 1,2 x --thread=3 -t4"), 1);
    CHECK_EQ(threads.count, 4);
    for (size_t i = 0; i < threads.count; i++) {
        char number[2] = { (char)('1' + i), 0 };
        CHECK_EQ((const char *)threads.item[i], (const char *)number);
    }
    refuses("-t 1,,2", "option '-t': an item of the list is empty");
    refuses("--thread=", "option '--thread': an item of the list is empty");
}

/* The words are what /proc/self/cmdline is read from, which the machine in the program's process parses again. */
static void words_of_the_command_line_stay_as_they_are(void)
{
    char words[][24] = { "peet", "-t", "1,2,3", "--thread=4,5", "--from=7", "x", "--app", "a,b" };
    char *argv[] = { words[0], words[1], words[2], words[3], words[4], words[5], words[6], words[7], NULL };
    int operands;

    opt_list_release(&threads);
    opt_list_release(&apps);
    CHECK_EQ(opt_parse(table, 8, argv, &operands, &err), 0);
    CHECK_EQ(operands, 1);
    CHECK_EQ(threads.count, 5);
    CHECK_EQ(from, 7);
    CHECK_EQ((const char *)words[2], "1,2,3");
    CHECK_EQ((const char *)words[3], "--thread=4,5");
    CHECK_EQ((const char *)words[4], "--from=7");
    for (size_t i = 0; i < apps.count; i++)
        CHECK(apps.item[i] != words[7]);
}

static void the_nearest_name_is_suggested(void)
{
    refuses("--therad 1", "unknown option '--therad'; did you mean '--thread'?");
    refuses("--threads=1", "unknown option '--threads'; did you mean '--thread'?");
    refuses("--form", "unknown option '--form'; did you mean '--from'?");
    refuses("--thr", "unknown option '--thr'; did you mean '--thread'?");
    refuses("-thread", "unknown option '-thread'; did you mean '--thread'?");
    refuses("--zebra", "unknown option '--zebra'");
    refuses("-z", "unknown option '-z'");
    refuses("-cz", "unknown option '-z'");
    refuses("--format jsn", "option '--format' does not know 'jsn'; did you mean 'json'?");
    refuses("--format zebra", "option '--format' does not know 'zebra'; it knows text, json, csv");
    CHECK_EQ(parse("--=x"), PEET_ERR_USAGE);
}

static void missing_and_superfluous_values_are_refused(void)
{
    refuses("--out", "option '--out' needs a value: FILE");
    refuses("x -o", "option '-o' needs a value: FILE");
    refuses("--calls=yes", "option '--calls' takes no value");
}

static const char *name_at(size_t i, const void *names)
{
    return ((const char *const *)names)[i];
}

static void nearest_takes_one_slip_but_not_another_word(void)
{
    static const char *const names[] = { "info", "dump", "check", "import", "help" };

    CHECK_EQ(opt_nearest("inof", 5, name_at, names), "info");
    CHECK_EQ(opt_nearest("ifno", 5, name_at, names), "info");
    CHECK_EQ(opt_nearest("INFO", 5, name_at, names), "info");
    CHECK_EQ(opt_nearest("dmup", 5, name_at, names), "dump");
    CHECK_EQ(opt_nearest("chekc", 5, name_at, names), "check");
    CHECK_EQ(opt_nearest("im", 5, name_at, names), "import");
    CHECK_EQ(opt_nearest("helpp", 5, name_at, names), "help");
    CHECK(!opt_nearest("zebra", 5, name_at, names));
    CHECK(!opt_nearest("", 5, name_at, names));
    CHECK(!opt_nearest("x", 5, name_at, names));
    CHECK(!opt_nearest("a-word-that-is-far-too-long-to-be-anything-at-all-really", 5, name_at, names));
}

static void labels_are_what_help_shows(void)
{
    char label[100];

    opt_label(&table[0], label, sizeof label);
    CHECK_EQ((const char *)label, "-c, --calls");
    opt_label(&table[3], label, sizeof label);
    CHECK_EQ((const char *)label, "    --from N");
    opt_label(&table[4], label, sizeof label);
    CHECK_EQ((const char *)label, "    --format text|json|csv");
}

static void only_strict_utf8_is_decoded(void)
{
    static const char *const bad[] = {
        "\x80", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xff", "\xe2\x82", ""
    };
    uint32_t c;

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_EQ(utf8_decode(bad[i], &c), 0);
    CHECK_EQ(utf8_decode("€", &c), 3);
    CHECK_EQ(c, 0x20ac);
    CHECK_EQ(utf8_decode("😀", &c), 4);
    CHECK_EQ(c, 0x1f600);
}

int main(void)
{
    RUN(what_is_given_each_time_keeps_its_commas);
    RUN(options_stand_anywhere_and_operands_keep_their_order);
    RUN(values_stand_behind_a_sign_a_blank_or_nothing);
    RUN(two_dashes_end_the_options_and_one_dash_is_an_operand);
    RUN(numbers_are_decimal_or_hexadecimal_and_may_have_a_unit);
    RUN(what_is_no_number_is_refused);
    RUN(lists_grow_by_commas_and_by_repetition);
    RUN(words_of_the_command_line_stay_as_they_are);
    RUN(the_nearest_name_is_suggested);
    RUN(missing_and_superfluous_values_are_refused);
    RUN(nearest_takes_one_slip_but_not_another_word);
    RUN(labels_are_what_help_shows);
    RUN(only_strict_utf8_is_decoded);
    opt_list_release(&threads);
    opt_list_release(&apps);
    return check_done();
}

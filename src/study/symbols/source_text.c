/* SPDX-License-Identifier: MIT */
/* Sources, and what a statement in them does with what a call returns.
 *
 * No parser: a statement is read from the call to the left, past brackets that are closed, up to what it is assigned to. Macros are not expanded:
 * what they hide stays unknown. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "study/symbols/symbols_in.h"

enum { MOST_BYTES = 64 << 20, FARTHEST = 4000 /* characters of a statement */ };

/* ---- files ---- */

static char *source_read_file(const char *path, size_t *ret_size)
{
    FILE *f = fopen(path, "re");
    char *text = NULL;
    size_t size = 0, room = 65536;

    while (f && !feof(f) && !ferror(f) && size < MOST_BYTES) {
        room = size == room ? 2 * room : room;
        char *more = realloc(text, room + 1);
        if (!more)
            break;
        text = more;
        size += fread(text + size, 1, room - size, f);
        text[size] = '\0';
    }
    if (f)
        fclose(f);
    *ret_size = size;
    return text;
}

/* Sources of the system's own libraries are not expected to be here. */
static bool source_is_of_system(const char *path)
{
    return path[0] != '/' || strncmp(path, "/usr/", 5) == 0 || strncmp(path, "/lib", 4) == 0
           || strncmp(path, "/build/", 7) == 0;
}

/* Time of the newest file of the program and its libraries, without system libraries; 0: none is here. */
static int64_t source_built(const struct symbols *sym)
{
    int64_t last = 0;
    struct stat s;

    for (size_t i = 0; i < sym->modules; i++) {
        const char *path = sym->module[i]->module->path;
        if (!source_is_of_system(path) && stat(path, &s) == 0 && s.st_mtime > last)
            last = s.st_mtime;
    }
    return last;
}

bool symbols_source_is_current(struct symbols *sym, const char *path)
{
    int64_t built = source_built(sym);
    struct stat s;

    if (stat(path, &s) < 0) {
        if (!source_is_of_system(path))
            symbols_add_problem(sym, "%.400s is not there: names and lines that stand in it are not known", path);
        return false;
    }
    if (built && s.st_mtime > built) {
        symbols_add_problem(
            sym,
            "%.400s was changed since the program was built: names and lines are not taken from it; build "
            "and record again",
            path);
        return false;
    }
    return true;
}

/* Where the compiler found it, or beside the program. */
static char *source_find_file(struct symbols *sym, const char *path, size_t *ret_size)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    struct stat s;

    if (stat(path, &s) == 0)
        return symbols_source_is_current(sym, path) ? source_read_file(path, ret_size) : NULL;
    for (size_t i = 0; i < sym->modules; i++) {
        const char *program = sym->module[i]->module->path, *end = strrchr(program, '/');
        char *beside = end ? mem_format("%.*s/%s", (int)(end - program), program, name) : NULL;
        bool is_there = beside && stat(beside, &s) == 0;
        char *text = is_there && symbols_source_is_current(sym, beside) ? source_read_file(beside, ret_size) : NULL;
        free(beside);
        if (is_there)
            return text;
    }
    (void)symbols_source_is_current(sym, path); /* which says that it is not there */
    return NULL;
}

static bool is_word_char(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static size_t source_blank(char *t, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        if (t[i] != '\n')
            t[i] = ' ';
    return to;
}

/* The end of the comment, string, or preprocessor line that begins at i; i: none begins there. */
static size_t skip_c(const char *t, size_t i, bool at_start)
{
    size_t e = i;

    if (t[i] == '/' && t[i + 1] == '*') {
        const char *end = strstr(t + i + 2, "*/");
        return end ? (size_t)(end - t) + 2 : strlen(t);
    }
    if ((t[i] == '/' && t[i + 1] == '/') || (t[i] == '#' && at_start)) {
        while (t[e] && (t[e] != '\n' || (e > 0 && t[e - 1] == '\\')))
            e++;
        return e;
    }
    if (t[i] == '"'
        || (t[i] == '\'' && !(i > 0 && is_word_char(t[i - 1]) && is_word_char(t[i + 1]) && t[i + 2] != '\''))) {
        for (e = i + 1; t[e] && t[e] != t[i] && t[e] != '\n'; e++)
            if (t[e] == '\\' && t[e + 1])
                e++;
        return t[e] == t[i] ? e + 1 : e;
    }
    return i;
}

static void make_bare(struct symbols_source *s, bool fortran)
{
    bool at_start = true;

    for (size_t i = 0; i < s->size;) {
        size_t end = i;
        if (!fortran)
            end = skip_c(s->bare, i, at_start);
        else if (s->bare[i] == '!' || (at_start && i > 0 && s->bare[i - 1] == '\n' && strchr("cC*", s->bare[i])))
            end = i + strcspn(s->bare + i, "\n");
        if (end > i) {
            i = source_blank(s->bare, i, end);
            continue;
        }
        at_start = s->bare[i] == '\n' || (at_start && isspace((unsigned char)s->bare[i]));
        i++;
    }
}

static bool is_fortran_file(const char *path)
{
    const char *dot = strrchr(path, '.');

    return dot && (dot[1] == 'f' || dot[1] == 'F');
}

const struct symbols_source *symbols_source(struct symbols *sym, const char *path)
{
    struct symbols_source **known = path ? map_put(&sym->sources, (uint64_t)(uintptr_t)path, 0) : NULL;

    if (!known)
        return NULL;
    if (!*known && (*known = arena_alloc(&sym->arena, sizeof **known))) {
        struct symbols_source *s = *known;
        s->path = path;
        s->text = source_find_file(sym, path, &s->size);
        s->bare = s->text ? mem_alloc(1, s->size + 1) : NULL;
        if (s->bare) {
            memcpy(s->bare, s->text, s->size);
            s->size = strlen(s->bare);
            make_bare(s, is_fortran_file(path));
        }
        for (size_t i = 0; s->bare && i < s->size; i++)
            if (i == 0 || s->bare[i - 1] == '\n') {
                s->line = mem_room(s->line, s->lines, sizeof *s->line);
                s->line[s->lines++] = i;
            }
    }
    return *known && (*known)->bare ? *known : NULL;
}

/* ---- to the left of a call ---- */

/* Where the bracket that is closed at i was opened; 0: nowhere near. */
static size_t opening_bracket(const char *t, size_t i)
{
    int depth = 0;

    for (size_t steps = 0; steps < FARTHEST; steps++, i--) {
        depth += strchr(")]}", t[i]) ? 1 : strchr("([{", t[i]) ? -1 : 0;
        if (depth == 0 || i == 0)
            return depth == 0 ? i : 0;
    }
    return 0;
}

static size_t skip_blanks_back(const char *t, size_t i)
{
    while (i > 0 && isspace((unsigned char)t[i - 1]))
        i--;
    return i;
}

static size_t word_start(const char *t, size_t i)
{
    while (i > 0 && is_word_char(t[i - 1]))
        i--;
    return i;
}

static bool word_is(const char *t, size_t start, size_t end, const char *word)
{
    return end - start == strlen(word) && memcmp(t + start, word, end - start) == 0;
}

static bool is_keyword(const char *t, size_t start, size_t end)
{
    static const char *const words[] = { "return", "else", "do", "case", "goto", "throw", "co_return" };

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (word_is(t, start, end, words[i]))
            return true;
    return false;
}

/* The beginning of what can be assigned to and ends before `end`: names, members, elements. *ret_bare: it begins with a dot, as
 * members in initializers do. */
static size_t target_start(const char *t, size_t end, bool *ret_bare)
{
    size_t i = skip_blanks_back(t, end), start = i;

    *ret_bare = false;
    while (i > 0) {
        if (t[i - 1] == ']' || t[i - 1] == ')') {
            size_t open = opening_bracket(t, i - 1);
            if (open == 0)
                break;
            bool is_group = t[i - 1] == ')';
            i = start = open;
            if (is_group && !(i > 0 && is_word_char(t[i - 1])))
                break;
            i = skip_blanks_back(t, i);
            continue;
        }
        if (!is_word_char(t[i - 1]))
            break;
        i = start = word_start(t, i);
        i = skip_blanks_back(t, i);
        if (i > 1 && t[i - 1] == '>' && t[i - 2] == '-')
            i -= 2;
        else if (i > 1 && t[i - 1] == ':' && t[i - 2] == ':')
            i -= 2;
        else if (i > 0 && t[i - 1] == '.')
            i--;
        else
            break;
        start = i;
        i = skip_blanks_back(t, i);
        if (i == 0 || strchr("{,", t[i - 1])) {
            *ret_bare = true;
            break;
        }
    }
    return start;
}

static void copy_target(const char *t, size_t from, size_t to, char *ret, size_t room)
{
    size_t used = strlen(ret);

    for (size_t i = from; i < to && used + 8 < room; i++) {
        if (!isspace((unsigned char)t[i]))
            ret[used++] = t[i];
        if (t[i] == '(' && i > from && is_word_char(t[i - 1])) { /* what a function is called with says little */
            memcpy(ret + used, "…", 3);
            used += 3;
            for (int depth = 1; depth > 0 && i + 1 < to; i++)
                depth += t[i + 1] == '(' ? 1 : t[i + 1] == ')' ? -1 : 0;
            ret[used++] = ')';
        }
    }
    ret[used] = '\0';
    if (strncmp(ret, "this->", 6) == 0)
        memmove(ret, ret + 6, strlen(ret + 6) + 1);
}

static bool is_assign_sign(const char *t, size_t i)
{
    return t[i] == '=' && t[i + 1] != '=' && i > 0 && !strchr("=!<>+-*/%&|^[", t[i - 1]);
}

/* Whether a brace begins an initializer and not a block. */
static bool is_initializer(const char *t, size_t open)
{
    size_t i = skip_blanks_back(t, open);

    return i > 0 && ((is_word_char(t[i - 1]) && !is_keyword(t, word_start(t, i), i)) || strchr(">,={(]", t[i - 1]));
}

/* The sign that assigns what is at `call`, or 0. *ret_new: where the last `new` before it stands. */
static size_t find_assignment(const char *t, size_t call, bool *ret_return, size_t *ret_new)
{
    size_t limit = call > FARTHEST ? call - FARTHEST : 0;

    *ret_return = false;
    for (size_t i = call; i-- > limit + 1;) {
        if (strchr(")]}", t[i])) {
            bool is_brace = t[i] == '}';
            if ((i = opening_bracket(t, i)) == 0 || (is_brace && !is_initializer(t, i)))
                return 0;
        } else if (t[i] == ';' || (t[i] == '{' && !is_initializer(t, i))) {
            return 0;
        } else if (is_assign_sign(t, i)) {
            return i;
        } else if (is_word_char(t[i])) {
            size_t start = word_start(t, i + 1);
            *ret_return = word_is(t, start, i + 1, "return") || word_is(t, start, i + 1, "co_return");
            if (*ret_return)
                return 0;
            if (word_is(t, start, i + 1, "new") && !*ret_new)
                *ret_new = start;
            i = start;
        }
    }
    return 0;
}

/* Stars before a target belong to it if no type precedes them. */
static size_t with_stars(const char *t, size_t start)
{
    size_t i = skip_blanks_back(t, start), first = start;

    while (i > 0 && t[i - 1] == '*') {
        first = i - 1;
        i = skip_blanks_back(t, first);
    }
    if (first == start || i == 0)
        return first;
    if (t[i - 1] == '>' || t[i - 1] == ',') /* char *a = …, *b = … */
        return start;
    if (is_word_char(t[i - 1]) && !is_keyword(t, word_start(t, i), i))
        return start;
    return first;
}

/* For a member in an initializer: what is initialized, as "grid" in grid = (struct grid){ .at = … }. */
static void copy_initialized(const char *t, size_t member, char *ret, size_t room)
{
    size_t i = member, limit = member > FARTHEST ? member - FARTHEST : 0;
    bool bare;

    while (i-- > limit + 1) {
        if (strchr(")]}", t[i])) {
            if ((i = opening_bracket(t, i)) == 0)
                return;
        } else if (t[i] == ';') {
            return;
        } else if (t[i] == '{') {
            break;
        }
    }
    i = skip_blanks_back(t, i);
    if (i > 1 && t[i - 1] == ')')
        i = skip_blanks_back(t, opening_bracket(t, i - 1));
    if (i > 1 && is_assign_sign(t, i - 1)) {
        size_t start = target_start(t, i - 1, &bare);
        copy_target(t, with_stars(t, start), i - 1, ret, room);
    }
}

/* Whether the rest of the function returns that name. */
static bool is_returned(const char *t, size_t from, const char *name)
{
    size_t n = strlen(name);
    int depth = 0;

    for (size_t i = from; t[i]; i++) {
        depth += t[i] == '{' ? 1 : t[i] == '}' ? -1 : 0;
        if (depth < 0 && (i == 0 || t[i - 1] == '\n'))
            return false;
        if (strncmp(t + i, "return", 6) != 0 || is_word_char(t[i + 6]) || (i > 0 && is_word_char(t[i - 1])))
            continue;
        const char *p = t + i + 6;
        p += strspn(p, " \t\n(");
        size_t cast = strcspn(p, ");");
        if (p[-1] == '(' && p[cast] == ')' && cast > 0 && p[cast - 1] == '*') /* as another type */
            p += cast + 1 + strspn(p + cast + 1, " \t\n(");
        if (strncmp(p, name, n) == 0 && (p[n] == ';' || p[n] == ')'))
            return true;
    }
    return false;
}

static size_t call_position(const struct symbols_source *s, uint32_t line, uint32_t column)
{
    size_t start = s->line[line - 1];
    size_t length = strcspn(s->bare + start, "\n");

    if (column > 0 && column - 1 < length)
        return start + column - 1;
    const char *equal = memchr(s->bare + start, '=', length); /* the column is unknown: the first one */
    return equal ? (size_t)(equal - s->bare) + 1 : start + length;
}

/* Copies the type after `new`. */
static void copy_created(const char *t, size_t call, char *ret, size_t room)
{
    size_t i = call, used = 0;

    for (i += 3; isspace((unsigned char)t[i]); i++)
        ;
    for (int depth = 0; t[i] && used + 1 < room; i++) {
        depth += t[i] == '<' ? 1 : t[i] == '>' ? -1 : 0;
        if (depth <= 0 && !is_word_char(t[i]) && t[i] != ':' && t[i] != '>')
            break;
        ret[used++] = t[i];
    }
    ret[used] = '\0';
}

void symbols_target(const struct symbols_source *s, uint32_t line, uint32_t column, struct symbols_target *ret)
{
    const char *t = s->bare;
    bool bare;

    *ret = (struct symbols_target){ 0 };
    if (line == 0 || line > s->lines)
        return;
    size_t call = call_position(s, line, column);
    size_t new = strncmp(t + call, "new", 3) == 0 && !is_word_char(t[call + 3]) ? call : 0;
    if (strncmp(t + call, "posix_memalign", 14) == 0) {
        size_t start = call + strcspn(t + call, "&;"), end = start + strcspn(t + start, ",;");
        if (t[start] == '&')
            copy_target(t, start + 1, end, ret->name, sizeof ret->name);
    } else {
        size_t equal = find_assignment(t, call, &ret->is_return, &new);
        if (new)
            copy_created(t, new, ret->created, sizeof ret->created);
        if (!equal) {
            ret->returned = ret->is_return;
            return;
        }
        size_t start = target_start(t, equal, &bare);
        if (bare)
            copy_initialized(t, start, ret->name, sizeof ret->name);
        if (bare && ret->name[0] == '*') { /* *p = (struct x){ .at = … } is p->at */
            size_t n = strlen(ret->name);
            memmove(ret->name, ret->name + 1, n);
            snprintf(ret->name + n - 1, sizeof ret->name - n + 1, "->");
            start++;
        }
        copy_target(t,
                    bare && !ret->name[0] ? start + 1
                    : bare                ? start
                                          : with_stars(t, start),
                    equal, ret->name, sizeof ret->name);
    }
    ret->returned = ret->name[0] && is_returned(t, call, ret->name);
}

/* ---- containers ---- */

/* The target at the column that the compiler gives: names[key], or a member before the body of a constructor. */
static void at_position(const char *t, size_t call, struct symbols_target *ret)
{
    size_t end = call, before = skip_blanks_back(t, call);
    bool bare;

    if (t[call] == ']') {
        size_t open = opening_bracket(t, call);
        copy_target(t, target_start(t, open, &bare), open, ret->name, sizeof ret->name);
        return;
    }
    while (is_word_char(t[end]))
        end++;
    if (end > call && (t[end] == '(' || t[end] == '{') && before > 1
        && (t[before - 1] == ',' || (t[before - 1] == ':' && t[before - 2] != ':')))
        copy_target(t, call, end, ret->name, sizeof ret->name);
}

/* Whether a method puts something into its container, whatever its value is assigned to. */
static bool is_inserting(const char *t, size_t start, size_t stop)
{
    static const char *const NAMES[] = { "insert",       "insert_or_assign", "emplace",   "emplace_hint",
                                         "emplace_back", "try_emplace",      "push_back", "assign" };

    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (word_is(t, start, stop, NAMES[i]))
            return true;
    return false;
}

/* The object of the method that is called: grid in grid.resize( */
static void of_method(const char *t, size_t begin, size_t end, bool inserting, struct symbols_target *ret)
{
    bool bare;

    for (size_t i = begin; i < end && !ret->name[0]; i++) {
        if (t[i] != '(')
            continue;
        size_t stop = skip_blanks_back(t, i), start = word_start(t, stop), dot = skip_blanks_back(t, start);
        size_t before = dot > 1 && t[dot - 1] == '.'                        ? dot - 1
                        : dot > 2 && t[dot - 1] == '>' && t[dot - 2] == '-' ? dot - 2
                                                                            : 0;
        if (before && start < stop && (!inserting || is_inserting(t, start, stop)))
            copy_target(t, target_start(t, before, &bare), before, ret->name, sizeof ret->name);
    }
}

/* std::vector<double> grid(n): a word with a type before it. */
static void of_declaration(const char *t, size_t begin, size_t end, struct symbols_target *ret)
{
    size_t i = begin + strcspn(t + begin, "({;");

    if (i > end)
        return;
    size_t stop = skip_blanks_back(t, i), start = word_start(t, stop), type = skip_blanks_back(t, start);
    if (start < stop && type > begin && (t[type - 1] == '>' || (is_word_char(t[type - 1]) && type < start)))
        copy_target(t, start, stop, ret->name, sizeof ret->name);
}

void symbols_container(const struct symbols_source *s, uint32_t line, uint32_t column, struct symbols_target *ret)
{
    const char *t = s->bare;

    *ret = (struct symbols_target){ 0 };
    if (line == 0 || line > s->lines)
        return;
    size_t call = column ? call_position(s, line, column) : s->line[line - 1], begin = call;
    size_t end = call + strcspn(t + call, ";");
    while (begin > 0 && !strchr(";{}", t[begin - 1]) && call - begin < FARTHEST)
        begin--;
    of_method(t, begin, end, true, ret);
    if (ret->name[0])
        return;
    symbols_target(s, line, column, ret);
    if (ret->name[0] || ret->is_return)
        return;
    if (column)
        at_position(t, call, ret);
    if (!ret->name[0])
        of_method(t, begin, end, false, ret);
    if (!ret->name[0])
        of_declaration(t, begin, end, ret);
}

/* ---- Fortran ---- */

/* The position after the bracket of an allocate at i; 0: there is none. */
static size_t after_allocate(const char *t, size_t i)
{
    if (strncasecmp(t + i, "allocate", 8) != 0 || (i > 0 && is_word_char(t[i - 1])))
        return 0;
    i += 8;
    i += strspn(t + i, " \t");
    return t[i] == '(' ? i + 1 : 0;
}

/* Whether there is nothing but blanks from the end of the brackets to `end`. */
static bool ends_there(const char *t, size_t in_brackets, size_t end)
{
    size_t i = in_brackets;

    for (int depth = 1; depth > 0 && i < end; i++)
        depth += t[i] == '(' ? 1 : t[i] == ')' ? -1 : 0;
    return i + strspn(t + i, " \t&") >= end;
}

/* Compilers say where a statement ends; others, where it begins, or only the line. */
static size_t find_allocate(const char *t, size_t line, uint32_t column)
{
    size_t length = strcspn(t + line, "\n"), at = line + (column && column - 1 < length ? column - 1 : 0), in_brackets;

    if (column > length)
        at = line + length;
    for (size_t i = at + 1, steps = 0; column && i-- > 0 && steps < FARTHEST; steps++)
        if ((in_brackets = after_allocate(t, i))) {
            if (ends_there(t, in_brackets, at))
                return in_brackets;
            break;
        }
    for (size_t i = at; i < line + length; i++)
        if ((in_brackets = after_allocate(t, i)))
            return in_brackets;
    return 0;
}

/* All targets of one statement, because its calls have one line. */
void symbols_allocate(const struct symbols_source *s, uint32_t line, uint32_t column, struct symbols_target *ret)
{
    *ret = (struct symbols_target){ 0 };
    if (line == 0 || line > s->lines)
        return;
    size_t in_brackets = find_allocate(s->bare, s->line[line - 1], column);
    const char *p = s->bare + in_brackets;
    if (!in_brackets)
        return;
    for (int depth = 1; depth > 0 && *p; p++) {
        size_t n = 0;
        while (isspace((unsigned char)*p) || *p == '&')
            p++;
        while (is_word_char(p[n]) || p[n] == '%')
            n++;
        const char *next = p + n + strspn(p + n, " ");
        if (n && *next != '=' && (!ret->name[0] || strlen(ret->name) + n + 3 < sizeof ret->name)) {
            size_t at = strlen(ret->name);
            snprintf(ret->name + at, sizeof ret->name - at, "%s%.*s", at ? ", " : "", (int)n, p);
        }
        for (p += n; *p && depth > 0; p++) {
            depth += *p == '(' ? 1 : *p == ')' ? -1 : 0;
            if (depth == 0 || (depth == 1 && *p == ','))
                break;
        }
        if (depth == 0 || !*p)
            break;
    }
}

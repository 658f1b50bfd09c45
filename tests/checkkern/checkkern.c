/* checkkern: every kernel of a rung against the reference, bit for bit. After checkasm of the dav1d project.
 *
 * Exit codes: 0 all equal, 1 a difference, 2 usage, 7 could not be checked, 77 this machine lacks the rung. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernel_bench.h"
#include "kernel_cases.h"
#include "kernel_plant.h"

static const char usage[] =
    "usage: checkkern [--rung NAME] [--function NAME] [--seed N] [--hashes FILE] [--write-hashes FILE] [--plant "
    "FAULT]\n"
    "                 [--bench] [--list]\n"
    "  --rung NAME          which instruction set (default: every one this machine has)\n"
    "  --function NAME      only this function\n"
    "  --seed N             only this case (see the line that a failure prints)\n"
    "  --hashes FILE        compare the hash of all results with FILE as well\n"
    "  --write-hashes FILE  write FILE anew\n"
    "  --plant FAULT        check a table with a fault, which must be found: the exit code is 1\n"
    "  --bench              speeds instead of checks\n"
    "  --list               rungs, functions and faults\n";

typedef struct arguments {
    const char *rung, *function, *hashes, *write_hashes, *plant;
    bool one_seed, bench, list;
    uint64_t seed;
} arguments;

/* The case that runs, for the signal handler. */
static check current;

static void print_unsigned(uint64_t x) {
    char text[24];
    size_t i = sizeof text;
    do {
        text[--i] = (char)('0' + x % 10);
        x /= 10;
    } while (x != 0);
    (void)!write(STDOUT_FILENO, text + i, sizeof text - i);
}

static void print_text(const char *text) {
    (void)!write(STDOUT_FILENO, text, strlen(text));
}

/* A kernel touched the page behind a block. */
static void on_fault(int number) {
    (void)number;
    print_text(current.function);
    print_text(": reads or writes outside its arrays\n  repeat: checkkern --rung ");
    print_text(current.kernels->name);
    print_text(" --function ");
    print_text(current.function);
    print_text(" --seed ");
    print_unsigned(current.seed);
    print_text("\n");
    _exit(1);
}

/* One case; false when it failed. */
static bool run_case(uint64_t *hash, const nib_kernels *kernels, const check_function *f, uint64_t seed) {
    current = (check){.kernels = kernels, .function = f->name, .seed = seed, .hash = *hash};
    f->run(&current);
    if (!blocks_intact()) {
        report(&current, "writes before its arrays");
    }
    blocks_release();
    *hash = current.hash;
    return !current.failed;
}

/* All cases of a function, up to the fifth failure; false when one failed. */
static bool run_function(uint64_t *hash, const nib_kernels *kernels, const check_function *f, const arguments *a) {
    *hash = 0xcbf29ce484222325u;
    if (a->one_seed) {
        return run_case(hash, kernels, f, a->seed);
    }
    int n_failed = 0;
    for (uint64_t seed = 0; seed < f->n_cases && n_failed < 5; seed++) {
        n_failed += !run_case(hash, kernels, f, seed);
    }
    return n_failed == 0;
}

/* Whether the file has this hash for the function; says so if not. */
static bool hash_is_known(const char *path, const char *function, uint64_t hash) {
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        perror(path);
        exit(7);
    }
    char line[200], want[200];
    (void)snprintf(want, sizeof want, "%s %016llx\n", function, (unsigned long long)hash);
    bool found = false;
    while (!found && fgets(line, sizeof line, file) != NULL) {
        found = strcmp(line, want) == 0;
    }
    (void)fclose(file);
    if (!found) {
        printf("%s: the hash of the results is %016llx, not the one in %s\n", function, (unsigned long long)hash, path);
    }
    return found;
}

static FILE *begin_hashes(const char *path) {
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        perror(path);
        exit(7);
    }
    fprintf(
        file,
        "# FNV-1a of all results of each function, numeric contract version 1. Written by checkkern --write-hashes.\n");
    return file;
}

static bool run_rung(const nib_kernels *kernels, const arguments *a) {
    bool good = nib_kernels_selfcheck(kernels);
    if (!good) {
        printf("%s: the self-check found that the object does not keep the rules of arithmetic\n", kernels->name);
    }
    FILE *file = a->write_hashes == NULL ? NULL : begin_hashes(a->write_hashes);
    for (size_t i = 0; i < n_check_functions; i++) {
        const check_function *f = &check_functions[i];
        if (a->function != NULL && strcmp(a->function, f->name) != 0) {
            continue;
        }
        uint64_t hash;
        bool same = run_function(&hash, kernels, f, a);
        if (same && a->hashes != NULL && !a->one_seed) {
            same = hash_is_known(a->hashes, f->name, hash);
        }
        if (file != NULL) {
            fprintf(file, "%s %016llx\n", f->name, (unsigned long long)hash);
        }
        printf("%s %-13s %s\n", kernels->name, f->name, same ? "ok" : "DIFFERS");
        good = good && same;
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return good;
}

static void list(void) {
    for (size_t i = 0; nib_kernels_name(i) != NULL; i++) {
        const char *name = nib_kernels_name(i);
        printf("rung %s%s\n", name, nib_kernels_find(name) == NULL ? " (not on this machine)" : "");
    }
    for (size_t i = 0; i < n_check_functions; i++) {
        printf("function %s\n", check_functions[i].name);
    }
    for (size_t i = 0; plant_name(i) != NULL; i++) {
        printf("fault %s\n", plant_name(i));
    }
}

static int refuse(const char *thing, const char *value) {
    fprintf(stderr, "checkkern: %s \"%s\" is unknown\n%s", thing, value, usage);
    return 2;
}

/* The argument of an option that takes one; NULL when the option is another. */
static const char **text_option(arguments *a, const char *option) {
    static const char *const names[] = {"--rung", "--function", "--hashes", "--write-hashes", "--plant"};
    const char **places[] = {&a->rung, &a->function, &a->hashes, &a->write_hashes, &a->plant};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(option, names[i]) == 0) {
            return places[i];
        }
    }
    return NULL;
}

static bool parse(arguments *a, int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        const char **text = text_option(a, argv[i]);
        if (strcmp(argv[i], "--bench") == 0) {
            a->bench = true;
        } else if (strcmp(argv[i], "--list") == 0) {
            a->list = true;
        } else if (i + 1 == argc) {
            return false;
        } else if (text != NULL) {
            *text = argv[++i];
        } else if (strcmp(argv[i], "--seed") == 0) {
            a->one_seed = true;
            a->seed = strtoull(argv[++i], NULL, 10);
        } else {
            return false;
        }
    }
    return true;
}

static bool is_function(const char *name) {
    for (size_t i = 0; i < n_check_functions; i++) {
        if (strcmp(check_functions[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* One rung by name; 0, 1, 2 or 77 as the program's exit code. */
static int run_named(const char *name, const arguments *a) {
    const nib_kernels *kernels = nib_kernels_find(name);
    if (kernels == NULL) {
        printf("%s skipped: this machine lacks it\n", name);
        return 77;
    }
    if (a->plant != NULL && (kernels = planted(kernels, a->plant)) == NULL) {
        return refuse("fault", a->plant);
    }
    if (a->bench) {
        printf("rung %s\n", name);
        bench(kernels, a->function);
        return 0;
    }
    return run_rung(kernels, a) ? 0 : 1;
}

int main(int argc, char **argv) {
    arguments a = {0};
    if (!parse(&a, argc, argv)) {
        fputs(usage, stderr);
        return 2;
    }
    if (a.list) {
        list();
        return 0;
    }
    if (a.function != NULL && !is_function(a.function)) {
        return refuse("function", a.function);
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    blocks_init();
    (void)signal(SIGSEGV, on_fault);
    (void)signal(SIGBUS, on_fault);
    int worst = 0;
    bool known = false;
    for (size_t i = 0; nib_kernels_name(i) != NULL; i++) {
        const char *name = nib_kernels_name(i);
        if (a.rung != NULL && strcmp(a.rung, name) != 0) {
            continue;
        }
        known = true;
        int code = run_named(name, &a);
        worst = code == 77 && a.rung == NULL ? worst : code > worst ? code : worst;
    }
    return known ? worst : refuse("rung", a.rung);
}

/* Reads golden files word by word. */
#include "golden.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct words {
    const char *path;
    FILE *file;
} words;

static void stop(const char *path, const char *what) {
    fprintf(stderr, "%s: %s\n", path, what);
    exit(1);
}

static void *room(size_t n, size_t size) {
    void *p = calloc(n + 1, size);
    if (p == NULL) {
        stop("golden file", "out of memory");
    }
    return p;
}

/* The next word of the file; 0 at its end. */
static int next_word(char word[80], const words *in) {
    return fscanf(in->file, "%79s", word) == 1;
}

static double next_real(const words *in) {
    double value;
    if (fscanf(in->file, "%lf", &value) != 1) {
        stop(in->path, "expected a number");
    }
    return value;
}

static size_t next_count(const words *in) {
    double value = next_real(in);
    if (value < 0 || value > 1e6) {
        stop(in->path, "expected a count");
    }
    return (size_t)value;
}

static golden_ids next_ids(const words *in) {
    golden_ids list = {NULL, next_count(in)};
    list.ids = room(list.n, sizeof list.ids[0]);
    for (size_t i = 0; i < list.n; i++) {
        list.ids[i] = (int32_t)next_real(in);
    }
    return list;
}

static golden_text next_text(const words *in) {
    golden_text text = {NULL, next_count(in)};
    text.bytes = room(text.len, 1);
    for (size_t i = 0; i < text.len; i++) {
        text.bytes[i] = (char)(unsigned char)next_real(in);
    }
    return text;
}

static double *next_reals(const words *in, size_t n) {
    if (next_count(in) != n) {
        stop(in->path, "expected as many numbers as ids");
    }
    double *reals = room(n, sizeof reals[0]);
    for (size_t i = 0; i < n; i++) {
        reals[i] = next_real(in);
    }
    return reals;
}

static void skip_line(const words *in) {
    int c;
    do {
        c = getc(in->file);
    } while (c != '\n' && c != EOF);
}

/* A line of a case. */
static void read_case_line(golden_case *c, const char *word, const words *in) {
    if (strcmp(word, "said") == 0) {
        c->said = next_text(in);
    } else if (strcmp(word, "wrote") == 0) {
        c->wrote = next_text(in);
    } else if (strcmp(word, "prompt") == 0) {
        c->prompt = next_ids(in);
    } else if (strcmp(word, "end") == 0) {
        c->end = next_ids(in);
    } else if (strcmp(word, "ids") == 0) {
        c->ids = next_ids(in);
    } else if (strcmp(word, "penalty") == 0) {
        c->penalty = next_real(in);
    } else if (strcmp(word, "limit") == 0) {
        c->limit = next_count(in);
    } else if (strcmp(word, "logprobs") == 0) {
        c->logprobs = next_reals(in, c->ids.n);
    } else if (strcmp(word, "processed") == 0) {
        c->processed = next_reals(in, c->ids.n);
    } else if (strcmp(word, "margins") == 0) {
        c->margins = next_reals(in, c->ids.n);
    } else if (strcmp(word, "top") == 0) {
        skip_line(in);
    } else {
        stop(in->path, "a line that is not known");
    }
}

/* A line before the cases. */
static void read_head_line(golden *g, size_t *cap, const char *word, const words *in) {
    if (strcmp(word, "#") == 0) {
        skip_line(in);
    } else if (strcmp(word, "file") == 0) {
        if (fscanf(in->file, "%63s", g->file) != 1) {
            stop(in->path, "expected a file name");
        }
    } else if (strcmp(word, "sha256") == 0) {
        if (fscanf(in->file, "%64s", g->sha256) != 1) {
            stop(in->path, "expected a hash");
        }
    } else if (strcmp(word, "vocabulary") == 0) {
        g->V = next_count(in);
    } else if (strcmp(word, "text") == 0) {
        g->text = next_ids(in);
    } else if (strcmp(word, "cases") == 0) {
        *cap = next_count(in);
        g->cases = room(*cap, sizeof g->cases[0]);
    } else {
        stop(in->path, "a line that is not known");
    }
}

static words open_words(char path[512], const char *directory, const char *name) {
    snprintf(path, 512, "%s/%s.golden", directory, name);
    words in = {path, fopen(path, "r")};
    if (in.file == NULL) {
        stop(path, "cannot be read");
    }
    return in;
}

golden golden_read(const char *directory, const char *name) {
    char path[512], word[80];
    words in = open_words(path, directory, name);
    golden g = {.n_cases = 0};
    size_t cap = 0;
    while (next_word(word, &in)) {
        if (strcmp(word, "case") == 0) {
            if (g.n_cases == cap || fscanf(in.file, "%31s", g.cases[g.n_cases].name) != 1) {
                stop(path, "more cases than announced, or one without a name");
            }
            g.n_cases++;
        } else if (g.n_cases > 0) {
            read_case_line(&g.cases[g.n_cases - 1], word, &in);
        } else {
            read_head_line(&g, &cap, word, &in);
        }
    }
    fclose(in.file);
    if (g.n_cases == 0 || g.n_cases != cap || g.V == 0) {
        stop(path, "expected a vocabulary and as many cases as announced");
    }
    return g;
}

float *golden_logits(golden *g, const char *directory, const char *name) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s.logits.f32", directory, name);
    size_t n = g->text.n * g->V;
    float *logits = room(n, sizeof logits[0]);
    FILE *file = fopen(path, "rb");
    if (file == NULL || fread(logits, sizeof logits[0], n, file) != n || getc(file) != EOF) {
        stop(path, "expected the logits of the text, and no more");
    }
    fclose(file);
    for (size_t i = 0; i < n; i++) {
        g->max_logit = fmax(g->max_logit, fabs((double)logits[i]));
    }
    return logits;
}

const golden_case *golden_find(const golden *g, const char *name) {
    for (size_t i = 0; i < g->n_cases; i++) {
        if (strcmp(g->cases[i].name, name) == 0) {
            return &g->cases[i];
        }
    }
    stop(g->file, name);
    return NULL;
}

void golden_free(golden *g) {
    for (size_t i = 0; i < g->n_cases; i++) {
        golden_case *c = &g->cases[i];
        free(c->said.bytes);
        free(c->wrote.bytes);
        free(c->prompt.ids);
        free(c->end.ids);
        free(c->ids.ids);
        free(c->logprobs);
        free(c->processed);
        free(c->margins);
    }
    free(g->cases);
    free(g->text.ids);
    *g = (golden){.n_cases = 0};
}

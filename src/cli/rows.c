/* Rows as text on standard output. */
#include "cli/rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool nib_cli_rows_init(nib_cli_rows *rows, size_t n) {
    *rows = (nib_cli_rows){.n = n, .rows = calloc(n, sizeof rows->rows[0])};
    return rows->rows != NULL;
}

void nib_cli_rows_free(nib_cli_rows *rows) {
    for (size_t i = 0; rows->rows != NULL && i < rows->n; i++) {
        free(rows->rows[i].text);
    }
    free(rows->rows);
    *rows = (nib_cli_rows){0};
}

static bool keep(nib_cli_row *row, const char *text, size_t len) {
    if (len > row->cap - row->len) {
        size_t cap = 2 * row->cap + len;
        char *grown = realloc(row->text, cap);
        if (grown == NULL) {
            return false;
        }
        row->text = grown;
        row->cap = cap;
    }
    if (len > 0) {
        memcpy(row->text + row->len, text, len);
        row->len += len;
    }
    return true;
}

/* Rows that ended make room for those behind them. */
static void advance(nib_cli_rows *rows) {
    while (rows->at < rows->n && rows->rows[rows->at].ended) {
        putchar('\n');
        if (++rows->at < rows->n) {
            (void)fwrite(rows->rows[rows->at].text, 1, rows->rows[rows->at].len, stdout);
        }
    }
}

bool nib_cli_rows_add(nib_cli_rows *rows, size_t at, const char *text, size_t len, bool ended) {
    nib_cli_row *row = &rows->rows[at];
    row->ended = ended;
    row->begun = row->begun || len > 0;
    if (at == rows->at) {
        (void)fwrite(text, 1, len, stdout);
    } else if (!keep(row, text, len)) {
        rows->no_memory = true;
        return false;
    }
    advance(rows);
    return fflush(stdout) == 0;
}

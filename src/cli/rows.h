/* Rows as text on standard output, each on a line of its own, in their order: the first that has not ended streams, what
 * those behind it say waits. */
#ifndef NIB_CLI_ROWS_H
#define NIB_CLI_ROWS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct nib_cli_row {
    char *text; /* [len] what waits */
    size_t len, cap;
    bool begun, ended;
} nib_cli_row;

typedef struct nib_cli_rows {
    nib_cli_row *rows; /* [n] */
    size_t n;
    size_t at; /* the row that streams */
    bool no_memory;
} nib_cli_rows;

/* False when out of memory. */
bool nib_cli_rows_init(nib_cli_rows *rows, size_t n);
void nib_cli_rows_free(nib_cli_rows *rows);

/* More of a row. False: nobody reads the output any more, or it cannot be kept (no_memory). */
bool nib_cli_rows_add(nib_cli_rows *rows, size_t row, const char *text, size_t len, bool ended);

#endif

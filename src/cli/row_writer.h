/* row_writer.h - rows of a query as a table, CSV, JSON or Markdown. */
#ifndef STEPSIM_ROW_WRITER_H
#define STEPSIM_ROW_WRITER_H

#include "cli_internal.h"
#include "stepsim/store.h"

enum row_format { ROWS_TABLE, ROWS_CSV, ROWS_JSON, ROWS_MARKDOWN };

/* Prints every row to stdout and closes the query. Numbers are shortest decimals that read back
 * as the same double, in the table four digits after the point at most. Returns the count. */
uint64_t rows_write(struct cli *cli, struct store_query *query, enum row_format format);

#endif

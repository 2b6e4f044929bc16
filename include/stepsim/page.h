/*
 * page.h - a results database as one HTML page that needs nothing else.
 *
 * The page shows without scripts: what the file holds, the best run, speed against memory with
 * the Pareto front, where the step goes and what fills the memory in the best runs, and a table
 * of them. When the chart library was bundled (CMake option STEPSIM_REPORT_CHARTS) the drawings
 * become interactive, with parallel coordinates and a heat map of two keys; the sorted and
 * filtered table of all runs needs no library. Nothing is fetched.
 *
 * Of more than PAGE_RUNS_MAX runs the Pareto front and the fastest are kept; the page says so.
 */
#ifndef STEPSIM_PAGE_H
#define STEPSIM_PAGE_H

#include "stepsim/store.h"

#define PAGE_RUNS_MAX 20000u

struct page_ask {
    struct store *store;
    const char *title;
    const char *sweep; /* number of a sweep as text, NULL: all */
};

/* The page on the heap; free with text_free(). False with errors; nothing_feasible if the
 * database holds no run with a result. */
bool page_build(const struct page_ask *ask, struct text *out, struct error_list *errors);

/* Is the chart library in this program? */
bool page_has_charts(void);

#endif

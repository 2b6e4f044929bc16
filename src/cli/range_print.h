/* range_print.h - how sure the answer of `simulate` is: the range, and the error of its kind. */
#ifndef STEPSIM_CLI_RANGE_PRINT_H
#define STEPSIM_CLI_RANGE_PRINT_H

#include "cli_internal.h"
#include "stepsim/range.h"

enum range_wish { RANGE_IF_CHEAP, RANGE_ALWAYS, RANGE_NEVER };

struct range_answer {
    const struct range *range; /* NULL: not found */
    uint32_t runs_too_many;    /* simulations it would take, where nobody asked for them; else 0 */
    bool scored;               /* the error of the kind of model is known */
    struct range_model_error error;
};

struct range_answer range_find(struct cli *cli, const struct report *report, enum range_wish wish,
                               uint32_t jobs);
/* Below the headline; nothing where no input is uncertain. */
void range_print_headline(struct cli *cli, const struct report *report,
                          const struct range_answer *answer);
/* The inputs one by one. */
void range_print_inputs(struct cli *cli, const struct report *report,
                        const struct range_answer *answer);
/* The object `range`. The caller frees. */
struct cJSON *range_answer_json(const struct range_answer *answer);

#endif

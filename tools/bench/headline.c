/*
 * headline.c - the headline scenario, from YAML to the finished report.
 */
#include <stdio.h>

#include "bench.h"

void bench_headline(void)
{
    printf("headline scenario: not measured by this build\n");
}

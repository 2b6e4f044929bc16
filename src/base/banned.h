/*
 * banned.h - functions that nobody may call.
 *
 * The build puts this header in front of every source of the library and the
 * program (-include). The system headers come first, so that their own
 * declarations stay legal; afterwards the names do not compile.
 */
#ifndef STEPSIM_BANNED_H
#define STEPSIM_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* No bound on the destination: text.h or snprintf. */
#pragma GCC poison strcpy strcat stpcpy sprintf vsprintf gets
/* Bounds, but no promise of a final NUL, or hidden state. */
#pragma GCC poison strncpy strncat strtok
/* No report of failure: strtol, strtod. */
#pragma GCC poison atoi atol atoll atof
/* Not the same on every machine, or a hidden state: rng.h. */
#pragma GCC poison rand srand rand_r random srandom drand48 lrand48 mrand48 srand48
/* Static buffers, and the time zone of the machine: gmtime_r, strftime. */
#pragma GCC poison asctime ctime gmtime localtime tmpnam tempnam mktemp
/* Grows the stack by data. The C library defines it as a macro too. */
#undef alloca
#pragma GCC poison alloca

#endif

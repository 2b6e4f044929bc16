/*
 * network.h - how transfers that run at the same time share ports and links.
 *
 * PLUG-IN: a model is one file src/network/NAME.c defining `const struct network
 * network_NAME`. What a transfer (collective, message, host copy) takes alone is its
 * closed form, in whole picoseconds; a model says how long it takes beside the others:
 *   closed_form  as long as alone
 *   ports        the steps of each phase, one after the other; a step holds the ports that
 *                it uses of all its members, and a port serves one step at a time, first
 *                come, first served
 *   fair_share   all move at once, at the max-min fair speeds that no port and no shared
 *                link is exceeded by
 * Without contention all three end every transfer at the same picosecond: law.
 *
 * A transfer is a list of phases with shares of its duration. A phase says what part of
 * each *kind* of resource a member keeps busy while the phase runs at full speed: 1 is
 * NETWORK_WHOLE. A kind is a port of every rank (one for all levels with the same link), or
 * something that ranks share: the uplinks of their node or leaf, the host link of their node.
 *
 * fair_share, as mathematics: transfer i runs at speed x_i, at most its cap (1, or less over
 * slow links). With d_ir the demand of i on resource r and c_r its capacity,
 *     for every r: sum over i of d_ir x_i <= c_r
 * and the vector x is max-min fair: every transfer below its cap uses a full resource on
 * which no other is faster. Such an x exists and is unique. Speeds are multiples of
 * 2^-NETWORK_SPEED_BITS rounded down, demands and capacities are integers, so the answer does not
 * depend on the order of anything, and folded equals full. Each phase of a collective is one
 * class of flows: its members move together.
 *
 * Folding: `count` ranks of a class use one shared resource alike.
 *
 * Life of a transfer: begin() claims its slot; settle() ends every instant in which something
 * began or ended; advance() at next() reports the slots that are done. Nothing is allocated after
 * create(). Units: picoseconds.
 */
#ifndef STEPSIM_NETWORK_H
#define STEPSIM_NETWORK_H

#include <stdbool.h>
#include <stddef.h>

#include "stepsim/arena.h"
#include "stepsim/units.h"

#define NETWORK_WHOLE_BITS 16
#define NETWORK_WHOLE      (1u << NETWORK_WHOLE_BITS)
#define NETWORK_SPEED_BITS 30
#define NETWORK_KINDS_MAX  16
#define NETWORK_NONE       UINT32_MAX

struct network_phase {
    uint32_t until; /* its end, in shares of 2^-32 of the transfer; the last one ends with it */
    uint32_t steps; /* at least 1 */
    uint32_t demand[NETWORK_KINDS_MAX];
};

struct network_transfer {
    uint32_t phase_first, phase_count;
};

/* What a simulated rank has of one kind. */
struct network_use {
    uint32_t resource; /* NETWORK_NONE: never full */
    uint32_t count;    /* ranks that use it as this one does, itself included */
    uint32_t cap;      /* on the speed of transfers over it, of 2^NETWORK_SPEED_BITS */
};

struct network_resource {
    int64_t capacity[2]; /* sending, receiving; NETWORK_WHOLE is one port */
};

/* All that a model knows of programs. Lives in the arena of the plan, read-only. */
struct network_run {
    const struct network *model;
    uint32_t kind_count;
    uint32_t port_kind_count; /* the first kinds are ports of ranks */
    const struct network_phase *phases;
    const struct network_transfer *transfers;
    const uint32_t *transfer_of;    /* by index of a duration; NETWORK_NONE: no transfer */
    const struct network_use *uses; /* [simulated rank * kind_count + kind] */
    const struct network_resource *resources;
    uint32_t resource_count;
};

struct network_request {
    uint32_t slot;
    uint32_t transfer;
    sim_time duration;       /* alone; above 0 */
    const uint32_t *members; /* simulated ranks that send */
    uint32_t member_count;
    bool collective;   /* the members receive as well */
    uint32_t receiver; /* of a message or a copy to the device; NETWORK_NONE: none */
    uint32_t order;    /* among requests of one instant for one port, lowest first */
};

struct network_live;

struct network {
    const char *name;
    const char *title;
    /* NULL: transfers take what they take alone. members_most[slot]: of a request for it. */
    struct network_live *(*create)(const struct network_run *run, const uint32_t *members_most,
                                   uint32_t slot_count, struct arena *arena);
    void (*begin)(struct network_live *live, sim_time now, const struct network_request *request);
    void (*settle)(struct network_live *live, sim_time now);
    /* Time of the next change; INT64_MAX: nothing runs. */
    sim_time (*next)(const struct network_live *live);
    /* At next(): writes the slots that are done and returns how many; *events counts changes. */
    uint32_t (*advance)(struct network_live *live, sim_time now, uint32_t *done, uint64_t *events);
    /* Present speed of the transfer of a slot, of 2^NETWORK_SPEED_BITS; for tests. */
    uint32_t (*speed)(const struct network_live *live, uint32_t slot);
};

extern const struct network *const network_registry[]; /* sorted, NULL-terminated */
extern const size_t network_count;

/* NULL if there is none. */
const struct network *network_find(const char *name);

#endif

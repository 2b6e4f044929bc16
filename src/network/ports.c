/*
 * ports.c - the steps of every transfer, on ports that serve one step at a time.
 *
 * A step asks for all ports that it uses of all its members at once. Every port has a queue;
 * the step runs when it is first in all of its queues, for the time that the closed form gives a
 * step, and then leaves them; the next step of the same transfer goes to the ends of the queues,
 * so transfers that share a port take turns. Nothing is polled: a step counts the queues in
 * which it is not first yet.
 *
 * Requests of one instant are queued together, by (order, slot), after everything that ended in
 * it. So the queues agree on who came first, which excludes deadlock, and nothing depends on
 * the order of events. Resources that ranks share are in the closed form of a step already.
 */
#include "network_internal.h"

struct entry {
    uint32_t port; /* resource * 2 + direction */
    uint32_t slot;
    uint32_t next; /* in the queue of the port */
};

struct port {
    uint32_t head, tail; /* entries; NETWORK_NONE */
};

struct job {
    const uint32_t *members;
    uint32_t member_count, receiver, sender;
    bool collective;
    uint32_t order;
    uint32_t transfer, phase;
    sim_time duration;
    sim_time length; /* of the phase */
    uint32_t step, steps;
    uint32_t entry_first, entry_count, entry_room;
    uint32_t behind; /* queues in which it is not first */
    bool running;
};

struct network_live {
    const struct network_run *run;
    struct job *jobs;
    struct entry *entries;
    struct port *ports;
    struct network_heap heap;
    uint64_t *asking; /* order << 32 | slot */
    uint32_t asking_count;
};

static struct network_live *create(const struct network_run *run, const uint32_t *members_most,
                                   uint32_t slot_count, struct arena *arena)
{
    struct network_live *live = ARENA_NEW(arena, struct network_live);
    live->run = run;
    live->jobs = ARENA_ARRAY(arena, slot_count, struct job);
    live->asking = ARENA_ARRAY(arena, slot_count, uint64_t);
    live->ports = ARENA_ARRAY(arena, run->resource_count * 2, struct port);
    uint32_t total = 0;
    for (uint32_t slot = 0; slot < slot_count; slot++) {
        live->jobs[slot].entry_first = total;
        live->jobs[slot].entry_room = members_most[slot] * run->port_kind_count * 2;
        total += live->jobs[slot].entry_room;
    }
    live->entries = ARENA_ARRAY(arena, total, struct entry);
    for (uint32_t i = 0; i < run->resource_count * 2; i++)
        live->ports[i] = (struct port){NETWORK_NONE, NETWORK_NONE};
    network_heap_init(&live->heap, slot_count, arena);
    return live;
}

/* ---- Queues ---- */

static void add_entries(struct network_live *live, uint32_t slot, uint32_t rank, uint32_t direction)
{
    const struct network_run *run = live->run;
    struct job *job = &live->jobs[slot];
    const struct network_phase *phase =
        &run->phases[run->transfers[job->transfer].phase_first + job->phase];
    for (uint32_t kind = 0; kind < run->port_kind_count; kind++) {
        const uint32_t resource = run->uses[rank * run->kind_count + kind].resource;
        if (phase->demand[kind] == 0 || resource == NETWORK_NONE)
            continue;
        ASSERT(job->entry_count < job->entry_room);
        live->entries[job->entry_first + job->entry_count++] =
            (struct entry){.port = resource * 2 + direction, .slot = slot};
    }
}

/* Which ports the phase uses; the same for all its steps. */
static void find_ports(struct network_live *live, uint32_t slot)
{
    struct job *job = &live->jobs[slot];
    const uint32_t *members = job->collective ? job->members : &job->sender;
    job->entry_count = 0;
    for (uint32_t i = 0; i < job->member_count; i++) {
        add_entries(live, slot, members[i], 0);
        if (job->collective)
            add_entries(live, slot, members[i], 1);
    }
    if (job->receiver != NETWORK_NONE)
        add_entries(live, slot, job->receiver, 1);
}

static void run_step(struct network_live *live, sim_time now, uint32_t slot)
{
    struct job *job = &live->jobs[slot];
    const network_wide length = (network_wide)job->length;
    const sim_time from = (sim_time)(length * job->step / job->steps);
    const sim_time to = (sim_time)(length * (job->step + 1) / job->steps);
    network_heap_put(&live->heap, slot, now + to - from);
}

static void enqueue(struct network_live *live, sim_time now, uint32_t slot)
{
    struct job *job = &live->jobs[slot];
    job->behind = 0;
    for (uint32_t i = 0; i < job->entry_count; i++) {
        const uint32_t at = job->entry_first + i;
        struct port *port = &live->ports[live->entries[at].port];
        live->entries[at].next = NETWORK_NONE;
        if (port->head == NETWORK_NONE) {
            port->head = at;
        } else {
            live->entries[port->tail].next = at;
            job->behind++;
        }
        port->tail = at;
    }
    if (job->behind == 0)
        run_step(live, now, slot);
}

static void leave_queues(struct network_live *live, sim_time now, const struct job *job)
{
    for (uint32_t i = 0; i < job->entry_count; i++) {
        const uint32_t at = job->entry_first + i;
        struct port *port = &live->ports[live->entries[at].port];
        ASSERT(port->head == at);
        port->head = live->entries[at].next;
        if (port->head == NETWORK_NONE)
            continue;
        const uint32_t first = live->entries[port->head].slot;
        ASSERT(live->jobs[first].behind > 0);
        if (--live->jobs[first].behind == 0)
            run_step(live, now, first);
    }
}

/* ---- Steps and phases ---- */

static void ask(struct network_live *live, uint32_t slot)
{
    live->asking[live->asking_count++] = (uint64_t)live->jobs[slot].order << 32 | slot;
}

/* The next phase that takes time; false when there is none. */
static bool enter_phase(struct network_live *live, uint32_t slot, uint32_t phase)
{
    struct job *job = &live->jobs[slot];
    const struct network_transfer *transfer = &live->run->transfers[job->transfer];
    for (; phase < transfer->phase_count; phase++) {
        job->length = network_phase_length(live->run, job->transfer, phase, job->duration);
        if (job->length > 0)
            break;
    }
    if (phase == transfer->phase_count)
        return false;
    const uint32_t steps = live->run->phases[transfer->phase_first + phase].steps;
    job->phase = phase;
    job->step = 0;
    job->steps = (sim_time)steps > job->length ? (uint32_t)job->length : steps;
    find_ports(live, slot);
    ask(live, slot);
    return true;
}

static void begin(struct network_live *live, sim_time now, const struct network_request *request)
{
    (void)now;
    struct job *job = &live->jobs[request->slot];
    ASSERT(!job->running && request->duration > 0);
    ASSERT(request->collective || request->member_count <= 1);
    job->members = request->members;
    job->member_count = request->member_count;
    job->receiver = request->receiver;
    job->sender = request->member_count > 0 ? request->members[0] : NETWORK_NONE;
    job->collective = request->collective;
    job->order = request->order;
    job->transfer = request->transfer;
    job->duration = request->duration;
    job->running = true;
    enter_phase(live, request->slot, 0);
}

static uint32_t advance(struct network_live *live, sim_time now, uint32_t *done, uint64_t *events)
{
    uint32_t count = 0;
    while (network_heap_next(&live->heap) == now) {
        const uint32_t slot = network_heap_take(&live->heap);
        struct job *job = &live->jobs[slot];
        leave_queues(live, now, job);
        (*events)++;
        if (++job->step < job->steps) {
            ask(live, slot);
        } else if (!enter_phase(live, slot, job->phase + 1)) {
            job->running = false;
            done[count++] = slot;
        }
    }
    return count;
}

static void sink(uint64_t *keys, uint32_t at, uint32_t count)
{
    const uint64_t key = keys[at];
    for (uint32_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
        child += child + 1 < count && keys[child + 1] > keys[child];
        if (keys[child] <= key)
            break;
        keys[at] = keys[child];
        at = child;
    }
    keys[at] = key;
}

/* Heap sort: in place, and as quick for any order of events. */
static void sort(uint64_t *keys, uint32_t count)
{
    for (uint32_t i = count / 2; i > 0; i--)
        sink(keys, i - 1, count);
    for (uint32_t last = count; last > 1; last--) {
        const uint64_t largest = keys[0];
        keys[0] = keys[last - 1];
        keys[last - 1] = largest;
        sink(keys, 0, last - 1);
    }
}

static void settle(struct network_live *live, sim_time now)
{
    sort(live->asking, live->asking_count);
    for (uint32_t i = 0; i < live->asking_count; i++)
        enqueue(live, now, (uint32_t)live->asking[i]);
    live->asking_count = 0;
}

static sim_time next(const struct network_live *live)
{
    return network_heap_next(&live->heap);
}

static uint32_t speed(const struct network_live *live, uint32_t slot)
{
    const bool moves = live->heap.position[slot] != NETWORK_NONE;
    return moves ? 1u << NETWORK_SPEED_BITS : 0;
}

const struct network network_ports = {
    .name = "ports",
    .title = "Every step of an algorithm; sending and receiving ports serialise.",
    .create = create,
    .begin = begin,
    .settle = settle,
    .next = next,
    .advance = advance,
    .speed = speed,
};

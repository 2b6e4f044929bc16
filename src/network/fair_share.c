/*
 * fair_share.c - max-min fair speeds, worked out anew only where something changed.
 *
 * A resource whose users together ask for no more than it has can never be what holds one
 * back; the others are *crowded*. A change reaches what is joined to it by crowded resources, and
 * nothing else: settle() collects that component and solves it alone, once for all changes
 * of an instant. The solver is progressive filling: the resource (or cap) that gives the least
 * speed fixes its transfers, and what they use is gone for the others.
 *
 * What is left of a phase is kept in exact integers, so it makes no difference how often it
 * is brought up to date. Only transfers whose speed changed get a new end.
 */
#include "network_internal.h"

enum { SENDING, RECEIVING };

/* One transfer on one resource (in one direction). */
struct entry {
    uint32_t link; /* resource * 2 + direction */
    uint32_t slot;
    int64_t demand;
    uint32_t next, previous; /* entries of the link; NETWORK_NONE */
};

struct flow {
    uint32_t transfer, phase;
    sim_time duration;
    network_wide left;
    sim_time since;             /* left is of then */
    uint32_t speed, cap, fixed; /* fixed: the new speed while a component is solved */
    uint32_t entry_first, entry_count, entry_room;
    bool running, collected, solved;
};

struct link {
    int64_t capacity;
    int64_t wanted;                 /* sum of the demands */
    uint32_t first;                 /* entry */
    bool dirty, collected, crowded; /* crowded: when it was solved last */
    int64_t room;                   /* while a component is solved: what is not given away, and */
    int64_t weight;                 /* the demands of those that have no speed yet */
};

/* What a slot asks for: kept from the request, for the later phases. */
struct kept {
    const uint32_t *members;
    uint32_t member_count;
    uint32_t receiver;
    uint32_t sender; /* a message's, so that members may point to it */
    bool collective;
};

struct network_live {
    const struct network_run *run;
    struct flow *flows;
    struct kept *kept;
    struct entry *entries;
    struct link *links;
    struct network_heap heap;
    uint32_t *dirty, *component, *flow_component;
    uint32_t dirty_count, component_count, flow_count;
    uint32_t *fresh; /* flows whose phase began in this instant */
    uint32_t fresh_count;
};

static struct network_live *create(const struct network_run *run, const uint32_t *members_most,
                                   uint32_t slot_count, struct arena *arena)
{
    struct network_live *live = ARENA_NEW(arena, struct network_live);
    const uint32_t links = run->resource_count * 2;
    live->run = run;
    live->flows = ARENA_ARRAY(arena, slot_count, struct flow);
    live->kept = ARENA_ARRAY(arena, slot_count, struct kept);
    live->fresh = ARENA_ARRAY(arena, slot_count, uint32_t);
    live->flow_component = ARENA_ARRAY(arena, slot_count, uint32_t);
    live->links = ARENA_ARRAY(arena, links, struct link);
    live->dirty = ARENA_ARRAY(arena, links, uint32_t);
    live->component = ARENA_ARRAY(arena, links, uint32_t);
    uint32_t total = 0;
    for (uint32_t slot = 0; slot < slot_count; slot++) {
        live->flows[slot].entry_first = total;
        live->flows[slot].entry_room = members_most[slot] * run->kind_count * 2;
        total += live->flows[slot].entry_room;
    }
    live->entries = ARENA_ARRAY(arena, total, struct entry);
    for (uint32_t i = 0; i < links; i++) {
        live->links[i].capacity = run->resources[i / 2].capacity[i % 2];
        live->links[i].first = NETWORK_NONE;
    }
    network_heap_init(&live->heap, slot_count, arena);
    return live;
}

static void soil(struct network_live *live, uint32_t index)
{
    if (!live->links[index].dirty) {
        live->links[index].dirty = true;
        live->dirty[live->dirty_count++] = index;
    }
}

/* ---- Phases enter and leave ---- */

static void add_entry(struct network_live *live, uint32_t slot, uint32_t index, int64_t demand)
{
    struct flow *flow = &live->flows[slot];
    ASSERT(flow->entry_count < flow->entry_room);
    const uint32_t at = flow->entry_first + flow->entry_count++;
    struct link *link = &live->links[index];
    live->entries[at] = (struct entry){.link = index,
                                       .slot = slot,
                                       .demand = demand,
                                       .next = link->first,
                                       .previous = NETWORK_NONE};
    if (link->first != NETWORK_NONE)
        live->entries[link->first].previous = at;
    link->first = at;
    link->wanted += demand;
    soil(live, index);
}

static void add_entries(struct network_live *live, uint32_t slot, uint32_t rank, int direction)
{
    const struct network_run *run = live->run;
    struct flow *flow = &live->flows[slot];
    const struct network_transfer *transfer = &run->transfers[flow->transfer];
    const struct network_phase *phase = &run->phases[transfer->phase_first + flow->phase];
    for (uint32_t kind = 0; kind < run->kind_count; kind++) {
        const struct network_use *use = &run->uses[rank * run->kind_count + kind];
        if (phase->demand[kind] == 0)
            continue;
        flow->cap = use->cap < flow->cap ? use->cap : flow->cap;
        if (use->resource != NETWORK_NONE)
            add_entry(live, slot, use->resource * 2 + (uint32_t)direction,
                      (int64_t)phase->demand[kind] * use->count);
    }
}

static void enter_phase(struct network_live *live, sim_time now, uint32_t slot)
{
    struct flow *flow = &live->flows[slot];
    const struct kept *kept = &live->kept[slot];
    const sim_time length =
        network_phase_length(live->run, flow->transfer, flow->phase, flow->duration);
    flow->left = (network_wide)length << NETWORK_SPEED_BITS;
    flow->since = now;
    flow->cap = 1u << NETWORK_SPEED_BITS;
    flow->speed = 0;
    flow->entry_count = 0;
    flow->running = true;
    const uint32_t *members = kept->collective ? kept->members : &kept->sender;
    for (uint32_t i = 0; i < kept->member_count; i++) {
        add_entries(live, slot, members[i], SENDING);
        if (kept->collective)
            add_entries(live, slot, members[i], RECEIVING);
    }
    if (kept->receiver != NETWORK_NONE)
        add_entries(live, slot, kept->receiver, RECEIVING);
    live->fresh[live->fresh_count++] = slot;
}

static void leave_phase(struct network_live *live, uint32_t slot)
{
    struct flow *flow = &live->flows[slot];
    for (uint32_t i = 0; i < flow->entry_count; i++) {
        const struct entry *entry = &live->entries[flow->entry_first + i];
        struct link *link = &live->links[entry->link];
        if (entry->previous == NETWORK_NONE)
            link->first = entry->next;
        else
            live->entries[entry->previous].next = entry->next;
        if (entry->next != NETWORK_NONE)
            live->entries[entry->next].previous = entry->previous;
        link->wanted -= entry->demand;
        soil(live, entry->link);
    }
    flow->entry_count = 0;
    flow->running = false;
}

static void begin(struct network_live *live, sim_time now, const struct network_request *request)
{
    struct flow *flow = &live->flows[request->slot];
    ASSERT(!flow->running && request->duration > 0);
    flow->transfer = request->transfer;
    flow->duration = request->duration;
    flow->phase = 0;
    live->kept[request->slot] = (struct kept){
        .members = request->members,
        .member_count = request->member_count,
        .receiver = request->receiver,
        .sender = request->member_count > 0 ? request->members[0] : NETWORK_NONE,
        .collective = request->collective,
    };
    ASSERT(request->collective || request->member_count <= 1);
    while (network_phase_length(live->run, flow->transfer, flow->phase, flow->duration) == 0)
        flow->phase++;
    enter_phase(live, now, request->slot);
}

static uint32_t advance(struct network_live *live, sim_time now, uint32_t *done, uint64_t *events)
{
    uint32_t count = 0;
    while (network_heap_next(&live->heap) == now) {
        const uint32_t slot = network_heap_take(&live->heap);
        struct flow *flow = &live->flows[slot];
        const uint32_t phases = live->run->transfers[flow->transfer].phase_count;
        leave_phase(live, slot);
        (*events)++;
        do {
            flow->phase++;
        } while (flow->phase < phases &&
                 network_phase_length(live->run, flow->transfer, flow->phase, flow->duration) == 0);
        if (flow->phase < phases)
            enter_phase(live, now, slot);
        else
            done[count++] = slot;
    }
    return count;
}

/* ---- The component of a change ---- */

static void collect_flow(struct network_live *live, uint32_t slot)
{
    if (!live->flows[slot].collected) {
        live->flows[slot].collected = true;
        live->flows[slot].solved = false;
        live->flow_component[live->flow_count++] = slot;
    }
}

static void collect_users(struct network_live *live, const struct link *link)
{
    for (uint32_t e = link->first; e != NETWORK_NONE; e = live->entries[e].next)
        collect_flow(live, live->entries[e].slot);
}

static void collect(struct network_live *live)
{
    for (uint32_t i = 0; i < live->fresh_count; i++)
        collect_flow(live, live->fresh[i]);
    for (uint32_t i = 0; i < live->dirty_count; i++) {
        struct link *link = &live->links[live->dirty[i]];
        if (link->crowded || link->wanted > link->capacity)
            collect_users(live, link);
        link->crowded = link->wanted > link->capacity;
        link->dirty = false;
    }
    for (uint32_t i = 0; i < live->flow_count; i++) {
        const struct flow *flow = &live->flows[live->flow_component[i]];
        for (uint32_t e = 0; e < flow->entry_count; e++) {
            const uint32_t index = live->entries[flow->entry_first + e].link;
            struct link *link = &live->links[index];
            if (!link->crowded || link->collected)
                continue;
            link->collected = true;
            link->room = link->capacity << NETWORK_SPEED_BITS;
            link->weight = link->wanted;
            live->component[live->component_count++] = index;
            collect_users(live, link);
        }
    }
    live->fresh_count = live->dirty_count = 0;
}

/* ---- Progressive filling ---- */

static void fix(struct network_live *live, uint32_t slot, uint32_t speed)
{
    struct flow *flow = &live->flows[slot];
    flow->solved = true;
    flow->fixed = speed;
    for (uint32_t e = 0; e < flow->entry_count; e++) {
        const struct entry *entry = &live->entries[flow->entry_first + e];
        struct link *link = &live->links[entry->link];
        if (link->collected) {
            link->room -= entry->demand * speed;
            link->weight -= entry->demand;
        }
    }
}

/* The speed that a link gives to those without one; 0 where less than a unit is left. */
static int64_t level_of(const struct link *link)
{
    return link->room > 0 ? link->room / link->weight : 0;
}

static int64_t least_level(const struct network_live *live)
{
    int64_t least = INT64_MAX;
    for (uint32_t i = 0; i < live->component_count; i++) {
        const struct link *link = &live->links[live->component[i]];
        if (link->weight > 0 && level_of(link) < least)
            least = level_of(link);
    }
    return least;
}

static uint32_t least_cap(const struct network_live *live)
{
    uint32_t least = NETWORK_NONE;
    for (uint32_t i = 0; i < live->flow_count; i++) {
        const struct flow *flow = &live->flows[live->flow_component[i]];
        if (!flow->solved && flow->cap < least)
            least = flow->cap;
    }
    return least;
}

/* Of all links at the level; what fixing does to them does not change who they are. */
static void fix_at_level(struct network_live *live, int64_t level)
{
    const uint32_t speed = level > 0 ? (uint32_t)level : 1; /* nothing ever stands still */
    uint32_t count = 0;
    for (uint32_t i = 0; i < live->component_count; i++) {
        const struct link *link = &live->links[live->component[i]];
        if (link->weight > 0 && level_of(link) == level)
            live->dirty[count++] = live->component[i];
    }
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t e = live->links[live->dirty[i]].first; e != NETWORK_NONE;
             e = live->entries[e].next) {
            if (!live->flows[live->entries[e].slot].solved)
                fix(live, live->entries[e].slot, speed);
        }
    }
}

static void solve(struct network_live *live)
{
    for (uint32_t cap = least_cap(live); cap != NETWORK_NONE; cap = least_cap(live)) {
        const int64_t level = least_level(live);
        if (level < cap) {
            fix_at_level(live, level);
            continue;
        }
        for (uint32_t i = 0; i < live->flow_count; i++) {
            const struct flow *flow = &live->flows[live->flow_component[i]];
            if (!flow->solved && flow->cap == cap)
                fix(live, live->flow_component[i], cap);
        }
    }
}

static void settle(struct network_live *live, sim_time now)
{
    if (live->dirty_count == 0 && live->fresh_count == 0)
        return;
    live->flow_count = live->component_count = 0;
    collect(live);
    solve(live);
    for (uint32_t i = 0; i < live->component_count; i++)
        live->links[live->component[i]].collected = false;
    for (uint32_t i = 0; i < live->flow_count; i++) {
        struct flow *flow = &live->flows[live->flow_component[i]];
        flow->collected = false;
        if (flow->fixed == flow->speed)
            continue;
        flow->left -= (network_wide)(now - flow->since) * flow->speed;
        flow->since = now;
        flow->speed = flow->fixed;
        const network_wide rest = (flow->left + flow->speed - 1) / flow->speed;
        network_heap_put(&live->heap, live->flow_component[i], now + (sim_time)rest);
    }
}

static sim_time next(const struct network_live *live)
{
    return network_heap_next(&live->heap);
}

static uint32_t speed(const struct network_live *live, uint32_t slot)
{
    return live->flows[slot].running ? live->flows[slot].speed : 0;
}

const struct network network_fair_share = {
    .name = "fair_share",
    .title = "Max-min sharing of every link that a transfer uses.",
    .create = create,
    .begin = begin,
    .settle = settle,
    .next = next,
    .advance = advance,
    .speed = speed,
};

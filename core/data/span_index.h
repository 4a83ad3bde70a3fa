/*
 * span_index: what is known of each span id, for as long as the window lasts.
 *
 * The memory of the join (docs/spanjoin.md, section 4). Sharded, a lock per shard; one open-addressed table per shard with the
 * arrival tick in the slot; ids are hashed with the process' key and verified by trace id; strings live in per-tick arenas; expired lazily, evicted first in, first out.
 * Owner: a spanjoin component. Thread: any; time is an argument.
 * (To be written by the join's author; the processor is its only user.)
 */

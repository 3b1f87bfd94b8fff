// Command palisade-bench measures the hot paths of a real server against minimal baselines, in one run, on generated
// data:
//
//   - pages of findings over HTTP and gRPC, against a bare net/http handler that writes the same bytes, and against
//     the plain reader, which reads them from the same database;
//   - deep pages, against the first pages of the same listing session and against an OFFSET;
//   - report uploads and triage decisions, against handwritten SQL for the same rows;
//   - start, memory, disk usage, lists and reports, against absolute limits;
//   - the effect of imports on concurrent readers and triage, in the same deployment and in another one, against the
//     same without an import;
//   - growth: the cost as a function of the size of the store.
//
// Mostly only ratios within one run are meaningful: machines differ, and the speed of one machine varies over time.
// Therefore the compared targets take turns, each round of one is divided by the same round of the other, and the
// median of these ratios is the result.
//
// Every server runs in a separate process (this program again, with a hidden subcommand) and reports its own CPU time.
// A load generator in the same process would distort the figure.
package main

// Command palisade-bench measures the hot paths of a real server against the least that the same work can cost, in one
// run, on data that it makes itself:
//
//   - pages of findings over HTTP and over gRPC, against a bare net/http handler that writes the same bytes, and against
//     the plain reader, which joins them from the same database;
//   - deep pages, against the first ones of the same walk and against the same skip by hand;
//   - report uploads and decisions, against the same rows written by hand;
//   - start, memory, bytes, lists and reports, against figures that people do not wait for or pay for;
//   - what imports cost those who read and decide meanwhile, in the same deployment and in another one, against the same
//     while nothing is imported;
//   - growth: how the cost follows the size of the store.
//
// Mostly only ratios within one run mean something: machines differ, and a machine differs from itself an hour later.
// So the things compared take turns, each round of one is divided by the other's round of the same number, and the
// median of these ratios counts.
//
// Every server runs in a process of its own (this program again, with a hidden subcommand) and reports its own CPU
// time, because a load generator in the same process would be counted with it.
package main

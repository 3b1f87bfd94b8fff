// Package identity proves by mutation that findings keep their identity: it edits real code in ways whose effect on
// every line is known, uploads what a scanner says before and after to a real server, and compares what the server made
// of it with the truth.
//
// The code is a Tree, whose lines know where they came from. An Edit changes a tree; so where an old line is now, or
// that it is gone, needs no diff, which could err. Reports after an edit come from the real scanner run over the edited
// code, or, where that takes too long, from the old report carried along the lines. Truth says for each old result
// where it is in the new report; Count compares it with the findings that the server lists.
package identity

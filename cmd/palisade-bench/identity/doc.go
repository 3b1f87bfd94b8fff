// Package identity tests by mutation that findings keep their identity: it edits real code with known effects on every
// line, uploads the scanner's reports before and after to a real server, and compares the server's findings with the
// truth.
//
// The code is a Tree, with the origin of every line. An Edit changes a tree. So the new position of each old line is
// known without a diff, which could be wrong. Reports after an edit come from a real scanner on the edited code or, if
// that takes too long, from the old report carried along the lines. Truth has, for each old result, its place in the
// new report; Count compares it with the server's list.
package identity
